-- Nothing that surprises is silent, and what a HINT says to run is accepted.
CREATE SCHEMA advice;
SET search_path = advice, public;

-- C9: what a time to live had is there again
CREATE TABLE t (id int PRIMARY KEY);
SELECT ttl.enable('t', 3600, hidden => false);
SELECT ttl.set_option('t', 'keep_expired', '1 day'), ttl.set_option('t', 'delete_between', '01:00-05:00');
SELECT ttl.pause('t');
SELECT ttl.disable('t');
SELECT ttl.enable('t', 3600);
-- the statements of the HINT end them
SELECT ttl.set_option('advice.t', 'delete_between', NULL); SELECT ttl.set_option('advice.t', 'hidden', NULL); SELECT ttl.set_option('advice.t', 'keep_expired', NULL); SELECT ttl.resume('advice.t');
SELECT ttl.disable('t');
SELECT ttl.enable('t', 3600);
-- what is given anew is no surprise; a pause that is over neither
SELECT ttl.set_option('t', 'hidden', 'false'), ttl.set_option('t', 'notify', 'gone'), ttl.pause('t', now() + interval '1 s');
SELECT pg_sleep(2.1);
SELECT ttl.disable('t');
SELECT ttl.set_default('t', 3600);
SELECT ttl.disable('t');
SELECT ttl.enable('t', 3600, hidden => true);
SELECT ttl.set_option('t', 'notify', NULL);
-- by a TTL index
ALTER TABLE t ADD at timestamptz;
SELECT ttl.expire_after('t', 'at', 0);
SELECT ttl.pause('t', 'infinity');
SELECT ttl.disable('t');
SELECT ttl.expire_after('t', 'at', 0);
SELECT ttl.resume('t');

-- C11: an index that was built stays
SELECT ttl.enable('t', 3600, index => 'btree');
SELECT ttl.enable('t', index => 'none');
SELECT ttl.enable('t', index => 'auto');
DROP INDEX advice.t_expiry_key_idx;
SELECT ttl.enable('t', index => 'none');

-- views of the columns, and what else depends on them
CREATE TABLE seen (id int);
SELECT ttl.enable('seen', 3600);
CREATE VIEW one AS SELECT _ts FROM seen;
CREATE MATERIALIZED VIEW two AS SELECT * FROM one;
CREATE VIEW three AS SELECT * FROM two;
CREATE VIEW other AS SELECT id FROM seen;
SELECT ttl.disable('seen', drop_columns => true);
DROP VIEW advice.three; DROP MATERIALIZED VIEW advice.two; DROP VIEW advice.one;
CREATE FUNCTION latest() RETURNS timestamptz LANGUAGE sql BEGIN ATOMIC SELECT max(_ts) FROM advice.seen; END;
SELECT ttl.disable('seen', drop_columns => true);
DROP FUNCTION latest();
SELECT ttl.disable('seen', drop_columns => true);

-- a table of a composite type
CREATE TYPE composite AS (id int);
CREATE TABLE typed OF composite;
SELECT ttl.enable('typed', 60);
ALTER TABLE advice.typed NOT OF;
SELECT ttl.enable('typed', 60);

-- a table that is full
DO $$ BEGIN
    EXECUTE (SELECT format('CREATE TABLE full_of_columns (%s)', string_agg('c' || n || ' int', ', ')) FROM generate_series(1, 1599) AS n);
END $$;
SELECT ttl.enable('full_of_columns', 60);
SELECT ttl.enable('full_of_columns', 60, ttl_column => NULL);

-- a table that the transaction uses
CREATE TABLE used (id int PRIMARY KEY, next int REFERENCES used DEFERRABLE INITIALLY DEFERRED);
BEGIN;
INSERT INTO used VALUES (1, 1);
SELECT ttl.enable('used', 60);
ROLLBACK;
SELECT ttl.enable('used', 60);
BEGIN;
DECLARE reader CURSOR FOR SELECT * FROM used;
FETCH reader;
SELECT ttl.disable('used', drop_columns => true);
ROLLBACK;

-- what is no interval
SELECT ttl.enable('seen', '1 fortnight');
SELECT ttl.enable('seen', '1e30 years');

-- types that have no time, but a way to one
CREATE DOMAIN day AS date;
CREATE DOMAIN iso AS text;
SET timezone = 'America/Los_Angeles';
CREATE TABLE types (d day, s iso, v varchar(30), r tstzrange, f real, n int);
SELECT ttl.expire_after('types', 'd', 0);
CREATE INDEX types_d_expiry ON advice.types ((d::date)); SELECT ttl.expire_index('advice.types_d_expiry', 0);
SELECT ttl.expire_after('types', 's', 0);
CREATE INDEX types_s_expiry ON advice.types (ttl.from_iso8601(s)); SELECT ttl.expire_index('advice.types_s_expiry', 0);
SELECT ttl.expire_after('types', 'v', 0);
CREATE INDEX types_v_expiry ON advice.types (ttl.from_iso8601(v)); SELECT ttl.expire_index('advice.types_v_expiry', 0);
SELECT ttl.expire_after('types', 'r', 0);
CREATE INDEX types_r_expiry ON advice.types (pg_catalog.upper(r)); SELECT ttl.expire_index('advice.types_r_expiry', 0);
SELECT ttl.expire_after('types', 'f', 0);
SELECT ttl.enable('types', 60, ts_column => 'd');

-- two parents with a time to live each: that of the first holds
CREATE TABLE first (id int);
CREATE TABLE second (k int);
SELECT ttl.enable('first', 2), ttl.enable('second', 60);
CREATE TABLE of_both () INHERITS (first, second);
SELECT relation, problem, to_do FROM ttl.check() WHERE relation = 'second'::regclass AND problem LIKE '%parent%';
ALTER TABLE of_both NO INHERIT first;
ALTER TABLE of_both INHERIT first;
ALTER TABLE advice.of_both NO INHERIT advice.first;
SELECT relation, problem FROM ttl.check() WHERE relation = 'second'::regclass AND problem LIKE '%parent%';

SET client_min_messages = warning;
DROP SCHEMA advice CASCADE;
