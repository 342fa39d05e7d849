-- C6: the trigger that frees the keys of expired rows is on the tables that need it,
-- and on no other.
CREATE SCHEMA trigger;
SET search_path = trigger;
CREATE VIEW triggers AS
    SELECT tgrelid::regclass AS relation, tgenabled = 'A' AS always, tgparentid <> 0 AS clone
      FROM pg_trigger WHERE tgfoid = 'ttl.free_expired_keys'::regproc AND tgname = '~ttl_free_expired_keys'
     ORDER BY tgrelid::regclass::text;
CREATE VIEW problems AS
    SELECT relation, unnest(array_remove(problems, 'deletion is off: ttl.enabled')) AS problem FROM ttl.tables
     WHERE relation IN (SELECT oid FROM pg_class WHERE relnamespace = 'trigger'::regnamespace);

-- turning TTL on and off
CREATE TABLE t (id int PRIMARY KEY, a int, b int);
SELECT ttl.enable('t', 100);
SELECT * FROM triggers;
SELECT pg_get_triggerdef(oid), obj_description(oid, 'pg_trigger') FROM pg_trigger
 WHERE tgrelid = 't'::regclass AND tgname = '~ttl_free_expired_keys';
SELECT ttl.enable('t', 200);
SELECT ttl.set_default('t', 300);
SELECT ttl.set_default('t', -1);
SELECT * FROM triggers;
SELECT ttl.set_default('t', NULL);
SELECT * FROM triggers;
SELECT ttl.set_default('t', 100);
SELECT * FROM triggers;
SELECT ttl.disable('t');
SELECT * FROM triggers;
SELECT ttl.enable('t', 100);
SELECT ttl.disable('t', drop_columns => true);
SELECT * FROM triggers;
-- without a key there is none; deferrable and exclusion constraints have keys, too
CREATE TABLE no_key (id int);
SELECT ttl.enable('no_key', 100);
CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
SELECT ttl.enable('deferred', 100);
CREATE TABLE excluded (id int4range, EXCLUDE USING gist (id WITH &&));
SELECT ttl.enable('excluded', 100);
CREATE TEMP TABLE tmp (id int PRIMARY KEY);
SELECT ttl.enable('tmp', 100);
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
SELECT ttl.enable('unlogged', 100);
CREATE TABLE "Q""t" ("Id" int PRIMARY KEY);
SELECT ttl.enable('"Q""t"', 100);
SELECT * FROM triggers;
-- nor on a table without TTL
CREATE TABLE plain (id int PRIMARY KEY);
CREATE UNIQUE INDEX ON plain (id);
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'plain'::regclass;
DROP TABLE deferred, excluded, tmp, unlogged, "Q""t";

-- a constraint that is added and dropped
CREATE VIEW no_key_trigger AS SELECT count(*) FROM pg_trigger WHERE tgrelid = 'no_key'::regclass;
CREATE INDEX plain_idx ON no_key (id);
SELECT * FROM no_key_trigger;
CREATE UNIQUE INDEX unique_idx ON no_key (id);
SELECT * FROM no_key_trigger;
CREATE UNIQUE INDEX second_idx ON no_key (id);
DROP INDEX second_idx;
SELECT * FROM no_key_trigger;
DROP INDEX unique_idx, plain_idx;
SELECT * FROM no_key_trigger;
CREATE UNIQUE INDEX CONCURRENTLY unique_idx ON no_key (id);
SELECT * FROM no_key_trigger;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS unique_idx ON no_key (id);
DROP INDEX CONCURRENTLY unique_idx;
SELECT * FROM no_key_trigger;
-- one that could not be built refuses rows nevertheless
INSERT INTO no_key VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY unique_idx ON no_key (id);
SELECT * FROM no_key_trigger;
DROP INDEX unique_idx;
SELECT * FROM no_key_trigger;
CREATE UNIQUE INDEX unique_idx ON no_key (id);
SELECT * FROM no_key_trigger;
TRUNCATE no_key;
CREATE INDEX other_idx ON no_key (id);
CREATE UNIQUE INDEX IF NOT EXISTS other_idx ON no_key (id);
SELECT * FROM no_key_trigger;
ALTER TABLE no_key ADD CONSTRAINT u UNIQUE (id);
SELECT * FROM no_key_trigger;
ALTER TABLE no_key DROP CONSTRAINT u;
SELECT * FROM no_key_trigger;
ALTER TABLE no_key ADD PRIMARY KEY (id), ADD EXCLUDE USING btree (id WITH =);
ALTER TABLE no_key DROP CONSTRAINT no_key_pkey;
SELECT * FROM no_key_trigger;
ALTER TABLE no_key DROP CONSTRAINT no_key_id_excl;
SELECT * FROM no_key_trigger;
ALTER TABLE no_key ADD COLUMN extra int UNIQUE, ADD COLUMN other text;
SELECT * FROM no_key_trigger;
ALTER TABLE no_key DROP COLUMN extra;
SELECT * FROM no_key_trigger;
BEGIN;
CREATE UNIQUE INDEX ON no_key (id);
SELECT * FROM no_key_trigger;
ROLLBACK;
SELECT * FROM no_key_trigger;
-- and an index that goes with what it is made of
CREATE FUNCTION half(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 2';
CREATE UNIQUE INDEX ON no_key (half(id));
SELECT * FROM no_key_trigger;
SET client_min_messages = warning;
DROP FUNCTION half CASCADE;
SELECT * FROM no_key_trigger;
CREATE DOMAIN positive AS int;
ALTER TABLE no_key ADD COLUMN p positive UNIQUE;
SELECT * FROM no_key_trigger;
DROP DOMAIN positive CASCADE;
RESET client_min_messages;
SELECT * FROM no_key_trigger;
-- in a function
DO $$ BEGIN
    CREATE UNIQUE INDEX in_do ON no_key (id);
    BEGIN
        CREATE UNIQUE INDEX in_do ON no_key (id);
    EXCEPTION WHEN duplicate_table THEN
        DROP INDEX in_do;
    END;
    RAISE NOTICE '% triggers', (SELECT * FROM no_key_trigger);
    CREATE UNIQUE INDEX in_do ON no_key (id);
    RAISE NOTICE '% triggers', (SELECT * FROM no_key_trigger);
END $$;
DROP TABLE no_key CASCADE;

-- partitions: on the partitioned table if it has a key, else on those that have one
CREATE TABLE p (a int, b int, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) PARTITION BY LIST (a);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (10);
SELECT ttl.enable('p', 100);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30);
CREATE TABLE p2b PARTITION OF p2 FOR VALUES IN (11);
SELECT * FROM triggers;
SELECT ttl.disable('p');
SELECT * FROM triggers;
SELECT ttl.enable('p', 100);
ALTER TABLE p DETACH PARTITION p3;
SELECT * FROM triggers;
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30);
SELECT * FROM triggers;
-- one that brings the trigger, and a policy of its own
CREATE TABLE p4 (LIKE p INCLUDING ALL);
SELECT ttl.enable('p4', 50);
SELECT * FROM triggers WHERE relation = 'p4'::regclass;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (30) TO (40);
SELECT * FROM triggers WHERE relation = 'p4'::regclass;
ALTER TABLE p DETACH PARTITION p4;
SELECT * FROM triggers WHERE relation = 'p4'::regclass;
SELECT problem FROM problems WHERE relation = 'p4'::regclass;
DROP TABLE p4;
-- it fails as it always does, and the trigger stays
CREATE TABLE p5 (LIKE p INCLUDING ALL);
SELECT ttl.enable('p5', 50);
ALTER TABLE p ATTACH PARTITION p5 FOR VALUES FROM (0) TO (40);
SELECT * FROM triggers WHERE relation = 'p5'::regclass;
DROP TABLE p5;
-- the key of the whole goes, that of a partition stays
CREATE UNIQUE INDEX p1_b ON p1 (b);
ALTER TABLE p DROP CONSTRAINT p_pkey;
SELECT * FROM triggers;
CREATE UNIQUE INDEX p2a_b ON p2a (b);
CREATE TABLE p6 PARTITION OF p (UNIQUE (b)) FOR VALUES FROM (50) TO (60);
SELECT * FROM triggers;
-- and the whole gets one again
CREATE UNIQUE INDEX p_a ON p (a);
SELECT * FROM triggers;
DROP INDEX p_a;
SELECT * FROM triggers;
CREATE UNIQUE INDEX p2_a ON p2 (a);
SELECT * FROM triggers;
CREATE UNIQUE INDEX p_a ON ONLY p (a);
SELECT * FROM triggers;
-- attached with a key of its own, to a table without one
DROP INDEX p_a;
CREATE TABLE p7 (LIKE p INCLUDING DEFAULTS INCLUDING CONSTRAINTS, UNIQUE (b));
ALTER TABLE p ATTACH PARTITION p7 FOR VALUES FROM (70) TO (80);
SELECT * FROM triggers WHERE relation = 'p7'::regclass;
ALTER TABLE p DETACH PARTITION p7 CONCURRENTLY;
SELECT * FROM triggers WHERE relation = 'p7'::regclass;
SELECT * FROM problems WHERE relation = 'p'::regclass;
DROP TABLE p, p7;

-- heirs
CREATE TABLE parent (id int PRIMARY KEY);
SELECT ttl.enable('parent', 100);
CREATE TABLE heir (UNIQUE (id)) INHERITS (parent);
CREATE TABLE keyless () INHERITS (parent);
SELECT * FROM triggers;
ALTER TABLE heir NO INHERIT parent;
SELECT * FROM triggers;
ALTER TABLE heir INHERIT parent;
SELECT * FROM triggers;
CREATE TABLE like_parent (LIKE parent INCLUDING ALL);
SELECT * FROM triggers;
CREATE TEMP TABLE parent (id int) INHERITS (trigger.parent);
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pg_temp.parent'::regclass;
-- an unqualified name is looked for where the table was made
SET client_min_messages = warning;
CREATE TEMP TABLE heir2 (id int);
CREATE TABLE heir2 (UNIQUE (id)) INHERITS (trigger.parent);
SELECT * FROM triggers;
DROP TABLE pg_temp.parent, pg_temp.heir2;
ALTER TABLE parent DROP COLUMN id CASCADE;
RESET client_min_messages;
SELECT * FROM triggers;
SET client_min_messages = warning;
DROP TABLE parent CASCADE;
RESET client_min_messages;

-- it cannot be switched off by accident
CREATE TABLE t2 (id int PRIMARY KEY);
SELECT ttl.enable('t2', 100);
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE parts1 PARTITION OF parts DEFAULT;
SELECT ttl.enable('parts', 100);
ALTER TABLE t2 DISABLE TRIGGER ALL;
SELECT * FROM triggers;
ALTER TABLE t2 ENABLE TRIGGER ALL;
ALTER TABLE t2 DISABLE TRIGGER USER;
ALTER TABLE parts DISABLE TRIGGER ALL;
SELECT * FROM triggers;
ALTER TABLE parts1 DISABLE TRIGGER USER;
ALTER TABLE parts1 ENABLE TRIGGER "~ttl_free_expired_keys";
SELECT * FROM triggers;
\set VERBOSITY default
ALTER TABLE t2 DISABLE TRIGGER "~ttl_free_expired_keys";
\set VERBOSITY terse
ALTER TABLE t2 ENABLE REPLICA TRIGGER "~ttl_free_expired_keys";
ALTER TABLE parts1 DISABLE TRIGGER "~ttl_free_expired_keys";
DROP TRIGGER "~ttl_free_expired_keys" ON t2;
DROP TRIGGER IF EXISTS "~ttl_free_expired_keys" ON trigger.parts CASCADE;
DROP TRIGGER "~ttl_free_expired_keys" ON parts1;
ALTER TRIGGER "~ttl_free_expired_keys" ON t2 RENAME TO other;
-- who does not own the table is told so
CREATE ROLE regress_no_owner;
GRANT USAGE ON SCHEMA trigger TO regress_no_owner;
SET ROLE regress_no_owner;
ALTER TRIGGER "~ttl_free_expired_keys" ON t2 RENAME TO other;
DROP TRIGGER "~ttl_free_expired_keys" ON t2;
RESET ROLE;
REVOKE USAGE ON SCHEMA trigger FROM regress_no_owner;
DROP ROLE regress_no_owner;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE OR REPLACE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM triggers;
-- what concerns other triggers goes on
CREATE TRIGGER zzz BEFORE INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM problems;
CREATE TRIGGER "~u" BEFORE UPDATE OF id ON parts FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER "~v" AFTER INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER "~w" BEFORE INSERT ON t2 EXECUTE FUNCTION nothing();
CREATE TRIGGER "~x" BEFORE DELETE ON t2 FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM problems;
ALTER TABLE parts DISABLE TRIGGER "~u";
SELECT * FROM problems;
ALTER TRIGGER "~v" ON t2 RENAME TO v;
DROP TRIGGER v ON t2;
DROP TRIGGER nosuch ON t2;
DROP TRIGGER "~ttl_free_expired_keys" ON plain;
DROP TRIGGER "~ttl_free_expired_keys" ON nosuch;

-- a trigger of the same name that is somebody else's
CREATE TABLE taken (id int PRIMARY KEY);
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT ON taken FOR EACH ROW EXECUTE FUNCTION nothing();
\set VERBOSITY default
SELECT ttl.enable('taken', 100);
\set VERBOSITY terse
ALTER TABLE taken DROP CONSTRAINT taken_pkey;
SELECT ttl.enable('taken', 100);
CREATE UNIQUE INDEX ON taken (id);
ALTER TABLE taken ADD UNIQUE (id);
ALTER TRIGGER "~ttl_free_expired_keys" ON taken RENAME TO mine;
ALTER TABLE taken ADD UNIQUE (id);
SELECT * FROM triggers WHERE relation = 'taken'::regclass;
CREATE TABLE taken_parts (id int) PARTITION BY LIST (id);
CREATE TABLE taken_parts1 PARTITION OF taken_parts DEFAULT;
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT ON taken_parts1 FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT ttl.enable('taken_parts', 100);
ALTER TABLE taken_parts ADD PRIMARY KEY (id);
DROP TABLE taken, taken_parts;

-- a label that goes by hand; one that comes by hand is guarded, as a restored one
SECURITY LABEL FOR ttl ON TABLE t2 IS NULL;
SELECT * FROM triggers;
SECURITY LABEL FOR ttl ON TABLE t2 IS '{"default_ttl": 100}';
-- as the script of a dump
SET row_security = off;
CREATE UNIQUE INDEX another ON t2 (id);
SELECT * FROM triggers;
SELECT * FROM problems;
-- the dump brings it, before or after the keys
DROP INDEX another;
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT OR UPDATE ON t2 FOR EACH ROW EXECUTE FUNCTION ttl.free_expired_keys();
SELECT * FROM triggers;
ALTER TABLE t2 DROP CONSTRAINT t2_pkey;
ALTER TABLE t2 DISABLE TRIGGER ALL;
SELECT * FROM triggers;
ALTER TABLE t2 ADD PRIMARY KEY (id);
SELECT * FROM triggers;
RESET row_security;
SELECT ttl.resume('t2');
SELECT * FROM triggers;
-- a script that brings it again
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT OR UPDATE ON t2 FOR EACH ROW EXECUTE FUNCTION ttl.free_expired_keys();
SELECT * FROM triggers;
-- from an older dump, without it
SECURITY LABEL FOR ttl ON TABLE t2 IS NULL;
SECURITY LABEL FOR ttl ON TABLE t2 IS '{"default_ttl": 100}';
SELECT ttl.set_default('t2', 200);
SELECT * FROM triggers;
SELECT ttl.resume('t2');
SELECT * FROM triggers;
SELECT problem FROM problems WHERE relation = 't2'::regclass;

-- a dump without labels has the trigger all the same; with TTL off, it can go
SELECT ttl.disable('t2');
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT OR UPDATE ON t2 FOR EACH ROW EXECUTE FUNCTION ttl.free_expired_keys();
ALTER TABLE t2 ADD UNIQUE (id);
COMMENT ON TRIGGER "~ttl_free_expired_keys" ON t2 IS 'from a dump';
DROP TRIGGER "~ttl_free_expired_keys" ON t2;

-- privileges: a member of the owning role; no search_path has a part in it
CREATE ROLE regress_trigger_owner;
CREATE ROLE regress_trigger_member IN ROLE regress_trigger_owner;
CREATE ROLE regress_trigger_stranger;
GRANT ALL ON SCHEMA trigger TO regress_trigger_owner, regress_trigger_stranger;
GRANT SELECT ON triggers TO PUBLIC;
SET ROLE regress_trigger_owner;
CREATE TABLE owned (id int);
RESET ROLE;
SET ROLE regress_trigger_member;
SET search_path = pg_temp;
SELECT ttl.enable('trigger.owned', 100);
ALTER TABLE trigger.owned ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX ON trigger.owned (id);
SET search_path = trigger;
SELECT * FROM trigger.triggers WHERE relation = 'owned'::regclass;
RESET ROLE;
SET ROLE regress_trigger_stranger;
CREATE UNIQUE INDEX ON owned (id);
DROP TRIGGER "~ttl_free_expired_keys" ON owned;
ALTER TABLE parts ATTACH PARTITION owned FOR VALUES IN (5);
RESET ROLE;
DROP TABLE owned;

-- one that is missing: the call that creates it keeps the policy
CREATE TABLE whole (id int, _ts timestamptz NOT NULL DEFAULT now(), UNIQUE (id, _ts)) PARTITION BY RANGE (_ts);
SELECT ttl.enable('whole', 100, drop_partitions => true);
SET row_security = off;
DROP TRIGGER "~ttl_free_expired_keys" ON whole;
RESET row_security;
SELECT unnest(ttl.problems('whole'));
SELECT ttl.enable('trigger.whole');
SELECT ttl.problems('whole');

-- event triggers see the statement, and nothing else
CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% %', tg_event, tg_tag;
    IF tg_event = 'ddl_command_end' AND tg_tag = 'CREATE FUNCTION' THEN
        ALTER TABLE trigger.parts DISABLE TRIGGER ALL;
    END IF;
END $$;
CREATE EVENT TRIGGER regress_start ON ddl_command_start EXECUTE FUNCTION event();
CREATE EVENT TRIGGER regress_end ON ddl_command_end EXECUTE FUNCTION event();
CREATE EVENT TRIGGER regress_drop ON sql_drop EXECUTE FUNCTION event();
SELECT ttl.enable('t2', 100);
ALTER TABLE t2 DROP CONSTRAINT t2_pkey, DROP CONSTRAINT t2_id_key;
CREATE UNIQUE INDEX t2_id ON t2 (id);
CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
SELECT * FROM triggers WHERE relation IN ('parts'::regclass, 'parts1'::regclass, 't2'::regclass);
SELECT ttl.disable('t2');
DROP EVENT TRIGGER regress_start;
DROP EVENT TRIGGER regress_end;
DROP EVENT TRIGGER regress_drop;

SET client_min_messages = warning;
DROP SCHEMA trigger CASCADE;
DROP ROLE regress_trigger_member, regress_trigger_stranger, regress_trigger_owner;
