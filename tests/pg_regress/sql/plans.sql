-- needs: pg_trgm
-- C6: plans are those of the same query on a plain table: estimates, indexes, parallel workers.
CREATE SCHEMA plans;
SET search_path = plans;
CREATE EXTENSION pg_trgm SCHEMA public;
CREATE TABLE plain (id int PRIMARY KEY, grp int, txt text, doc jsonb);
INSERT INTO plain SELECT i, i % 100, md5(i::text), jsonb_build_object('k', i % 500) FROM generate_series(1, 20000) i;
CREATE TABLE t (LIKE plain INCLUDING ALL);
INSERT INTO t SELECT * FROM plain;
SELECT ttl.enable('t', 86400, index => 'btree');
CREATE TABLE d (LIKE plain INCLUDING ALL);
INSERT INTO d SELECT * FROM plain;
SELECT ttl.enable('d', 86400, ttl_column => NULL, index => 'btree');

CREATE FUNCTION rows(query text, tab text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || format(query, tab) INTO plan;
    RETURN (plan->0->'Plan'->>'Plan Rows')::numeric;
END $$;
CREATE VIEW queries (query) AS VALUES
    ('SELECT * FROM %1$I'), ('SELECT * FROM %1$I WHERE grp = 5'), ('SELECT * FROM %1$I WHERE id BETWEEN 100 AND 3000'),
    ('SELECT * FROM %1$I a JOIN %1$I b USING (id)'), ('SELECT * FROM %1$I a LEFT JOIN %1$I b ON a.id = b.grp'),
    ('SELECT DISTINCT grp FROM %1$I'), ('SELECT grp, count(*) FROM %1$I GROUP BY grp'),
    ('SELECT * FROM plain p WHERE EXISTS (SELECT FROM %1$I x WHERE x.id = p.grp)'),
    ('SELECT id FROM %1$I UNION ALL SELECT id FROM %1$I');
CREATE TABLE estimates AS
    SELECT query, tab, rows(query, tab) / rows(query, 'plain') AS ratio FROM queries, unnest('{t,d}'::text[]) tab;
-- without statistics and with them
SELECT * FROM estimates WHERE ratio NOT BETWEEN 0.9 AND 1.1;
ANALYZE plain, t, d;
TRUNCATE estimates;
INSERT INTO estimates SELECT query, tab, rows(query, tab) / rows(query, 'plain') FROM queries, unnest('{t,d}'::text[]) tab;
SELECT * FROM estimates WHERE ratio NOT BETWEEN 0.9 AND 1.1;
SELECT count(*) FROM estimates;

-- the filter has a readable name
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 7;
EXPLAIN (COSTS OFF) SELECT * FROM d WHERE id = 7;
-- GIN on jsonb, trigram and pattern indexes are used, whoever asks
CREATE INDEX ON t USING gin (doc jsonb_path_ops);
CREATE INDEX ON t USING gin (txt public.gin_trgm_ops);
CREATE INDEX ON t (txt text_pattern_ops);
VACUUM ANALYZE t;
CREATE ROLE regress_reader;
GRANT USAGE ON SCHEMA plans TO regress_reader;
GRANT SELECT ON t TO regress_reader;
SET ROLE regress_reader;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE doc @> '{"k": 5}';
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE txt LIKE '%abcdef%';
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE txt LIKE 'abcde%';
RESET ROLE;
-- the primary key still carries min and max, and joins are found unique
CREATE FUNCTION plan_has(query text, pattern text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ pattern THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT plan_has('SELECT max(id) FROM t', 'Index Scan Backward using t_pkey'), plan_has('SELECT max(id) FROM t', 'ttl\.live');
EXPLAIN (COSTS OFF) SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id;

-- partial indexes of the user's own by the override serve as in PostgreSQL
CREATE TABLE o (id int PRIMARY KEY, grp int);
INSERT INTO o SELECT i, i % 100 FROM generate_series(1, 5000) i;
SELECT ttl.enable('o', 86400, index => 'btree');
CREATE INDEX ON o (_ts) WHERE ttl IS NULL;
CREATE INDEX ON o (ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0;
UPDATE o SET ttl = 3600 WHERE id % 50 = 0;
CREATE INDEX o_ttl_idx ON o (ttl) WHERE ttl IS NOT NULL;
CREATE VIEW inheriting AS SELECT * FROM o WHERE ttl IS NULL;
VACUUM ANALYZE o;
CREATE TABLE secured (id int PRIMARY KEY);
INSERT INTO secured SELECT generate_series(1, 5000);
SELECT ttl.enable('secured', 86400, index => 'btree');
CREATE INDEX ON secured (_ts) WHERE ttl IS NULL;
CREATE INDEX ON secured (ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0;
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY inheriting ON secured USING (ttl IS NULL);
GRANT SELECT ON secured TO regress_reader;
VACUUM ANALYZE secured;
CREATE VIEW mentioning (query, index) AS VALUES
    ('SELECT * FROM o WHERE ttl IS NULL AND _ts < now() - interval ''1 hour''', 'o__ts_idx'),
    ('SELECT * FROM o WHERE ttl IS NULL ORDER BY _ts LIMIT 1', 'o__ts_idx'),
    ('SELECT * FROM o WHERE (o).ttl IS NULL ORDER BY _ts LIMIT 1', 'o__ts_idx'),
    ('SELECT max(_ts) FROM o WHERE ttl IS NULL', 'o__ts_idx'),
    ('SELECT max(ttl) FROM o', 'o_ttl_idx'),
    ('SELECT _ts, count(*) FROM o WHERE ttl IS NULL AND _ts < now() - interval ''1 hour'' GROUP BY 1', 'o__ts_idx'),
    ('SELECT * FROM o WHERE ttl > 0 ORDER BY ttl.expires_at(_ts, ttl, NULL) LIMIT 1', 'o_expires_at_idx'),
    ('SELECT * FROM inheriting ORDER BY _ts LIMIT 1', 'o__ts_idx'),
    ('SELECT * FROM (SELECT *, ttl AS x FROM o) s WHERE x IS NULL ORDER BY _ts LIMIT 1', 'o__ts_idx'),
    ('SELECT * FROM plain p JOIN o ON o.ttl IS NULL AND o._ts < now() - interval ''1 hour''', 'o__ts_idx'),
    ('SELECT * FROM plain p LEFT JOIN o ON o.ttl IS NULL AND o._ts < now() - interval ''1 hour''', 'o__ts_idx'),
    ('SELECT * FROM plain p WHERE EXISTS (SELECT FROM o WHERE ttl IS NULL AND _ts < now() - interval ''1 hour'' AND grp <> p.grp)', 'o__ts_idx'),
    ('SELECT (SELECT max(_ts) FROM o WHERE ttl IS NULL AND _ts < now() - p.grp * interval ''1 day'') FROM plain p', 'o__ts_idx'),
    ('WITH x AS (SELECT * FROM o WHERE ttl IS NULL) SELECT * FROM x ORDER BY _ts LIMIT 1', 'o__ts_idx'),
    ('SELECT * FROM o WHERE ttl IS NULL AND _ts < now() - interval ''1 hour'' UNION ALL SELECT * FROM o WHERE id = 1', 'o__ts_idx'),
    ('UPDATE o SET grp = 1 FROM plain p WHERE p.id <> o.id AND o.ttl IS NULL AND o._ts < now() - interval ''1 hour''', 'o__ts_idx'),
    ('DELETE FROM o WHERE ttl IS NULL AND _ts < now() - interval ''1 hour''', 'o__ts_idx'),
    ('SELECT * FROM secured ORDER BY _ts LIMIT 1', 'secured__ts_idx');
GRANT SELECT ON o, mentioning TO regress_reader;
SET enable_seqscan = off;
SELECT query FROM mentioning WHERE query !~ 'secured' AND NOT plan_has(query, index);
SET ROLE regress_reader;
SELECT query FROM mentioning WHERE query ~ 'secured' AND NOT plan_has(query, index);
RESET ROLE;
SELECT count(*) FROM mentioning;
RESET enable_seqscan;
-- where it is not mentioned, all is as it was
EXPLAIN (COSTS OFF) SELECT * FROM o WHERE id = 7;
EXPLAIN (COSTS OFF) SELECT a.id FROM o a LEFT JOIN o b ON a.id = b.id;
EXPLAIN (COSTS OFF) UPDATE o SET grp = 2 WHERE id = 7;

-- so is the index for deletion, of partitions, too, only where nothing mentions the override
CREATE TABLE k (id int PRIMARY KEY, grp int);
CREATE TABLE kp (id int PRIMARY KEY, grp int) PARTITION BY RANGE (id);
CREATE TABLE kp_1 PARTITION OF kp FOR VALUES FROM (0) TO (3000);
CREATE TABLE kp_2 (grp int, id int PRIMARY KEY);
ALTER TABLE kp ATTACH PARTITION kp_2 FOR VALUES FROM (3000) TO (6000);
SELECT ttl.enable('k', 86400, index => 'btree'), ttl.enable('kp', 86400, index => 'btree');
INSERT INTO k SELECT i, i % 100 FROM generate_series(1, 5000) i;
INSERT INTO kp SELECT i, i % 100 FROM generate_series(1, 5000) i;
VACUUM ANALYZE k, kp;
CREATE VIEW keyed (query) AS VALUES
    ('SELECT * FROM %I WHERE ttl.expiry_key(_ts, ttl) < 5'),
    ('SELECT id FROM %I ORDER BY ttl.expiry_key(_ts, ttl) LIMIT 1'),
    ('SELECT min(ttl.expiry_key(_ts, ttl)) FROM %I'),
    ('SELECT ttl.expiry_key(_ts, ttl), count(*) FROM %I GROUP BY 1'),
    ('SELECT DISTINCT ttl.expiry_key(_ts, ttl) FROM %I'),
    ('SELECT id, rank() OVER (ORDER BY ttl.expiry_key(_ts, ttl)) FROM %I'),
    ('DELETE FROM %I WHERE ttl.expiry_key(_ts, ttl) < 5');
SET enable_seqscan = off;
SET enable_hashagg = off;
SELECT query, tab FROM keyed, unnest('{k,kp}'::text[]) tab WHERE NOT plan_has(format(query, tab), 'expiry_key_idx');
RESET enable_seqscan;
RESET enable_hashagg;
EXPLAIN (COSTS OFF) SELECT * FROM kp WHERE grp = 5;
EXPLAIN (COSTS OFF) SELECT * FROM kp WHERE id = 7;
-- partitions are estimated as the plain ones, the last one, too
CREATE TABLE pp (id int PRIMARY KEY, grp int) PARTITION BY RANGE (id);
CREATE TABLE pp_1 PARTITION OF pp FOR VALUES FROM (0) TO (3000);
CREATE TABLE pp_2 PARTITION OF pp FOR VALUES FROM (3000) TO (6000);
INSERT INTO pp SELECT id, grp FROM kp;
VACUUM ANALYZE pp;
SELECT query FROM (VALUES ('SELECT * FROM %I'), ('SELECT * FROM %I WHERE grp = 5'), ('SELECT * FROM %I WHERE id > 4000')) q (query)
 WHERE rows(query, 'kp') <> rows(query, 'pp');

-- parallel plans: workers know the statement's time
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET ttl.preserve_ts = on;
UPDATE t SET _ts = now() - interval '2 days' WHERE id % 2 = 0;
RESET ttl.preserve_ts;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT count(*) FROM t;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM t;
COMMIT;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- a join by a wrong estimate could compare each table with each
EXPLAIN (COSTS OFF) SELECT * FROM ttl.stats;

SET client_min_messages = warning;
DROP SCHEMA plans CASCADE;
DROP EXTENSION pg_trgm;
DROP ROLE regress_reader;
