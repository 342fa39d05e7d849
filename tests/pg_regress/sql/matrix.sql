-- The matrix of C2/C3 (semantics.md), C4, C5, C8, C10: 30 seconds after the last write.
CREATE SCHEMA matrix;
SET search_path = matrix;

CREATE TABLE t (name text PRIMARY KEY);
SELECT ttl.enable('t');
-- The clock of these rows stands 30 s ago, to the microsecond of this statement.
SET ttl.preserve_ts = on;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO t (name, ttl, _ts) VALUES
    ('null', NULL, ttl.now() - interval '30 s'), ('-1', -1, ttl.now() - interval '30 s'),
    ('30', 30, ttl.now() - interval '30 s'), ('31', 31, ttl.now() - interval '30 s');

-- C2 -1 = on, rows do not expire unless they say so; C5 inclusive: 30 is gone
SELECT name FROM t ORDER BY ttl NULLS FIRST;
-- C8 at once on all rows that inherit
SELECT ttl.set_default('t', 30);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
SELECT ttl.set_default('t', 31, revive_expired => true);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
-- C2, C4, C9 off: nothing expires, overrides are ignored and kept
SELECT ttl.set_default('t', NULL, revive_expired => true);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
-- C4 and count again when it is turned on again
SELECT ttl.set_default('t', -1);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
SELECT ttl.disable('t', revive_expired => true);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
SELECT ttl.enable('t', 30);
SELECT name FROM t ORDER BY ttl NULLS FIRST;
COMMIT;
RESET ttl.preserve_ts;

-- C10 to extend a row's life: write to it
UPDATE t SET name = name WHERE name = '31';
SELECT name, _ts > now() - interval '10 s' AS restarted FROM t WHERE name = '31';
-- to change it, to inherit again, to stop it from expiring: set ttl
SET ttl.preserve_ts = on;
INSERT INTO t (name, ttl, _ts) VALUES ('c10', 100, now() - interval '50 s');
SELECT count(*) FROM t WHERE name = 'c10';
UPDATE t SET ttl = 40 WHERE name = 'c10';
SELECT count(*) AS changed FROM t WHERE name = 'c10';
INSERT INTO t (name, ttl, _ts) VALUES ('c10 null', 100, now() - interval '50 s');
UPDATE t SET ttl = NULL WHERE name = 'c10 null';
SELECT count(*) AS inherits FROM t WHERE name = 'c10 null';
INSERT INTO t (name, ttl, _ts) VALUES ('c10 -1', 100, now() - interval '50 s');
UPDATE t SET ttl = -1, _ts = '2000-01-01' WHERE name = 'c10 -1';
SELECT count(*) AS stays FROM t WHERE name = 'c10 -1';
RESET ttl.preserve_ts;

-- C3 0 and less than -1 are refused by a constraint
\set VERBOSITY terse
INSERT INTO t (name, ttl) VALUES ('zero', 0);
INSERT INTO t (name, ttl) VALUES ('minus two', -2);
UPDATE t SET ttl = 0 WHERE name = '-1';
INSERT INTO t (name, ttl) VALUES ('max', 2147483647);
\set VERBOSITY default

-- C2 0, less than -1 and above 2147483647 are refused
SELECT ttl.set_default('t', 0);
SELECT ttl.set_default('t', -2);
SELECT ttl.enable('t', 0);
SELECT ttl.enable('t', NULL);
SELECT ttl.set_default('t', 2147483648);
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 2147483648}';
SELECT default_ttl FROM ttl.tables WHERE relation = 't'::regclass;

-- A table without an override column
CREATE TABLE plain (name text);
SELECT ttl.enable('plain', 30, ttl_column => NULL);
SET ttl.preserve_ts = on;
INSERT INTO plain VALUES ('29', now() - interval '20 s'), ('31', now() - interval '31 s');
SELECT name FROM plain;
SELECT ttl.set_default('plain', -1, revive_expired => true);
SELECT name FROM plain;
RESET ttl.preserve_ts;
\d plain

SET client_min_messages = warning;
DROP SCHEMA matrix CASCADE;
