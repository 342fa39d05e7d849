-- Promise of docs/security.md: who may do what.
CREATE SCHEMA privileges;
SET search_path = privileges;
CREATE ROLE regress_owner;
CREATE ROLE regress_member IN ROLE regress_owner;
CREATE ROLE regress_stranger;
GRANT ALL ON SCHEMA privileges TO PUBLIC;

SET ROLE regress_owner;
CREATE TABLE t (id int);
GRANT ALL ON t TO regress_stranger;
SELECT ttl.enable('t', 100);
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (1, now() - interval '1 h');
RESET ttl.preserve_ts;
INSERT INTO t VALUES (2);

-- only the owner, or a member of the owning role, changes or purges
SET ROLE regress_stranger;
SELECT ttl.enable('t', 200);
SELECT ttl.set_default('t', 200);
SELECT ttl.disable('t');
SELECT ttl.purge('t');
ALTER TABLE t DROP COLUMN _ts;
ALTER TABLE t ALTER COLUMN ttl TYPE bigint;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 5}';
SELECT id FROM t;
SELECT total, expired FROM ttl.preview('t');
SELECT relation, default_ttl FROM ttl.tables WHERE relation = 't'::regclass;
-- expired rows are for superusers, or by GRANT SET
SET ttl.show_expired = on;
SET row_security = off;
SELECT id FROM t;
RESET row_security;
-- INSERT is anybody's, with the clock of the server or, for back-fills, with one's own
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (3, now() - interval '1 h'), (4, now() - interval '1 min');
RESET ttl.preserve_ts;
SELECT id FROM t ORDER BY id;
-- nobody may create in the schema
CREATE TABLE ttl.x (id int);
CREATE FUNCTION ttl.live(int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SET ROLE regress_member;
SELECT ttl.set_default('t', 50);
SELECT id FROM t ORDER BY id;
SELECT ttl.purge('t');
RESET ROLE;

-- preview reads with the caller's privileges
REVOKE ALL ON t FROM regress_stranger;
SET ROLE regress_stranger;
SELECT * FROM ttl.preview('t');
RESET ROLE;

-- purge runs triggers as the table's owner, whoever calls it, and they cannot get further
CREATE FUNCTION whoami() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'trigger runs as %', current_user;
    BEGIN SET ROLE NONE; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'SET ROLE: %', SQLERRM; END;
    BEGIN RESET SESSION AUTHORIZATION; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'RESET SESSION AUTHORIZATION: %', SQLERRM; END;
    RAISE NOTICE 'and sees % expired rows', (SELECT count(*) FROM privileges.t WHERE _ts < now() - interval '30 min');
    RETURN OLD;
END $$;
CREATE TRIGGER whoami BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION whoami();
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (5, now() - interval '1 h'), (6, now() - interval '1 h');
RESET ttl.preserve_ts;
SELECT ttl.purge('t');
SELECT current_user = session_user AS back;

-- row-level security hides what it hid before, and expired rows beside; purge gets all
CREATE TABLE r (id int, who name);
ALTER TABLE r OWNER TO regress_owner;
SELECT ttl.enable('r', 100);
ALTER TABLE r ENABLE ROW LEVEL SECURITY;
ALTER TABLE r FORCE ROW LEVEL SECURITY;
CREATE POLICY mine ON r USING (who = current_user);
GRANT ALL ON r TO regress_stranger;
SET ttl.preserve_ts = on;
INSERT INTO r (id, who, _ts) VALUES (1, 'regress_stranger', now()), (2, 'regress_stranger', now() - interval '1 h'), (3, 'other', now()), (4, 'other', now() - interval '1 h');
RESET ttl.preserve_ts;
SET ROLE regress_stranger;
SELECT id FROM r;
UPDATE r SET id = id RETURNING id;
COPY r (id) TO STDOUT;
EXPLAIN (COSTS OFF) SELECT * FROM r WHERE id = 1;
SET row_security = off;
SELECT id FROM r;
RESET row_security;
SET ROLE regress_owner;
SELECT ttl.purge('r');
RESET ROLE;
SET ttl.show_expired = on;
SELECT id FROM r ORDER BY id;
RESET ttl.show_expired;

-- a table of the same names that somebody else made is not the extension's
SET client_min_messages = warning;
DROP SCHEMA privileges CASCADE;
DROP ROLE regress_owner, regress_member, regress_stranger;
