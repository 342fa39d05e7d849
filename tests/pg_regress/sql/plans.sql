-- Plans are those of the same query on a plain table: estimates, indexes, parallel workers.
CREATE SCHEMA plans;
SET search_path = plans;
CREATE EXTENSION pg_trgm SCHEMA public;
CREATE TABLE plain (id int PRIMARY KEY, grp int, txt text, doc jsonb);
INSERT INTO plain SELECT i, i % 100, md5(i::text), jsonb_build_object('k', i % 500) FROM generate_series(1, 20000) i;
CREATE TABLE t (LIKE plain INCLUDING ALL);
INSERT INTO t SELECT * FROM plain;
SELECT ttl.enable('t', 86400);
CREATE TABLE d (LIKE plain INCLUDING ALL);
INSERT INTO d SELECT * FROM plain;
SELECT ttl.enable('d', 86400, ttl_column => NULL);

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

SET client_min_messages = warning;
DROP SCHEMA plans CASCADE;
DROP EXTENSION pg_trgm;
DROP ROLE regress_reader;
