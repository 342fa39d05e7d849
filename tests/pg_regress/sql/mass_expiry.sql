-- C19: a change of policy says how many rows expire with it, and most of a table only if it is confirmed.
CREATE SCHEMA mass_expiry;
SET search_path = mass_expiry;
SET timezone = 'UTC';
CREATE TABLE t (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), d date, doc jsonb);
-- a table of 10,000 rows, of which each is an hour older than the one before
INSERT INTO t SELECT i, now() - i * interval '1 hour', current_date - i / 24, '{}' FROM generate_series(1, 10000) i;
CREATE TABLE small (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
INSERT INTO small SELECT i, now() - i * interval '1 hour' FROM generate_series(1, 100) i;
-- new columns: no row expires
CREATE TABLE fresh AS SELECT id FROM t;
SELECT ttl.enable('fresh', 1);
-- few rows
SELECT ttl.enable('small', 3600, ts_column => 'at');
SELECT ttl.set_default('small', 7200, revive_expired => true);
SELECT ttl.set_default('small', 5400);
\set VERBOSITY sqlstate
SELECT ttl.enable('t', 3600, ts_column => 'at', ttl_column => NULL, index => 'none');
\set VERBOSITY default
SELECT ttl.enable('t', 3600, ts_column => 'at', ttl_column => NULL, index => 'none');
SELECT ttl.enable('t', 3600, ts_column => 'at', ttl_column => NULL, index => 'none', hidden => false);
SELECT count(*) FROM t;
-- as the HINT says
SELECT ttl.enable('mass_expiry.t', 3600, ts_column => 'at', ttl_column => NULL, index => 'none', confirm => true);
SELECT count(*) FROM t;
SELECT ttl.set_default('t', '400 days', revive_expired => true);
SELECT count(*) FROM t;
-- what has expired already is not counted again
SELECT ttl.set_default('t', '200 days');
SELECT ttl.set_default('t', '199 days');
SELECT ttl.set_default('t', 1);
SELECT count(*) FROM t;
SELECT ttl.set_default('t', 1, confirm => NULL);
BEGIN;
SET LOCAL ttl.guard_fraction = 1;
SELECT ttl.set_default('t', 1);
ROLLBACK;
SET ttl.guard_fraction = 0.1;
SELECT ttl.set_default('t', '100 days');
RESET ttl.guard_fraction;
SET ttl.guard_fraction = 1.5;
-- off, and on again
SELECT ttl.disable('t', revive_expired => true);
SELECT ttl.enable('t', 3600);
SELECT ttl.set_default('t', 3600);
SELECT ttl.disable('t', drop_columns => true);
-- TTL indexes
CREATE INDEX t_d ON t (d);
SELECT ttl.expire_index('t_d', 3600);
SELECT ttl.expire_index('t_d', '1 day', drop_partitions => false, confirm => true);
SELECT ttl.expire_index('t_d', NULL, revive_expired => true);
SELECT ttl.create_index('t', '{"d": -1}', '{"expireAfterSeconds": 60}');
SELECT ttl.coll_mod('t', '{"index": {"name": "t_d", "expireAfterSeconds": 60}}');
SELECT ttl.coll_mod('t', '{"index": {"name": "t_d", "expireAfterSeconds": 60}}', confirm => true);
SELECT ttl.expire_index('t_d', NULL, revive_expired => true);
-- the HINT leaves out no argument
CREATE TABLE dated AS SELECT i AS id, current_date - 10 AS d FROM generate_series(1, 6000) AS i;
CREATE INDEX dated_d ON dated (d);
SELECT ttl.expire_index('dated_d', 3600, drop_partitions => false, hidden => false, revive_expired => true, time_zone => 'UTC');
SELECT ttl.expire_after('dated', 'd', 3600, hidden => false, time_zone => 'UTC');
-- a part of a large table is read, and never by more than some blocks
CREATE TABLE large (id int, at timestamptz NOT NULL, filler text);
INSERT INTO large SELECT i, now() - i % 10 * interval '1 day', repeat('x', 1000) FROM generate_series(1, 20000) i;
CREATE FUNCTION told(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text;
BEGIN
    EXECUTE statement;
    RETURN 'done';
EXCEPTION WHEN configuration_limit_exceeded THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    RETURN CASE WHEN substring(message FROM 'about (\d+) of')::int BETWEEN 16000 AND 20000
                 AND substring(message FROM 'of (\d+) rows')::int BETWEEN 18000 AND 22000 THEN 'about right' ELSE message END;
END $$;
SELECT told($$SELECT ttl.enable('large', 3600, ts_column => 'at')$$);
-- partitions
CREATE TABLE p (id int, at timestamptz NOT NULL) PARTITION BY LIST (id);
DO $$ BEGIN
    FOR i IN 1..70 LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%s)', i, i); END LOOP;
END $$;
INSERT INTO p SELECT i % 70 + 1, now() - interval '1 day' FROM generate_series(1, 14000) i;
SELECT told($$SELECT ttl.enable('p', 3600, ts_column => 'at')$$);
SELECT ttl.enable('p', '2 days', ts_column => 'at');
-- one's own temporary table; a table without rows; a policy for rows hides none
CREATE TEMP TABLE mine (at timestamptz NOT NULL);
INSERT INTO mine SELECT now() - interval '1 day' FROM generate_series(1, 10);
SET client_min_messages = warning; -- it would name the schema
SELECT ttl.enable('mine', 60, ts_column => 'at');
RESET client_min_messages;
CREATE TABLE empty (at timestamptz NOT NULL);
SELECT ttl.enable('empty', 60, ts_column => 'at');
CREATE ROLE regress_owner;
GRANT ALL ON SCHEMA mass_expiry TO regress_owner;
SET ROLE regress_owner;
CREATE TABLE owned (id int, at timestamptz NOT NULL);
INSERT INTO owned SELECT i, now() - interval '1 day' FROM generate_series(1, 6000) i;
ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
ALTER TABLE owned FORCE ROW LEVEL SECURITY;
CREATE POLICY few ON owned USING (id < 10);
SELECT ttl.enable('owned', 60, ts_column => 'at');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA mass_expiry CASCADE;
DROP ROLE regress_owner;
