-- M13: the time zone of a timestamp or date.
CREATE SCHEMA time_zones;
SET search_path = time_zones;
\set VERBOSITY default
SET timezone = 'America/New_York';
CREATE FUNCTION seen(tab regclass) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
CREATE FUNCTION on_disk(tab regclass) RETURNS int[] LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;

-- As connect-pg-simple has it: a session that ends in an hour is there (W3).
CREATE TABLE sessions (id int PRIMARY KEY, expire timestamp NOT NULL);
CREATE INDEX sessions_expire_idx ON sessions (expire);
SELECT ttl.expire_index('sessions_expire_idx', 0);
INSERT INTO sessions SELECT i, now() + i * interval '1 hour' FROM generate_series(-6, 6, 2) AS i;
SELECT seen('sessions');
SELECT rules, problems FROM ttl.tables WHERE relation = 'sessions'::regclass;
SELECT id, date_trunc('hour', ttl.remaining(s) + interval '1 minute') AS remaining FROM sessions AS s ORDER BY id;
SELECT total, expired, date_trunc('hour', oldest_expiry + interval '1 minute') = date_trunc('hour', now() + interval '1 minute') - interval '6 hours' AS oldest
  FROM ttl.preview('sessions');
EXPLAIN (COSTS OFF) SELECT * FROM sessions WHERE id = 3;
-- The zone is the policy's, not the session's.
SET timezone = 'Asia/Tokyo';
SELECT seen('sessions');
-- Other seconds keep it, without a word.
SELECT ttl.expire_index('sessions_expire_idx', 7200, revive_expired => true);
SELECT seen('sessions'), rules->0->>'timeZone' AS zone FROM ttl.tables WHERE relation = 'sessions'::regclass;
SELECT ttl.coll_mod('sessions', '{"index": {"keyPattern": {"expire": 1}, "expireAfterSeconds": 0}}');
-- Another zone, in one call: rows that it expires are counted, rows that live by it are visible again.
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => 'europe/berlin');
SELECT seen('sessions'), on_disk('sessions'), rules->0->>'timeZone' AS zone FROM ttl.tables WHERE relation = 'sessions'::regclass;
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => 'UTC');
SELECT seen('sessions'), rules->0->>'timeZone' AS zone FROM ttl.tables WHERE relation = 'sessions'::regclass;
SELECT provider, label::jsonb->'rules' AS rules FROM pg_seclabels WHERE objoid = 'sessions'::regclass;
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => 'America/New_York');
SELECT seen('sessions');
-- Keys are free, by the zone.
INSERT INTO sessions VALUES (-2, now() AT TIME ZONE 'America/New_York' + interval '1 hour');
INSERT INTO sessions VALUES (2, now() AT TIME ZONE 'America/New_York' + interval '1 hour');
SELECT ttl.purge('sessions'), on_disk('sessions');

-- What is refused.
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => 'America/NewYork');
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => '');
SELECT ttl.expire_index('sessions_expire_idx', 0, time_zone => repeat('x', 100));
SELECT ttl.expire_index('sessions_expire_idx', NULL, time_zone => 'Atlantis');
CREATE TABLE instants (id int, at timestamptz);
CREATE INDEX instants_at_idx ON instants (at);
SELECT ttl.expire_index('instants_at_idx', 0, time_zone => 'UTC');
SECURITY LABEL FOR ttl ON TABLE instants IS '{"rules": [{"index": "i", "expire_after_seconds": 0, "time_zone": "a b"}]}';
-- A zone that this server does not have: no row expires.
CREATE TABLE elsewhere (id int, at timestamp);
CREATE INDEX elsewhere_at_idx ON elsewhere (at);
SECURITY LABEL FOR ttl ON TABLE elsewhere IS
    '{"ts_column": null, "ttl_column": null, "rules": [{"index": "elsewhere_at_idx", "expire_after_seconds": 0, "time_zone": "Mars/Olympus"}]}';
INSERT INTO elsewhere VALUES (1, '2000-01-01');
SELECT seen('elsewhere'), rules, problems FROM ttl.tables WHERE relation = 'elsewhere'::regclass;

-- Every type, without a word where the zone is given.
SET timezone = 'UTC';
CREATE TABLE kinds (id int PRIMARY KEY, moment timestamp, day date, moments timestamp[], days date[]);
CREATE INDEX kinds_moment ON kinds (moment);
CREATE INDEX kinds_day ON kinds (day) WHERE id > 0;
CREATE INDEX kinds_moments ON kinds (ttl.earliest(moments));
CREATE INDEX kinds_days ON kinds (ttl.earliest(days));
SELECT ttl.expire_index('kinds_moment', 0, time_zone => 'Pacific/Kiritimati');
SELECT ttl.expire_index('kinds_day', 0, time_zone => 'Pacific/Kiritimati');
SELECT ttl.expire_index('kinds_moments', 0, time_zone => 'Pacific/Kiritimati');
SELECT ttl.expire_index('kinds_days', 0, time_zone => 'Pacific/Pago_Pago');
CREATE FUNCTION there(i interval) RETURNS timestamp LANGUAGE sql STABLE AS $$ SELECT now() AT TIME ZONE 'Pacific/Kiritimati' + i $$;
INSERT INTO kinds (id, moment) VALUES (1, there('-1 minute')), (2, there('1 minute'));
INSERT INTO kinds (id, day) VALUES (3, there('0')), (4, there('1 day')), (-3, there('0'));
INSERT INTO kinds (id, moments) VALUES (5, ARRAY[there('1 h'), there('-1 minute')]), (6, ARRAY[there('1 h'), NULL, there('1 minute')]);
INSERT INTO kinds (id, days) VALUES (7, ARRAY['2000-01-01', there('0')]), (8, ARRAY[there('1 day')::date]), (9, ARRAY['infinity'::date]);
SELECT seen('kinds'), on_disk('kinds');
SELECT ttl.purge('kinds'), on_disk('kinds');
EXPLAIN (COSTS OFF) SELECT * FROM kinds;

-- Daylight saving time: a row lives the longer way. In New York on 2026-03-08 clocks go from 02:00
-- to 03:00, on 2026-11-01 from 02:00 back to 01:00.
SET timezone = 'UTC';
SELECT t AS local, ttl.in_time_zone(t, 'America/New_York') AS instant
  FROM (VALUES (timestamp '2026-03-08 01:59:59.999999'), ('2026-03-08 02:00'), ('2026-03-08 02:30'), ('2026-03-08 03:00'), ('2026-03-08 03:30'),
               ('2026-11-01 00:59:59'), ('2026-11-01 01:00'), ('2026-11-01 01:30'), ('2026-11-01 02:00'), ('infinity'), ('-infinity'), (NULL)) AS t (t);
SELECT ttl.in_time_zone(date '2026-03-08', 'America/New_York') AS day, ttl.in_time_zone(date '2026-11-02', 'America/New_York') AS day,
       ttl.local_time('2026-11-01 05:30+00', 'America/New_York') AS first, ttl.local_time('2026-11-01 06:30+00', 'America/New_York') AS again,
       ttl.in_time_zone(timestamp '2026-01-01', 'No/Where') IS NULL AS unknown;
-- Partitions, inheritance, and a whole partition that is past.
CREATE TABLE logs (id int, at timestamp) PARTITION BY RANGE (at);
CREATE TABLE logs_old PARTITION OF logs FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE logs_new PARTITION OF logs DEFAULT;
CREATE INDEX logs_at_idx ON logs (at);
SELECT ttl.expire_index('logs_at_idx', 0, drop_partitions => true, time_zone => 'America/New_York');
INSERT INTO logs VALUES (1, '2019-12-31'), (2, now() AT TIME ZONE 'America/New_York' + interval '1 h'), (3, now() AT TIME ZONE 'America/New_York' - interval '1 h');
SELECT seen('logs'), seen('logs_new'), problems FROM ttl.tables WHERE relation = 'logs'::regclass;
CREATE TABLE heirs (id int, at timestamp);
CREATE TABLE heir () INHERITS (heirs);
CREATE INDEX heirs_at_idx ON heirs (at);
SELECT ttl.expire_index('heirs_at_idx', 0, time_zone => 'America/New_York');
INSERT INTO heir SELECT * FROM logs UNION ALL SELECT 4, now() AT TIME ZONE 'America/New_York' - interval '1 h';
SELECT seen('heirs'), seen('heir'), ttl.purge('heirs');
-- The guard.
CREATE TABLE many (id int, at timestamp);
INSERT INTO many SELECT i, now() AT TIME ZONE 'Asia/Tokyo' - interval '1 hour' FROM generate_series(1, 6000) AS i;
CREATE INDEX many_at_idx ON many (at);
SELECT ttl.expire_index('many_at_idx', 0, time_zone => 'America/New_York');
SELECT ttl.expire_index('many_at_idx', 0, time_zone => 'Asia/Tokyo');
SELECT ttl.expire_index('many_at_idx', 0, time_zone => 'Asia/Tokyo', confirm => true);
SELECT count(*) FROM many;
SET client_min_messages = warning;
DROP SCHEMA time_zones CASCADE;
