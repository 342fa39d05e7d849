-- M8, M5: the rules of TTL indexes on partitions and heirs, beside a table's default, and where
-- they were restored or labelled by hand; what is expired by them does not come back.
CREATE SCHEMA ttl_index_tables;
SET search_path = ttl_index_tables;
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
-- partitions ------------------------------------------------------------------------------------
CREATE TABLE p (id int, part int, d timestamptz, flag boolean) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 (x int, flag boolean, d timestamptz, part int, id int);
ALTER TABLE p2 DROP COLUMN x;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3, 4) PARTITION BY LIST (part);
CREATE TABLE p33 PARTITION OF p3 FOR VALUES IN (3);
INSERT INTO p SELECT i, 1 + i % 3, '2000-01-01', i > 3 FROM generate_series(1, 6) i;
-- ON ONLY: not valid until each partition has its own
CREATE INDEX p_d ON ONLY p (d) WHERE flag;
SELECT ttl.expire_index('p_d', 0);
SELECT * FROM state('p');
CREATE INDEX p1_d ON p1 (d) WHERE flag;
CREATE INDEX p2_d ON p2 (d) WHERE flag;
CREATE INDEX p3_d ON p3 (d) WHERE flag;
ALTER INDEX p_d ATTACH PARTITION p1_d;
ALTER INDEX p_d ATTACH PARTITION p2_d;
SELECT * FROM state('p');
ALTER INDEX p_d ATTACH PARTITION p3_d;
SELECT * FROM state('p');
SELECT * FROM state('p2');
SELECT * FROM state('p33');
-- later ones, with columns in another order; and away, where they live
CREATE TABLE p5 (flag boolean, d timestamptz, id int, part int);
INSERT INTO p5 VALUES (true, '2000-01-01', 51, 5), (false, '2000-01-01', 52, 5), (NULL, '2000-01-01', 53, 5);
SELECT * FROM state('p5');
ALTER TABLE p ATTACH PARTITION p5 FOR VALUES IN (5);
SELECT * FROM state('p5');
CREATE TABLE p6 PARTITION OF p FOR VALUES IN (6);
INSERT INTO p VALUES (61, 6, '2000-01-01', true);
SELECT * FROM state('p');
SELECT try('DROP INDEX p1_d');
ALTER TABLE p DETACH PARTITION p5;
SELECT * FROM state('p5');
ALTER TABLE p DETACH PARTITION p6 CONCURRENTLY;
SELECT * FROM state('p6');
ALTER INDEX p_d RENAME TO "P d";
ALTER INDEX p2_d RENAME TO p2_other;
ALTER TABLE p RENAME COLUMN flag TO f;
SELECT * FROM state('p');
BEGIN;
DROP INDEX "P d";
SELECT * FROM state('p');
ROLLBACK;
BEGIN;
ALTER TABLE p DROP COLUMN f;
SELECT * FROM state('p');
ROLLBACK;
REINDEX TABLE p;
SELECT ttl.purge('p');
SELECT * FROM state('p');
-- a policy of its own, under a parent that gets one
CREATE TABLE own (d date, id int, part int);
CREATE INDEX own_d ON own (d);
SELECT ttl.expire_index('own_d', 0);
CREATE TABLE parent (id int, d date, part int) PARTITION BY LIST (part);
INSERT INTO own VALUES ('2000-01-01', 1, 1);
-- its HINT has the time zone, whose name is another by version
SET client_min_messages = error;
ALTER TABLE parent ATTACH PARTITION own FOR VALUES IN (1);
SET client_min_messages = warning;
SELECT * FROM state('parent');
SELECT ttl.create_index('parent', '{"d": 1}', '{"expireAfterSeconds": 2147483647}') ->> 'ok';
SELECT * FROM state('parent');
SELECT * FROM state('own');
-- inheritance: heirs follow, though the index is the parent's only
CREATE TABLE anc (id int, d date, n int);
CREATE TABLE heir (x text, n int, d date, id int);
ALTER TABLE heir INHERIT anc;
INSERT INTO heir VALUES ('a', 1, '2000-01-01', 1), ('b', 9, '2000-01-01', 2);
CREATE INDEX anc_d ON anc (d) WHERE n > 5;
SELECT ttl.expire_index('anc_d', 0);
SELECT * FROM state('anc');
SELECT * FROM state('heir');
ALTER TABLE heir NO INHERIT anc;
SELECT * FROM state('heir');
ALTER TABLE heir INHERIT anc;
BEGIN;
DROP INDEX anc_d;
SELECT * FROM state('anc');
ROLLBACK;
SELECT ttl.purge('anc');
SELECT on_disk('heir');

-- beside a default: turning it off ends the rules, turning it on again brings none back ------
CALL make();
BEGIN;
SELECT ttl.disable('t');
SELECT * FROM state();
SELECT count(*) FROM pg_seclabel WHERE objoid = 't'::regclass;
ROLLBACK;
BEGIN;
SELECT ttl.disable('t', revive_expired => true);
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.set_default('t', NULL);
SELECT * FROM state();
ROLLBACK;
SELECT try('SELECT ttl.set_default(''t'', 5)');
SELECT ttl.enable('t', 3600);
INSERT INTO t (id, d) VALUES (11, '2000-01-01'), (12, NULL);
SELECT * FROM state();
BEGIN;
SELECT ttl.set_default('t', NULL);
SELECT * FROM state();
SELECT ttl.set_default('t', 3600);
SELECT ttl.expire_index('t_d', 7);
INSERT INTO t (id, d) VALUES (13, '2000-01-01');
SELECT * FROM state();
ROLLBACK;
BEGIN;
SELECT ttl.disable('t', drop_columns => true);
SELECT * FROM state();
ROLLBACK;
-- a rule by itself, while the default is off
BEGIN;
SELECT ttl.disable('t');
SELECT ttl.expire_index('t_d', 7);
INSERT INTO t (id, d) VALUES (13, '2000-01-01');
SELECT * FROM state();
SELECT ttl.preview('t'), ttl.purge('t');
SELECT ttl.expire_index('t_d', NULL);
SELECT default_ttl, ts_column, rules FROM ttl.tables WHERE relation = 't'::regclass;
ROLLBACK;
-- the clock cannot be dropped while a rule is there, though the default is off; then it can
BEGIN;
CREATE INDEX t_ts ON t (_ts);
SELECT ttl.expire_index('t_ts', 100000);
SELECT try('ALTER TABLE t DROP COLUMN _ts');
SELECT ttl.disable('t');
SELECT ttl.expire_index('t_d', 0);
INSERT INTO t (id, d) VALUES (13, '2000-01-01');
SELECT try('ALTER TABLE t DROP COLUMN _ts'), try('ALTER TABLE t DROP COLUMN ttl');
SELECT * FROM state();
SELECT ttl.expire_index('t_d', NULL);
SELECT try('ALTER TABLE t DROP COLUMN _ts');
SELECT seen, disk FROM state();
ROLLBACK;
-- seen, and hidden again
BEGIN;
SELECT ttl.expire_index('t_d', 60, hidden => false, revive_expired => true);
SELECT * FROM state();
SELECT ttl.expire_index('t_d', 60, hidden => true);
SELECT * FROM state();
SELECT ttl.expire_index('t_d', 60, hidden => false);
SELECT * FROM state();
ROLLBACK;

-- restored, or labelled by hand: rules whose index comes later; nothing is deleted -----------
CREATE TABLE r (id int, d date);
INSERT INTO r VALUES (1, '2000-01-01'), (2, '3000-01-01');
SECURITY LABEL FOR ttl ON TABLE r IS '{"ts_column": null, "ttl_column": null, "rules": [{"index": "r_d", "expire_after_seconds": 0}]}';
SELECT * FROM state('r');
ALTER TABLE r RENAME COLUMN d TO day;
CREATE INDEX r_d ON r (day);
SELECT * FROM state('r');
SELECT try('DROP INDEX r_d'), try('SELECT ttl.expire_index(''r_d'', 100)'), try('SELECT ttl.disable(''r'')');
SELECT * FROM state('r');
SELECT ttl.resume('r');
DROP INDEX r_d;
SELECT * FROM state('r');

-- the table goes, and its copy has no rule
CALL make();
BEGIN;
CREATE TABLE like_t (LIKE t INCLUDING ALL);
INSERT INTO like_t SELECT * FROM t;
SELECT * FROM state('like_t');
DROP TABLE t;
SELECT count(*) FROM ttl.tables WHERE relation::text = 't';
ROLLBACK;
SELECT * FROM state();

-- a partition that is stored elsewhere is not swept, and problems say so
CREATE FOREIGN DATA WRAPPER ttl_nowhere;
CREATE SERVER ttl_nowhere FOREIGN DATA WRAPPER ttl_nowhere;
CREATE TABLE far (id integer, d date) PARTITION BY LIST (id);
CREATE FOREIGN TABLE far1 PARTITION OF far FOR VALUES IN (1) SERVER ttl_nowhere;
SELECT ttl.create_index('far', '{"d": 1}', '{"expireAfterSeconds": 0}');
SELECT problems FROM ttl.tables WHERE relation = 'far'::regclass;
DROP FOREIGN DATA WRAPPER ttl_nowhere CASCADE;

DROP SCHEMA ttl_index_tables CASCADE;
