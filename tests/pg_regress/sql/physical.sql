-- C1, C6: physical readers: with row_security = off the owner and superusers read every
-- row on disk, and INSERT keeps the time it gives, so that dumps are complete.
CREATE SCHEMA physical;
SET search_path = physical;
CREATE ROLE regress_dumper;
CREATE ROLE regress_reader;
GRANT USAGE, CREATE ON SCHEMA physical TO regress_dumper, regress_reader;
CREATE TABLE t (id int);
ALTER TABLE t OWNER TO regress_dumper;
SELECT ttl.enable('t', 100);
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (1, '2020-01-01'), (2, 'infinity');
RESET ttl.preserve_ts;
GRANT SELECT ON t TO regress_reader;
CREATE VIEW v AS SELECT id FROM t;
GRANT SELECT ON v TO regress_reader, regress_dumper;
PREPARE q AS SELECT count(*) FROM t;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;

SET row_security = off;
SELECT id FROM t ORDER BY id;
COPY t (id) TO STDOUT;
COPY (SELECT id FROM ONLY t) TO STDOUT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM ONLY t;
FETCH ALL FROM c;
COMMIT;
SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM t) u;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(line, '''[0-9]+''::oid', 'the table');
    END LOOP;
END $$;
SELECT plan('SELECT id FROM t');
-- not through views, not as the target of a statement, not in a refresh
SELECT count(*) FROM v;
UPDATE t SET id = id RETURNING id;
DELETE FROM t WHERE id = 1;
CREATE MATERIALIZED VIEW mv AS SELECT id FROM t;
SELECT count(*) FROM mv;
SET ROLE regress_dumper;
SELECT count(*) FROM t;
SET ROLE regress_reader;
SELECT count(*) FROM t;
COPY t (id) TO STDOUT;
RESET ROLE;
-- a plan that was made so hides again when the setting returns
PREPARE p AS SELECT count(*) FROM t;
EXECUTE p;
SET ROLE regress_reader;
EXECUTE p;
RESET ROLE;
RESET row_security;
EXECUTE p;
EXECUTE q;
RESET plan_cache_mode;

-- not by way of somebody else's function, nor of a referential check
CREATE FUNCTION peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM physical.t';
ALTER FUNCTION peek OWNER TO regress_dumper;
SET ttl.show_expired = on;
ALTER TABLE t ADD PRIMARY KEY (id);
RESET ttl.show_expired;
CREATE TABLE child (id int REFERENCES t);
GRANT ALL ON child TO regress_reader;
SET ROLE regress_reader;
SET row_security = off;
SELECT peek();
INSERT INTO child VALUES (1);
RESET ROLE;
-- a plan made for somebody else hides more than it must, never less
DISCARD PLANS;
SELECT peek();
ALTER FUNCTION peek OWNER TO regress_reader;
SELECT peek();
RESET row_security;
ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE;

-- a child with a policy of its own, by the table that the statement names
CREATE TABLE above (id int);
CREATE TABLE below () INHERITS (above);
SELECT ttl.enable('below', 100);
CREATE VIEW over AS SELECT id FROM above;
SET ttl.preserve_ts = on;
INSERT INTO below (id, _ts) VALUES (1, '2020-01-01'), (2, 'infinity');
RESET ttl.preserve_ts;
SET row_security = off;
SELECT id FROM above ORDER BY id;
SELECT id FROM over;
DELETE FROM above WHERE id = 1 RETURNING id;
RESET row_security;

-- INSERT as in a dump's script keeps the time
SET row_security = off;
INSERT INTO t (id, _ts) VALUES (3, '2020-01-01');
INSERT INTO t (id) VALUES (4);
PREPARE ins AS INSERT INTO t (id, _ts) VALUES (5, '2020-01-01');
EXECUTE ins;
RESET row_security;
INSERT INTO t (id, _ts) VALUES (6, '2020-01-01');
EXECUTE ins;
SELECT id, _ts > now() - interval '10 s' AS fresh FROM t WHERE id > 2 ORDER BY id;
SET ttl.show_expired = on;
SELECT id, _ts > now() - interval '10 s' AS fresh FROM t WHERE id > 2 ORDER BY id, fresh;

SET client_min_messages = warning;
DROP SCHEMA physical CASCADE;
DROP ROLE regress_dumper, regress_reader;
