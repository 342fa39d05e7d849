-- C20: a table's options by name.
CREATE SCHEMA set_option;
SET search_path = set_option;
CREATE FUNCTION label(regclass) RETURNS jsonb LANGUAGE sql AS
$$ SELECT label::jsonb - 'added' FROM pg_seclabels WHERE objoid = $1 AND provider = 'ttl' $$;
CREATE TABLE "T" (id int PRIMARY KEY);
SELECT ttl.set_option('"T"', 'hidden', 'false');
SELECT ttl.enable('"T"', 3600);
SELECT label('"T"');
SELECT ttl.set_option('"T"', 'hidden', 'off');
SELECT ttl.set_option('"T"', 'ts_granularity', '5 minutes');
SELECT ttl.set_option('"T"', 'default_ttl', '2 hours');
SELECT label('"T"');
-- NULL: as if it were not set
SELECT ttl.set_option('"T"', 'hidden', NULL);
SELECT ttl.set_option('"T"', 'ts_granularity', NULL);
SELECT label('"T"');
-- refused
SELECT ttl.set_option('"T"', 'hiden', 'true');
SELECT ttl.set_option('"T"', 'hidden', 'perhaps');
SELECT ttl.set_option('"T"', 'ts_granularity', '1 month');
SELECT ttl.set_option('"T"', 'ts_granularity', '3601');
SELECT ttl.set_option('"T"', 'ts_granularity', '-1');
SELECT ttl.set_option('"T"', 'default_ttl', '0');
SELECT ttl.set_option('"T"', 'drop_partitions', 'true');
SELECT ttl.set_option('"T"', NULL, 'true');
SELECT ttl.set_option(NULL, 'hidden', 'true');
SELECT ttl.set_option('"T"', 'hidden', 'true', revive_expired => NULL);
CREATE VIEW v AS SELECT 1;
SELECT ttl.set_option('v', 'hidden', 'true');
SELECT label('"T"');
CREATE ROLE set_option_stranger;
GRANT ALL ON SCHEMA set_option TO set_option_stranger;
GRANT ALL ON "T" TO set_option_stranger;
SET ROLE set_option_stranger;
SELECT ttl.set_option('"T"', 'hidden', 'false');
SELECT ttl.set_option('"T"', 'default_ttl', NULL);
RESET ROLE;
BEGIN READ ONLY;
SELECT ttl.set_option('"T"', 'hidden', 'false');
ROLLBACK;
-- a partitioned table
CREATE TABLE p (id int, at timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (at);
CREATE TABLE p1 PARTITION OF p DEFAULT;
SELECT ttl.enable('p', 3600, ts_column => 'at', ttl_column => NULL);
SELECT ttl.set_option('p', 'drop_partitions', 'yes');
SELECT label('p');
SELECT ttl.set_option('p1', 'hidden', 'no');
-- TTL indexes only
CREATE TABLE d (id int, at timestamptz);
CREATE INDEX d_at ON d (at);
SELECT ttl.expire_index('d_at', 60);
SELECT ttl.set_option('d', 'ts_granularity', '10');
SELECT ttl.set_option('d', 'default_ttl', '10');
SELECT ttl.set_option('d', 'hidden', 'false');
SELECT label('d');
-- most rows
CREATE TABLE many (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
SELECT ttl.enable('many', -1, ts_column => 'at', ttl_column => NULL);
SET ttl.preserve_ts = on;
INSERT INTO many SELECT i, now() - interval '1 day' FROM generate_series(1, 6000) i;
SELECT ttl.set_option('many', 'default_ttl', '1 hour');
SELECT count(*) FROM many;
SELECT ttl.set_option('set_option.many', 'default_ttl', '1 hour', confirm => true);
SELECT count(*) FROM many;
-- off, and the rows are deleted first
SELECT ttl.set_option('many', 'default_ttl', NULL);
SELECT count(*) FROM many;
DROP SCHEMA set_option CASCADE;
DROP ROLE set_option_stranger;
