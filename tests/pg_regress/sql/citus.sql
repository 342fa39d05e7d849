-- C35, C38: tables of Citus and their shards, by catalogs as it has them, without Citus: nothing is sent to other nodes.
CREATE SCHEMA cluster;
SET search_path = cluster;
CREATE FUNCTION problems(rel regclass) RETURNS SETOF text LANGUAGE sql AS 'SELECT unnest(ttl.problems(rel))';
\pset format unaligned
\pset tuples_only on
CREATE TABLE orders (id int PRIMARY KEY, v text, ends timestamptz);
CREATE TABLE orders_102008 (LIKE orders INCLUDING ALL);
CREATE TABLE orders_102009 (LIKE orders INCLUDING ALL);
CREATE TABLE orders_x (LIKE orders);
CREATE TABLE "orders_99999999999999999999" (LIKE orders);
CREATE SCHEMA other;
CREATE TABLE other.orders_102008 (LIKE orders);
CREATE TABLE plain (id int);
-- not catalogs of Citus, which are in pg_catalog
CREATE TABLE pg_dist_partition AS SELECT 'plain'::regclass AS logicalrelid, 'h'::"char" AS partmethod;

BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
    colocationid int NOT NULL DEFAULT 0, repmodel "char" NOT NULL DEFAULT 's');
CREATE UNIQUE INDEX pg_dist_partition_logical_relid_index ON pg_catalog.pg_dist_partition (logicalrelid);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL);
CREATE UNIQUE INDEX pg_dist_shard_shardid_index ON pg_catalog.pg_dist_shard (shardid);
CREATE INDEX pg_dist_shard_logical_relid_index ON pg_catalog.pg_dist_shard (logicalrelid);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int NOT NULL);
-- Citus has functions: with them it is known to be there. A transaction has as many sessions as a setting says
CREATE TABLE pg_catalog.pg_dist_node (nodeid int NOT NULL, nodename text NOT NULL, nodeport int NOT NULL);
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 'here', 5432);
CREATE FUNCTION pg_catalog.get_current_transaction_id(OUT database_id oid, OUT process_id int, OUT initiator_node_identifier int,
    OUT transaction_number bigint, OUT transaction_stamp timestamptz)
    LANGUAGE sql AS $$ SELECT 0::oid, 0, 0, current_setting('fake.number')::bigint, NULL::timestamptz $$;
CREATE FUNCTION pg_catalog.citus_backend_gpid() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
CREATE FUNCTION pg_catalog.get_all_active_transactions(OUT global_pid bigint, OUT process_id int, OUT transaction_number bigint) RETURNS SETOF record
    LANGUAGE sql AS $$ SELECT 7, 0, current_setting('fake.number')::bigint FROM generate_series(1, current_setting('fake.sessions')::int) $$;
CREATE FUNCTION pg_catalog.run_command_on_all_nodes(command text, OUT nodeid int, OUT success boolean, OUT result text) RETURNS SETOF record
    LANGUAGE plpgsql AS $$
    BEGIN
        nodeid := 1;
        success := current_setting('fake.reach')::boolean;
        result := 'failed to connect to here:5432';
        IF success THEN
            SET LOCAL application_name = 'citus_run_command gpid=7';
            EXECUTE command INTO result;
            RESET application_name;
        END IF;
        RETURN NEXT;
    END $$;
-- as Citus: refuses triggers, and a table of its own takes the place of the other
CREATE FUNCTION pg_catalog.create_distributed_table(t regclass, key text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal) THEN RAISE 'it has triggers'; END IF;
        INSERT INTO pg_catalog.pg_dist_partition VALUES (t, 'h');
    END $$;
CREATE FUNCTION pg_catalog.undistribute_table(t regclass) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        name text := t::text;
        successor text := name || '_' || (hashtext(name)::bigint & 4294967295);
        label text := (SELECT label FROM pg_seclabel WHERE objoid = t AND provider = 'ttl');
    BEGIN
        EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS)', successor, t);
        EXECUTE format('SECURITY LABEL FOR ttl ON TABLE %I IS %L', successor, label);
        EXECUTE format('INSERT INTO %I SELECT * FROM %s', successor, t);
        DELETE FROM pg_catalog.pg_dist_partition WHERE logicalrelid = t;
        EXECUTE format('DROP TABLE %s', t);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', successor, name);
        EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (id)', name);
    END $$;
CREATE FUNCTION pg_catalog.alter_table_set_access_method(t regclass, method text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
SET LOCAL fake.number = 0;
SET LOCAL fake.sessions = 1;
SET LOCAL fake.reach = true;
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('orders', 'h');
INSERT INTO pg_catalog.pg_dist_shard VALUES ('orders', 102007), ('orders', 102008), ('orders', 102009), ('other.orders_102008', 5);
SET LOCAL allow_system_table_mods = off;

-- the table stands for its shards: what Citus repeats for each is done by hand
SELECT ttl.enable('orders', 60);
ALTER TABLE orders_102008 ADD _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ADD ttl int;
ALTER TABLE orders_102009 ADD _ts timestamptz NOT NULL DEFAULT ttl.current_ts(), ADD ttl int;
CREATE INDEX ON orders_102008 (ttl.expiry_key(_ts, ttl));
SELECT label::jsonb ->> 'default_ttl', label::jsonb ? 'restored' AS restored
  FROM pg_seclabel WHERE objoid = 'orders'::regclass;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'c';
-- the trigger is on shards only
SELECT c.relname, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'cluster'::regnamespace ORDER BY 1;
SELECT * FROM problems('orders');

-- a shard keeps what it is given, as by the node that got the statement, and else stamps
INSERT INTO orders_102008 (id, _ts) VALUES (1, now() - interval '2 minutes'), (2, now());
INSERT INTO orders_102008 (id) VALUES (3);
SELECT id, _ts > now() - interval '2 s' FROM orders_102008 ORDER BY id;
UPDATE orders_102008 SET v = 'x', _ts = now() - interval '50 s' WHERE id = 2;
UPDATE orders_102008 SET v = 'x' WHERE id = 3;
SELECT id, _ts > now() - interval '40 s' FROM orders_102008 ORDER BY id;
-- its expired row is hidden, and its key is free
INSERT INTO orders_102008 (id, v) VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET v = 'wrong';
SELECT id, v FROM orders_102008 ORDER BY id;
-- statements in the forms that Citus sends: an upsert, and a MERGE, which shards stamp whatever it gives
INSERT INTO cluster.orders_102008 AS citus_table_alias (id, _ts) VALUES (2, '2040-01-01 00:00:00+00'::timestamp with time zone),
    (4, '2040-01-01 00:00:00+00'::timestamp with time zone)
    ON CONFLICT(id) DO UPDATE SET v = 'u'::text, _ts = excluded._ts;
SELECT id, v, _ts > '2039-01-01' FROM orders_102008 WHERE id IN (2, 4) ORDER BY id;
MERGE INTO cluster.orders_102008 o USING (SELECT 2 AS id UNION ALL SELECT 5) s ON (o.id OPERATOR(pg_catalog.=) s.id)
    WHEN MATCHED THEN UPDATE SET v = 'm'::text, _ts = '2040-01-01'::timestamp with time zone
    WHEN NOT MATCHED THEN INSERT (id, v, _ts) VALUES (s.id, 'm'::text, '2040-01-01'::timestamp with time zone);
SELECT id, v, _ts > '2039-01-01' FROM orders_102008 WHERE id IN (2, 5) ORDER BY id;
DELETE FROM orders_102008 WHERE id > 3;
UPDATE orders_102008 SET v = 'x' WHERE id = 2;
EXPLAIN (COSTS OFF) SELECT * FROM orders_102008 WHERE v = 'x';
-- the table itself hides nothing, and is stamped in forms that Citus sends: a function, and EXCLUDED
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE v = 'x';
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO orders (id) VALUES (1);
EXPLAIN (COSTS OFF, VERBOSE) UPDATE orders SET v = 'x' WHERE id = 1;
EXPLAIN (COSTS OFF, VERBOSE) UPDATE orders SET v = 'x', _ts = '2020-01-01' WHERE id = 1;
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO orders (id, _ts) VALUES (1, '2020-01-01');
SET LOCAL ttl.preserve_ts = on;
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO orders (id, _ts) VALUES (1, '2020-01-01');
EXPLAIN (COSTS OFF, VERBOSE) UPDATE orders SET v = 'x' WHERE id = 1;
RESET ttl.preserve_ts;

-- a longer default reaches the shards; a label of their own does not count
INSERT INTO orders_102009 (id, _ts) VALUES (1, now() - interval '2 minutes');
SELECT count(*) FROM orders_102009;
SELECT ttl.set_default('orders', 3600, revive_expired => true);
SELECT count(*) FROM orders_102009;
SECURITY LABEL FOR ttl ON TABLE orders_102009 IS '{"default_ttl": 1}';
SELECT count(*) FROM orders_102009;
SELECT ttl_internal.policy('orders_102009') IS NULL;
-- a label by a statement waits, as after a restore; one from another node of Citus does not
SECURITY LABEL FOR ttl ON TABLE orders IS '{"default_ttl": 3600}';
SELECT * FROM problems('orders');
SET LOCAL application_name = 'citus_internal gpid=1';
SECURITY LABEL FOR ttl ON TABLE orders IS '{"default_ttl": 3600}';
RESET application_name;
SELECT * FROM problems('orders');

-- refused
SAVEPOINT s;
SELECT ttl.enable('orders_102008', 60);
ROLLBACK TO s;
ALTER TABLE orders_102008 SET (ttl.default_ttl = 60);
SELECT label::jsonb ->> 'default_ttl' FROM pg_seclabel WHERE objoid = 'orders'::regclass;
SELECT ttl.archive_to('orders', 'plain');
ROLLBACK TO s;
SELECT ttl.enable('orders', 60, concurrently => true);
ROLLBACK TO s;
SELECT * FROM ttl.expired(NULL::orders);
ROLLBACK TO s;
SELECT ttl.create_live_view('orders', 'live');
ROLLBACK TO s;
UPDATE pg_catalog.pg_dist_local_group SET groupid = 1;
SELECT ttl.enable('orders', 60);
ROLLBACK TO s;
UPDATE pg_catalog.pg_dist_local_group SET groupid = 1;
SELECT ttl.disable('orders', drop_columns => true, revive_expired => true);
ROLLBACK TO s;

-- neither a shard nor distributed: another schema, another owner, another name
SELECT ttl.enable('orders_x', 60), ttl.enable('"orders_99999999999999999999"', 60), ttl.enable('other.orders_102008', 60),
       ttl.enable('plain', 60);
CREATE ROLE another;
ALTER TABLE orders_102009 OWNER TO another;
SELECT label::jsonb ->> 'default_ttl' FROM pg_seclabel WHERE objoid = 'orders_102009'::regclass;
SELECT count(*) FROM orders_102009;
ALTER TABLE orders_102009 OWNER TO CURRENT_USER;
SECURITY LABEL FOR ttl ON TABLE orders_102009 IS NULL;

-- a transaction with several sessions on a node cannot change a policy, and is told before anything is changed
SET LOCAL fake.number = 12;
SET LOCAL fake.sessions = 2;
SET LOCAL citus.multi_shard_modify_mode = 'parallel';
SAVEPOINT s;
\set VERBOSITY sqlstate
SELECT ttl.set_default('orders', 60, confirm => true);
ROLLBACK TO s;
\set VERBOSITY default
SELECT ttl.enable('orders', 60);
ROLLBACK TO s;
SELECT ttl.pause('orders');
ROLLBACK TO s;
SELECT ttl.disable('orders', drop_columns => true);
ROLLBACK TO s;
ALTER TABLE orders SET (ttl.default_ttl = 60);
ROLLBACK TO s;
ALTER TABLE orders RENAME COLUMN _ts TO written_at;
ROLLBACK TO s;
SECURITY LABEL FOR ttl ON TABLE orders IS NULL;
ROLLBACK TO s;
SELECT label::jsonb ->> 'default_ttl' FROM pg_seclabel WHERE objoid = 'orders'::regclass;
SHOW citus.multi_shard_modify_mode;
-- one is enough, and stays the only one
SET LOCAL fake.sessions = 1;
SELECT ttl.set_default('orders', 7200, revive_expired => true);
SHOW citus.multi_shard_modify_mode;
ROLLBACK TO s;
SET LOCAL fake.number = 0;

-- figures are asked of all nodes; one that is out of reach is a problem
SELECT backlog_estimate IS NULL, lag IS NULL FROM ttl.stats WHERE relation = 'orders'::regclass;
SELECT nodename, error FROM ttl.placements WHERE relation LIKE '%orders';
SET LOCAL fake.reach = false;
SELECT * FROM problems('orders');
SELECT backlog_estimate, lag FROM ttl.stats WHERE relation = 'orders'::regclass;
SELECT nodename, relation, error FROM ttl.placements;
SET LOCAL fake.reach = true;

-- a conversion is met in any form of the call: the trigger goes before, and comes after; rows keep their times
CREATE FUNCTION called(t regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM create_distributed_table(t, 'id'); END $$;
PREPARE distributed (regclass) AS SELECT create_distributed_table($1, 'id');
CREATE FUNCTION checked(form text, variadic statements text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE statement text; triggers int;
    BEGIN
        CREATE TABLE conv (id int PRIMARY KEY, v text);
        PERFORM ttl.enable('conv', 3600);
        SET LOCAL ttl.preserve_ts = on;
        INSERT INTO conv (id, _ts) VALUES (1, now() - interval '10 minutes');
        RESET ttl.preserve_ts;
        FOREACH statement IN ARRAY statements LOOP EXECUTE statement; END LOOP;
        SELECT count(*) INTO triggers FROM pg_trigger WHERE tgrelid = 'conv'::regclass AND NOT tgisinternal;
        RETURN NEXT format('%s: %s triggers as one of Citus', form, triggers);
        EXECUTE replace(statements[cardinality(statements)], 'create_distributed_table', 'undistributed');
        SELECT count(*) INTO triggers FROM pg_trigger WHERE tgrelid = 'conv'::regclass AND NOT tgisinternal;
        RETURN NEXT format('%s: %s trigger as an ordinary one; its row is %s old, it waits: %s', form, triggers,
            (SELECT date_trunc('minute', now() - _ts) FROM conv), array_to_string(ttl.problems('conv'), ' ') LIKE '%resume%');
        DROP TABLE conv;
    END $$;
CREATE FUNCTION undistributed(t regclass, key text) RETURNS void LANGUAGE sql AS 'SELECT undistribute_table(t)';
SELECT checked('plain', $$SELECT create_distributed_table('conv', 'id')$$);
SELECT checked('cast', $$SELECT create_distributed_table('conv'::text::regclass, 'id')$$);
SELECT checked('from', $$SELECT create_distributed_table(x.t::regclass, 'id') FROM (VALUES ('conv')) AS x (t)$$);
SELECT checked('where', $$SELECT FROM pg_class WHERE oid = 'conv'::regclass AND create_distributed_table(oid, 'id') IS NULL$$);
SELECT checked('cte', $$WITH c AS MATERIALIZED (SELECT create_distributed_table('conv', 'id')) SELECT count(*) FROM c$$);
SELECT checked('block', $q$DO $b$ DECLARE t regclass := 'conv'; BEGIN PERFORM create_distributed_table(t, 'id'); END $b$$q$);
SELECT called('orders_x');
CREATE TABLE prepared (id int PRIMARY KEY);
SELECT ttl.enable('prepared', 60);
EXECUTE distributed ('prepared');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'prepared'::regclass AND NOT tgisinternal;
-- what is refused, as well
CREATE TABLE plain_too (id int);
SAVEPOINT s;
SELECT alter_table_set_access_method(x.t::regclass, 'columnar') FROM (VALUES ('orders')) AS x (t);
ROLLBACK TO s;
DO $$ BEGIN PERFORM alter_table_set_access_method('orders', 'columnar'); END $$;
ROLLBACK TO s;
ALTER TABLE "orders_99999999999999999999" SET ACCESS METHOD columnar;
ROLLBACK TO s;
SELECT alter_table_set_access_method('plain_too', 'columnar');
ROLLBACK TO s;

-- turned off: on the shards, too
SELECT ttl.disable('orders', revive_expired => true);
SELECT count(*) FROM orders_102009;
SELECT count(*) FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'cluster'::regnamespace AND NOT tgisinternal
   AND relname ~ '^orders_1020';
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA cluster, other CASCADE;
