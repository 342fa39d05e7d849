-- C21: indexes that are built in the background. Deletion is off in this server, so nothing is built here.
\set VERBOSITY default
CREATE SCHEMA concurrently_;
SET search_path = concurrently_;
CREATE VIEW state AS
    SELECT relation, index_state, problems, ttl_internal.policy(relation) -> 'build_pending' AS pending
      FROM ttl.tables WHERE relation::text = 't';
CREATE VIEW indexes AS
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'concurrently_' ORDER BY indexname;

-- Columns, constraint, label and trigger at once; no index. The constraint of an adopted column is not
-- validated.
CREATE TABLE t (id integer PRIMARY KEY, ttl integer);
INSERT INTO t VALUES (1, 100);
SELECT ttl.enable('t', 3600, ttl_column => 'ttl', concurrently => true, index => 'btree');
SELECT * FROM state;
SELECT * FROM indexes;
SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c';
SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass;

-- Hidden from the first moment; ttl.purge does not wait.
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (2, now() - interval '1 day');
RESET ttl.preserve_ts;
SELECT id FROM t ORDER BY id;
SELECT ttl.purge('t');

-- It stays until the index is there: through other changes,
SELECT ttl.set_default('t', 7200);
SELECT index_state, pending FROM state;
-- while TTL is off,
SELECT ttl.disable('t');
SELECT index_state, pending FROM state;
SELECT ttl.set_default('t', 7200);
SELECT index_state, pending FROM state;
SELECT * FROM indexes;
-- or until ttl.enable builds it.
SELECT ttl.enable('t', 7200, index => 'btree');
SELECT index_state, pending FROM state;
SELECT * FROM indexes;
-- With an index there is nothing to wait for.
SELECT ttl.enable('t', 7200, concurrently => true, index => 'btree');
SELECT index_state, pending FROM state;
DROP INDEX t_expiry_key_idx;
SELECT index_state, pending FROM state;
SELECT ttl.enable('t', 7200, concurrently => true, index => 'btree');
SELECT index_state, pending FROM state;
SELECT ttl.disable('t', drop_columns => true);
SELECT * FROM state;
DROP TABLE t CASCADE;

-- Nothing to build: no index is wanted, no clock, a temporary table.
CREATE TABLE n (id integer);
SELECT ttl.enable('n', 3600, index => 'none', concurrently => true);
SELECT ttl.enable('n', concurrently => true);
SELECT index_state, ttl_internal.policy('n') ? 'build_pending' AS pending FROM ttl.tables WHERE relation = 'n'::regclass;
CREATE TEMPORARY TABLE tmp (id integer);
SELECT ttl.enable('tmp', 3600, concurrently => true, index => 'btree');
SELECT index_state, ttl_internal.policy('tmp') ? 'build_pending' AS pending FROM ttl.tables WHERE relation = 'tmp'::regclass;
SELECT ttl.enable('n', 3600, concurrently => NULL);

-- An index with the builder's name that is not valid, but another's definition, is left alone by ttl.enable.
CREATE INDEX n_ttl_ext_idx ON n (id);
UPDATE pg_index SET indisvalid = false WHERE indrelid = 'n'::regclass;
SELECT ttl.enable('n', 3600);
SELECT ttl_internal.policy('n') ? 'build_pending' AS pending;
DROP SCHEMA concurrently_ CASCADE;
