-- C6: statements that read or check every row do not fail because of expired ones:
-- those are deleted first.
CREATE SCHEMA ddl_over_expired;
SET search_path = ddl_over_expired;
\set VERBOSITY terse
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent VALUES (1);
CREATE TABLE t (id int, v text, range int4range, parent int, n int);
SELECT ttl.enable('t', 100);
-- rows 1 and 2 are expired: in the way of everything that follows
CREATE FUNCTION fill(name regclass DEFAULT 't') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ttl.preserve_ts = on;
    EXECUTE format('DELETE FROM %s', name);
    EXECUTE format('INSERT INTO %s (id, v, range, parent, n, _ts) VALUES '
        '(1, ''x'', ''[1,3)'', 9, NULL, now() - interval ''1 h''), (1, ''x'', ''[1,3)'', 9, NULL, now() - interval ''1 h''), '
        '(1, ''1'', ''[1,3)'', 1, 1, now())', name);
    SET LOCAL ttl.preserve_ts = off;
END $$;
CREATE FUNCTION on_disk(name regclass DEFAULT 't') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    SET LOCAL ttl.show_expired = on;
    EXECUTE format('SELECT count(*) FROM ONLY %s', name) INTO n;
    SET LOCAL ttl.show_expired = off;
    RETURN n;
END $$;

-- CREATE UNIQUE INDEX
BEGIN; SELECT fill();
CREATE UNIQUE INDEX ON t (id);
SELECT on_disk();
SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode LIKE 'Share%' ORDER BY 1;
ROLLBACK;
SELECT fill();
CREATE UNIQUE INDEX CONCURRENTLY i ON t (id);
SELECT on_disk(), indisvalid FROM pg_index WHERE indexrelid = 'i'::regclass;
DROP INDEX i;
BEGIN;
CREATE UNIQUE INDEX CONCURRENTLY i ON t (id);
ROLLBACK;
\set VERBOSITY sqlstate
DO $$ BEGIN EXECUTE 'CREATE UNIQUE INDEX CONCURRENTLY i ON t (id)'; END $$;
\set VERBOSITY terse
-- any other index holds expired rows
SELECT fill();
CREATE INDEX i ON t (id);
CREATE INDEX CONCURRENTLY i2 ON t (v);
DROP INDEX i, i2;
SELECT on_disk();

-- ALTER TABLE: each reads the table once
BEGIN; ALTER TABLE t ADD UNIQUE (id); SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD PRIMARY KEY (id); SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD EXCLUDE USING gist (range WITH &&); SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD CHECK (v <> 'x'); SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD FOREIGN KEY (parent) REFERENCES parent; SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ALTER n SET NOT NULL; SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ALTER v TYPE int USING v::int; SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD twice int GENERATED ALWAYS AS (v::int * 2) STORED; SELECT on_disk(); ROLLBACK;
-- a column of a domain is checked, too: no row but expired ones is there
CREATE DOMAIN filled AS int NOT NULL;
BEGIN; DELETE FROM t; ALTER TABLE t ADD m filled; SELECT on_disk(); ROLLBACK;
DROP DOMAIN filled;
BEGIN; DELETE FROM t; ALTER TABLE t ADD w int NOT NULL; SELECT on_disk(); ROLLBACK;
BEGIN; ALTER TABLE t ADD w int DEFAULT 7 UNIQUE; SELECT on_disk(); ROLLBACK;
-- a command among others, in a function
BEGIN; DO $$ BEGIN ALTER TABLE t ADD w int, ALTER n SET NOT NULL; END $$; SELECT on_disk(); ROLLBACK;
-- not validated, and validated
ALTER TABLE t ADD CONSTRAINT c CHECK (v <> 'x') NOT VALID;
ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (parent) REFERENCES parent NOT VALID;
SELECT on_disk();
BEGIN; ALTER TABLE t VALIDATE CONSTRAINT c; SELECT on_disk();
SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode LIKE '%Exclusive%' ORDER BY 1;
ROLLBACK;
BEGIN; ALTER TABLE t VALIDATE CONSTRAINT f; SELECT on_disk(); ROLLBACK;
ALTER TABLE t DROP CONSTRAINT c, DROP CONSTRAINT f;
-- what reads no row deletes none
ALTER TABLE t ADD w int, ADD y int DEFAULT 3;
ALTER TABLE t ALTER n SET DEFAULT 1, DROP w, DROP y;
SELECT on_disk();
-- a live row fails as ever
INSERT INTO t (id, v) VALUES (1, 'x');
CREATE UNIQUE INDEX ON t (id);
ALTER TABLE t ADD CHECK (v <> 'x');
SELECT on_disk();

-- statements that copy the table, indexes and all, leave expired rows where they are
SELECT fill();
CREATE INDEX i ON t (id);
CLUSTER t USING i;
VACUUM FULL t;
REINDEX TABLE t;
REINDEX TABLE CONCURRENTLY t;
ALTER TABLE t SET UNLOGGED;
ALTER TABLE t SET LOGGED;
SELECT on_disk(), count(*) FROM t;
DROP INDEX i;
-- a materialized view over the table
CREATE MATERIALIZED VIEW mv AS SELECT id, v FROM t;
CREATE UNIQUE INDEX ON mv (id);
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT * FROM mv;

-- who sees expired rows, and where they are not deleted: PostgreSQL as it is
SET ttl.show_expired = on;
CREATE UNIQUE INDEX ON t (id);
RESET ttl.show_expired;
SET row_security = off;
ALTER TABLE t ADD UNIQUE (id);
RESET row_security;
CREATE ROLE regress_stranger;
GRANT USAGE ON SCHEMA ddl_over_expired TO regress_stranger;
SET ROLE regress_stranger;
ALTER TABLE t ADD UNIQUE (id);
CREATE UNIQUE INDEX ON t (id);
RESET ROLE;
BEGIN READ ONLY;
CREATE UNIQUE INDEX ON t (id);
ROLLBACK;
SELECT on_disk();
ALTER TABLE nosuch ADD UNIQUE (id);
CREATE UNIQUE INDEX ON nosuch.t (id);
BEGIN; SELECT ttl.disable('t', revive_expired => true); CREATE UNIQUE INDEX ON t (id); ROLLBACK;
-- a restored table: pg_restore adds constraints after the data
BEGIN;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100}';
SAVEPOINT s;
ALTER TABLE t ADD UNIQUE (id);
ROLLBACK TO s;
ALTER TABLE t ADD UNIQUE (v, _ts, n);
SELECT on_disk();
ROLLBACK;

-- partitions
CREATE TABLE p (id int, v text, range int4range, parent int, n int) PARTITION BY LIST (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 100);
BEGIN; SELECT fill('p'); CREATE UNIQUE INDEX ON p (id); SELECT on_disk('p1'); ROLLBACK;
BEGIN; SELECT fill('p'); CREATE UNIQUE INDEX ON ONLY p (id); SELECT on_disk('p1'); ROLLBACK;
BEGIN; SELECT fill('p'); CREATE UNIQUE INDEX ON p1 (id); SELECT on_disk('p1'); ROLLBACK;
BEGIN; SELECT fill('p'); ALTER TABLE p ADD PRIMARY KEY (id); SELECT on_disk('p1'); ROLLBACK;
BEGIN; SELECT fill('p'); ALTER TABLE p1 ADD CHECK (v <> 'x'); SELECT on_disk('p1'); ROLLBACK;
-- a new partition, and rows of the default one that would belong to it
CREATE TABLE p0 PARTITION OF p DEFAULT;
CREATE TABLE p2 (LIKE p INCLUDING CONSTRAINTS INCLUDING DEFAULTS);
SET ttl.preserve_ts = on;
INSERT INTO p (id, _ts) VALUES (2, now() - interval '1 h'), (3, now());
RESET ttl.preserve_ts;
BEGIN; CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3); ROLLBACK;
BEGIN; CREATE TABLE p3 PARTITION OF p FOR VALUES IN (2); SELECT on_disk('p0'); ROLLBACK;
BEGIN; ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2); SELECT on_disk('p0'); ROLLBACK;
-- a table that is attached has expired rows by a policy of its own
SELECT ttl.enable('p2', 100);
SELECT fill('p2');
DELETE FROM p2;
BEGIN; ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2); SELECT on_disk('p2'); ROLLBACK;
DROP TABLE p0;
BEGIN; ALTER TABLE p ATTACH PARTITION p2 DEFAULT; SELECT on_disk('p2'); ROLLBACK;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
SELECT on_disk('p2');
-- heirs: an index is of one table, a check of all
CREATE TABLE par (id int, v text, range int4range, parent int, n int);
CREATE TABLE heir () INHERITS (par);
SELECT ttl.enable('par', 100);
SELECT fill('par'), fill('heir');
BEGIN; ALTER TABLE par ADD UNIQUE (id); SELECT on_disk('par'), on_disk('heir'); ROLLBACK;
BEGIN; ALTER TABLE par ADD CHECK (v <> 'x'); SELECT on_disk('par'), on_disk('heir'); ROLLBACK;

-- a partition that leaves while expired rows refer to its rows, from tables of each kind
CREATE TABLE goal (id int, k int, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
CREATE TABLE goal_1 PARTITION OF goal FOR VALUES IN (1) PARTITION BY HASH (id);
CREATE TABLE goal_1_0 PARTITION OF goal_1 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE goal_2 PARTITION OF goal FOR VALUES IN (2);
CREATE TABLE plain (id int, k int, FOREIGN KEY (id, k) REFERENCES goal ON DELETE CASCADE);
CREATE TABLE parted (id int, k int, FOREIGN KEY (id, k) REFERENCES goal) PARTITION BY LIST (k);
CREATE TABLE parted_all PARTITION OF parted DEFAULT;
CREATE TABLE dated (id int, k int, at timestamptz, FOREIGN KEY (id, k) REFERENCES goal_1 ON DELETE SET NULL);
SELECT ttl.enable('plain', 100);
SELECT ttl.enable('parted', 100);
SELECT ttl.expire_after('dated', 'at', 100);
INSERT INTO goal VALUES (1, 1), (2, 2);
SET ttl.preserve_ts = on;
INSERT INTO plain (id, k, _ts) VALUES (1, 1, now() - interval '1 h');
INSERT INTO parted (id, k, _ts) VALUES (1, 1, now() - interval '1 h');
INSERT INTO dated VALUES (1, 1, now() - interval '1 h');
RESET ttl.preserve_ts;
BEGIN; ALTER TABLE goal DETACH PARTITION goal_1; SELECT on_disk('plain'), on_disk('parted_all'), on_disk('dated'); ROLLBACK;
-- a table that its rows do not concern, or that is no partition
BEGIN; ALTER TABLE goal DETACH PARTITION goal_2; ROLLBACK;
ALTER TABLE goal DETACH PARTITION goal_2;
ALTER TABLE goal DETACH PARTITION goal_2;
SET ttl.preserve_ts = on;
INSERT INTO plain (id, k, _ts) VALUES (1, 1, now() - interval '1 h');
RESET ttl.preserve_ts;
SET ROLE regress_stranger;
ALTER TABLE goal DETACH PARTITION goal_1;
RESET ROLE;
SELECT on_disk('plain');
-- a live row is in the way as ever
INSERT INTO plain VALUES (1, 1);
\set VERBOSITY sqlstate
ALTER TABLE goal DETACH PARTITION goal_1;
\set VERBOSITY default
DELETE FROM plain;
ALTER TABLE goal DETACH PARTITION goal_1 CONCURRENTLY;

-- an expired row that a live one keeps: the others go, and the statement goes on
\set VERBOSITY default
TRUNCATE t;
ALTER TABLE t ADD UNIQUE (n);
CREATE TABLE child (n int REFERENCES t (n));
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, n, _ts) SELECT i, repeat('x', 2000), i, now() - interval '1 h' FROM generate_series(1, 50) i;
RESET ttl.preserve_ts;
SET ttl.show_expired = on;
INSERT INTO child VALUES (7), (8), (33);
RESET ttl.show_expired;
CREATE UNIQUE INDEX ON t (id);
SELECT on_disk();
-- it fails if it must
ALTER TABLE t ADD CHECK (length(v) < 100);
\echo :SQLSTATE
DELETE FROM child;
ALTER TABLE t ADD CHECK (length(v) < 100);
SELECT on_disk();
-- deferred triggers would stand in the way of ALTER TABLE
ALTER TABLE child ALTER CONSTRAINT child_n_fkey DEFERRABLE INITIALLY DEFERRED;
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, n, _ts) VALUES (1, 'x', 1, now() - interval '1 h');
RESET ttl.preserve_ts;
ALTER TABLE t ADD CHECK (n > 0);
SELECT on_disk();
ALTER TABLE t ADD CHECK (v <> 'x');
SELECT ttl.purge('t');
ALTER TABLE t ADD CHECK (v <> 'x');

SET client_min_messages = warning;
DROP SCHEMA ddl_over_expired CASCADE;
DROP ROLE regress_stranger;
