-- Hypertables of TimescaleDB, by its catalogs as they are seen here, without TimescaleDB: rows in a
-- columnstore are not deleted, so that such tables are refused (docs/tools/timescaledb.md).
CREATE SCHEMA hyper;
SET search_path = hyper;
CREATE FUNCTION problems(rel regclass) RETURNS SETOF text LANGUAGE sql AS 'SELECT unnest(ttl.problems(rel))';
\pset format unaligned
\pset tuples_only on
CREATE TABLE readings (id int PRIMARY KEY, ends timestamptz);
CREATE INDEX readings_ends ON readings (ends);
CREATE TABLE before (id int PRIMARY KEY);
SELECT ttl.enable('before', 3600);
CREATE TABLE empty (id int);
SELECT ttl.enable('empty', 3600);

-- a chunk's triggers are made by TimescaleDB, and not ALWAYS
CREATE TABLE chunk (PRIMARY KEY (id)) INHERITS (before);
SELECT ttl.enable('before', 3600);
UPDATE pg_trigger SET tgenabled = 'O' WHERE tgrelid = 'chunk'::regclass AND tgname = '~ttl_free_expired_keys';
SELECT * FROM problems('before');

-- whoever may create a schema can make one of that name
CREATE ROLE pretender;
BEGIN;
CREATE SCHEMA _timescaledb_catalog AUTHORIZATION pretender;
SET LOCAL ROLE pretender;
CREATE TABLE _timescaledb_catalog.compression_settings (relid regclass NOT NULL);
CREATE TABLE _timescaledb_catalog.hypertable (id int NOT NULL, schema_name name NOT NULL, table_name name NOT NULL);
RESET ROLE;
INSERT INTO _timescaledb_catalog.compression_settings VALUES ('readings'), ('before');
INSERT INTO _timescaledb_catalog.hypertable VALUES (1, 'hyper', 'before');
SELECT ttl.enable('readings', 60);
SELECT * FROM problems('before');
SELECT ttl.disable('before');
ROLLBACK;
DROP ROLE pretender;

BEGIN;
CREATE SCHEMA _timescaledb_catalog;
-- of a version to come
CREATE TABLE _timescaledb_catalog.compression_settings (number int NOT NULL, relid regclass NOT NULL);
INSERT INTO _timescaledb_catalog.compression_settings VALUES (1, 'readings');
SELECT ttl.enable('readings', 60);
ROLLBACK;

BEGIN;
CREATE SCHEMA _timescaledb_catalog;
CREATE TABLE _timescaledb_catalog.compression_settings (relid regclass NOT NULL, compress_relid regclass);
CREATE TABLE _timescaledb_catalog.hypertable (id int NOT NULL, schema_name name NOT NULL, table_name name NOT NULL);
INSERT INTO _timescaledb_catalog.hypertable VALUES (1, 'hyper', 'readings'), (2, 'other', 'before');
SAVEPOINT s;
-- without a columnstore; of another schema
SELECT ttl.enable('readings', 60);
SELECT * FROM problems('before');
ROLLBACK TO s;
INSERT INTO _timescaledb_catalog.hypertable VALUES (3, 'hyper', 'before');
SELECT * FROM problems('before');
UPDATE pg_trigger SET tgenabled = 'R' WHERE tgrelid = 'chunk'::regclass AND tgname = '~ttl_free_expired_keys';
SELECT * FROM problems('before');
ROLLBACK TO s;

SELECT ttl.enable('readings', 60, concurrently => true);
ROLLBACK TO s;

INSERT INTO _timescaledb_catalog.compression_settings VALUES ('readings'), ('before'), ('empty');
SAVEPOINT s;
SELECT ttl.enable('readings', 60);
ROLLBACK TO s;
ALTER TABLE readings SET (ttl.default_ttl = 60);
ROLLBACK TO s;
SELECT ttl.expire_index('readings_ends', 0);
ROLLBACK TO s;

-- one that has got it since: shown, and neither changed nor turned off without a word
SELECT * FROM problems('empty');
SELECT ttl.set_default('empty', 60);
ROLLBACK TO s;
SELECT ttl.resume('empty');
ROLLBACK TO s;
SELECT ttl.set_option('empty', 'hidden', 'false');
ROLLBACK TO s;
SELECT ttl.set_default('empty', NULL);
ROLLBACK TO s;
SELECT ttl.disable('empty', drop_columns => true);
ROLLBACK TO s;
SELECT ttl.purge('empty');
SELECT ttl.disable('empty', revive_expired => true);
SELECT * FROM problems('empty');
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA hyper CASCADE;
