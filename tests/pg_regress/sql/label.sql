-- C2, C8: the policy is a security label: by hand, rolled back, renamed, dropped.
CREATE SCHEMA label;
SET search_path = label;
CREATE TABLE t (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ttl int);
SET ttl.preserve_ts = on;
INSERT INTO t VALUES (1, now() - interval '1 h'), (2, now() - interval '1 h');
RESET ttl.preserve_ts;

-- by hand
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100}';
SELECT count(*) FROM t;
SELECT relation, default_ttl, ts_column, ttl_column, problems FROM ttl.tables WHERE relation = 't'::regclass;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100, "ttl_column": null}';
SELECT ttl_column, problems FROM ttl.tables WHERE relation = 't'::regclass;
SECURITY LABEL FOR ttl ON TABLE t IS NULL;
SELECT count(*) FROM t;

-- refused
SECURITY LABEL FOR ttl ON TABLE t IS 'not json';
SECURITY LABEL FOR ttl ON TABLE t IS '';
SECURITY LABEL FOR ttl ON TABLE t IS '[]';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_tll": 100}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 0}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": -2}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": "100"}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 1e3}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"version": 2}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"ts_column": "nosuch"}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"ts_column": "id"}';
SECURITY LABEL FOR ttl ON TABLE t IS '{"ttl_column": "_ts"}';
-- C12 whole rows, never single columns
SECURITY LABEL FOR ttl ON COLUMN t.id IS '{}';
SECURITY LABEL FOR ttl ON SCHEMA label IS '{}';
SECURITY LABEL FOR ttl ON ROLE pg_monitor IS '{}';
CREATE VIEW v AS SELECT * FROM t;
SECURITY LABEL FOR ttl ON VIEW v IS '{}';
DROP VIEW v;
SECURITY LABEL FOR ttl ON TABLE pg_catalog.pg_class IS '{}';

-- cached plans follow, and so does a roll-back, to a savepoint, too
PREPARE q AS SELECT count(*) FROM t;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
BEGIN;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100}';
EXECUTE q;
SAVEPOINT a;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 10000}';
EXECUTE q;
SAVEPOINT b;
SELECT ttl.set_default('t', NULL);
EXECUTE q;
ROLLBACK TO b;
SELECT default_ttl FROM ttl.tables WHERE relation = 't'::regclass;
ROLLBACK TO a;
EXECUTE q;
ROLLBACK;
EXECUTE q;

-- follows renames of the table, the schema, the columns
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100}';
ALTER TABLE t RENAME TO t2;
SELECT count(*) FROM t2;
CREATE SCHEMA "label 2";
ALTER TABLE t2 SET SCHEMA "label 2";
SELECT count(*) FROM "label 2".t2;
ALTER TABLE "label 2".t2 RENAME COLUMN _ts TO "Touched";
ALTER TABLE "label 2".t2 RENAME ttl TO lifetime;
SELECT relation, ts_column, ttl_column, problems[1:0] FROM ttl.tables WHERE relation = '"label 2".t2'::regclass;
SELECT count(*) FROM "label 2".t2;
UPDATE "label 2".t2 SET id = 3;
INSERT INTO "label 2".t2 VALUES (4);
SELECT id, "Touched" > now() - interval '10 s' AS fresh FROM "label 2".t2;
BEGIN;
ALTER TABLE "label 2".t2 RENAME COLUMN "Touched" TO x;
SELECT ts_column FROM ttl.tables WHERE relation = '"label 2".t2'::regclass;
ROLLBACK;
SELECT ts_column FROM ttl.tables WHERE relation = '"label 2".t2'::regclass;
-- renames of columns that have nothing to do with it
ALTER TABLE "label 2".t2 RENAME COLUMN id TO ident;
ALTER TABLE "label 2".t2 RENAME COLUMN nosuch TO x;
-- in a partitioned table, and in heirs with a label of their own
CREATE TABLE p (a int) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 100);
ALTER TABLE p RENAME COLUMN _ts TO stamped;
INSERT INTO p1 VALUES (1);
UPDATE p SET a = 1 RETURNING stamped > now() - interval '10 s' AS fresh;
CREATE TABLE par (_ts timestamptz);
CREATE TABLE chi () INHERITS (par);
SELECT ttl.enable('chi', 100);
ALTER TABLE par RENAME COLUMN _ts TO stamped;
SELECT ts_column FROM ttl.tables WHERE relation = 'chi'::regclass;

-- TRUNCATE leaves it, DROP TABLE takes it along
TRUNCATE "label 2".t2;
SELECT count(*) FROM ttl.tables WHERE relation = '"label 2".t2'::regclass;
SELECT count(*) AS before FROM pg_seclabel WHERE provider = 'ttl' \gset
DROP TABLE "label 2".t2;
SELECT count(*) - :before AS fewer FROM pg_seclabel WHERE provider = 'ttl';
-- a copy of the table has none
CREATE TABLE like_p (LIKE p INCLUDING ALL);
SELECT ttl.problems('like_p');
SELECT ttl.purge('like_p');

SET client_min_messages = warning;
DROP SCHEMA label, "label 2" CASCADE;
