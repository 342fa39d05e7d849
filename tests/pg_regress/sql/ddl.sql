-- C11: while TTL is on, what it needs cannot be dropped by accident.
CREATE SCHEMA ddl;
SET search_path = ddl;
CREATE TABLE t (id int PRIMARY KEY, doc jsonb, other int);
SELECT ttl.enable('t', 100, index => 'btree');
DROP INDEX t_expiry_key_idx;
DROP INDEX CONCURRENTLY t_expiry_key_idx;
DROP INDEX IF EXISTS nosuch, ddl.t_expiry_key_idx;
ALTER TABLE t DROP COLUMN _ts;
ALTER TABLE t DROP COLUMN IF EXISTS ttl CASCADE;
ALTER TABLE t ALTER COLUMN _ts TYPE timestamp;
ALTER TABLE t ALTER ttl TYPE bigint;
DO $$ BEGIN EXECUTE 'ALTER TABLE ddl.t ADD COLUMN x int, DROP COLUMN ttl'; END $$;
\d t
-- an index that does the same may be dropped, one of the two; by `_ts` alone none does where rows can override
CREATE INDEX second ON t (_ts) WHERE ttl IS NULL;
CREATE INDEX overriding ON t (ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0;
CREATE INDEX hashed ON t USING hash (ttl.expiry_key(_ts, ttl));
CREATE INDEX in_part ON t (ttl.expiry_key(_ts, ttl)) WHERE id > 0;
DROP INDEX t_expiry_key_idx;
DROP INDEX second, overriding, hashed, in_part;
CREATE INDEX whole ON t (ttl.expiry_key(_ts, ttl), id);
DROP INDEX t_expiry_key_idx;
DROP INDEX whole;
CREATE INDEX third ON t (ttl.expiry_key(_ts, ttl));
DROP INDEX whole, third;
CREATE INDEX fourth ON t (ttl.expiry_key(_ts, ttl));
DROP INDEX CONCURRENTLY fourth;
-- what TTL does not need
ALTER TABLE t DROP COLUMN other;
CREATE INDEX free ON t (id);
DROP INDEX free;
ALTER TABLE t ALTER COLUMN _ts SET STATISTICS 10;
REINDEX TABLE t;
REINDEX INDEX CONCURRENTLY third;
CLUSTER t USING t_pkey;
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
-- the document of a generated override
CREATE TABLE docs (id int, body jsonb);
SELECT ttl.enable('docs', 100, document_column => 'body', index => 'btree');
ALTER TABLE docs DROP COLUMN body CASCADE;
ALTER TABLE docs ALTER COLUMN body TYPE text;
ALTER TABLE docs ALTER COLUMN ttl DROP EXPRESSION;
-- partitions and heirs
CREATE TABLE p (a int) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 100, index => 'btree');
ALTER TABLE p DROP COLUMN ttl;
DROP INDEX p_expiry_key_idx;
CREATE TABLE par (ttl int);
CREATE TABLE chi () INHERITS (par);
SELECT ttl.enable('chi', 100, index => 'btree');
ALTER TABLE par DROP COLUMN ttl;
-- whole tables may go at any time
DROP TABLE p;
DROP TABLE chi;
-- with TTL off, all may go; what is left is shown
SELECT ttl.disable('t');
DROP INDEX third;
ALTER TABLE t DROP COLUMN ttl;
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
SELECT count(*) FROM t;
-- turning it on again repairs it
SELECT ttl.enable('t', 50, index => 'btree');
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
\d t
-- C11 turning TTL on builds the index again
SELECT ttl.disable('t');
DROP INDEX t_expiry_key_idx;
SELECT ttl.set_default('t', 60);
SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY 1;
-- an index that belongs to a constraint serves, and goes with its column
CREATE TABLE a (id int, created timestamptz, PRIMARY KEY (created, id));
SELECT ttl.enable('a', 60, ts_column => 'created', ttl_column => NULL, index => 'btree');
SELECT count(*) FROM pg_index WHERE indrelid = 'a'::regclass;
SELECT ttl.disable('a', drop_columns => true);
\d a
-- errors of such statements are PostgreSQL's own
DROP INDEX t;
DROP INDEX nosuch;
ALTER TABLE nosuch DROP COLUMN _ts;
ALTER TABLE t DROP COLUMN nosuch;

SET client_min_messages = warning;
DROP SCHEMA ddl CASCADE;
