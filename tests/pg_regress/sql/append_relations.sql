-- C6 on partitioned tables, inheritance and UNION ALL; plans show the filter.
CREATE SCHEMA append_relations;
SET search_path = append_relations;

-- two levels, columns in different orders, partitions attached later
CREATE TABLE p (a int, b int, v text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 (v text, x int, b int, a int NOT NULL) PARTITION BY LIST (b);
ALTER TABLE p2 DROP COLUMN x;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (0);
SELECT ttl.enable('p', 100);
CREATE TABLE p2b (ttl int CHECK (ttl.is_override(ttl) IS NOT FALSE), dropped int, a int NOT NULL, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), b int, v text,
    CONSTRAINT p_ttl_check CHECK (ttl.is_override(ttl) IS NOT FALSE));
ALTER TABLE p2b DROP COLUMN dropped;
ALTER TABLE p2 ATTACH PARTITION p2b FOR VALUES IN (1);
SET ttl.preserve_ts = on;
INSERT INTO p (a, b, v, _ts, ttl)
SELECT i, i % 2, 'x', now() - (i % 3) * interval '150 s', CASE WHEN i % 5 = 0 THEN -1 WHEN i % 5 = 1 THEN 1000 END FROM generate_series(0, 19) i;
RESET ttl.preserve_ts;
-- through the parent, a middle level, a leaf
SELECT array_agg(a ORDER BY a) FROM p;
SELECT array_agg(a ORDER BY a) FROM p2;
SELECT array_agg(a ORDER BY a) FROM p2b;
SELECT array_agg(a ORDER BY a) FROM ONLY p2b;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE v = 'x';
EXPLAIN (COSTS OFF) SELECT * FROM p2b;
UPDATE p SET v = 'y' WHERE v = 'x';
UPDATE p2 SET v = 'z' WHERE v = 'x';
DELETE FROM p2b WHERE v = 'x';
-- C1 in partitions with other column orders, and when a row moves
UPDATE p SET v = 'moved', a = 17, b = 1 WHERE a = 5 RETURNING tableoid::regclass, _ts > now() - interval '10 s' AS stamped;
UPDATE p2b SET v = 'leaf' WHERE v = 'moved' RETURNING _ts > now() - interval '10 s' AS stamped;
-- C8 for the partitions, too
PREPARE leaf AS SELECT count(*) FROM p2b;
SET plan_cache_mode = force_generic_plan;
EXECUTE leaf;
SELECT ttl.set_default('p', NULL, revive_expired => true);
EXECUTE leaf;
SELECT ttl.set_default('p', 100);
EXECUTE leaf;
-- a detached partition has no time to live any more
ALTER TABLE p2 DETACH PARTITION p2b;
EXECUTE leaf;
RESET plan_cache_mode;
ALTER TABLE p2 DETACH PARTITION p2a CONCURRENTLY;
SELECT ttl.problems('p2a'), count(*) > 0 AS has_rows FROM p2a;
INSERT INTO p2a SELECT * FROM p2a LIMIT 1;
ALTER TABLE p2 ATTACH PARTITION p2a FOR VALUES IN (0);
-- partitions follow the partitioned table
SELECT ttl.enable('p1', 5);
SELECT ttl.set_default('p2', 5);
SELECT ttl.disable('p2a');
CREATE TABLE q (a int) PARTITION BY LIST (a);
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
SELECT ttl.enable('q1', 5);

-- C6 partitioned by the clock: expired partitions are pruned
CREATE TABLE log (m text, _ts timestamptz NOT NULL DEFAULT ttl.current_ts()) PARTITION BY RANGE (_ts);
CREATE TABLE log_2020 PARTITION OF log FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE log_now PARTITION OF log FOR VALUES FROM ('2021-01-01') TO ('2200-01-01');
SELECT ttl.enable('log', 100, ttl_column => NULL, index => 'none');
COPY log FROM STDIN;
old	2020-06-01
future	2199-06-01
\.
SELECT m FROM log;
SELECT m FROM log_2020;
EXPLAIN (COSTS OFF) SELECT m FROM log;
CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''spy %'', $1; RETURN true; END';
SELECT m FROM log WHERE spy(m);
SELECT m FROM log_2020 WHERE spy(m);

-- inheritance: the parent's policy holds for its heirs
CREATE TABLE par (a int);
CREATE TABLE chi (b int) INHERITS (par);
SELECT ttl.enable('par', 50);
SET ttl.preserve_ts = on;
INSERT INTO par (a, _ts) VALUES (1, now() - interval '1 h'), (2, now());
INSERT INTO chi (a, _ts) VALUES (3, now() - interval '1 h'), (4, now());
RESET ttl.preserve_ts;
SELECT array_agg(a ORDER BY a) FROM par;
SELECT array_agg(a ORDER BY a) FROM ONLY par;
SELECT array_agg(a ORDER BY a) FROM chi;
SELECT ttl.enable('chi', 5);
-- an heir with a policy of its own under a parent without one
CREATE TABLE bare (a int);
CREATE TABLE heir () INHERITS (bare);
SELECT ttl.enable('heir', 50);
SET ttl.preserve_ts = on;
INSERT INTO bare VALUES (1);
INSERT INTO heir (a, _ts) VALUES (2, now() - interval '1 h'), (3, now());
RESET ttl.preserve_ts;
SELECT array_agg(a ORDER BY a) FROM bare;
-- what is written through the parent could not be stamped
UPDATE bare SET a = a WHERE a = 3;
UPDATE ONLY bare SET a = a;
MERGE INTO bare USING (VALUES (3)) AS s (i) ON a = i WHEN MATCHED THEN UPDATE SET a = 3;
DELETE FROM bare WHERE a = 2;
MERGE INTO bare USING (VALUES (2)) AS s (i) ON a = i WHEN MATCHED THEN DELETE;
UPDATE heir SET a = 3 RETURNING a, _ts > now() - interval '10 s' AS stamped;
EXPLAIN (COSTS OFF) SELECT * FROM bare;
SELECT problems FROM ttl.tables WHERE relation = 'heir'::regclass;
CREATE TABLE standalone (a int NOT NULL);
SELECT ttl.enable('standalone', 50);
CREATE TABLE root (a int NOT NULL, _ts timestamptz NOT NULL, ttl int) PARTITION BY LIST (a);
ALTER TABLE root ATTACH PARTITION standalone FOR VALUES IN (1);
INSERT INTO root VALUES (1, now(), NULL);
UPDATE root SET a = 1;
SELECT problems FROM ttl.tables WHERE relation = 'standalone'::regclass;
SELECT ttl.set_default('standalone', NULL);
INSERT INTO root VALUES (1, now(), NULL);
SELECT ttl.disable('standalone', drop_columns => true);
SECURITY LABEL FOR ttl ON TABLE standalone IS NULL;
INSERT INTO root VALUES (1, now(), NULL);
-- once the parent has one, it rules; what was expired before is not back
SELECT ttl.enable('bare', 7200);
SELECT array_agg(a ORDER BY a) FROM bare;
SELECT array_agg(a ORDER BY a) FROM heir;
SELECT problems FROM ttl.tables WHERE relation = 'heir'::regclass;
-- two parents
CREATE TABLE other_par (c int);
SELECT ttl.enable('other_par', 60);
CREATE TABLE both_par () INHERITS (par, other_par);
SET ttl.preserve_ts = on;
INSERT INTO both_par (a, _ts) VALUES (1, now() - interval '55 s'), (2, now());
RESET ttl.preserve_ts;
SELECT a FROM both_par;
SELECT count(*) FROM other_par;

-- C8 sessions notice when a table gets a parent, or loses it
CREATE TABLE grand (a int);
CREATE TABLE mid (a int);
CREATE TABLE leaf () INHERITS (mid);
SELECT ttl.enable('grand', 60);
ALTER TABLE mid ADD _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ADD ttl int, ADD CONSTRAINT grand_ttl_check CHECK (ttl.is_override(ttl) IS NOT FALSE);
INSERT INTO leaf (a, _ts) VALUES (1, now() - interval '1 h');
SELECT count(*) FROM leaf;
ALTER TABLE mid INHERIT grand;
SELECT count(*) FROM leaf;
ALTER TABLE mid NO INHERIT grand;
SELECT count(*) FROM leaf;
-- each heir is purged by the policy that is in force for itself
SET ttl.preserve_ts = on;
INSERT INTO both_par (a, _ts) VALUES (7, now() - interval '30 s');
RESET ttl.preserve_ts;
SELECT ttl.set_default('other_par', 10);
SELECT ttl.purge('other_par');
SELECT a FROM both_par ORDER BY a;
SELECT ttl.set_default('other_par', 60);

-- UNION ALL: flattened into an append relation, or not
CREATE TABLE u1 (id int);
CREATE TABLE u2 (id int, v text);
SELECT ttl.enable('u1', 50);
SELECT ttl.enable('u2', 50, ttl_column => NULL);
SET ttl.preserve_ts = on;
INSERT INTO u1 (id, _ts) VALUES (101, now() - interval '1 h'), (102, now());
INSERT INTO u2 (id, _ts) VALUES (103, now() - interval '1 h'), (104, now());
RESET ttl.preserve_ts;
CREATE VIEW u AS SELECT id FROM u1 UNION ALL SELECT id FROM u2 UNION ALL SELECT a FROM p1;
EXPLAIN (COSTS OFF) SELECT * FROM u WHERE id < 200;
SELECT array_agg(id ORDER BY id) FROM u WHERE id > 100;
SELECT count(*) FROM (SELECT id FROM u1 UNION ALL SELECT id FROM u1 UNION ALL (SELECT id FROM u2 UNION ALL SELECT id FROM u2)) x;
SELECT count(*) FROM u1 a LEFT JOIN (SELECT id FROM u1 UNION ALL SELECT id FROM u2) b ON a.id < b.id;
SELECT max(id) FROM (SELECT id FROM u1 UNION ALL SELECT id FROM u2) x WHERE id < 104;

-- a table cannot have a policy that contradicts that of its ancestor
SECURITY LABEL FOR ttl ON TABLE p2a IS '{"default_ttl": 1000000}';
SELECT problems FROM ttl.tables WHERE relation = 'p2a'::regclass;

SET client_min_messages = warning;
DROP SCHEMA append_relations CASCADE;
