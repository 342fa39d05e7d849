-- C32, C33: a table's TTL in CREATE TABLE and ALTER TABLE.
CREATE SCHEMA ddl_options;
SET search_path = ddl_options;
SET ttl.preserve_ts = on;
CREATE FUNCTION label(rel regclass) RETURNS jsonb LANGUAGE sql AS $$
    SELECT label::jsonb - 'version' FROM pg_catalog.pg_seclabels WHERE objoid = rel AND provider = 'ttl' $$;

-- CREATE TABLE
CREATE TABLE a (id int PRIMARY KEY) WITH (ttl.default_ttl = '30 days', ttl.ts_granularity = 60, fillfactor = 90);
SELECT label('a');
SELECT reloptions FROM pg_class WHERE oid = 'a'::regclass;
SELECT ttl.problems('a');
CREATE TABLE b (id int PRIMARY KEY) WITH (fillfactor = 90);
SELECT ttl.enable('b', '30 days', ts_granularity => 60);
SELECT replace(label('a')::text, 'a_', 'b_') = label('b')::text AS as_the_function;
CREATE TABLE c (id int, "My time" timestamptz, seconds int, doc jsonb) WITH (ttl.default_ttl = -1, ttl.ts_column = "My time",
    ttl.ttl_column = 'seconds', ttl.hidden = off, ttl.index = none);
SELECT label('c');
CREATE TABLE d (id int, doc jsonb) WITH (ttl.document_column = doc, ttl.default_ttl = 60, ttl.index = btree);
SELECT label('d');
CREATE TABLE e (id int) WITH (ttl.default_ttl = 60, ttl.ttl_column = none);
SELECT label('e');
-- a time is always needed: it is the name of a column
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, ttl.ts_column = none);
CREATE TABLE e2 (id int, "none" timestamptz) WITH (ttl.default_ttl = 60, ttl.ts_column = none);
SELECT label('e2') -> 'ts_column' AS ts_column;
CREATE TEMP TABLE tmp (id int PRIMARY KEY) WITH (ttl.default_ttl = 60) ON COMMIT DELETE ROWS;
CREATE UNLOGGED TABLE u (id int) WITH (ttl.default_ttl = 60);
SELECT label('tmp') - 'added' AS tmp, label('u') - 'added' AS u;
CREATE TABLE "Quoted ""name""" (id int) WITH (ttl.default_ttl = 60);
CREATE SCHEMA other CREATE TABLE o (id int) WITH (ttl.default_ttl = 60) CREATE INDEX ON o (id);
SELECT label('"Quoted ""name"""') ->> 'default_ttl' AS quoted, label('other.o') ->> 'default_ttl' AS other;

-- partitioned tables
CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts)
    WITH (ttl.default_ttl = '1 day', ttl.drop_partitions);
CREATE TABLE p1 PARTITION OF p DEFAULT;
SELECT label('p');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') WITH (ttl.default_ttl = 60);
ALTER TABLE p1 SET (ttl.default_ttl = 60);
ALTER TABLE p1 RESET (ttl.default_ttl);
CREATE TABLE q (id int) PARTITION BY LIST (id);
CREATE TABLE q1 PARTITION OF q DEFAULT WITH (ttl.default_ttl = 60);
CREATE TABLE np (id int) WITH (ttl.default_ttl = 60, ttl.drop_partitions = true);

-- IF NOT EXISTS
CREATE TABLE IF NOT EXISTS a (id int) WITH (ttl.default_ttl = 1);
CREATE TABLE IF NOT EXISTS a AS SELECT 1 AS id;
CREATE TABLE IF NOT EXISTS ine (id int) WITH (ttl.default_ttl = 7);
SELECT label('a') ->> 'default_ttl' AS a, label('ine') ->> 'default_ttl' AS ine;

-- CREATE TABLE AS
CREATE TABLE ctas WITH (ttl.default_ttl = 60) AS SELECT i AS id FROM generate_series(1, 3) i;
CREATE TABLE ctas_old WITH (ttl.default_ttl = 60) AS SELECT i AS id, now() - i * interval '40 s' AS _ts FROM generate_series(1, 3) i;
SELECT id FROM ctas_old;
SELECT count(*) FROM ctas;
PREPARE some_rows AS SELECT 1 AS id;
CREATE TABLE ctas_execute WITH (ttl.default_ttl = 60) AS EXECUTE some_rows WITH NO DATA;
CREATE TABLE IF NOT EXISTS ctas WITH (ttl.default_ttl = 1) AS SELECT 1 AS id;
SELECT label('ctas') ->> 'default_ttl' AS ctas, label('ctas_old') -> 'added' AS adopted, label('ctas_execute') ->> 'default_ttl' AS executed;
-- most of a table
CREATE TABLE mass WITH (ttl.default_ttl = 60) AS SELECT i AS id, now() - interval '1 day' AS _ts FROM generate_series(1, 10000) i;
CREATE TABLE mass WITH (ttl.default_ttl = 60, ttl.confirm = true) AS SELECT i AS id, now() - interval '1 day' AS _ts FROM generate_series(1, 10000) i;
DROP TABLE mass;

-- ALTER TABLE
CREATE TABLE t (id int PRIMARY KEY);
ALTER TABLE t SET (ttl.hidden = false);
ALTER TABLE t RESET (ttl.default_ttl, ttl.hidden);
ALTER TABLE t SET (ttl.default_ttl = '1 hour', fillfactor = 80), ADD COLUMN note text, SET (ttl.ts_granularity = '5 minutes');
SELECT label('t'), reloptions FROM pg_class WHERE oid = 't'::regclass;
ALTER TABLE t SET (ttl.hidden = false);
ALTER TABLE t SET (ttl.default_ttl = 7200);
ALTER TABLE t SET (ttl.index = none);
ALTER TABLE t SET (ttl.drop_partitions = false);
SELECT label('t') - 'added' AS t;
ALTER TABLE t SET (ttl.index = btree), RESET (ttl.hidden, ttl.ts_granularity);
SELECT label('t') - 'added' AS t;
ALTER TABLE t SET (ttl.ts_granularity = 3601);
ALTER TABLE t SET (ttl.default_ttl = 60, ttl.ts_granularity = 31);
ALTER TABLE t RESET (ttl.index, ttl.drop_partitions);
ALTER TABLE ONLY t SET (ttl.default_ttl = -1);
SELECT label('t') ->> 'default_ttl' AS t;
-- what expires, and what lives again
INSERT INTO t (id, _ts) VALUES (1, now() - interval '1 hour'), (2, now());
ALTER TABLE t SET (ttl.default_ttl = 60);
SELECT id FROM t;
ALTER TABLE t SET (ttl.default_ttl = 7200, ttl.revive_expired = true);
SELECT id FROM t;
ALTER TABLE t SET (ttl.default_ttl = 60);
ALTER TABLE t RESET (ttl.default_ttl, ttl.revive_expired);
SELECT id FROM t;
-- while TTL is off
ALTER TABLE t SET (ttl.hidden = false);
ALTER TABLE t SET (ttl.index = none);
ALTER TABLE t RESET (ttl.hidden, ttl.index);
ALTER TABLE t SET (ttl.default_ttl = 60);
SELECT id FROM t;
ALTER TABLE t RESET (ttl.default_ttl);
SELECT id FROM t;
SELECT label('t') - 'added' AS t;
ALTER TABLE t RESET (ttl.default_ttl);
-- the guard
INSERT INTO t (id, _ts) SELECT i, now() - interval '1 hour' FROM generate_series(10, 10000) i;
ALTER TABLE t SET (ttl.default_ttl = 60);
ALTER TABLE t SET (ttl.default_ttl = '60', ttl.confirm = true);
SELECT count(*) FROM t;
-- by TTL indexes only
CREATE TABLE dates (at timestamptz);
CREATE INDEX dates_at ON dates (at);
SELECT ttl.expire_index('dates_at', 60);
ALTER TABLE dates SET (ttl.hidden = false);
ALTER TABLE dates SET (ttl.ts_granularity = 5);
ALTER TABLE dates SET (ttl.ts_column = at);
SELECT label('dates');
ALTER TABLE dates RESET (ttl.default_ttl);
SELECT label('dates');
-- with its column
ALTER TABLE b ADD COLUMN doc jsonb, SET (ttl.document_column = doc);
SELECT label('b') - 'added' AS b;
ALTER TABLE b SET (ttl.ts_column = changed);
ALTER TABLE b RESET (ttl.ts_column);
ALTER TABLE c SET (ttl.ts_column = '_ts');
-- not there
ALTER TABLE IF EXISTS missing SET (ttl.default_ttl = 60);
ALTER TABLE missing SET (ttl.default_ttl = 60);
ALTER TABLE IF EXISTS a SET (ttl.default_ttl = 90), RESET (ttl.ts_granularity);
SELECT label('a') ->> 'default_ttl' AS a;

-- what is refused
CREATE TABLE x (id int) WITH (ttl.defualt = 60);
CREATE TABLE x (id int) WITH (ttl.default_ttl);
CREATE TABLE x (id int) WITH (ttl.default_ttl = null);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 0);
CREATE TABLE x (id int) WITH (ttl.default_ttl = '-1 month');
CREATE TABLE x (id int) WITH (ttl.default_ttl = 1.5);
CREATE TABLE x (id int) WITH (ttl.default_ttl = often);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, ttl.default_ttl = 70);
CREATE TABLE x (id int) WITH (ttl.ts_granularity = 60);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, ttl.hidden = perhaps);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, ttl.index = hash);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, ttl.document_column = doc);
CREATE TABLE x (id int) WITH (ttl.confirm = true);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 60, tll.default = 60);
CREATE TABLE x (id int) WITH (default = 60);
ALTER TABLE a RESET (ttl.default_ttl = 1);
SELECT to_regclass('x');
-- on what is no table
CREATE VIEW v WITH (ttl.default_ttl = 60) AS SELECT 1 AS id;
CREATE MATERIALIZED VIEW mv WITH (ttl.default_ttl = 60) AS SELECT 1 AS id;
CREATE INDEX i ON a (id) WITH (ttl.default_ttl = 60);
CREATE VIEW v AS SELECT 1 AS id;
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS id;
CREATE INDEX i ON a (id);
ALTER VIEW v SET (ttl.default_ttl = 60);
ALTER TABLE v SET (ttl.default_ttl = 60);
ALTER MATERIALIZED VIEW mv SET (ttl.default_ttl = 60);
ALTER INDEX i SET (ttl.default_ttl = 60);
ALTER INDEX i RESET (ttl.default_ttl);
ALTER TABLE a ALTER COLUMN id SET (ttl.default_ttl = 60);
ALTER TABLE pg_catalog.pg_class SET (ttl.default_ttl = 60);
-- somebody else's
CREATE ROLE regress_ttl_other;
GRANT USAGE ON SCHEMA ddl_options TO regress_ttl_other;
SET ROLE regress_ttl_other;
ALTER TABLE a SET (ttl.default_ttl = 60);
ALTER TABLE a RESET (ttl.default_ttl);
RESET ROLE;

-- C33: LIKE copies columns, constraints and indexes, but no policy; they are adopted
CREATE TABLE src (id int PRIMARY KEY, at timestamptz, done boolean) WITH (ttl.default_ttl = 3600, ttl.ts_granularity = 60);
CREATE TABLE like_all (LIKE src INCLUDING ALL);
SELECT label('like_all');
SELECT ttl.problems('like_all');
CREATE TABLE like_other (LIKE src INCLUDING ALL) WITH (ttl.default_ttl = 60);
SELECT label('like_other');
SELECT indexdef FROM pg_indexes WHERE tablename = 'like_other' ORDER BY indexname;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'like_other'::regclass;
CREATE TABLE like_doc (LIKE d INCLUDING ALL) WITH (ttl.default_ttl = 60, ttl.document_column = doc);
SELECT label('like_doc') AS generated;
CREATE TABLE like_partitioned (LIKE p INCLUDING ALL) PARTITION BY RANGE (_ts) WITH (ttl.default_ttl = 60, ttl.drop_partitions);
SELECT label('like_partitioned') AS partitioned;

-- functions, DO, prepared plans: the statement stays as it is
CREATE FUNCTION make(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE made (id int PRIMARY KEY) WITH (ttl.default_ttl = 60, fillfactor = 70);
    ALTER TABLE made SET (ttl.default_ttl = 90, fillfactor = 60);
    EXECUTE format('ALTER TABLE made RENAME TO %I', name);
    RETURN label(name::regclass) ->> 'default_ttl';
END $$;
SELECT make('made_1'), make('made_2'), make('made_3');
CREATE PROCEDURE twice() LANGUAGE sql AS $$
    CREATE TABLE IF NOT EXISTS twice (id int) WITH (ttl.default_ttl = 60);
    ALTER TABLE ddl_options.a SET (ttl.default_ttl = 91) $$;
CALL twice();
CALL twice();
SELECT label('twice') ->> 'default_ttl' AS twice, label('a') ->> 'default_ttl' AS a;
DO $$ BEGIN FOR i IN 1..3 LOOP ALTER TABLE a SET (ttl.default_ttl = 92); ALTER TABLE a RESET (ttl.ts_granularity); END LOOP; END $$;
SELECT label('a') ->> 'default_ttl' AS a;
-- in a transaction
BEGIN;
CREATE TABLE rolled_back (id int) WITH (ttl.default_ttl = 60);
ALTER TABLE a SET (ttl.default_ttl = 93);
SAVEPOINT s;
ALTER TABLE a SET (ttl.default_ttl = 0);
ROLLBACK TO s;
SELECT label('a') ->> 'default_ttl' AS a;
ROLLBACK;
SELECT to_regclass('rolled_back'), label('a') ->> 'default_ttl' AS a;
-- many statements in one message
CREATE TABLE many (id int) WITH (ttl.default_ttl = 60)\; ALTER TABLE many SET (ttl.default_ttl = 61)\; SELECT label('many') ->> 'default_ttl' AS many;

-- event triggers see the statements, and PostgreSQL's own for the columns
CREATE FUNCTION told() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% sees %', tg_tag, (SELECT string_agg(DISTINCT command_tag, ', ' ORDER BY command_tag)
        FROM pg_event_trigger_ddl_commands());
END $$;
CREATE EVENT TRIGGER regress_ttl_told ON ddl_command_end EXECUTE FUNCTION told();
CREATE TABLE seen (id int PRIMARY KEY) WITH (ttl.default_ttl = 60);
ALTER TABLE seen SET (ttl.default_ttl = 61);
ALTER TABLE seen SET (ttl.default_ttl = 62, fillfactor = 50);
SELECT ttl.enable('like_all', 60);
DROP EVENT TRIGGER regress_ttl_told;

DROP OWNED BY regress_ttl_other;
DROP ROLE regress_ttl_other;
SET client_min_messages = warning;
DROP SCHEMA ddl_options, other CASCADE;
DROP TABLE pg_temp.tmp;
