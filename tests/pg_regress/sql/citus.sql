-- C35: tables of Citus and their shards, by its catalogs as they are seen here, without Citus.
CREATE SCHEMA cluster;
SET search_path = cluster;
CREATE FUNCTION problems(rel regclass) RETURNS SETOF text LANGUAGE sql AS 'SELECT unnest(ttl.problems(rel))';
\pset format unaligned
\pset tuples_only on
CREATE TABLE before (id int, ends timestamptz);
SELECT ttl.enable('before', 3600);
CREATE TABLE orders (id int, ends timestamptz);
CREATE INDEX orders_ends ON orders (ends);
CREATE TABLE orders_102008 (LIKE orders INCLUDING ALL);
CREATE TABLE orders_102009 (LIKE orders);
CREATE TABLE orders_x (LIKE orders);
CREATE TABLE "orders_99999999999999999999" (LIKE orders);
CREATE SCHEMA other;
CREATE TABLE other.orders_102008 (LIKE orders);
CREATE TABLE plain (id int);
-- not catalogs of Citus, which are in pg_catalog
CREATE TABLE pg_dist_partition AS SELECT 'plain'::regclass AS logicalrelid, 'h'::"char" AS partmethod;

BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass NOT NULL, partmethod "char" NOT NULL);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('orders', 'h'), ('before', 'n');
SAVEPOINT s;
-- Citus's older form, without the other catalog
SELECT ttl.enable('orders_102008', 60);
ROLLBACK TO s;
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL);
INSERT INTO pg_catalog.pg_dist_shard VALUES ('orders', 102007), ('orders', 102008), ('other.orders_102008', 5);
SET LOCAL allow_system_table_mods = off;
SAVEPOINT s;

SELECT ttl.enable('orders', 60);
ROLLBACK TO s;
SELECT ttl.enable('orders_102008', 60);
ROLLBACK TO s;
ALTER TABLE orders SET (ttl.default = 60);
ROLLBACK TO s;
SELECT ttl.expire_index('orders_ends', 0);
ROLLBACK TO s;
SELECT ttl.expire_index('orders_102008_ends_idx', 0);
ROLLBACK TO s;
-- nothing was done
SELECT column_name FROM information_schema.columns WHERE table_schema = 'cluster' AND table_name = 'orders';

-- neither a shard nor distributed
SELECT ttl.enable('orders_102009', 60), ttl.enable('orders_x', 60), ttl.enable('"orders_99999999999999999999"', 60),
       ttl.enable('other.orders_102008', 60), ttl.enable('plain', 60);

-- one that had TTL before: shown, and not changed but turned off
SELECT * FROM problems('before');
SELECT ttl.set_default('before', 60);
ROLLBACK TO s;
SELECT ttl.set_option('before', 'hidden', 'false');
ROLLBACK TO s;
SELECT ttl.archive_to('before', 'plain');
ROLLBACK TO s;
SELECT ttl.enable('before', 60);
ROLLBACK TO s;
SELECT ttl.resume('before');
ROLLBACK TO s;
SELECT ttl.disable('before');
SELECT * FROM problems('before');
-- a label by hand
ALTER TABLE orders_102008 ADD _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ADD ttl int;
SECURITY LABEL FOR ttl ON TABLE orders_102008 IS '{"default_ttl": 100}';
SELECT * FROM problems('orders_102008');
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA cluster, other CASCADE;
