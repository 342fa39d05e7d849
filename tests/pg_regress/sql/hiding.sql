-- C6: from the instant of its expiry no statement reaches a row.
CREATE SCHEMA hiding;
SET search_path = hiding;
CREATE TABLE t (id int PRIMARY KEY, v int, doc jsonb);
SELECT ttl.enable('t', 3600);
SET ttl.preserve_ts = on;
-- odd ids are live, even ones expired
INSERT INTO t SELECT i, i * 10, jsonb_build_object('i', i), now() - (1 - i % 2) * interval '1 day' FROM generate_series(1, 10) i;
RESET ttl.preserve_ts;
ANALYZE t;

SELECT id FROM t ORDER BY id;
TABLE t LIMIT 0;
SELECT count(*), sum(v), min(id), max(id), array_agg(id ORDER BY id) FROM t;
SELECT id FROM t WHERE id = 2;
SELECT max(id) FROM t WHERE id < 5;
SELECT a.id, b.id FROM t a LEFT JOIN t b ON b.id = a.id + 1 ORDER BY 1;
SELECT a.id, b.id FROM t a FULL JOIN (SELECT generate_series(1, 4) id) b USING (id) ORDER BY 1, 2;
SELECT EXISTS (SELECT FROM t WHERE id = 4), 4 IN (SELECT id FROM t), 4 NOT IN (SELECT id FROM t);
SELECT i, (SELECT v FROM t WHERE id = i) FROM generate_series(1, 4) i;
WITH c AS MATERIALIZED (SELECT * FROM t) SELECT count(*) FROM c;
WITH RECURSIVE r AS (SELECT id FROM t WHERE id = 1 UNION ALL SELECT t.id FROM r JOIN t ON t.id = r.id + 1) SELECT * FROM r;
SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM t) u;
SELECT id FROM t INTERSECT SELECT generate_series(1, 4) ORDER BY 1;
SELECT generate_series(1, 4) EXCEPT SELECT id FROM t ORDER BY 1;
SELECT id, row_number() OVER (ORDER BY id), lag(id) OVER (ORDER BY id) FROM t ORDER BY id;
SELECT id % 2 AS even, count(*) FROM t GROUP BY ROLLUP (id % 2) ORDER BY 1;
SELECT count(*) FROM t TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM t, LATERAL (SELECT * FROM t x WHERE x.id = t.id) l;

-- views, also those with a barrier or a rule; functions, inlined or not
CREATE VIEW v AS SELECT * FROM t;
CREATE VIEW vb WITH (security_barrier) AS SELECT * FROM t WHERE v > 0;
CREATE FUNCTION f_sql() RETURNS SETOF t LANGUAGE sql STABLE AS 'SELECT * FROM hiding.t';
CREATE FUNCTION f_vol() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM hiding.t';
CREATE FUNCTION f_pl() RETURNS bigint LANGUAGE plpgsql AS 'DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM hiding.t; RETURN n; END';
CREATE FUNCTION f_dyn() RETURNS bigint LANGUAGE plpgsql AS 'DECLARE n bigint := 0; r record; BEGIN FOR r IN EXECUTE $q$SELECT * FROM hiding.t$q$ LOOP n := n + 1; END LOOP; RETURN n; END';
SELECT (SELECT count(*) FROM v) v, (SELECT count(*) FROM vb) vb, (SELECT count(*) FROM f_sql()) f_sql, f_vol(), f_pl(), f_dyn();
CREATE MATERIALIZED VIEW mv AS SELECT * FROM t;
SELECT count(*) FROM mv;
REFRESH MATERIALIZED VIEW mv;
SELECT count(*) FROM mv;
CREATE TABLE ctas AS SELECT id FROM t;
SELECT count(*) FROM ctas;

-- cursors, also scrolled and held; row locks
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
SELECT id FROM t WHERE id < 4 ORDER BY id FOR UPDATE;
SELECT id FROM t WHERE id < 4 ORDER BY id FOR KEY SHARE SKIP LOCKED;

-- Sessions that lock rows have other plans.
\c -
SET search_path = hiding;

-- prepared statements
SET plan_cache_mode = force_generic_plan;
PREPARE by_id (int) AS SELECT id FROM t WHERE id = $1;
EXECUTE by_id (1);
EXECUTE by_id (2);
PREPARE upd (int) AS UPDATE t SET v = v WHERE id = $1 RETURNING id;
EXECUTE upd (1);
EXECUTE upd (2);
RESET plan_cache_mode;

-- UPDATE, DELETE, MERGE
UPDATE t SET v = 0 WHERE id = 2;
UPDATE t SET v = x.v FROM t x WHERE x.id = t.id + 1;
DELETE FROM t WHERE id = 2;
DELETE FROM t USING t x WHERE x.id = t.id + 1;
UPDATE v SET v = 0 WHERE id = 2;
DELETE FROM vb WHERE id = 2;
MERGE INTO t USING (VALUES (1), (2)) AS s (i) ON id = i WHEN MATCHED THEN UPDATE SET v = -1;
MERGE INTO ctas USING t ON ctas.id = t.id WHEN MATCHED THEN DELETE;
SELECT count(*) FROM ctas;
WITH d AS (DELETE FROM t WHERE id IN (2, 4) RETURNING id) SELECT count(*) FROM d;

-- scans of every kind
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE INDEX covering ON t (id) INCLUDE (_ts, ttl);
VACUUM t;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id < 5;
SELECT id FROM t WHERE id < 5 ORDER BY id;
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id < 5 OR id > 8 ORDER BY id;
SELECT id FROM t WHERE id < 5 OR id > 8 ORDER BY id;
SELECT id FROM t WHERE ctid = '(0,2)';
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- no function of a user is called with an expired row, however cheap it says it is
CREATE FUNCTION peek(int) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS 'BEGIN RAISE NOTICE ''peek %'', $1; RETURN true; END';
SELECT id FROM t WHERE peek(id) AND id < 4 ORDER BY id;
SELECT id FROM t WHERE 1 / (id - 2) IS NOT NULL AND id < 4 ORDER BY id;

-- ttl.show_expired shows them
SET ttl.show_expired = on;
SELECT count(*) FROM t;
EXECUTE by_id (2);
EXPLAIN (COSTS OFF) SELECT id FROM t;
RESET ttl.show_expired;
EXECUTE by_id (2);
BEGIN;
SET LOCAL ttl.show_expired = on;
EXECUTE by_id (2);
ROLLBACK;
EXECUTE by_id (2);

SET client_min_messages = warning;
DROP SCHEMA hiding CASCADE;
