-- Turning TTL off, or raising the default, brings no expired row back (C6, C8, C9,
-- complaint 10), unless revive_expired => true asks for it.
CREATE SCHEMA turning_off;
SET search_path = turning_off;
-- row 1 is expired by a default of 100, row 2 by an override, rows 3 and 4 live
CREATE FUNCTION fill(name regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ttl.preserve_ts = on;
    EXECUTE format('DELETE FROM %s', name);
    EXECUTE format('INSERT INTO %s (id, _ts, ttl) VALUES (1, now() - interval ''1 h'', NULL), '
                   '(2, now() - interval ''1 h'', 60), (3, now() - interval ''1 h'', -1), (4, now(), NULL)', name);
    SET LOCAL ttl.preserve_ts = off;
END $$;
CREATE TABLE t (id int PRIMARY KEY);
SELECT ttl.enable('t', 100);

-- each change by which rows would live again
BEGIN; SELECT fill('t');
SELECT ttl.disable('t');
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.set_default('t', NULL);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.set_default('t', -1);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.set_default('t', 7200);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.enable('t', 7200);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.disable('t', drop_columns => true);
SELECT id FROM t ORDER BY id; ROLLBACK;
-- from -1 to off: overrides
SELECT ttl.set_default('t', -1);
BEGIN; SELECT fill('t');
SELECT ttl.disable('t');
SELECT id FROM t ORDER BY id; ROLLBACK;
SELECT ttl.set_default('t', 100);

-- asked for
BEGIN; SELECT fill('t');
SELECT ttl.disable('t', revive_expired => true);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.set_default('t', 7200, revive_expired => true);
SELECT id FROM t ORDER BY id; ROLLBACK;
BEGIN; SELECT fill('t');
SELECT ttl.disable('t', drop_columns => true, revive_expired => true);
SELECT id FROM t ORDER BY id; ROLLBACK;
SELECT ttl.set_default('t', 7200, revive_expired => NULL);
\echo :SQLSTATE

-- nothing is deleted by a change that brings nothing back
BEGIN; SELECT fill('t');
SELECT ttl.set_default('t', 50), ttl.set_default('t', 50), ttl.enable('t', 40);
SET LOCAL ttl.show_expired = on;
SELECT id FROM t ORDER BY id;
-- nor off twice
SELECT ttl.disable('t', revive_expired => true), ttl.disable('t');
SELECT id FROM t ORDER BY id; ROLLBACK;

-- a row that another keeps: all fails, and says what to do
CREATE TABLE child (t_id int REFERENCES t);
SELECT fill('t');
SET ttl.show_expired = on;
INSERT INTO child VALUES (1);
RESET ttl.show_expired;
SELECT ttl.disable('t');
\echo :SQLSTATE
SELECT ttl.set_default('t', 7200);
SELECT ttl.enable('t', 7200);
SELECT ttl.disable('t', drop_columns => true);
SELECT default_ttl FROM ttl.tables WHERE relation = 't'::regclass;
SELECT id FROM t ORDER BY id;
SELECT ttl.set_default('t', 7200, revive_expired => true);
SELECT id FROM t ORDER BY id;
-- at COMMIT, if the constraint is deferred
ALTER TABLE child ALTER CONSTRAINT child_t_id_fkey DEFERRABLE INITIALLY DEFERRED;
SELECT ttl.set_default('t', 100);
BEGIN;
SELECT ttl.disable('t');
COMMIT;
SELECT default_ttl FROM ttl.tables WHERE relation = 't'::regclass;
-- a cascade takes the child along
ALTER TABLE child DROP CONSTRAINT child_t_id_fkey, ADD FOREIGN KEY (t_id) REFERENCES t ON DELETE CASCADE;
SELECT ttl.disable('t');
SELECT id FROM t ORDER BY id;
SELECT * FROM child;
DROP TABLE child;

-- a trigger or a rule that keeps rows
SELECT ttl.enable('t', 100);
SELECT fill('t');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
SELECT ttl.disable('t');
\echo :SQLSTATE
DROP TRIGGER keep ON t;
CREATE RULE keep AS ON DELETE TO t DO INSTEAD NOTHING;
SELECT ttl.set_default('t', 7200);
DROP RULE keep ON t;
-- one that fails; its own hint is left as it is
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'no' USING ERRCODE = 'P0042', DETAIL = 'detail', HINT = 'hint'; END $$;
CREATE TRIGGER fail BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION fail();
SELECT ttl.disable('t');
\echo :SQLSTATE
DROP TRIGGER fail ON t;
-- triggers find the session's search_path, and run as the owner; the purge counts as no user's query
CREATE TABLE log (id int, who name);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (OLD.id, current_user); RETURN OLD; END';
CREATE TRIGGER note BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE ROLE regress_turning_off;
GRANT ALL ON SCHEMA turning_off TO regress_turning_off;
GRANT ALL ON log TO regress_turning_off;
ALTER TABLE t OWNER TO regress_turning_off;
SELECT ttl.set_default('t', 7200);
SELECT * FROM log ORDER BY id;
SELECT id FROM t ORDER BY id;
DROP TRIGGER note ON t;
-- The former owner could not act as the new one: deletion waits.
ALTER TABLE t OWNER TO CURRENT_USER;
SELECT unnest(ttl.problems('t'));
SELECT ttl.resume('t');
-- the search_path of the session is what it was
SHOW search_path;

-- partitions, and heirs with other columns before
CREATE TABLE p (x text, id int, part int) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 (part int, id int, x text);
ALTER TABLE p ATTACH PARTITION p2 DEFAULT;
SELECT ttl.enable('p', 100);
SET ttl.preserve_ts = on;
INSERT INTO p (part, id, _ts) SELECT i % 3, i, now() - i * interval '60 s' FROM generate_series(1, 6) i;
RESET ttl.preserve_ts;
BEGIN;
SELECT ttl.disable('p', drop_columns => true);
SELECT id FROM p ORDER BY id;
SELECT DISTINCT mode FROM pg_locks WHERE relation IN ('p'::regclass, 'p1'::regclass, 'p2'::regclass)
   AND pid = pg_backend_pid() AND mode LIKE '%Exclusive%' ORDER BY 1;
ROLLBACK;
BEGIN;
SELECT ttl.set_default('p', -1);
SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('p'::regclass, 'p1'::regclass, 'p2'::regclass)
   AND pid = pg_backend_pid() AND mode LIKE '%Exclusive%' ORDER BY 1, 2;
COMMIT;
SELECT id FROM p ORDER BY id;
-- a policy of a parent's that takes the place of an heir's
CREATE TABLE par (id int);
CREATE TABLE heir () INHERITS (par);
SELECT ttl.enable('heir', 100);
SELECT fill('heir');
SELECT ttl.enable('par', 7200);
SELECT id FROM par ORDER BY id;
-- another parent's policy stays in force: its rows are left alone
CREATE TABLE par2 (other int);
SELECT ttl.enable('par2', 100);
CREATE TABLE both_of () INHERITS (par, par2);
SELECT ttl.set_default('par', 50);
SELECT fill('both_of');
SELECT ttl.disable('par2');
SET ttl.show_expired = on;
SELECT id FROM both_of ORDER BY id;
RESET ttl.show_expired;
SELECT ttl.disable('par');
SELECT id FROM both_of ORDER BY id;

-- restored from a dump: nothing is deleted before ttl.resume
CREATE TABLE r (id int, _ts timestamptz, ttl int);
SECURITY LABEL FOR ttl ON TABLE r IS '{"default_ttl": 100, "index": "none"}';
SET client_min_messages = error; -- the warnings of resume.sql
SELECT ttl.set_default('r', 200), ttl.disable('r');
SELECT ttl.set_default('r', 100);
RESET client_min_messages;
SELECT fill('r');
SELECT ttl.disable('r');
\echo :SQLSTATE
SELECT ttl.set_default('r', 7200);
SELECT ttl.disable('r', drop_columns => true);
BEGIN;
SELECT ttl.disable('r', revive_expired => true);
SELECT id FROM r ORDER BY id;
ROLLBACK;
BEGIN;
SELECT ttl.resume('r'), ttl.disable('r');
SELECT id FROM r ORDER BY id;
ROLLBACK;

-- who is not the owner deletes nothing
SELECT ttl.enable('t', 100), fill('t');
SET ROLE regress_turning_off;
SELECT ttl.disable('t');
RESET ROLE;
-- by the clock of the transaction, in REPEATABLE READ
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT ttl.disable('t');
SELECT id FROM t ORDER BY id;
COMMIT;
-- prepared; it keeps its locks, which let others read
SELECT ttl.enable('t', 100), fill('t');
BEGIN;
SELECT ttl.set_default('t', 7200);
PREPARE TRANSACTION 'turning_off';
SELECT id FROM t ORDER BY id;
ROLLBACK PREPARED 'turning_off';
SET ttl.show_expired = on;
SELECT id FROM t ORDER BY id;
RESET ttl.show_expired;

SET client_min_messages = warning;
DROP SCHEMA turning_off CASCADE;
DROP ROLE regress_turning_off;
