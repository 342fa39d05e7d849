-- C34: what migration tools do to a table's columns and constraints; P9: what they read.
CREATE SCHEMA migrations;
SET search_path = migrations;
CREATE FUNCTION problems(rel regclass) RETURNS SETOF text LANGUAGE sql AS 'SELECT unnest(ttl.problems(rel))';
\pset format unaligned
\pset tuples_only on
CREATE TABLE t (id int PRIMARY KEY, ends timestamptz);
SELECT ttl.enable('t', 3600, index => 'btree');
CREATE INDEX ends ON t (ends);
SELECT ttl.expire_index('ends', 0);
-- shown in two pairs of parentheses, without which ActiveRecord cannot read it
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c';
SELECT (regexp_match(pg_get_constraintdef(oid), 'CHECK \({2}(.+)\){2}'))[1] FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c';

-- the constraint on the override, and NOT NULL of the time
ALTER TABLE t DROP CONSTRAINT t_ttl_check;
ALTER TABLE t DROP CONSTRAINT IF EXISTS nosuch, DROP CONSTRAINT t_ttl_check CASCADE;
ALTER TABLE t ALTER COLUMN _ts DROP NOT NULL;
ALTER TABLE t ALTER _ts DROP NOT NULL, ADD x int;
-- what TTL does not need
ALTER TABLE t ALTER ttl DROP NOT NULL, ALTER ends DROP NOT NULL;
ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0);
ALTER TABLE t DROP CONSTRAINT positive;
-- another like it will do, also in a shorter form
ALTER TABLE t ADD CONSTRAINT other CHECK (ttl.is_override(ttl));
ALTER TABLE t DROP CONSTRAINT t_ttl_check, DROP CONSTRAINT other;
ALTER TABLE t DROP CONSTRAINT t_ttl_check;
ALTER TABLE t DROP CONSTRAINT other;
-- not the contrary
ALTER TABLE t ADD CONSTRAINT contrary CHECK (ttl.is_override(id) IS NOT FALSE AND ttl IS NULL OR true);
ALTER TABLE t DROP CONSTRAINT other;
ALTER TABLE t DROP CONSTRAINT contrary;
\set VERBOSITY terse
INSERT INTO t (id, ttl) VALUES (1, 0);
\set VERBOSITY default

-- an unchanged type
INSERT INTO t (id, ttl, ends) VALUES (1, 60, 'infinity'), (2, NULL, NULL);
ALTER TABLE t ALTER COLUMN ttl TYPE integer, ALTER COLUMN _ts TYPE timestamptz, ALTER COLUMN ends SET DATA TYPE timestamp with time zone;
ALTER TABLE t ALTER ttl TYPE int4, ALTER ttl DROP NOT NULL, ALTER ttl DROP DEFAULT;
ALTER TABLE t ALTER _ts TYPE timestamptz(3);
ALTER TABLE t ALTER ttl TYPE integer USING 60;
ALTER TABLE t ALTER ttl TYPE smallint;
ALTER TABLE t ALTER ends TYPE timestamp;
ALTER TABLE t ALTER ttl TYPE nosuch;
SELECT rules FROM ttl.tables WHERE relation = 't'::regclass;
SELECT problems('t');
SELECT id, ttl FROM t ORDER BY id;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'migrations' ORDER BY indexname;
\set VERBOSITY terse
INSERT INTO t (id, ttl) VALUES (3, 0);
\set VERBOSITY default

-- partitions
CREATE TABLE p (id int) PARTITION BY LIST (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
SELECT ttl.enable('p', 3600, index => 'btree');
ALTER TABLE p DROP CONSTRAINT p_ttl_check;
ALTER TABLE p ALTER _ts DROP NOT NULL;
ALTER TABLE p ALTER ttl TYPE integer;
SELECT problems('p');

-- columns that were adopted: NOT NULL is the owner's
CREATE TABLE adopted (at timestamptz NOT NULL, ttl int);
SELECT ttl.enable('adopted', 3600, ts_column => 'at', index => 'none');
ALTER TABLE adopted ALTER at DROP NOT NULL;
ALTER TABLE adopted DROP CONSTRAINT adopted_ttl_check;
SELECT ttl.disable('adopted', drop_columns => true);
SELECT conname FROM pg_constraint WHERE conrelid = 'adopted'::regclass AND contype = 'c';
-- turned off: nothing is needed; on again: it is said
SELECT ttl.disable('t');
ALTER TABLE t DROP CONSTRAINT other, ALTER _ts DROP NOT NULL;
SELECT ttl.set_default('t', 3600);
SELECT problems('t');
ALTER TABLE t ALTER COLUMN _ts SET NOT NULL;
SELECT problems('t');
-- with row_security off, as pg_restore --clean
SET row_security = off;
ALTER TABLE t DROP CONSTRAINT t_ttl_check, ALTER _ts DROP NOT NULL;
RESET row_security;
SELECT problems('t');
ALTER TABLE t ADD CONSTRAINT own CHECK (ttl > 0);
SELECT problems('t');

-- without a policy: a schema diff, or a restore without security labels
SECURITY LABEL FOR ttl ON TABLE p IS NULL;
SELECT problems('p');
SELECT problems('p1');
CREATE TABLE bare (id int PRIMARY KEY, ttl int CHECK (ttl.is_override(ttl)));
CREATE TRIGGER "~ttl_free_expired_keys" BEFORE INSERT OR UPDATE ON bare FOR EACH ROW EXECUTE FUNCTION ttl.free_expired_keys();
SELECT problems('bare');
SELECT tgrelid::regclass FROM pg_trigger WHERE tgfoid = 'ttl.free_expired_keys'::regproc AND cardinality(ttl.problems(tgrelid)) > 0 ORDER BY 1;
CREATE TABLE plain (id int PRIMARY KEY CHECK (id > 0));
SELECT problems('plain');
SELECT problems(0::regclass);
-- the type of a column with local times: the HINT has their time zone, whatever that of the session is
SET TimeZone = 'America/New_York';
CREATE TABLE local_times (id int PRIMARY KEY, expire timestamp);
SELECT ttl.expire_after('local_times', 'expire', 0);
INSERT INTO local_times VALUES (1, now() + interval '1 hour'), (2, now() - interval '1 hour');
SET TimeZone = 'Asia/Tokyo';
ALTER TABLE local_times ALTER expire TYPE timestamptz;
BEGIN;
SELECT ttl.expire_index('migrations.local_times_expire_idx', NULL);
ALTER TABLE local_times ALTER expire TYPE timestamptz USING expire AT TIME ZONE 'America/New_York';
SELECT ttl.expire_index('migrations.local_times_expire_idx', 0);
COMMIT;
SELECT id FROM local_times;
RESET TimeZone;

-- a table that comes to a parent with a time to live: what it lacks is named, and added as the HINT has it
CREATE TABLE "to" (id int, "k k" int) PARTITION BY LIST ("k k");
SELECT ttl.enable('"to"', 3600, ttl_column => 'life');
CREATE TABLE heir_of (id int, "k k" int);
SELECT ttl.enable('heir_of', 3600, ttl_column => NULL);
CREATE TABLE of_none (id int, "k k" int);
CREATE TABLE of_its_own (id int, "k k" int);
SELECT ttl.enable('of_its_own', 60, ttl_column => 'life');
CREATE TABLE of_nulls (id int, "k k" int, life int, _ts timestamptz);
CREATE TABLE of_like (LIKE "to" INCLUDING ALL);
CREATE PROCEDURE come(statement text) LANGUAGE plpgsql AS $$
DECLARE problem text; detail text; hint text;
BEGIN
    EXECUTE statement;
EXCEPTION WHEN datatype_mismatch THEN
    GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE NOTICE E'%\n%\n%', problem, detail, hint;
    EXECUTE substring(hint FROM 'ALTER .*;');
    EXECUTE statement;
END $$;
CALL come('ALTER TABLE "to" ATTACH PARTITION of_none FOR VALUES IN (1)');
CALL come('ALTER TABLE "to" ATTACH PARTITION of_its_own FOR VALUES IN (2)');
CALL come('ALTER TABLE "to" ATTACH PARTITION of_nulls FOR VALUES IN (3)');
CALL come('ALTER TABLE "to" ATTACH PARTITION of_like FOR VALUES IN (4)');
CREATE TABLE child_1 (id int, "k k" int);
CREATE TABLE child_2 (id int, "k k" int, life int, _ts timestamptz NOT NULL);
CALL come('ALTER TABLE child_1 INHERIT heir_of');
CALL come('ALTER TABLE child_2 INHERIT heir_of');
ALTER TABLE child_1 NO INHERIT heir_of;
-- what is wrong otherwise is PostgreSQL's to say
CREATE TABLE of_others (LIKE of_like INCLUDING ALL);
ALTER TABLE of_others DROP id;
ALTER TABLE "to" ATTACH PARTITION of_others FOR VALUES IN (5);
ALTER TABLE of_others INHERIT nosuch;
SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = '"to"'::regclass ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA migrations CASCADE;
