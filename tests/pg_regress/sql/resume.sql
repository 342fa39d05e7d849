-- Complaint 12: the guard on restored tables: ttl.resume.
CREATE SCHEMA resume;
SET search_path = resume;

CREATE TABLE t (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts());
-- a policy of ttl.enable's is not guarded
CREATE VIEW guarded AS
    SELECT label::jsonb ? 'restored' AS guarded, label::jsonb - 'restored' AS label
      FROM pg_seclabel WHERE provider = 'ttl' AND objoid = 't'::regclass;
SELECT ttl.enable('t', 100, ttl_column => NULL);
SELECT * FROM guarded;
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;

-- as a dump brings it
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100, "ttl_column": null}';
SELECT unnest(problems) FROM ttl.tables WHERE relation = 't'::regclass;
-- expired rows are hidden all the same, and purged when asked
SET ttl.preserve_ts = on;
INSERT INTO t VALUES (1, now() - interval '1 h'), (2, now());
RESET ttl.preserve_ts;
SELECT id FROM t;
SELECT ttl.purge('t');
-- what an application's migration script does keeps the guard
SELECT ttl.enable('t', 200, ttl_column => NULL);
SELECT * FROM guarded;
SELECT ttl.set_default('t', 300);
SELECT * FROM guarded;
-- off, there is nothing to delete, and nothing to warn of; on again, it is guarded still
SELECT ttl.set_default('t', NULL);
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl.set_default('t', 400);
SELECT ttl.disable('t');
SELECT * FROM guarded;
SELECT ttl.enable('t', 500, ttl_column => NULL);
SELECT * FROM guarded;
-- until somebody says so
BEGIN;
SELECT ttl.resume('t');
SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode <> 'AccessShareLock';
SELECT * FROM guarded;
ROLLBACK;
SELECT * FROM guarded;
SELECT ttl.resume('t');
SELECT * FROM guarded;
SELECT problems FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl.resume('t');
SELECT ttl.enable('t', 600, ttl_column => NULL);
-- a label without an OID was written by hand: guarded, too
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100, "ttl_column": null}';
SELECT unnest(problems) FROM ttl.tables WHERE relation = 't'::regclass;
-- removed and made anew, it is a policy of this table
SELECT ttl.disable('t', drop_columns => true);
SELECT ttl.enable('t', 100, ttl_column => NULL);
SELECT * FROM guarded;

-- a name that needs quotes, in what is said
CREATE TABLE "it's" (_ts timestamptz DEFAULT now());
SECURITY LABEL FOR ttl ON TABLE "it's" IS '{"default_ttl": 100, "index": "none", "ttl_column": null}';
SELECT unnest(problems) FROM ttl.tables WHERE relation = '"it''s"'::regclass;
SELECT ttl.set_default('"it''s"', 50);

-- refused
CREATE TABLE plain (id int);
CREATE VIEW v AS SELECT 1;
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE TABLE parts1 PARTITION OF parts DEFAULT;
SELECT ttl.enable('parts', 100);
SELECT ttl.resume(NULL);
SELECT ttl.resume('plain');
\echo :SQLSTATE
SELECT ttl.resume('parts1');
\echo :SQLSTATE
SELECT ttl.resume('v');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT ttl.resume('t');
\echo :SQLSTATE
ROLLBACK;
CREATE ROLE regress_stranger;
GRANT USAGE ON SCHEMA resume TO regress_stranger;
SET ROLE regress_stranger;
SELECT ttl.resume('resume.t');
\echo :SQLSTATE
RESET ROLE;
REVOKE ALL ON SCHEMA resume FROM regress_stranger;
DROP ROLE regress_stranger;

SET client_min_messages = warning;
DROP SCHEMA resume CASCADE;
