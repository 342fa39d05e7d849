-- C3: the constraint on the override is evaluated where it may fail, and left out where it cannot.
-- A role that may not execute its function shows which.
CREATE SCHEMA override_check;
SET search_path = override_check;
\set VERBOSITY terse
CREATE ROLE regress_writer;
GRANT USAGE ON SCHEMA override_check TO regress_writer;
REVOKE EXECUTE ON FUNCTION ttl.is_override(integer) FROM PUBLIC;
CREATE FUNCTION evaluates(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ROLE regress_writer;
    EXECUTE statement;
    RESET ROLE;
    RETURN 'left out';
EXCEPTION
    WHEN insufficient_privilege THEN RETURN 'evaluated: ' || SQLERRM;
    WHEN check_violation THEN RETURN 'fails';
END $$;
CREATE TABLE t (dropped int, id int PRIMARY KEY, what text);
ALTER TABLE t DROP COLUMN dropped;
SELECT ttl.enable('t', 3600);
GRANT ALL ON t TO regress_writer;
INSERT INTO t (id, ttl) SELECT i, 60 FROM generate_series(1, 5) i;
SELECT statement, evaluates(statement) FROM unnest(ARRAY[
    'INSERT INTO t (id) VALUES (11)',
    'INSERT INTO t (id) VALUES (12), (13)',
    'INSERT INTO t (id) SELECT i FROM generate_series(21, 30) i',
    'INSERT INTO t (id, ttl) VALUES (31, NULL)',
    'INSERT INTO t (id, ttl) VALUES (32, -1)',
    'INSERT INTO t (id, ttl) VALUES (33, 7)',
    'INSERT INTO t (id, ttl) VALUES (34, 0)',
    'INSERT INTO t (id, ttl) VALUES (35, 7), (36, 8)',
    'INSERT INTO t (id, ttl) SELECT i, i FROM generate_series(41, 42) i',
    'INSERT INTO t (id) VALUES (11) ON CONFLICT (id) DO UPDATE SET what = ''new''',
    'INSERT INTO t (id) VALUES (11) ON CONFLICT (id) DO UPDATE SET ttl = 5',
    'INSERT INTO t (id) VALUES (11) ON CONFLICT DO NOTHING',
    'UPDATE t SET what = ''x'' WHERE id = 1',
    'UPDATE t SET id = 51 WHERE id = 2',
    'UPDATE t SET ttl = 5 WHERE id = 3',
    'UPDATE t SET ttl = NULL WHERE id = 3',
    'WITH w AS (UPDATE t SET what = ''y'' WHERE id = 4) SELECT',
    'MERGE INTO t USING (VALUES (5)) AS v (id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET what = ''z''',
    'DELETE FROM t WHERE id = 12']) WITH ORDINALITY AS s (statement, n) ORDER BY n;
-- a prepared statement, as its value comes
PREPARE given (int, int) AS INSERT INTO t (id, ttl) VALUES ($1, $2);
SET plan_cache_mode = force_generic_plan;
GRANT EXECUTE ON FUNCTION ttl.is_override(integer) TO PUBLIC;
EXECUTE given (61, 5);
EXECUTE given (62, 0);
EXECUTE given (63, NULL);
RESET plan_cache_mode;
-- bad values, each way
INSERT INTO t (id, ttl) VALUES (71, 0);
INSERT INTO t (id, ttl) VALUES (72, -2);
INSERT INTO t (id, ttl) SELECT 73, -i FROM generate_series(2, 2) i;
INSERT INTO t (id) VALUES (11) ON CONFLICT (id) DO UPDATE SET ttl = 0;
UPDATE t SET ttl = -5 WHERE id = 11;
UPDATE t SET (what, ttl) = ('x', 0) WHERE id = 11;
MERGE INTO t USING (VALUES (11)) AS v (id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET ttl = 0;
ALTER TABLE t ALTER ttl SET DEFAULT 0;
INSERT INTO t (id) VALUES (74);
ALTER TABLE t ALTER ttl SET DEFAULT 30;
INSERT INTO t (id) VALUES (75) RETURNING ttl;
ALTER TABLE t ALTER ttl DROP DEFAULT;
COPY t (id, ttl) FROM stdin;
76	0
\.
-- a trigger of the user's may change it
CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.ttl := 0; RETURN NEW; END $$;
CREATE TRIGGER spoil BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION spoil();
INSERT INTO t (id) VALUES (81);
UPDATE t SET what = 'w' WHERE id = 11;
INSERT INTO t (id) VALUES (11) ON CONFLICT (id) DO UPDATE SET what = 'v';
DROP TRIGGER spoil ON t;
CREATE TRIGGER spoil BEFORE UPDATE OF what ON t FOR EACH ROW EXECUTE FUNCTION spoil();
UPDATE t SET what = 'u' WHERE id = 11;
INSERT INTO t (id) VALUES (82);
DROP TRIGGER spoil ON t;
-- beside another constraint
ALTER TABLE t ADD CHECK (id < 1000);
INSERT INTO t (id) VALUES (1001);
INSERT INTO t (id, ttl) VALUES (83, 0);
UPDATE t SET id = 1002 WHERE id = 11;
ALTER TABLE t DROP CONSTRAINT t_id_check;
-- another's, of the same form; one on another column, and one that is not yet validated
SET row_security = off;
ALTER TABLE t DROP CONSTRAINT t_ttl_check;
RESET row_security;
ALTER TABLE t ADD other int;
ALTER TABLE t ADD CONSTRAINT others CHECK (ttl.is_override(other));
INSERT INTO t (id, other) VALUES (84, 0);
UPDATE t SET other = 0 WHERE id = 11;
ALTER TABLE t DROP CONSTRAINT others;
UPDATE t SET ttl = 0 WHERE id = 11;
ALTER TABLE t ADD CONSTRAINT late CHECK (ttl.is_override(ttl)) NOT VALID;
UPDATE t SET what = 't' WHERE id = 11;
INSERT INTO t (id, ttl) VALUES (85, 0);
UPDATE t SET ttl = NULL WHERE id = 11;
ALTER TABLE t VALIDATE CONSTRAINT late;
ALTER TABLE t RENAME ttl TO lives;
INSERT INTO t (id, lives) VALUES (86, 0);
-- partitions, and an update that moves the row
CREATE TABLE p (id int, region int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 (unused int, region int NOT NULL, id int NOT NULL);
ALTER TABLE p2 DROP COLUMN unused;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
SELECT ttl.enable('p', 3600);
INSERT INTO p VALUES (1, 1), (2, 2);
INSERT INTO p (id, region, ttl) VALUES (3, 2, 0);
INSERT INTO p2 (id, region, ttl) VALUES (3, 2, 0);
UPDATE p SET region = 3 - region;
UPDATE p SET ttl = 0 WHERE id = 1;
UPDATE p SET region = 3 - region, ttl = 0;
CREATE TRIGGER spoil BEFORE INSERT ON p1 FOR EACH ROW EXECUTE FUNCTION spoil();
UPDATE p SET region = 3 - region;
UPDATE p SET region = 1 WHERE region = 2;
DROP TRIGGER spoil ON p1;
SELECT tableoid::regclass, id, region, ttl FROM p ORDER BY id;
-- generated from another column, by a label that was set by hand
CREATE TABLE g (id int PRIMARY KEY, days int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts(),
    ttl int GENERATED ALWAYS AS (days * 86400) STORED CHECK (ttl.is_override(ttl)));
SECURITY LABEL FOR ttl ON TABLE g IS '{"default_ttl": 3600, "ts_column": "_ts", "ttl_column": "ttl"}';
INSERT INTO g (id, days) VALUES (1, 1);
INSERT INTO g (id, days) VALUES (2, 0);
UPDATE g SET days = -2;
-- a foreign key's own statements
CREATE TABLE child (id int PRIMARY KEY, ref int REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL, ttl int);
SELECT ttl.enable('child', 3600);
INSERT INTO child VALUES (1, 75, 9);
UPDATE t SET id = 175 WHERE id = 75;
DELETE FROM t WHERE id = 175;
SELECT id, ref, ttl FROM child;
SET client_min_messages = warning;
DROP SCHEMA override_check CASCADE;
DROP ROLE regress_writer;
