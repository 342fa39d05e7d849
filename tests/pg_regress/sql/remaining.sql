-- C18: ttl.remaining(row): how long a row has to live.
CREATE SCHEMA remaining;
SET search_path = remaining;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; detail text; hint text; state text; result text;
BEGIN
    EXECUTE statement INTO result;
    RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    -- 19 words these hints in another way
    IF state = '42883' THEN RETURN state || ': ' || message; END IF;
    RETURN state || ': ' || message || coalesce(E'\n   ' || nullif(detail, ''), '') || coalesce(E'\n   ' || nullif(hint, ''), '');
END $$;
\pset format unaligned
\pset tuples_only on
-- seconds that are left, to the next five minutes: the test may be slow
CREATE FUNCTION about(remaining interval) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN remaining IS NULL THEN 'never' ELSE (ceil(extract(epoch FROM remaining) / 300) * 300)::text END $$;

-- C2, C3: default and override
CREATE TABLE t (gone int, id int PRIMARY KEY);
ALTER TABLE t DROP COLUMN gone;
SELECT ttl.enable('t', 3600);
SET ttl.preserve_ts = on;
INSERT INTO t (id, ttl, _ts) VALUES (1, NULL, now() - interval '1000 s'), (2, 7200, now()), (3, -1, now()), (4, 5000, now() - interval '3900 s'),
    (5, NULL, 'infinity'), (6, NULL, now() - interval '2 h'), (7, 100, now() - interval '1 day'), (8, NULL, '-infinity');
RESET ttl.preserve_ts;
SELECT id, about(ttl.remaining(t)), ttl.remaining(t) IS NOT DISTINCT FROM ttl.expires_at(_ts, ttl, 3600) - ttl.now() FROM t WHERE id <> 5 AND id <> 3 ORDER BY id;
SELECT id, about(ttl.remaining(s)) FROM t AS s WHERE ttl.remaining(s) IS NULL OR ttl.remaining(s) > interval '1 h' ORDER BY 1;
SET ttl.show_expired = on;
SELECT id, about(ttl.remaining(t)), ttl.remaining(t) <= '0' AS expired FROM t ORDER BY id;
SELECT ttl.remaining(t) FROM t WHERE id = 8;
RESET ttl.show_expired;
-- -1, off, and on again
SELECT ttl.set_default('t', -1);
SELECT id, about(ttl.remaining(t)) FROM t ORDER BY id;
SELECT ttl.set_default('t', NULL);
SELECT id, about(ttl.remaining(t)) FROM t ORDER BY id;
SELECT ttl.set_default('t', 300000);
SELECT id, about(ttl.remaining(t)) FROM t ORDER BY id;
-- the statement's time, at which a row lives or not
SELECT count(*) FROM t WHERE ttl.remaining(t) <= '0';

-- rows from elsewhere: variables, RETURNING, joins, functions, values stored and made
DO $$ DECLARE r t; x record; BEGIN
    SELECT * INTO r FROM t WHERE id = 2; RAISE NOTICE '%', about(ttl.remaining(r));
    SELECT t INTO x FROM t WHERE id = 2; RAISE NOTICE '%', about(ttl.remaining(x.t));
    SELECT * INTO x FROM t WHERE id = 2; RAISE NOTICE '%', about(ttl.remaining(x));
EXCEPTION WHEN wrong_object_type THEN RAISE NOTICE '%', SQLERRM;
END $$;
INSERT INTO t (id, ttl) VALUES (20, 600) RETURNING about(ttl.remaining(t));
UPDATE t SET ttl = 900 WHERE id = 20 RETURNING about(ttl.remaining(t));
SELECT a.id, about(ttl.remaining(b)) FROM t AS a LEFT JOIN t AS b ON b.id = a.id AND a.id = 20 WHERE a.id IN (2, 20) ORDER BY 1;
CREATE TABLE kept (r t);
INSERT INTO kept SELECT t FROM t WHERE id = 20;
SELECT about(ttl.remaining(r)) FROM kept;
SELECT about(ttl.remaining(ROW(1, now(), 1000)::t)), about(ttl.remaining(NULL::t)), about(ttl.remaining(ROW(1, NULL, 1000)::t));
CREATE VIEW v AS SELECT * FROM t;
CREATE VIEW w AS SELECT id, ttl.remaining(t) AS remaining FROM t;
SELECT id, about(remaining) FROM w WHERE id = 20;
CREATE TABLE none (id int);
INSERT INTO none VALUES (1);
SELECT try('SELECT ttl.remaining(v) FROM v LIMIT 1');
SELECT try('SELECT ttl.remaining(s) FROM (SELECT * FROM t) AS s LIMIT 1');
SELECT try('SELECT ttl.remaining(s) FROM (SELECT id FROM t OFFSET 0) AS s LIMIT 1');
SELECT try('SELECT ttl.remaining(ROW(1, now()))');
SELECT try('SELECT ttl.remaining(j) FROM (t CROSS JOIN none) AS j LIMIT 1');
SELECT try('SELECT ttl.remaining(none) FROM none');
SELECT try('SELECT ttl.remaining(5)');
DROP TABLE kept;

-- a parallel plan
CREATE TABLE many (id int);
SELECT ttl.enable('many', 3600);
INSERT INTO many SELECT generate_series(1, 10000);
ANALYZE many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM many WHERE ttl.remaining(many) > interval '10 min';
SELECT count(*) FROM many WHERE ttl.remaining(many) > interval '10 min';
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- D1: documents
CREATE TABLE docs (id int, body jsonb);
SELECT ttl.enable('docs', 3600, document_column => 'body');
INSERT INTO docs VALUES (1, '{"ttl": 600}'), (2, '{"ttl": -1}'), (3, '{"ttl": "x"}');
INSERT INTO docs SELECT 4, jsonb_build_object('ttl', 900, 'more', string_agg(md5(i::text), '')) FROM generate_series(1, 2000) AS i;
SELECT id, about(ttl.remaining(docs)) FROM docs ORDER BY id;

-- M: TTL indexes of each type, with conditions, beside a default
CREATE TABLE m (id int, z timestamptz, u timestamp, d date, a date[], level text);
SET timezone = 'UTC'; -- M13: what the table's dates are read in
SELECT ttl.create_index('m', '{"z": 1}', '{"expireAfterSeconds": 600}'), ttl.create_index('m', '{"u": 1}', '{"expireAfterSeconds": 900}'),
       ttl.create_index('m', '{"d": 1}', '{"expireAfterSeconds": 0}'), ttl.create_index('m', '{"a": 1}', '{"expireAfterSeconds": 0}'),
       ttl.create_index('m', '{"z": -1}', '{"expireAfterSeconds": 300, "partialFilterExpression": "level = ''debug''"}') IS NOT NULL;
RESET timezone;
INSERT INTO m (id, z, u, d, a, level) VALUES (1, now(), NULL, NULL, NULL, NULL), (2, now(), now() AT TIME ZONE 'UTC' - interval '600 s', NULL, NULL, NULL),
    (3, NULL, NULL, NULL, NULL, NULL), (4, 'infinity', '-infinity', 'infinity', '{NULL,infinity}', 'debug'), (5, now(), NULL, NULL, NULL, 'debug'),
    (6, now(), NULL, NULL, NULL, 'info'), (7, NULL, NULL, '9999-12-31', '{}', 'debug');
SELECT id, about(ttl.remaining(m)) FROM m WHERE id <> 7 ORDER BY id;
INSERT INTO m VALUES (8, NULL, NULL, '2999-01-02', '{2999-01-03,NULL,2999-01-01}');
SET TimeZone = 'Asia/Tokyo';
SELECT id, ttl.now() + ttl.remaining(m) FROM m WHERE id IN (7, 8) ORDER BY id;
RESET TimeZone;
SELECT ttl.enable('m', 100);
SELECT id, about(ttl.remaining(m)) FROM m ORDER BY id;
-- an index that is not there any more
DROP INDEX m_z_idx;
SELECT ttl.set_default('m', -1);
SELECT id, about(ttl.remaining(m)) FROM m WHERE id IN (1, 5) ORDER BY id;

-- partitions, with columns in another order, and children
CREATE TABLE p (id int, d timestamptz, level text) PARTITION BY LIST (id);
CREATE TABLE p_1 (level text, x int, d timestamptz, id int);
ALTER TABLE p_1 DROP COLUMN x;
ALTER TABLE p ATTACH PARTITION p_1 FOR VALUES IN (1);
CREATE TABLE p_2 PARTITION OF p FOR VALUES IN (2);
SELECT ttl.enable('p', 3600);
SELECT ttl.create_index('p', '{"d": 1}', '{"expireAfterSeconds": 600, "partialFilterExpression": "level = ''debug''"}') IS NOT NULL;
INSERT INTO p (id, d, level, ttl) VALUES (1, now(), 'debug', NULL), (1, now(), 'info', 1800), (2, now(), 'debug', -1), (2, now(), 'info', -1);
SELECT tableoid::regclass, level, about(ttl.remaining(p)) FROM p ORDER BY 1, 2;
SELECT level, about(ttl.remaining(p_1)) FROM p_1 ORDER BY 1;
SELECT level, about(ttl.remaining(p_2)) FROM p_2 ORDER BY 1;
CREATE TABLE parent (id int);
CREATE TABLE child (more text) INHERITS (parent);
SELECT ttl.enable('parent', 3600);
INSERT INTO child (id, ttl) VALUES (1, 600);
SELECT about(ttl.remaining(parent)) FROM parent;
SELECT about(ttl.remaining(child)) FROM child;

-- whoever reads the row may ask, and needs EXECUTE on what the condition calls
CREATE ROLE regress_remaining;
GRANT USAGE ON SCHEMA remaining TO regress_remaining;
GRANT SELECT ON m TO regress_remaining;
SET ROLE regress_remaining;
SELECT about(ttl.remaining(m)) FROM m WHERE id = 1;
SELECT try('SELECT ttl.remaining(t) FROM t LIMIT 1');
RESET ROLE;
-- REPEATABLE READ: the transaction's time
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT ttl.remaining(t) = ttl.expires_at(_ts, ttl, 300000) - now() FROM t WHERE id = 20;
SELECT pg_sleep(0.01);
SELECT ttl.remaining(t) = ttl.expires_at(_ts, ttl, 300000) - now() FROM t WHERE id = 20;
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA remaining CASCADE;
DROP ROLE regress_remaining;
