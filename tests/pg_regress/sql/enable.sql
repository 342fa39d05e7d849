-- ttl.enable: what it adds, adopts and refuses (C2, C3, C11).
CREATE SCHEMA "Sch ema";
CREATE SCHEMA enable;
SET search_path = enable;

-- a populated table is not rewritten; existing rows count from that moment
CREATE TABLE t (id int PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 3);
SELECT pg_relation_filenode('t') AS before \gset
SELECT ttl.enable('t', 100);
SELECT pg_relation_filenode('t') = :before AS not_rewritten;
SELECT id, _ts > now() - interval '10 s' AS counts_from_now, ttl FROM t ORDER BY id;
\d t
-- C11 both indexes are in use: a row is in at most one of them
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
-- again: it changes the default, and builds nothing twice
SELECT ttl.enable('t', 200);
SELECT count(*) AS indexes FROM pg_index WHERE indrelid = 't'::regclass;
SELECT default_ttl, ts_column, ttl_column, document_column, hidden, rules, problems FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl.enable('t', 200, ts_column => 'other');
-- locks: a change of the default is no ACCESS EXCLUSIVE lock
BEGIN;
SELECT ttl.set_default('t', 300);
SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode NOT IN ('AccessShareLock') ORDER BY 1;
ROLLBACK;

-- quoted names, other schemas, dropped columns, a long name
CREATE TABLE "Sch ema"."T ""x" ("drop" int, "Id" int);
ALTER TABLE "Sch ema"."T ""x" DROP COLUMN "drop";
SELECT ttl.enable('"Sch ema"."T ""x"', 100, ts_column => 'Last "Change"', ttl_column => 'Time To Live'); -- W9
ALTER TABLE "Sch ema"."T ""x" ADD COLUMN "Last ""Change""" timestamptz NOT NULL DEFAULT ttl.current_ts();
SELECT ttl.enable('"Sch ema"."T ""x"', 100, ts_column => 'Last "Change"', ttl_column => 'Time To Live');
\d "Sch ema"."T ""x"
SELECT relation, ts_column, ttl_column, problems FROM ttl.tables WHERE relation = '"Sch ema"."T ""x"'::regclass;
INSERT INTO "Sch ema"."T ""x" ("Id", "Time To Live") VALUES (1, 50);
SELECT ttl.purge('"Sch ema"."T ""x"');
SELECT ttl.disable('"Sch ema"."T ""x"', drop_columns => true);
\d "Sch ema"."T ""x"
CREATE TABLE a23456789012345678901234567890123456789012345678901234567890123 (id int);
SELECT ttl.enable('a23456789012345678901234567890123456789012345678901234567890123');

-- existing columns of a fitting type are adopted; rows without a time never expire
CREATE TABLE adopted (id int, updated_at timestamptz, lifetime int);
INSERT INTO adopted VALUES (1, now() - interval '1 h', NULL), (2, NULL, NULL), (3, now(), 5), (4, now() - interval '1 h', -1);
SELECT ttl.enable('adopted', 100, ts_column => 'updated_at', ttl_column => 'lifetime');
SELECT id FROM adopted ORDER BY id;
\d adopted
-- its own default stays
CREATE TABLE own_default (changed timestamptz DEFAULT clock_timestamp());
SELECT ttl.enable('own_default', 100, ts_column => 'changed', ttl_column => NULL);
\d own_default
-- bad values are found; the constraint is not added twice
CREATE TABLE bad_values (id int, ttl int);
INSERT INTO bad_values VALUES (1, 0);
SELECT ttl.enable('bad_values', 100); -- W2
SELECT ttl.enable('bad_values', 100, ttl_column => 'ttl');
\d bad_values
CREATE TABLE has_check (id int, ttl int CHECK (ttl > 0 OR ttl = -1));
SELECT ttl.enable('has_check', 100);
SELECT count(*) FROM pg_constraint WHERE conrelid = 'has_check'::regclass AND contype = 'c';
CREATE TABLE has_own_check (id int, "t t" int CHECK (ttl.is_override("t t")));
SELECT ttl.enable('has_own_check', 100, ttl_column => 't t');
SELECT conname FROM pg_constraint WHERE conrelid = 'has_own_check'::regclass AND contype = 'c';

-- index => 'none': the table is read
CREATE TABLE big (id int);
SELECT ttl.enable('big', 100, index => 'none');
SELECT problems, index_state FROM ttl.tables WHERE relation = 'big'::regclass;
CREATE INDEX CONCURRENTLY big_expiry_key ON big (ttl.expiry_key(_ts, ttl));
SELECT problems, index_state FROM ttl.tables WHERE relation = 'big'::regclass;
SELECT ttl.enable('big', 100, index => 'hash');

-- temporary and unlogged tables
CREATE TEMP TABLE tmp (id int);
SELECT ttl.enable('tmp', 100);
INSERT INTO tmp VALUES (1);
SELECT count(*) FROM tmp;
CREATE UNLOGGED TABLE unlogged (id int);
SELECT ttl.enable('unlogged', 100);

-- what cannot have a time to live
CREATE VIEW v AS SELECT 1;
CREATE MATERIALIZED VIEW mv AS SELECT 1;
CREATE SEQUENCE s;
CREATE FOREIGN DATA WRAPPER regress_fdw;
CREATE SERVER regress_server FOREIGN DATA WRAPPER regress_fdw;
CREATE FOREIGN TABLE ft (id int) SERVER regress_server;
SELECT ttl.enable('v');
SELECT ttl.enable('mv');
SELECT ttl.enable('s');
SELECT ttl.enable('ft');
SELECT ttl.enable('big_expiry_key');
SELECT ttl.enable('pg_catalog.pg_class');
SELECT ttl.enable('information_schema.sql_features');
SELECT ttl.enable('nosuch');
SELECT ttl.enable(0);
SELECT ttl.enable(NULL);

-- columns that do not fit
CREATE TABLE wrong (id int, a timestamp, b date, c bigint, d timestamptz GENERATED ALWAYS AS ('2020-01-01 00:00:00+00'::timestamptz) STORED, e int GENERATED ALWAYS AS (5) STORED, f text);
SELECT ttl.enable('wrong', 100, ts_column => 'a');
SELECT ttl.enable('wrong', 100, ts_column => 'b');
SELECT ttl.enable('wrong', 100, ttl_column => 'c');
SELECT ttl.enable('wrong', 100, ts_column => 'd');
SELECT ttl.enable('wrong', 100, ttl_column => 'e');
SELECT ttl.enable('wrong', 100, ts_column => 'ttl');
SELECT ttl.enable('wrong', 100, ts_column => NULL);
SELECT ttl.enable('wrong', 100, ts_column => 'ctid');
SELECT ttl.enable('wrong', 100, document_column => 'f');
SELECT ttl.enable('wrong', 100, document_column => 'nosuch');
SELECT ttl.enable('wrong', 100, document_column => 'f', ttl_column => NULL);
ALTER TABLE wrong ADD COLUMN g jsonb;
SELECT ttl.enable('wrong', 100, document_column => 'g', ttl_column => 'e');
ALTER TABLE wrong DROP COLUMN g;
\d wrong

-- in a transaction: rolled back, it leaves nothing behind
BEGIN;
CREATE TABLE in_tx (id int);
INSERT INTO in_tx VALUES (1);
SELECT ttl.enable('in_tx', 100);
SAVEPOINT s;
SELECT ttl.disable('in_tx', drop_columns => true);
SELECT * FROM in_tx;
ROLLBACK TO s;
SELECT id, ttl FROM in_tx;
ROLLBACK;
BEGIN;
SELECT ttl.enable('wrong', 100);
ROLLBACK;
\d wrong
SELECT count(*) FROM ttl.tables WHERE relation = 'wrong'::regclass;

-- D1-D3: the override in a document, as a generated column
CREATE TABLE docs (id int PRIMARY KEY, body jsonb);
SELECT ttl.enable('docs', 3600, document_column => 'body');
\d docs
INSERT INTO docs VALUES (1, '{"ttl": 20}'), (2, '{"ttl": 20.5}'), (3, '{"ttl": -1}'), (4, '{"a": {"ttl": 5}}'), (5, NULL);
UPDATE docs SET body = body || '{"ttl": 30}' WHERE id = 2;
UPDATE docs SET body = body - 'ttl' WHERE id = 3;
SELECT id, ttl FROM docs ORDER BY id;
SELECT ttl.disable('docs', drop_columns => true);
\d docs

SET client_min_messages = warning;
DROP SCHEMA enable, "Sch ema" CASCADE;
DROP FOREIGN DATA WRAPPER regress_fdw CASCADE;
