-- M8: a TTL index's rule ends with its index, and with nothing else; and what is expired
-- by it does not come back (docs/decisions/0018-turning-off-purges-first.md).
CREATE SCHEMA ttl_index_life;
SET search_path = ttl_index_life;
SET client_min_messages = warning;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; detail text; hint text; state text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n   ', state || ': ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE FUNCTION on_disk(tab regclass) RETURNS int[] LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
-- what state() tells: rows seen, rows on disk, rules, problems
\pset tuples_only on
\pset format unaligned
\pset null NULL
CREATE FUNCTION state(tab text DEFAULT 't', OUT seen int[], OUT disk int[], OUT rules text, OUT problems text[]) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO seen;
    disk := on_disk(tab::regclass);
    SELECT string_agg(concat_ws(' ', r ->> 'name', r -> 'key', r -> 'expireAfterSeconds', r ->> 'partialFilterExpression'), '; '), x.problems INTO rules, problems
      FROM ttl.tables x LEFT JOIN LATERAL jsonb_array_elements(x.rules) r ON true WHERE relation = tab::regclass GROUP BY x.problems;
END $$;
-- odd rows are expired by d, 2 by e if its level is debug, 4 and 6 live; 8 has been expired by the array
CREATE PROCEDURE make() LANGUAGE plpgsql AS $$
BEGIN
    -- with a key, so that the trigger for keys is there, too
    DROP TABLE IF EXISTS t CASCADE;
    CREATE TABLE t (id int PRIMARY KEY, d timestamptz, e date, level text, ds timestamp[], n int);
    INSERT INTO t SELECT i, CASE WHEN i % 2 = 1 THEN now() - interval '1 day' END, '2000-01-01', CASE i WHEN 2 THEN 'debug' END,
           CASE WHEN i = 8 THEN '{2000-01-01}'::timestamp[] END, i FROM generate_series(1, 8) i;
    CREATE INDEX t_d ON t (d);
    CREATE INDEX t_e ON t (e) WHERE level = 'debug';
    PERFORM ttl.expire_index('t_d', 60), ttl.expire_index('t_e', 0), ttl.create_index('t', '{"ds": 1}', '{"expireAfterSeconds": 5}');
END $$;
CALL make();
SELECT * FROM state();

-- the index goes: its rows are deleted first, those of other rules, too ------------
BEGIN;
DROP INDEX t_e;
SELECT * FROM state();
ROLLBACK;
SELECT * FROM state();
BEGIN;
DROP INDEX IF EXISTS nosuch, t_d, t_e, t_earliest_idx;
SELECT * FROM state();
ROLLBACK;
BEGIN;
SAVEPOINT s;
DROP INDEX t_d;
ROLLBACK TO s;
SELECT * FROM state();
DROP INDEX t_d CASCADE;
SAVEPOINT s2;
CREATE INDEX t_d ON t (d);
INSERT INTO t VALUES (21, '2000-01-01');
SELECT * FROM state();
ROLLBACK;
-- not those of a table that shows what is expired
BEGIN;
SELECT ttl.expire_index('t_d', 60, hidden => false);
DROP INDEX t_d, t_e, t_earliest_idx;
SELECT * FROM state();
ROLLBACK;
-- those who see what is expired delete it nevertheless; not pg_restore --clean
BEGIN;
SET LOCAL ttl.show_expired = on;
DROP INDEX t_d;
RESET ttl.show_expired;
SELECT * FROM state();
ROLLBACK;
BEGIN;
SET LOCAL row_security = off;
DROP INDEX t_d;
RESET row_security;
SELECT * FROM state();
ROLLBACK;
-- prepared statements, generic plans included, learn of it
SET plan_cache_mode = force_generic_plan;
PREPARE ids AS SELECT array_agg(id ORDER BY id) FROM t;
EXECUTE ids;
BEGIN;
SELECT ttl.expire_index('t_d', NULL, revive_expired => true);
EXECUTE ids;
ROLLBACK;
EXECUTE ids;
RESET plan_cache_mode;
-- CONCURRENTLY deletes nothing
DROP INDEX CONCURRENTLY t_d;
\echo :SQLSTATE :LAST_ERROR_MESSAGE
SELECT * FROM state();
SELECT ttl.purge('t');
DROP INDEX CONCURRENTLY t_d;
SELECT * FROM state();
DROP INDEX CONCURRENTLY IF EXISTS t_d;
-- detached: an ordinary index
CALL make();
BEGIN;
SELECT ttl.expire_index('t_e', NULL);
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.expire_index('t_e', NULL, revive_expired => true);
SELECT * FROM state();
ROLLBACK;
-- longer seconds
BEGIN;
SELECT ttl.expire_index('t_d', 864000);
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.coll_mod('t', '{"index": {"name": "t_d", "expireAfterSeconds": 864000}}');
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.expire_index('t_d', 864000, revive_expired => true);
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.expire_index('t_d', 10);
SELECT * FROM state();
ROLLBACK;

-- a column goes, and its index with it
BEGIN;
ALTER TABLE t DROP COLUMN d;
SELECT * FROM state();
ROLLBACK;
BEGIN;
ALTER TABLE t DROP COLUMN n, DROP COLUMN IF EXISTS nosuch, DROP level;
SELECT * FROM state();
ROLLBACK;
BEGIN;
ALTER TABLE t DROP COLUMN ds CASCADE;
SELECT * FROM state();
ROLLBACK;
BEGIN;
ALTER TABLE t DROP COLUMN n;
SELECT * FROM state();
ROLLBACK;
-- a column from which the key is generated
CREATE TABLE gen (id int, doc jsonb, d date GENERATED ALWAYS AS (make_date((doc ->> 'year')::int, 1, 1)) STORED);
INSERT INTO gen SELECT i, jsonb_build_object('year', i) FROM unnest('{1990,2990}'::int[]) i;
SELECT ttl.create_index('gen', '{"d": 1}', '{"expireAfterSeconds": 0}') ->> 'name';
SELECT * FROM state('gen');
UPDATE gen SET doc = '{"year": 1991}' WHERE id = 2990;
SELECT * FROM state('gen');
BEGIN;
ALTER TABLE gen DROP COLUMN doc CASCADE;
SELECT * FROM state('gen');
ROLLBACK;
SELECT try('ALTER TABLE gen DROP COLUMN doc');
SELECT try('ALTER TABLE gen ALTER COLUMN d DROP EXPRESSION');
SELECT * FROM state('gen');
-- a constraint whose index it is
CREATE TABLE c (id int, d timestamptz UNIQUE);
INSERT INTO c VALUES (1, '2000-01-01'), (2, NULL);
SELECT ttl.expire_index('c_d_key', 0);
SELECT * FROM state('c');
BEGIN;
ALTER TABLE c DROP CONSTRAINT c_d_key;
SELECT * FROM state('c');
ROLLBACK;
ALTER TABLE c RENAME CONSTRAINT c_d_key TO "New Name";
SELECT * FROM state('c');
-- ... or becomes it, by another name; not a primary key, by which no row expires (M7)
CREATE UNIQUE INDEX c_id ON c (id, d);
CREATE TABLE c2 (id int, d timestamptz NOT NULL);
CREATE UNIQUE INDEX c2_d ON c2 (d);
INSERT INTO c2 VALUES (1, '2000-01-01'), (2, '3000-01-01');
SELECT ttl.expire_index('c2_d', 0);
BEGIN;
ALTER TABLE c2 ADD CONSTRAINT c2_unique UNIQUE USING INDEX c2_d;
SELECT * FROM state('c2');
ROLLBACK;
SELECT try('ALTER TABLE c2 ADD CONSTRAINT c2_pkey PRIMARY KEY USING INDEX c2_d');
SELECT * FROM state('c2');

-- other names -------------------------------------------------------------------------
BEGIN;
ALTER INDEX t_d RENAME TO "D's ""index""";
ALTER TABLE t_e RENAME TO t_d; -- an index may be named as a table, and the name is free
ALTER TABLE t RENAME COLUMN d TO "the date";
ALTER TABLE t RENAME COLUMN level TO "Level";
ALTER TABLE t RENAME TO "other table";
CREATE SCHEMA other_schema;
ALTER TABLE "other table" SET SCHEMA other_schema;
SELECT * FROM state('other_schema."other table"');
ALTER SCHEMA other_schema RENAME TO "third schema";
ALTER INDEX "third schema".t_d RENAME TO t_e;
SELECT * FROM state('"third schema"."other table"');
SAVEPOINT s;
ALTER INDEX "third schema".t_e RENAME TO back_again;
ROLLBACK TO s;
DROP INDEX "third schema".t_e;
SELECT * FROM state('"third schema"."other table"');
ROLLBACK;
SELECT * FROM state();
-- two indexes that change names
BEGIN;
ALTER INDEX t_d RENAME TO x;
ALTER INDEX t_e RENAME TO t_d;
ALTER INDEX x RENAME TO t_e;
SELECT * FROM state();
ROLLBACK;
-- an ordinary index that takes the name of one that was dropped in the same statement's function
BEGIN;
DO $$ BEGIN DROP INDEX ttl_index_life.t_e; CREATE INDEX t_e ON ttl_index_life.t (e) WHERE level = 'debug'; END $$;
INSERT INTO t (id, e, level) VALUES (22, '2000-01-01', 'debug');
SELECT * FROM state();
ROLLBACK;

-- other types: not of its column; of the predicate's column, the index is built anew
SELECT try('ALTER TABLE t ALTER COLUMN d TYPE timestamp');
SELECT try('ALTER TABLE t ALTER COLUMN ds TYPE date[]');
BEGIN;
ALTER TABLE t ALTER COLUMN level TYPE varchar(20), ALTER COLUMN n TYPE bigint;
SELECT * FROM state();
CREATE TYPE lvl AS ENUM ('debug', 'info');
SELECT try('ALTER TABLE t ALTER COLUMN level TYPE lvl USING level::lvl');
SELECT * FROM state();
ROLLBACK;

-- the same index, anew ----------------------------------------------------------------------
REINDEX INDEX t_d;
REINDEX TABLE t;
REINDEX INDEX CONCURRENTLY t_e;
REINDEX TABLE CONCURRENTLY t;
CLUSTER t USING t_d;
VACUUM FULL t;
SELECT * FROM state();
BEGIN;
TRUNCATE t;
INSERT INTO t (id, d) VALUES (1, '2000-01-01'), (2, '3000-01-01');
SELECT * FROM state();
ROLLBACK;
-- one that is not valid does not count
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_d'::regclass;
\c -
SET search_path = ttl_index_life;
SET client_min_messages = warning;
SELECT * FROM state();
REINDEX INDEX t_d;
SELECT * FROM state();
-- building failed; then it is built, and the keys of expired rows are free
CREATE TABLE f (id int, d date);
INSERT INTO f VALUES (1, '2000-01-01'), (2, '2000-01-01'), (3, NULL);
CREATE UNIQUE INDEX CONCURRENTLY f_d ON f (d);
SELECT ttl.expire_index('f_d', 0);
SELECT * FROM state('f');
DELETE FROM f WHERE id = 2;
REINDEX INDEX CONCURRENTLY f_d;
SELECT * FROM state('f');
SELECT ttl.create_index('f', '{"d": 1}', '{"expireAfterSeconds": 0}') ->> 'note';
INSERT INTO f VALUES (4, '2000-01-01');
SELECT * FROM state('f');

-- What the predicate needs is dropped, with what depends on it: the rule ends, and what it hid
-- is seen again, as after DROP EXTENSION. Only what ALTER TABLE drops is deleted first.
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE m (id int, d date, mood mood, n int);
CREATE INDEX m_d ON m (d) WHERE mood = 'bad';
CREATE INDEX m_d2 ON m (d) WHERE n > 5;
INSERT INTO m VALUES (1, '2000-01-01', 'bad', 1), (2, '2000-01-01', 'good', 1), (3, '2000-01-01', 'good', 6);
SELECT ttl.expire_index('m_d', 0), ttl.expire_index('m_d2', 0);
SELECT * FROM state('m');
SELECT try('DROP TYPE mood');
BEGIN;
DROP TYPE mood CASCADE;
SELECT * FROM state('m');
ROLLBACK;
CREATE FUNCTION in_c(text, text) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'texteq';
CREATE TABLE cf (id int, d date, x text);
CREATE INDEX cf_d ON cf (d) WHERE in_c(x, 'x');
INSERT INTO cf VALUES (1, '2000-01-01', 'x'), (2, '2000-01-01', 'y'), (3, '2000-01-01', NULL);
SELECT ttl.expire_index('cf_d', 0);
SELECT * FROM state('cf');
BEGIN;
DROP FUNCTION in_c CASCADE;
SELECT * FROM state('cf');
ROLLBACK;
-- all of a role's
CREATE ROLE regress_til;
GRANT ALL ON SCHEMA ttl_index_life TO regress_til;
SET ROLE regress_til;
CREATE TYPE theirs AS ENUM ('good', 'bad');
RESET ROLE;
CREATE TABLE o (id int, d date, x theirs);
CREATE INDEX o_d ON o (d) WHERE x = 'bad';
INSERT INTO o VALUES (1, '2000-01-01', 'bad'), (2, '2000-01-01', 'good');
SELECT ttl.expire_index('o_d', 0);
BEGIN;
DROP OWNED BY regress_til CASCADE;
SELECT * FROM state('o');
ROLLBACK;
-- who does not own the table drops nothing, and deletes nothing
SET ROLE regress_til;
DROP INDEX t_d;
RESET ROLE;
SELECT * FROM state();

-- C6: an expired child is not in the way of what is deleted before ALTER TABLE
CREATE TABLE par (id int PRIMARY KEY, d date);
CREATE TABLE chi (id int, par int REFERENCES par, d date);
SELECT ttl.create_index('par', '{"d": 1}', '{"expireAfterSeconds": 0}'), ttl.create_index('chi', '{"d": 1}', '{"expireAfterSeconds": 0}');
INSERT INTO par VALUES (1, '2090-01-01'), (2, '2090-01-01');
INSERT INTO chi VALUES (1, 1, '2090-01-01');
UPDATE chi SET d = '2000-01-01';
UPDATE par SET d = '2000-01-01' WHERE id = 1;
ALTER TABLE par DROP COLUMN d;
SELECT * FROM par;

DROP SCHEMA ttl_index_life CASCADE;
DROP ROLE regress_til;
