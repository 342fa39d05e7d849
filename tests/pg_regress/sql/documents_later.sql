-- D1: a table's default first, by MongoDB's command, and overrides in documents later.
CREATE SCHEMA documents_later;
SET search_path = documents_later;
\set VERBOSITY default
CREATE FUNCTION rows(relation regclass) RETURNS TABLE (found text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT t::text FROM (SELECT id, body, ttl, CASE WHEN ttl > 0 THEN ttl.expires_at(_ts, ttl, 3600) - _ts END AS lives FROM %s) t ORDER BY id', relation);
END $$;
CREATE VIEW state AS SELECT relation, default_ttl, ttl_column, document_column, problems FROM ttl.tables
  JOIN pg_class ON oid = relation WHERE relnamespace = 'documents_later'::regnamespace;

-- without loss: nobody has used the column
CREATE TABLE docs (id int PRIMARY KEY, body jsonb);
INSERT INTO docs VALUES (1, '{"ttl": 10}'), (2, '{"ttl": -1}'), (3, '{}'), (4, NULL), (5, '[1]'), (6, '{"ttl": 7200}');
SELECT ttl.create_index('docs', '{"_ts": 1}', '{"expireAfterSeconds": 3600}');
SELECT ttl.create_index('docs', '{"_ts": 1}', '{"expireAfterSeconds": 3600}');
SELECT * FROM rows('docs');
SELECT ttl.enable('docs', 3600, document_column => 'body');
SELECT * FROM rows('docs');
SELECT * FROM state ORDER BY relation::text;
SELECT label::jsonb -> 'added' FROM pg_seclabel WHERE objoid = 'docs'::regclass AND provider = 'ttl';
SELECT tgname FROM pg_trigger WHERE tgrelid = 'docs'::regclass ORDER BY 1;
\d docs
-- again, and by MongoDB's command: it stays so
SELECT ttl.enable('docs', 1800);
SELECT ttl.coll_mod('docs', '{"index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": 3600}}');
SELECT * FROM state ORDER BY relation::text;
SELECT ttl.disable('docs', drop_columns => true);
\d docs
DROP TABLE docs;

-- overrides in the column: refused, until the documents have them
CREATE TABLE docs (id int PRIMARY KEY, body jsonb NOT NULL);
SELECT ttl.enable('docs', 3600);
SET ttl.preserve_ts = on;
INSERT INTO docs (id, body, ttl, _ts) VALUES (1, '{}', 7200, now() - interval '5000 s'), (2, '{"ttl": 5}', NULL, now()),
    (3, '{"ttl": 8}', 8, now()), (4, '{"ttl": 7200}', NULL, now() - interval '4000 s');
RESET ttl.preserve_ts;
SELECT ttl.enable('docs', 3600, document_column => 'body');
SELECT * FROM state ORDER BY relation::text;
SELECT * FROM rows('docs');
SET ttl.preserve_ts = on;
UPDATE documents_later.docs SET body = body || pg_catalog.jsonb_build_object('ttl', ttl) WHERE ttl IS NOT NULL;
RESET ttl.preserve_ts;
SELECT ttl.enable('docs', 3600, document_column => 'body');
-- row 4 had expired by the default; its document does not bring it back
SELECT id, body, ttl, now() - _ts > interval '1 h' AS old FROM docs ORDER BY id;
SET ttl.show_expired = on;
SELECT count(*) FROM docs;
RESET ttl.show_expired;
SELECT * FROM state ORDER BY relation::text;

-- a policy for rows hides none from the check
CREATE ROLE regress_later;
GRANT ALL ON SCHEMA documents_later TO regress_later;
CREATE TABLE guarded (id int, body jsonb);
SELECT ttl.enable('guarded', 3600);
INSERT INTO guarded (id, body, ttl) VALUES (1, '{}', 7);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE guarded OWNER TO regress_later;
SET ROLE regress_later;
SELECT count(*) FROM guarded;
SELECT ttl.enable('guarded', 3600, document_column => 'body');
RESET ROLE;

-- the column was there before: it is the user's
CREATE TABLE adopted (id int, ttl int, body jsonb);
SELECT ttl.enable('adopted', 3600);
SELECT ttl.enable('adopted', 3600, document_column => 'body');
-- so is what depends on it
CREATE TABLE seen (id int, body jsonb);
SELECT ttl.enable('seen', 3600);
CREATE VIEW seeing AS SELECT ttl FROM seen;
SELECT ttl.enable('seen', 3600, document_column => 'body');
SELECT * FROM state ORDER BY relation::text;
-- without an override column: it is added
CREATE TABLE plain (id int, body jsonb);
SELECT ttl.enable('plain', 3600, ttl_column => NULL);
INSERT INTO plain VALUES (1, '{"ttl": 60}');
SELECT ttl.enable('plain', 3600, document_column => 'body');
SELECT * FROM rows('plain');
-- turned off, and partitioned
CREATE TABLE parted (id int, body jsonb) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted DEFAULT;
SELECT ttl.enable('parted', 3600);
INSERT INTO parted (id, body, ttl) VALUES (1, '{"ttl": 9}', 9), (2, '{"ttl": 60}', NULL);
SELECT ttl.disable('parted');
SELECT ttl.enable('parted', 3600, document_column => 'body');
SELECT * FROM rows('parted');
INSERT INTO parted_1 (id, body) VALUES (1, '{"ttl": 70}') RETURNING ttl;
SELECT * FROM state ORDER BY relation::text;

SET client_min_messages = warning;
DROP SCHEMA documents_later CASCADE;
DROP ROLE regress_later;
