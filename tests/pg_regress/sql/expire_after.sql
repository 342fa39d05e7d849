-- M15: ttl.expire_after(): so many seconds after the time in a column, whatever its type.
CREATE SCHEMA expire_after;
SET search_path = expire_after;
SET timezone = 'America/New_York';
\set VERBOSITY default
CREATE FUNCTION seen(tab regclass) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE ids int[];
BEGIN EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s', tab) INTO ids; RETURN ids; END $$;
CREATE TABLE events (id int PRIMARY KEY, "At" timestamptz, local timestamp, day date, s int, ms bigint, us numeric, d double precision,
                     words text, flag boolean, times timestamptz[]);
INSERT INTO events (id, "At", local, day, s, ms, us, d, words)
    SELECT i, at, at, at, extract(epoch FROM at), extract(epoch FROM at) * 1000, extract(epoch FROM at) * 1000000, extract(epoch FROM at), at::text
      FROM generate_series(1, 6) AS i, LATERAL (SELECT now() - i * interval '240 hours' + interval '1 hour') AS t (at);
INSERT INTO events (id) VALUES (0);
-- First look, then do it.
SELECT total, expired FROM ttl.preview('events', 'At', '30 days');
SELECT ttl.expire_after('events', 'At', '30 days');
SELECT seen('events'), rules FROM ttl.tables WHERE relation = 'events'::regclass;
-- Again: the same index, with other seconds; months and years have days.
SELECT total, expired FROM ttl.preview('events', 'At', '1 month 12 hours');
SELECT ttl.expire_after('events', 'At', '1 month 12 hours', revive_expired => true);
SELECT ttl.expire_after('events', 'At', interval '1 year', revive_expired => true);
SELECT seen('events');
\d events
-- Local time.
SELECT ttl.expire_after('events', 'local', '20 days');
SELECT ttl.expire_after('events', 'day', '10 days', time_zone => 'UTC');
SELECT total, expired FROM ttl.preview('events', 'local', '10 days', time_zone => 'Asia/Tokyo');
SELECT seen('events');
-- Numbers.
SELECT ttl.expire_after('events', 's', 0);
SELECT ttl.expire_after('events', 's', '5 years', unit => 'seconds');
SELECT ttl.expire_after('events', 'ms', '5 years', unit => 'ms');
SELECT ttl.expire_after('events', 'us', '5 years', unit => 'microseconds');
SELECT ttl.expire_after('events', 'd', '5 years', unit => 's');
SELECT unit, total, expired FROM (VALUES ('s', 's'), ('ms', 'ms'), ('us', 'us'), ('d', 's')) AS c (name, unit), ttl.preview('events', name, '40 days', unit);
SELECT rule->>'name' AS name, rule->'key' AS key, rule->'timeZone' AS zone FROM ttl.tables, jsonb_array_elements(rules) AS rule WHERE relation = 'events'::regclass;
SELECT ttl.expire_after('events', 'ms', '10 days', unit => 'milliseconds');
SELECT seen('events');
-- An index that is there is used; one that does not hold all rows is not.
CREATE TABLE large (id int, made int);
CREATE INDEX part_of_it ON large (ttl.from_epoch(made)) WHERE id > 0;
CREATE INDEX CONCURRENTLY built_before ON large (ttl.from_epoch(made));
SELECT ttl.expire_after('large', 'made', '1 day', unit => 'seconds');
SELECT count(*) FROM pg_index WHERE indrelid = 'large'::regclass;
-- concurrently: it builds no index, and takes no lock for which writers wait.
CREATE TABLE busy (id int, at timestamptz, made bigint);
SELECT ttl.expire_after('busy', 'at', '1 day', concurrently => true);
CREATE INDEX CONCURRENTLY ON expire_after.busy (at);
SELECT ttl.expire_after('expire_after.busy', 'at', 86400, concurrently => true);
SELECT ttl.expire_after('busy', 'made', 60, unit => 'ms', concurrently => true);
-- The guard.
INSERT INTO large SELECT i, 0 FROM generate_series(1, 6000) AS i;
SELECT ttl.expire_index('built_before', NULL, revive_expired => true);
SELECT ttl.expire_after('large', 'made', '1 day', unit => 'seconds');
SELECT ttl.expire_after('large', 'made', 86400, unit => 'seconds', confirm => true);
-- What is refused.
SELECT ttl.expire_after('events', 'nothing', 0);
SELECT ttl.expire_after('events', 'words', 0);
SELECT ttl.expire_after('events', 'flag', 0);
SELECT ttl.expire_after('events', 'times', 0);
SELECT ttl.expire_after('events', 'At', 0, unit => 's');
SELECT ttl.expire_after('events', 'At', 0, time_zone => 'UTC');
SELECT ttl.expire_after('events', 's', 0, unit => 'minutes');
SELECT ttl.expire_after('events', 'At', -1);
SELECT ttl.expire_after('events', 'At', NULL);
SELECT ttl.expire_after(NULL, 'At', 0);
SELECT ttl.expire_after('events', 'local', 0, time_zone => 'Atlantis');
SELECT ttl.create_index('events', '{"s": 1}', '{"expireAfterSeconds": 0}');
CREATE VIEW v AS TABLE events;
SELECT ttl.expire_after('v', 'At', 0);
SELECT ttl.preview('v', 'At', 0);
CREATE ROLE regress_expire_after;
GRANT USAGE ON SCHEMA expire_after TO regress_expire_after;
SET ROLE regress_expire_after;
SELECT ttl.expire_after('events', 'At', 0);
SELECT ttl.preview('events', 'At', 0);
RESET ROLE;
GRANT SELECT ON events TO regress_expire_after;
SET ROLE regress_expire_after;
SELECT total, expired FROM ttl.preview('events', 'At', '30 days');
RESET ROLE;
-- Partitions.
CREATE TABLE logs (id int, clock int) PARTITION BY RANGE (clock);
CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (1000);
CREATE TABLE logs_2 PARTITION OF logs DEFAULT;
INSERT INTO logs VALUES (1, 5), (2, extract(epoch FROM now()));
SELECT ttl.expire_after('logs', 'clock', '1 day', unit => 'seconds');
SELECT seen('logs'), ttl.purge('logs');
ALTER TABLE logs ADD at timestamptz;
SELECT ttl.expire_after('logs', 'at', '1 day', concurrently => true);
SET client_min_messages = warning;
REVOKE SELECT ON events FROM regress_expire_after;
DROP SCHEMA expire_after CASCADE;
DROP ROLE regress_expire_after;
