-- C1: column privileges, generated columns and column triggers are unharmed by the stamp.
CREATE SCHEMA clock_dependents;
SET search_path = clock_dependents;
CREATE ROLE regress_writer;
GRANT USAGE ON SCHEMA clock_dependents TO regress_writer;

-- a role that may write one column writes it, and is not asked for _ts
CREATE TABLE t (id int, n int);
SELECT ttl.enable('t', 100);
GRANT INSERT (id), UPDATE (n), SELECT ON t TO regress_writer;
SET ROLE regress_writer;
INSERT INTO t (id) VALUES (1);
UPDATE t SET n = 1 RETURNING n, _ts > now() - interval '10 s' AS fresh;
-- but may not write what it could not write before
INSERT INTO t (id, n) VALUES (2, 2);
INSERT INTO t (id, _ts) VALUES (2, now());
UPDATE t SET id = 3;
UPDATE t SET _ts = now();
RESET ROLE;

-- generated columns and UPDATE OF triggers that depend on _ts
CREATE TABLE g (
    id int PRIMARY KEY, n int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(),
    epoch bigint GENERATED ALWAYS AS (extract(epoch FROM _ts AT TIME ZONE 'UTC')::bigint) STORED,
    other int GENERATED ALWAYS AS (n * 2) STORED);
SELECT ttl.enable('g', 100);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% by %', TG_NAME, TG_OP; RETURN NULL; END $$;
CREATE TRIGGER of_ts AFTER UPDATE OF _ts ON g FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER of_n AFTER UPDATE OF n ON g FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER of_id AFTER UPDATE OF id ON g FOR EACH ROW EXECUTE FUNCTION tell();
GRANT UPDATE (n), SELECT, INSERT (id, n) ON g TO regress_writer;
CREATE VIEW consistent AS SELECT id, n, epoch = extract(epoch FROM _ts)::bigint AS epoch, other, _ts > now() - interval '10 s' AS fresh FROM g;
GRANT SELECT ON consistent TO regress_writer;
SET ttl.preserve_ts = on;
INSERT INTO g (id, n, _ts) VALUES (1, 1, now() - interval '50 s');
RESET ttl.preserve_ts;
UPDATE g SET n = 2;
SELECT * FROM consistent;
-- the same for a role with privileges on columns only, also by a prepared plan
SET ttl.preserve_ts = on;
UPDATE g SET _ts = now() - interval '50 s';
RESET ttl.preserve_ts;
SET ROLE regress_writer;
UPDATE g SET n = 3;
SELECT * FROM consistent;
PREPARE upd AS UPDATE g SET n = n + 1;
EXECUTE upd;
EXECUTE upd;
SELECT * FROM consistent;
INSERT INTO g (id, n) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET n = 7;
UPDATE g SET id = 2;
UPDATE g SET _ts = now();
-- one plan for two roles: each is asked for its own privileges
RESET ROLE;
SET plan_cache_mode = force_generic_plan;
PREPARE both_roles AS UPDATE g SET n = 20;
EXECUTE both_roles;
SET ROLE regress_writer;
EXECUTE both_roles;
RESET ROLE;
EXECUTE both_roles;
RESET plan_cache_mode;
SELECT * FROM consistent;
REVOKE UPDATE (n) ON g FROM regress_writer;
SET ROLE regress_writer;
EXECUTE upd;
UPDATE g SET n = 3;
RESET ROLE;
MERGE INTO g USING (VALUES (1)) AS s (i) ON id = i WHEN MATCHED THEN UPDATE SET n = 8;
SELECT * FROM consistent;

-- through a view whose owner has the privileges
GRANT SELECT, UPDATE, INSERT ON g TO regress_writer;
CREATE VIEW v AS SELECT id, n FROM g;
CREATE ROLE regress_viewer;
GRANT USAGE ON SCHEMA clock_dependents TO regress_viewer;
GRANT SELECT, UPDATE (n) ON v TO regress_viewer;
SET ROLE regress_viewer;
UPDATE v SET n = 10;
UPDATE v SET id = 10;
RESET ROLE;
SELECT * FROM consistent;

-- a partition's own trigger on the column
CREATE TABLE p (a int, n int) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 100);
CREATE TRIGGER of_ts AFTER UPDATE OF _ts ON p1 FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO p VALUES (1, 1);
UPDATE p SET n = 2;
UPDATE p1 SET n = 3;

SET client_min_messages = warning;
DROP SCHEMA clock_dependents CASCADE;
DROP ROLE regress_writer, regress_viewer;
