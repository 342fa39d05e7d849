-- M1-M5, M12: rows that expire by TTL indexes. What is hidden by which kind of access,
-- whose keys are free, and what a bad value does (nothing).
CREATE SCHEMA ttl_index;
SET search_path = ttl_index;
SET timezone = 'UTC'; -- M13: timestamp and date are read as the policy says; time_zones has other zones
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN 'done: ' || n;
EXCEPTION WHEN OTHERS THEN
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM);
END $$;
-- every row, expired or not
CREATE FUNCTION on_disk(tab regclass) RETURNS int[] LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
-- the rows that a query finds
CREATE FUNCTION seen(tab regclass) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;

-- M2, M3, M12: every type, with values around the limit, at the ends of the type, and none.
CREATE TABLE of_timestamptz (id serial, what text, d timestamptz);
CREATE TABLE of_timestamp (id serial, what text, d timestamp);
CREATE TABLE of_date (id serial, what text, d date);
CREATE TABLE of_timestamptzs (id serial, what text, d timestamptz[]);
CREATE TABLE of_timestamps (id serial, what text, d timestamp[]);
CREATE TABLE of_dates (id serial, what text, d date[]);
-- that long ago, in UTC
CREATE FUNCTION ago(i interval) RETURNS timestamp LANGUAGE sql STABLE AS $$ SELECT (ttl.now() AT TIME ZONE 'UTC') - i $$;
CREATE TABLE recent (what interval);
INSERT INTO recent VALUES ('40 s'), ('100 s'), ('200 s'), ('-1 h'), ('-20 h'), ('3 days');
CREATE TABLE bad (what text);
INSERT INTO bad VALUES (NULL), ('infinity'), ('-infinity'), ('1969-12-31'), ('1970-01-01'), ('1901-12-13'), ('2038-01-20'),
    ('2039-06-01'), ('0001-01-01'), ('4713-01-01 BC'), ('294276-12-31');
CREATE TABLE several (what text);
INSERT INTO several VALUES ('{}'), ('{NULL}'), ('{NULL,NULL}'), ('{NULL,2000-01-01}'), ('{3000-01-01,2000-01-01,2500-01-01}'),
    ('{3000-01-01,2500-01-01}'), ('{infinity}'), ('{-infinity,2000-01-01}'), ('{infinity,2000-01-01}'), ('{-infinity}'),
    ('{{3000-01-01,3001-01-01},{3002-01-01,2000-01-01}}'), ('[5:6]={3000-01-01,2000-01-01}');
INSERT INTO of_timestamptz (what, d) SELECT what, ago(what) AT TIME ZONE 'UTC' FROM recent;
INSERT INTO of_timestamptz (what, d) SELECT what, what::timestamptz FROM bad;
INSERT INTO of_timestamp (what, d) SELECT what, ago(what) FROM recent;
INSERT INTO of_timestamp (what, d) SELECT what, what::timestamp FROM bad;
INSERT INTO of_date (what, d) SELECT what, ago(what) FROM recent WHERE abs(extract(epoch FROM what)) > 100000;
INSERT INTO of_date (what, d) SELECT what, what::date FROM bad;
INSERT INTO of_date (what, d) SELECT v, v::date FROM unnest('{294277-01-01,5874897-12-31}'::text[]) v;
INSERT INTO of_timestamptzs (what, d) SELECT what, array[d] FROM of_timestamptz ORDER BY id;
INSERT INTO of_timestamptzs (what, d) SELECT what, what::timestamptz[] FROM several;
INSERT INTO of_timestamps (what, d) SELECT what, array[d] FROM of_timestamp ORDER BY id;
INSERT INTO of_timestamps (what, d) SELECT what, what::timestamp[] FROM several;
INSERT INTO of_dates (what, d) SELECT what, array[d] FROM of_date ORDER BY id;
INSERT INTO of_dates (what, d) SELECT what, what::date[] FROM several;
CREATE VIEW types AS SELECT t::regclass FROM unnest('{of_timestamptz,of_timestamp,of_date,of_timestamptzs,of_timestamps,of_dates}'::text[]) t;
SELECT ttl.create_index(t, '{"d": 1}', '{"expireAfterSeconds": 2147483647}') FROM types;
SELECT relation, rules, problems FROM ttl.tables WHERE relation IN (TABLE types) ORDER BY relation::text;
CREATE FUNCTION fates(tab regclass, OUT live text, OUT gone text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE live AS SELECT id FROM %s', tab);
    SET LOCAL ttl.show_expired = on;
    EXECUTE format('SELECT string_agg(coalesce(what, ''NULL''), '' '' ORDER BY id) FILTER (WHERE EXISTS (SELECT FROM live WHERE live.id = t.id)), '
                   'string_agg(coalesce(what, ''NULL''), '' '' ORDER BY id) FILTER (WHERE NOT EXISTS (SELECT FROM live WHERE live.id = t.id)) '
                   'FROM %s t', tab) INTO live, gone;
    SET LOCAL ttl.show_expired = off;
    DROP TABLE live;
END $$;
CREATE FUNCTION set_all(seconds int) RETURNS void LANGUAGE sql AS $$
    SELECT ttl.expire_index(indexrelid, seconds, revive_expired => true) FROM pg_index WHERE indrelid IN (SELECT t FROM ttl_index.types) $$;
\x on
\pset format unaligned
SELECT t, f.* FROM types, fates(t) f;
SELECT set_all(100);
SELECT t, f.* FROM types, fates(t) f;
SELECT set_all(0);
SELECT t, f.* FROM types, fates(t) f;
\x off
\pset format aligned
-- M12: what is hidden is what is deleted, and no more
CREATE TABLE seen AS SELECT t, seen(t) AS ids FROM types;
SELECT * FROM ttl.preview('of_timestamptz');
SELECT t, ttl.purge(t) FROM types;
SELECT total, expired FROM ttl.preview('of_timestamptz');
SELECT t, on_disk(t) = ids AS the_same, ids FROM seen;
-- the last that can expire, and the first that never does; the clock ends in 294276, too
SELECT ttl.expire_index('of_timestamptz_d_idx', 1);
INSERT INTO of_timestamptz (d) VALUES ('294276-12-31 23:59:59.999999+00'), ('294276-12-31 23:59:58.999999+00');
SELECT count(*) FROM of_timestamptz WHERE d > '294276-12-31';
SELECT d, ttl.index_expires_at(d, 1), ttl.index_expires_at(d, 0), ttl.index_expires_at(d, 2147483647)
  FROM (VALUES ('294276-12-31 23:59:59.999999+00'::timestamptz), ('4714-11-24 00:00:00+00 BC'), ('-infinity'), ('infinity'), (NULL)) v (d);

-- M4: rows expire that match the predicate, not those for which it is false or NULL
CREATE TABLE m (id int PRIMARY KEY, d timestamptz, level text, ds date[], extra timestamptz);
SELECT ttl.create_index('m', '{"d": 1}', '{"expireAfterSeconds": 3600, "name": "of_debug", "partialFilterExpression": "level = ''debug''"}');
CREATE FUNCTION past(i interval DEFAULT '1 day') RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT ttl.now() - i';
INSERT INTO m (id, d, level) VALUES (1, past(), 'debug'), (2, past(), 'info'), (3, past(), NULL), (4, past('-1 day'), 'debug'),
    (5, NULL, 'debug'), (6, past('10 s'), 'debug'), (7, past('2 h'), 'debug');
SELECT seen('m'), on_disk('m');
-- M1: NULL is not true of any operator
CREATE TABLE nulls (id int, d timestamptz, a int, b boolean);
CREATE INDEX nulls_d ON nulls (d) WHERE NOT (a > 5 AND b);
SELECT ttl.expire_index('nulls_d', 0);
INSERT INTO nulls SELECT row_number() OVER (), past(), a, b FROM (VALUES (1), (9), (NULL)) v (a), (VALUES (true), (false), (NULL)) w (b);
SELECT id, a, b FROM nulls ORDER BY id;
SELECT ttl.purge('nulls');
SELECT on_disk('nulls');

-- M5: several of them, and a default: whichever says so first. Adding the column with
-- its constraint deletes what is expired, as any ALTER TABLE does that checks rows.
SELECT ttl.create_index('m', '{"ds": -1}', '{"expireAfterSeconds": 0}');
SELECT ttl.create_index('m', '{"d": -1}', '{"expireAfterSeconds": 864000, "name": "all_of_them"}');
SELECT ttl.enable('m', 7200);
INSERT INTO m (id, d, ds) VALUES (11, past('5 days'), '{3000-01-01}'), (12, past('20 days'), NULL), (13, NULL, '{3000-01-01,2020-01-01}'),
    (14, past('9 days'), '{NULL}'), (15, past('20 days'), '{2020-01-01}');
SET ttl.preserve_ts = on;
INSERT INTO m (id, d, _ts, ttl) VALUES (16, past('5 days'), past('3 h'), NULL), (17, past('5 days'), past('3 h'), 60), (18, past('5 days'), past('3 h'), -1),
    (19, past('5 days'), past('3 h'), 864000), (20, past('50 days'), past('3 h'), -1);
RESET ttl.preserve_ts;
SELECT seen('m'), on_disk('m');
SELECT relation, default_ttl, ts_column, hidden, problems FROM ttl.tables WHERE relation = 'm'::regclass;
SELECT jsonb_pretty(rules) FROM ttl.tables WHERE relation = 'm'::regclass;
SELECT total, expired, oldest_expiry AT TIME ZONE 'UTC' AS oldest FROM ttl.preview('m');
SELECT total, expired FROM ttl.preview('m', -1);
-- writing to a row does not help it, nor does its override; its date does
UPDATE m SET ttl = 864000 WHERE id = 4;
UPDATE m SET d = past('2 h') WHERE id = 4;
SELECT seen('m');
SELECT relation, rows_deleted, backlog_estimate, blocked_rows FROM ttl.stats WHERE relation = 'm'::regclass;
BEGIN;
SELECT ttl.purge('m');
SELECT seen('m') = on_disk('m') AS all_gone, seen('m');
ROLLBACK;
-- the time of the statement; in REPEATABLE READ that of the transaction
BEGIN;
INSERT INTO m (id, d) VALUES (21, clock_timestamp() - interval '10 days' + interval '0.2 s');
SELECT count(*) FROM m WHERE id = 21;
SELECT pg_sleep(0.3);
SELECT count(*) FROM m WHERE id = 21;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO m (id, d) VALUES (21, clock_timestamp() - interval '10 days' + interval '0.2 s');
SELECT pg_sleep(0.3);
SELECT count(*) FROM m WHERE id = 21;
SELECT ttl.purge('m') > 0, (SELECT count(*) FROM m WHERE id = 21);
ROLLBACK;

-- C6: no statement reaches a row that expired by an index --------------------
CREATE TABLE h (id int PRIMARY KEY, d timestamp, v int, kind text);
CREATE INDEX h_d ON h (d) INCLUDE (id) WHERE kind <> 'kept';
SELECT ttl.expire_index('h_d', 60);
INSERT INTO h SELECT i, ago(CASE WHEN i % 2 = 0 THEN interval '1 day' ELSE '-1 day' END), i * 10, 'x' FROM generate_series(1, 10) i;
INSERT INTO h VALUES (12, ago('1 day'), 120, 'kept');
VACUUM ANALYZE h;
SELECT id FROM h ORDER BY id;
SELECT count(*), sum(v), min(id), max(id) FROM h;
SELECT a.id, b.id FROM h a LEFT JOIN h b ON b.id = a.id + 1 ORDER BY 1;
SELECT EXISTS (SELECT FROM h WHERE id = 4), 4 IN (SELECT id FROM h), (SELECT v FROM h WHERE id = 4), (SELECT v FROM h WHERE id = 12);
WITH c AS MATERIALIZED (SELECT * FROM h) SELECT count(*) FROM c;
SELECT id FROM h UNION ALL SELECT -id FROM h WHERE id < 5 ORDER BY 1;
SELECT count(*) FROM h TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM h, LATERAL (SELECT * FROM h x WHERE x.id = h.id - 1) l;
CREATE VIEW hv AS SELECT * FROM h;
CREATE VIEW hb WITH (security_barrier) AS SELECT * FROM h WHERE v > 0;
CREATE FUNCTION f_sql() RETURNS SETOF h LANGUAGE sql STABLE AS 'SELECT * FROM ttl_index.h';
SELECT (SELECT count(*) FROM hv), (SELECT count(*) FROM hb), (SELECT count(*) FROM f_sql());
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM h ORDER BY id;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
COMMIT;
SELECT id FROM h WHERE id < 5 ORDER BY id FOR UPDATE;
-- Sessions that lock rows have other plans.
\c -
SET search_path = ttl_index;
SET timezone = 'Asia/Tokyo';
SET plan_cache_mode = force_generic_plan;
PREPARE by_id (int) AS SELECT id FROM h WHERE id = $1;
EXECUTE by_id (1);
EXECUTE by_id (2);
RESET plan_cache_mode;
COPY h (id, v) TO STDOUT;
COPY (SELECT count(*) FROM h) TO STDOUT;
UPDATE h SET v = v WHERE id < 5 RETURNING id;
DELETE FROM h WHERE id IN (2, 4) RETURNING id;
DELETE FROM hb WHERE id = 2;
UPDATE h SET v = x.v FROM h x WHERE x.id = h.id + 1 RETURNING h.id;
MERGE INTO h USING (VALUES (2), (3)) s (i) ON id = i WHEN MATCHED THEN UPDATE SET v = -1;
\echo :ROW_COUNT
SELECT on_disk('h');
-- by every kind of scan
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM h WHERE d < '2100-01-01' AND kind <> 'kept' ORDER BY d;
SELECT id FROM h WHERE d < '2100-01-01' AND kind <> 'kept' ORDER BY d, id;
EXPLAIN (COSTS OFF) SELECT id FROM h WHERE id < 5;
SELECT id FROM h WHERE id < 5 ORDER BY id;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM h WHERE id < 5 OR id > 8 ORDER BY id;
SELECT id FROM h WHERE id < 5 OR id > 8 ORDER BY id;
SELECT id FROM h WHERE ctid = '(0,2)';
-- one whose filter needs nothing but the index
CREATE TABLE only_dates (d timestamptz);
SELECT ttl.create_index('only_dates', '{"d": 1}', '{"expireAfterSeconds": 0}');
INSERT INTO only_dates SELECT past(make_interval(days => i)) FROM generate_series(-5, 5) i;
VACUUM ANALYZE only_dates;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM only_dates WHERE d < '2100-01-01';
SELECT count(*) FROM only_dates WHERE d < '2100-01-01';
RESET enable_seqscan;
RESET enable_bitmapscan;

-- no function of a user is called with an expired row, however cheap it says it is
CREATE FUNCTION peek(int) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS 'BEGIN RAISE NOTICE ''peek %'', $1; RETURN true; END';
SELECT id FROM h WHERE peek(id) AND id < 5 ORDER BY id;
SELECT id FROM h WHERE peek(id) AND d < '2100-01-01' AND kind <> 'kept' AND id < 5 ORDER BY id;
SELECT id FROM hb WHERE peek(id) AND id < 5 ORDER BY id;
SELECT id FROM h WHERE 1 / (id - 2) IS NOT NULL AND id < 4 ORDER BY id;
SELECT id FROM m WHERE peek(id) AND id > 12 ORDER BY id;
-- those who may, see all: by the setting, or the owner with row_security off
SET ttl.show_expired = on;
SELECT count(*) FROM h;
EXECUTE by_id (2);
RESET ttl.show_expired;
EXECUTE by_id (2);
SET row_security = off;
SELECT count(*) FROM h;
RESET row_security;
-- M1: it serves queries like any other index, and plans are those of the plain table
CREATE TABLE plain (id int PRIMARY KEY, d timestamptz, level text);
INSERT INTO plain SELECT i, past('1 h') + i * interval '1 h', CASE WHEN i % 10 = 0 THEN 'debug' ELSE 'info' END FROM generate_series(1, 10000) i;
CREATE INDEX ON plain (d);
CREATE INDEX ON plain (d) WHERE level = 'debug';
CREATE TABLE t (LIKE plain INCLUDING ALL);
INSERT INTO t SELECT * FROM plain;
ANALYZE plain, t;
SELECT ttl.expire_index('t_d_idx', 7200), ttl.expire_index('t_d_idx1', 3600);
CREATE FUNCTION rows(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json; BEGIN EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan; RETURN plan->0->'Plan'->>'Plan Rows'; END $$;
CREATE VIEW queries (query) AS VALUES ('SELECT * FROM %I'), ('SELECT * FROM %I WHERE d > now() + interval ''300 days'''),
    ('SELECT * FROM %I WHERE level = ''debug'''), ('SELECT * FROM %1$I a JOIN %1$I b USING (id)'), ('SELECT * FROM %1$I a JOIN %1$I b USING (d)'),
    ('SELECT * FROM plain p WHERE EXISTS (SELECT FROM %I x WHERE x.id = p.id)'), ('SELECT level, count(*) FROM %I GROUP BY level'),
    ('SELECT * FROM %I ORDER BY d LIMIT 10'), ('SELECT id FROM %1$I UNION ALL SELECT id FROM %1$I');
SELECT query, rows(format(query, 't')), rows(format(query, 'plain')) FROM queries WHERE rows(format(query, 't')) <> rows(format(query, 'plain'));
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE d > now() + interval '400 days';
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE d > now() + interval '300 days' AND level = 'debug' AND id > 0;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY d DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 7;
DROP VIEW queries;
DROP TABLE t, plain;

-- C6: the key of a row that expired by an index is free ------------------------
CREATE TABLE k (id int PRIMARY KEY, u text UNIQUE, d date[], kind text, v text DEFAULT 'new', span int4range, EXCLUDE USING gist (span WITH &&));
SELECT ttl.create_index('k', '{"d": 1}', '{"expireAfterSeconds": 60, "partialFilterExpression": "kind IN (''a'', ''b'')"}');
CREATE FUNCTION refill() RETURNS void LANGUAGE sql AS $$
    TRUNCATE k CASCADE;
    INSERT INTO k SELECT i, 'u' || i, '{2000-01-01,3000-01-01}', 'a', 'old', int4range(i * 10, i * 10 + 5) FROM generate_series(1, 9) i;
    -- these live: by their date, and by the predicate
    INSERT INTO k VALUES (11, 'u11', '{3000-01-01}', 'a', 'live'), (12, 'u12', '{2000-01-01}', 'c', 'live'), (13, 'u13', '{2000-01-01}', NULL, 'live');
$$;
CREATE FUNCTION disk() RETURNS SETOF text LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT concat_ws(' ', id, u, kind, v) FROM k WHERE v NOT IN ('old', 'live') OR v IS NULL ORDER BY k.*::text $$;
SELECT refill();
SELECT seen('k');
INSERT INTO k VALUES (1, 'new'), (2, 'u3') RETURNING id, u, v;
INSERT INTO k (id, u) VALUES (4, 'u12');
INSERT INTO k (id) VALUES (11);
INSERT INTO k (id) VALUES (13);
INSERT INTO k (id) VALUES (4), (13) ON CONFLICT (id) DO UPDATE SET v = k.v || ' updated' RETURNING id, v;
INSERT INTO k (id, u) VALUES (5, 'u5') ON CONFLICT DO NOTHING RETURNING id, v;
MERGE INTO k USING (VALUES (6), (12)) s (i) ON id = i WHEN MATCHED THEN UPDATE SET v = 'matched' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (i, 'merged');
COPY k (id, u) FROM STDIN;
7	u7
21	copied
\.
UPDATE k SET id = 8, v = 'moved' WHERE id = 12;
INSERT INTO k (id, span) VALUES (31, '[90,91]');
INSERT INTO k (id, span) VALUES (32, '[91,92]');
SELECT disk();
SELECT on_disk('k');
SELECT refill();
INSERT INTO k (id) SELECT i FROM generate_series(1, 9) i ON CONFLICT DO NOTHING;
\echo :ROW_COUNT
SELECT on_disk('k');
-- foreign keys: no row refers to an expired one; those that did are treated as by DELETE
CREATE TABLE cascades (id int, k int REFERENCES k ON DELETE CASCADE);
CREATE TABLE nulls_it (id int, k int REFERENCES k ON DELETE SET NULL);
CREATE TABLE keeps (id int, k int REFERENCES k);
SELECT refill();
INSERT INTO cascades VALUES (1, 2);
SELECT try('INSERT INTO keeps VALUES (1, 2)'), try('INSERT INTO keeps VALUES (1, 12)');
SET ttl.show_expired = on;
INSERT INTO cascades VALUES (1, 1), (2, 2), (11, 11);
INSERT INTO nulls_it VALUES (1, 1), (2, 2), (11, 11);
INSERT INTO keeps VALUES (3, 3);
RESET ttl.show_expired;
INSERT INTO k (id) VALUES (1), (2);
SELECT * FROM cascades ORDER BY id;
SELECT * FROM nulls_it ORDER BY id;
SELECT try('INSERT INTO k (id) VALUES (3)');
-- a child that has expired keeps no parent
CREATE TABLE child (id int, k int REFERENCES k, d timestamptz);
SELECT ttl.create_index('child', '{"d": 1}', '{"expireAfterSeconds": 0}');
INSERT INTO child VALUES (11, 11, past()), (13, 13, NULL);
DELETE FROM k WHERE id = 11;
SELECT try('DELETE FROM k WHERE id = 13');
SELECT on_disk('child'), on_disk('k') @> '{11}' AS has_11;
-- SET NULL makes no row live again, whose predicate says that it refers to something
CREATE TABLE nulled (id int, k int REFERENCES k ON DELETE SET NULL, d timestamptz);
CREATE INDEX nulled_d ON nulled (d) WHERE k IS NOT NULL;
SELECT ttl.expire_index('nulled_d', 0);
UPDATE k SET kind = NULL WHERE id = 13;
DELETE FROM child;
INSERT INTO nulled VALUES (1, 13, past()), (2, 13, past('-1 d'));
DELETE FROM k WHERE id = 13;
SELECT id, k FROM nulled ORDER BY id;
SELECT on_disk('nulled');
-- unique on partitions, whose columns are in another order
CREATE TABLE p (id int, part int, d timestamptz, flag boolean, UNIQUE (part, id)) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 (flag boolean, x int, d timestamptz, id int, part int);
ALTER TABLE p2 DROP COLUMN x;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
SELECT ttl.create_index('p', '{"d": 1}', '{"expireAfterSeconds": 10, "partialFilterExpression": "flag"}');
INSERT INTO p SELECT i, 1 + i % 2, past(CASE WHEN i < 5 THEN interval '1 h' ELSE '-1 h' END), i % 3 > 0 FROM generate_series(1, 8) i;
SELECT seen('p'), seen('p1'), seen('p2'), on_disk('p');
INSERT INTO p (id, part) VALUES (1, 2), (2, 1), (3, 2) ON CONFLICT DO NOTHING RETURNING id, part, d;
INSERT INTO p2 (id, part) VALUES (1, 2), (5, 2) ON CONFLICT DO NOTHING RETURNING id, part, d;
INSERT INTO p (id, part) VALUES (4, 1);
UPDATE p SET part = 3 - part WHERE id IN (5, 6) RETURNING id, part;
SELECT seen('p'), seen('p1'), seen('p2'), on_disk('p');
SELECT ttl.purge('p');

-- on a table that hides, it deletes nothing: what is expired is seen, and left to the workers
CREATE TABLE unhidden (id int PRIMARY KEY, d timestamptz);
SELECT ttl.create_index('unhidden', '{"d": 1}', '{"expireAfterSeconds": 60}');
INSERT INTO unhidden VALUES (1, past()), (2, NULL), (3, past('-1 d'));
SELECT seen('unhidden'), on_disk('unhidden');
SELECT ttl.expire_index('unhidden_d_idx', 60, hidden => false);
SELECT seen('unhidden'), on_disk('unhidden');
SELECT ttl.expire_index('unhidden_d_idx', 60, hidden => true);
SELECT seen('unhidden'), on_disk('unhidden');
-- by longer seconds it would not be expired any more, so that goes first (M6)
SELECT ttl.expire_index('unhidden_d_idx', 2147483647, hidden => false);
SELECT seen('unhidden'), on_disk('unhidden');
-- by MongoDB's command from the beginning; a second call with another changes it
CREATE TABLE like_mongo (id int, d timestamptz);
INSERT INTO like_mongo VALUES (1, past());
SELECT ttl.create_index('like_mongo', '{"d": 1}', '{"expireAfterSeconds": 60}', hidden => false);
SELECT hidden FROM ttl.tables WHERE relation = 'like_mongo'::regclass;
SELECT seen('like_mongo');
SELECT ttl.create_index('like_mongo', '{"d": 1}', '{"expireAfterSeconds": 60}') ->> 'note' AS note;
SELECT hidden FROM ttl.tables WHERE relation = 'like_mongo'::regclass;
SELECT ttl.create_index('like_mongo', '{"d": 1}', '{"expireAfterSeconds": 60}', true) ->> 'note' AS note;
SELECT hidden FROM ttl.tables WHERE relation = 'like_mongo'::regclass;
SELECT seen('like_mongo'), on_disk('like_mongo');
CREATE TABLE clock_like_mongo (id int);
SELECT ttl.create_index('clock_like_mongo', '{"_ts": 1}', '{"expireAfterSeconds": 60}', hidden => false);
SELECT default_ttl, hidden FROM ttl.tables WHERE relation = 'clock_like_mongo'::regclass;
SELECT ttl.create_index('clock_like_mongo', '{"_ts": 1}', '{"expireAfterSeconds": 60}', hidden => true) ->> 'note' AS note;
SELECT default_ttl, hidden FROM ttl.tables WHERE relation = 'clock_like_mongo'::regclass;

-- hidden => false: expired rows are seen, and their keys taken, until they are deleted
CREATE TABLE mongo (id int PRIMARY KEY, d timestamptz);
CREATE INDEX mongo_d ON mongo (d);
SELECT ttl.expire_index('mongo_d', 60, hidden => false);
INSERT INTO mongo VALUES (1, past()), (2, NULL), (3, past('-1 d'));
SELECT seen('mongo'), on_disk('mongo');
INSERT INTO mongo VALUES (1);
UPDATE mongo SET d = d WHERE id = 1;
COPY mongo (id) TO STDOUT;
EXPLAIN (COSTS OFF) SELECT * FROM mongo WHERE id = 1;
SELECT hidden, problems FROM ttl.tables WHERE relation = 'mongo'::regclass;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'mongo'::regclass;
SELECT total, expired FROM ttl.preview('mongo');
SELECT ttl.purge('mongo');
SELECT on_disk('mongo');
-- without the argument it stays as it is
INSERT INTO mongo VALUES (1, past());
SELECT ttl.expire_index('mongo_d', 30);
SELECT ttl.coll_mod('mongo', '{"index": {"name": "mongo_d", "expireAfterSeconds": 20}}');
SELECT ttl.enable('mongo');
SELECT seen('mongo'), (SELECT hidden FROM ttl.tables WHERE relation = 'mongo'::regclass);
SELECT ttl.enable('mongo', hidden => true);
SELECT seen('mongo'), on_disk('mongo');
INSERT INTO mongo VALUES (1) RETURNING id, d;

SET client_min_messages = warning;
DROP SCHEMA ttl_index CASCADE;
