-- C6: keys of expired rows are free for whoever may insert, and triggers, views, rules
-- and row-level security of the table's owner are what they always are.
CREATE SCHEMA free_keys_users;
SET search_path = free_keys_users;
CREATE ROLE regress_owner;
CREATE ROLE regress_writer;
CREATE ROLE regress_reader;
GRANT USAGE, CREATE ON SCHEMA free_keys_users TO regress_owner;
GRANT USAGE ON SCHEMA free_keys_users TO regress_writer, regress_reader;
SET ROLE regress_owner;
CREATE TABLE t (id int PRIMARY KEY, v text, owner name DEFAULT current_user);
SELECT ttl.enable('t', 3600);
RESET ROLE;
-- 1 to 6 are expired, 11 and 12 live
CREATE FUNCTION refill() RETURNS void LANGUAGE sql SET ttl.preserve_ts = on SET session_replication_role = replica AS $$
    TRUNCATE t;
    INSERT INTO t (id, v, owner, _ts) SELECT i, 'old', 'regress_reader', now() - interval '1 day' FROM generate_series(1, 6) i;
    INSERT INTO t (id, v, owner) VALUES (11, 'live', 'regress_reader'), (12, 'live', 'regress_writer');
$$;
CREATE FUNCTION on_disk() RETURNS TABLE (id int, v text, owner name, expired boolean) LANGUAGE sql
    SECURITY DEFINER SET ttl.show_expired = on SET row_security = off AS $$
    SELECT id, v, owner, _ts < now() - interval '1 h' FROM free_keys_users.t ORDER BY id
$$;

-- who may not insert cannot free a key
SELECT refill();
SET ROLE regress_reader;
INSERT INTO t VALUES (6, 'new');
\copy t (id) from '/dev/null'
RESET ROLE;
SELECT count(*) FROM on_disk() WHERE expired;
-- who may INSERT only: neither SELECT nor DELETE is needed
GRANT INSERT ON t TO regress_writer;
SET ROLE regress_writer;
INSERT INTO t VALUES (1, 'new');
INSERT INTO t VALUES (2, 'new') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (11, 'new');
DELETE FROM t WHERE id = 3;
COPY t (id, v) FROM STDIN;
3	copied
\.
RESET ROLE;
GRANT SELECT (id), UPDATE (id) ON t TO regress_writer;
SET ROLE regress_writer;
UPDATE t SET id = 4 WHERE id = 12;
INSERT INTO t VALUES (5, 'new') ON CONFLICT (id) DO UPDATE SET id = 0 RETURNING id;
RESET ROLE;
SELECT * FROM on_disk();
-- row-level security, forced on the owner, too: expired rows that the user may not
-- see are not in the way; live ones are, as always
SELECT refill();
GRANT SELECT, INSERT, UPDATE, DELETE ON t TO regress_writer;
ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (owner = current_user) WITH CHECK (owner = current_user);
SET ROLE regress_writer;
SELECT id FROM t;
INSERT INTO t VALUES (1, 'new') RETURNING id, v;
INSERT INTO t VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET v = 'updated' RETURNING id, v;
UPDATE t SET id = 3 WHERE id = 12 RETURNING id, v;
INSERT INTO t VALUES (11, 'new');
INSERT INTO t VALUES (11, 'new') ON CONFLICT (id) DO UPDATE SET v = 'updated';
-- a row that the policy refuses takes nothing away
INSERT INTO t VALUES (4, 'new', 'regress_reader');
SET ROLE regress_owner;
INSERT INTO t VALUES (5, 'new') RETURNING id, v;
RESET ROLE;
SELECT * FROM on_disk();
ALTER TABLE t DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;

-- a BEFORE trigger that chooses the key, and one that drops the row
SELECT refill();
CREATE FUNCTION choose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.v = 'drop' THEN RETURN NULL; END IF;
    IF NEW.v = 'shift' THEN NEW.id := NEW.id + 1; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER zz_choose BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION choose();
INSERT INTO t VALUES (1, 'shift');
INSERT INTO t VALUES (3, 'drop');
INSERT INTO t VALUES (20, 'shift'), (4, 'shift') ON CONFLICT (id) DO UPDATE SET v = 'updated' RETURNING id, v;
UPDATE t SET v = 'shift', id = 5 WHERE id = 12;
INSERT INTO t VALUES (10, 'shift');
SELECT * FROM on_disk();
DROP TRIGGER zz_choose ON t;

-- the owner's DELETE triggers fire for the row in the way, as for one that the worker
-- deletes; those on INSERT and UPDATE see what they would if it were absent
SELECT refill();
CREATE TABLE log (n int GENERATED ALWAYS AS IDENTITY, entry text);
ALTER TABLE log OWNER TO regress_owner;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO free_keys_users.log (entry) VALUES (concat_ws(' ', TG_WHEN, TG_OP, TG_LEVEL,
        CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN OLD.id || ' ' || OLD.v END, '->',
        CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW.id || ' ' || NEW.v END,
        CASE WHEN TG_WHEN = 'BEFORE' THEN 'by ' || current_user END));
    IF TG_LEVEL = 'ROW' AND TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION note() SECURITY INVOKER;
CREATE FUNCTION note_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO free_keys_users.log (entry) SELECT 'transition table ' || TG_OP || ' ' || id || ' ' || v FROM changed ORDER BY id;
    RETURN NULL;
END $$;
GRANT INSERT ON log TO regress_writer;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER after_insert AFTER INSERT ON t REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_new();
-- Code of the owner does not run in the session of a user who could not become the owner: it waits for a worker, and here
-- there is none.
SET ROLE regress_writer;
INSERT INTO t VALUES (1, 'new'), (21, 'new');
RESET ROLE;
TRUNCATE log;
GRANT regress_owner TO regress_writer;
SET ROLE regress_writer;
INSERT INTO t VALUES (1, 'new'), (21, 'new');
UPDATE t SET id = 2, v = 'moved' WHERE id = 12;
INSERT INTO t VALUES (3, 'new') ON CONFLICT (id) DO UPDATE SET v = 'updated';
RESET ROLE;
SELECT entry FROM log ORDER BY n;
SELECT * FROM on_disk() WHERE id < 10;
TRUNCATE log;
-- deferred, and taken back
ALTER TABLE t DISABLE TRIGGER ALL;
CREATE CONSTRAINT TRIGGER at_commit AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE t ENABLE ALWAYS TRIGGER "~ttl_free_expired_keys";
INSERT INTO t VALUES (4, 'new'); -- it would run as another user than the owner
SET ROLE regress_owner;
BEGIN;
INSERT INTO t VALUES (4, 'new');
SAVEPOINT s;
INSERT INTO t VALUES (5, 'new');
ROLLBACK TO s;
SELECT count(*) AS logged FROM log;
COMMIT;
RESET ROLE;
SELECT entry FROM log ORDER BY n;
SELECT * FROM on_disk() WHERE id IN (4, 5);
DROP TRIGGER at_commit ON t;
-- a trigger that keeps the row keeps its key, and says so by the usual error
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO t VALUES (5, 'new');
INSERT INTO t VALUES (5, 'new') ON CONFLICT DO NOTHING RETURNING id;
DROP TRIGGER keep ON t;
-- one that fails: its own error
\set VERBOSITY terse
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
CREATE TRIGGER fail BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION fail();
INSERT INTO t VALUES (5, 'new');
\set VERBOSITY default
DROP TRIGGER fail ON t;
INSERT INTO t VALUES (5, 'new') RETURNING id;
DROP TRIGGER before_row ON t;
DROP TRIGGER after_row ON t;
DROP TRIGGER after_insert ON t;
-- triggers for the statement, with a transition table
SELECT refill();
TRUNCATE log;
CREATE FUNCTION note_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO free_keys_users.log (entry) SELECT 'transition table ' || TG_OP || ' ' || id || ' ' || v FROM gone ORDER BY id;
    RETURN NULL;
END $$;
CREATE TRIGGER after_delete AFTER DELETE ON t REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_old();
INSERT INTO t VALUES (1, 'new'), (31, 'new'), (2, 'new');
COPY t (id, v) FROM STDIN;
3	copied
\.
SELECT entry FROM log ORDER BY n;
-- row-level security does not keep the owner's triggers from it
ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SET ROLE regress_writer;
INSERT INTO t VALUES (4, 'new') RETURNING id;
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
-- a rule on DELETE does not apply: nobody deletes by SQL
CREATE RULE kept AS ON DELETE TO t DO INSTEAD NOTHING;
INSERT INTO t VALUES (5, 'new');
DROP RULE kept ON t;
SELECT v FROM t WHERE id = 5;
DROP TRIGGER after_delete ON t;

-- views that are updatable by themselves, by triggers, by rules
SELECT refill();
CREATE VIEW v AS SELECT id, v AS value FROM t WHERE id < 10 WITH CHECK OPTION;
INSERT INTO v VALUES (1, 'new') RETURNING *;
INSERT INTO v VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET value = 'updated' RETURNING *;
INSERT INTO v VALUES (11, 'new');
UPDATE v SET id = 3 WHERE id = 1;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO free_keys_users.t VALUES (NEW.id, 'instead ' || NEW.value); RETURN NEW; END $$;
CREATE VIEW w AS SELECT id, v AS value FROM t;
CREATE TRIGGER instead INSTEAD OF INSERT ON w FOR EACH ROW EXECUTE FUNCTION instead();
INSERT INTO w VALUES (4, 'new') RETURNING *;
CREATE TABLE facade (id int, v text);
CREATE RULE through AS ON INSERT TO facade DO INSTEAD INSERT INTO t VALUES (NEW.id, 'by rule');
INSERT INTO facade VALUES (5, 'new');
CREATE RULE also AS ON INSERT TO t WHERE NEW.v = 'twice' DO ALSO INSERT INTO log (entry) VALUES ('also ' || NEW.id);
INSERT INTO t VALUES (6, 'twice');
SELECT * FROM on_disk();

SET client_min_messages = warning;
DROP SCHEMA free_keys_users CASCADE;
DROP ROLE regress_owner, regress_writer, regress_reader;
