-- M14: TTL indexes on expressions.
CREATE SCHEMA ttl_index_expressions;
SET search_path = ttl_index_expressions;
SET timezone = 'UTC';
\set VERBOSITY default
CREATE FUNCTION seen(tab regclass) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
CREATE FUNCTION on_disk(tab regclass) RETURNS int[] LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
CREATE FUNCTION epoch(i interval) RETURNS numeric LANGUAGE sql STABLE AS $$ SELECT extract(epoch FROM now() + i) $$;
CREATE FUNCTION iso(i interval) RETURNS text LANGUAGE sql STABLE AS $$ SELECT to_char(now() + i, 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"') $$;

-- What there is in applications: rows 1, 3, … are expired, 2, 4, … are not; those below 0 have no date.
CREATE FUNCTION pg_temp.check(tab regclass) RETURNS TABLE (seen int[], on_disk int[], purged bigint, left_over int[], problems text[]) LANGUAGE plpgsql AS $$
BEGIN
    seen := seen(tab); on_disk := on_disk(tab); purged := ttl.purge(tab); left_over := on_disk(tab);
    SELECT t.problems INTO problems FROM ttl.tables AS t WHERE relation = tab;
    RETURN NEXT;
END $$;
CREATE TABLE epoch_s (id int PRIMARY KEY, expires int);
CREATE INDEX epoch_s_idx ON epoch_s (ttl.from_epoch(expires));
CREATE TABLE epoch_ms (id int PRIMARY KEY, expires bigint);
CREATE INDEX epoch_ms_idx ON epoch_ms (ttl.from_epoch_ms(expires));
CREATE TABLE epoch_builtin (id int PRIMARY KEY, expires_ms bigint);
CREATE INDEX epoch_builtin_idx ON epoch_builtin (to_timestamp(expires_ms / 1000.0));
CREATE TABLE epoch_us (id int PRIMARY KEY, expires numeric);
CREATE INDEX epoch_us_idx ON epoch_us (ttl.from_epoch_us(expires::bigint));
CREATE TABLE iso8601 (id int PRIMARY KEY, expires text);
CREATE INDEX iso8601_idx ON iso8601 (ttl.from_iso8601(expires));
CREATE TABLE oauth (id int PRIMARY KEY, created_at timestamptz, expires_in int);
CREATE INDEX oauth_idx ON oauth (ttl.add_seconds(created_at, expires_in));
CREATE TABLE lifetimes (id int PRIMARY KEY, created_at timestamptz, lifetime interval);
CREATE INDEX lifetimes_idx ON lifetimes (ttl.add_interval(created_at, lifetime));
CREATE TABLE coalesced (id int PRIMARY KEY, created_at timestamp, last_used timestamp);
CREATE INDEX coalesced_idx ON coalesced (COALESCE(last_used, created_at));
CREATE TABLE greatest_of (id int PRIMARY KEY, a timestamptz, b timestamptz);
CREATE INDEX greatest_of_idx ON greatest_of (GREATEST(a, b) DESC);
CREATE TABLE jobs (id int PRIMARY KEY, status text, done timestamptz, failed timestamptz);
CREATE INDEX jobs_idx ON jobs ((CASE status WHEN 'done' THEN done WHEN 'failed' THEN failed END));
CREATE TABLE jwt (id int PRIMARY KEY, data jsonb);
CREATE INDEX jwt_idx ON jwt (ttl.from_epoch((data->>'exp')::bigint));
CREATE TABLE ranges (id int PRIMARY KEY, during tstzrange);
CREATE INDEX ranges_idx ON ranges (upper(during));
CREATE TABLE days (id int PRIMARY KEY, day date, extra int);
CREATE INDEX days_idx ON days ((day + extra));
DO $$ DECLARE t text; BEGIN
    FOREACH t IN ARRAY '{epoch_s,epoch_ms,epoch_builtin,epoch_us,iso8601,oauth,lifetimes,greatest_of,jobs,jwt,ranges}'::text[] LOOP
        PERFORM ttl.expire_index((t || '_idx')::regclass, 60);
    END LOOP; END $$;
SELECT ttl.expire_index('coalesced_idx', 60);
SELECT ttl.expire_index('days_idx', 60, time_zone => 'UTC');
SELECT relation, rules->0->'key' AS key, rules->0->'timeZone' AS zone FROM ttl.tables WHERE relation::text NOT LIKE '%.%' ORDER BY relation::text;
INSERT INTO epoch_s VALUES (1, epoch('-2 min')), (2, epoch('-30 s')), (-1, NULL), (3, 0), (4, 2147483647), (5, -2147483648);
INSERT INTO epoch_ms VALUES (1, epoch('-2 min') * 1000), (2, epoch('-30 s') * 1000), (-1, NULL), (-2, 9223372036854775807), (3, 0);
INSERT INTO epoch_builtin VALUES (1, epoch('-2 min') * 1000), (2, epoch('-30 s') * 1000), (-1, NULL), (3, 0);
INSERT INTO epoch_us VALUES (1, epoch('-2 min') * 1000000), (2, epoch('-30 s') * 1000000), (-1, NULL);
INSERT INTO iso8601 VALUES (1, iso('-2 min')), (2, iso('-30 s')), (-1, NULL), (-2, 'never'), (-3, ''), (3, '2000-01-01 00:00Z'), (-4, '2000-01-01 00:00'), (-5, 'infinity'), (-6, repeat('9', 100000));
INSERT INTO oauth VALUES (1, now() - interval '1 h', 3000), (2, now() - interval '1 h', 3590), (-1, NULL, 5), (-2, '2000-01-01', NULL), (-3, 'infinity', -5), (3, now(), -1000);
INSERT INTO lifetimes VALUES (1, now() - interval '2 days', '1 day'), (2, now() - interval '2 days', '47 h 59 min 55 s'), (-1, now() - interval '60 days', '1 month'), (-2, '-infinity', '1 day');
INSERT INTO coalesced VALUES (1, now(), now() - interval '2 min'), (2, now() - interval '2 min', now()), (3, now() - interval '2 min', NULL), (-1, NULL, NULL);
INSERT INTO greatest_of VALUES (1, now() - interval '2 min', now() - interval '3 min'), (2, now(), now() - interval '3 min'), (-1, NULL, NULL), (3, NULL, '2000-01-01');
INSERT INTO jobs VALUES (1, 'done', now() - interval '2 min', NULL), (2, 'done', now(), '2000-01-01'), (-1, 'new', '2000-01-01', '2000-01-01'), (3, 'failed', NULL, '2000-01-01');
INSERT INTO jwt VALUES (1, '{"exp": 1000000000}'), (2, jsonb_build_object('exp', epoch('0')::bigint)), (-1, '{}'), (-2, '{"exp": null}');
INSERT INTO jwt VALUES (-3, '{"exp": "soon"}');
INSERT INTO ranges VALUES (1, '[2000-01-01, 2000-01-02)'), (2, tstzrange('2000-01-01', now())), (-1, '[2000-01-01,)'), (-2, 'empty');
INSERT INTO days VALUES (1, current_date, -2), (2, current_date, 2), (-1, NULL, 1);
SELECT t.relation, (pg_temp.check(t.relation)).* FROM ttl.tables AS t WHERE relation::text NOT LIKE '%.%' ORDER BY relation::text;
SELECT id, ttl.remaining(s) IS NULL AS forever, ttl.remaining(s) < '1 min' AS soon FROM iso8601 AS s ORDER BY id;
SELECT total, expired FROM ttl.preview('jobs');

-- Keys are free, foreign keys see nothing, an index scan by the expression works.
INSERT INTO oauth VALUES (7, now() - interval '1 h', 10);
CREATE TABLE refresh (id int REFERENCES oauth);
INSERT INTO refresh VALUES (7);
INSERT INTO oauth VALUES (7, now(), 100) ON CONFLICT (id) DO UPDATE SET expires_in = 1;
INSERT INTO refresh VALUES (7);
SELECT id, expires_in FROM oauth WHERE id = 7;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM oauth WHERE ttl.add_seconds(created_at, expires_in) < now() + interval '1 h';
SELECT count(*) FROM oauth WHERE ttl.add_seconds(created_at, expires_in) < now() + interval '1 h';
RESET enable_seqscan; RESET enable_bitmapscan;

-- Partial, with an expression that fails for the rows that the index leaves out: no reader gets the error.
CREATE TABLE mixed (id int PRIMARY KEY, kind text, val text);
CREATE INDEX mixed_idx ON mixed (ttl.from_epoch(val::bigint)) WHERE kind = 'token';
SELECT ttl.expire_index('mixed_idx', 0);
INSERT INTO mixed VALUES (1, 'token', '1000'), (2, 'token', '4000000000'), (3, 'word', 'x'), (4, NULL, 'y');
SELECT seen('mixed'), on_disk('mixed');
SELECT id, ttl.remaining(m) IS NULL AS forever FROM mixed AS m ORDER BY id;
SELECT total, expired FROM ttl.preview('mixed');
SET enable_indexscan = off; SET enable_bitmapscan = off;
SELECT ttl.purge('mixed'), on_disk('mixed');
RESET enable_indexscan; RESET enable_bitmapscan;
INSERT INTO mixed VALUES (5, 'token', 'z');

-- Several on a table, beside a default; on partitions with other column numbers.
CREATE TABLE parts (gone int, id int, grp int, val int, at timestamptz) PARTITION BY LIST (grp);
ALTER TABLE parts DROP gone;
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (at timestamptz, val int, junk text, grp int, id int);
ALTER TABLE parts_2 DROP junk;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
CREATE INDEX parts_epoch ON parts (ttl.from_epoch(val));
CREATE INDEX parts_at ON parts (ttl.add_seconds(at, val)) WHERE id > 2;
SELECT ttl.expire_index('parts_epoch', 0), ttl.expire_index('parts_at', 0);
INSERT INTO parts VALUES (1, 1, 1000, NULL), (2, 2, 1000, NULL), (3, 1, 2147483647, '-infinity'), (4, 2, 2147483647, '1940-01-01'), (5, 2, 2147483647, now());
SELECT seen('parts'), seen('parts_1'), seen('parts_2'), on_disk('parts');
SELECT ttl.purge('parts'), on_disk('parts');
ALTER TABLE parts RENAME val TO seconds;
INSERT INTO parts VALUES (6, 1, 5, NULL);
SELECT seen('parts'), rules FROM ttl.tables WHERE relation = 'parts'::regclass;

-- A child without the index: its rows are not known to suit the expression.
CREATE TABLE parent (id int, val text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES (1, 'x'), (2, '5');
CREATE INDEX parent_idx ON parent (ttl.from_epoch(val::bigint));
SELECT ttl.expire_index('parent_idx', 0);
DELETE FROM child WHERE id = 1;
CREATE INDEX child_idx ON child (ttl.from_epoch(val::bigint));
SELECT ttl.expire_index('parent_idx', 0);
SELECT seen('parent'), seen('child');
CREATE TABLE late () INHERITS (parent);
INSERT INTO late VALUES (3, 'x');
SELECT seen('parent'), problems FROM ttl.tables WHERE relation = 'parent'::regclass;

-- What is refused.
CREATE TABLE refused (id int, val bigint, words text, at timestamptz, local timestamp);
CREATE INDEX refused_val ON refused (val);
CREATE INDEX refused_words ON refused (words);
CREATE INDEX refused_upper ON refused (upper(words));
CREATE FUNCTION mine(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE INDEX refused_mine ON refused (mine(at));
CREATE FUNCTION of_row(refused) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT $1.at';
CREATE INDEX refused_row ON refused (of_row(refused));
CREATE INDEX refused_two ON refused (COALESCE(at, at), id);
CREATE INDEX refused_brin ON refused USING brin (COALESCE(at, at));
CREATE INDEX refused_array ON refused ((ARRAY[at]));
SELECT ttl.expire_index('refused_val', 0);
SELECT ttl.expire_index('refused_words', 0);
SELECT ttl.expire_index('refused_upper', 0);
SELECT ttl.expire_index('refused_mine', 0);
SELECT ttl.expire_index('refused_row', 0);
SELECT ttl.expire_index('refused_two', 0);
SELECT ttl.expire_index('refused_brin', 0);
SELECT ttl.expire_index('refused_array', 0);
CREATE INDEX one ON refused (COALESCE(at, ttl.from_epoch(val)));
CREATE INDEX other ON refused (COALESCE(at, ttl.from_epoch(val)));
SELECT ttl.expire_index('one', 0);
SELECT ttl.expire_index('other', 0);
ALTER TABLE refused ALTER val TYPE numeric;
ALTER TABLE refused ALTER words TYPE varchar;
INSERT INTO refused (id, val) VALUES (1, 5), (2, NULL);
ALTER TABLE refused DROP val;
SELECT seen('refused'), on_disk('refused'), (SELECT count(*) FROM ttl.tables WHERE relation = 'refused'::regclass) AS policies;

-- The functions.
SELECT ttl.add_seconds(timestamptz '2026-01-01 00:00+00', 1.5) AS tz, ttl.add_seconds(timestamp '2026-01-01', 90) AS local, ttl.add_seconds(date '2026-01-01', 90::bigint) AS day,
       ttl.add_interval(timestamptz '2026-01-01 00:00+00', '1 day 1 s') AS tz, ttl.add_interval(timestamp '2026-01-01', '-1 h') AS local, ttl.add_interval(date '2026-01-01', '36 h') AS day;
SELECT ttl.add_seconds(timestamptz 'infinity', 1), ttl.add_seconds(timestamptz '2026-01-01', 'NaN'::float8), ttl.add_seconds(timestamp '2026-01-01', 9223372036854775807),
       ttl.add_seconds(date 'infinity', 1), ttl.add_seconds(date '5874897-12-31', 1), ttl.add_interval(timestamptz '2026-01-01', '1 mon'), ttl.add_interval(date '-infinity', '1 s');
SELECT ttl.from_epoch(1700000000), ttl.from_epoch(1700000000.25), ttl.from_epoch_ms(1700000000250), ttl.from_epoch_ms(1700000000250.5), ttl.from_epoch_us(1700000000250500);
SELECT ttl.from_epoch('NaN'::float8), ttl.from_epoch(1e300), ttl.from_epoch(9223372036854775807), ttl.from_epoch_ms('-Infinity'::float8), ttl.from_epoch_us(9223372036854775807) IS NULL AS us;
SELECT ttl.from_iso8601('2026-11-25T10:00:00+01:00'), ttl.from_iso8601('20261125T100000,5Z'), ttl.from_iso8601('2026-11-25'), ttl.from_iso8601('2026-02-30T00:00:00Z');
SET client_min_messages = warning;
DROP SCHEMA ttl_index_expressions CASCADE;
