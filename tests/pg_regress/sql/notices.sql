-- What a call says that it does beside what it was asked for, and what it refuses: W1 to W9. Read the expected output as a page of
-- the manual: each section has a table as applications have it, the call, and what comes.
CREATE SCHEMA notices;
SET search_path = notices;
SET timezone = 'America/New_York';
\set VERBOSITY default

--
-- 1. Columns that are there already
--
-- A column with the time of creation: ttl.enable() would overwrite it.
CREATE TABLE orders (id int PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
INSERT INTO orders SELECT i, now() - i * interval '20 hours' FROM generate_series(0, 9) AS i;
SELECT ttl.enable('orders', '7 days', ts_column => 'created_at');
SELECT ttl.expire_after('notices.orders', 'created_at', 604800);
-- A column with the time of the last modification: it is overwritten, and that is said.
CREATE TABLE visits (id int PRIMARY KEY, last_seen timestamptz);
INSERT INTO visits SELECT i, now() - i * interval '20 hours' FROM generate_series(0, 9) AS i;
SELECT ttl.enable('visits', '7 days', ts_column => 'last_seen', ttl_column => NULL);
-- A column with the end of each row, by its name, or by what is in it.
CREATE TABLE leases (id int PRIMARY KEY, valid_until timestamptz);
SELECT ttl.enable('leases', 60, ts_column => 'valid_until', ttl_column => NULL);
CREATE TABLE plans (id int PRIMARY KEY, at timestamptz);
INSERT INTO plans SELECT i, now() + i * interval '1 day' FROM generate_series(0, 3) AS i;
SELECT ttl.enable('plans', 60, ts_column => 'at', ttl_column => NULL);
SELECT ttl.expire_after('notices.plans', 'at', 0);
-- A misspelled one.
CREATE TABLE typed (id int, updated_at timestamptz);
SELECT ttl.enable('typed', 60, ts_column => 'udpated_at');
-- A column that happens to be called ttl.
CREATE TABLE dns (name text PRIMARY KEY, ttl int);
INSERT INTO dns SELECT 'host' || i, i * 1800 FROM generate_series(1, 100) AS i;
SELECT ttl.enable('dns', '30 days');
-- One with a default that is no time to live, and one with a default that is.
CREATE TABLE cache (key text PRIMARY KEY, ttl int NOT NULL DEFAULT 0);
SELECT ttl.enable('cache', 60);
ALTER TABLE cache ALTER COLUMN ttl DROP NOT NULL, ALTER COLUMN ttl DROP DEFAULT;
SELECT ttl.enable('cache', 60);
CREATE TABLE tokens (token text PRIMARY KEY, ttl int DEFAULT 3600);
SELECT ttl.enable('tokens', 60);
CREATE TABLE kept (id int, ttl int DEFAULT -1);
SELECT ttl.enable('kept', 60);

--
-- 2. New columns
--
-- The row type of the table is used: by a function that returns rows, one that takes an array of them, a column.
CREATE TABLE carts (id int PRIMARY KEY, owner text);
CREATE FUNCTION carts_of(text) RETURNS SETOF carts LANGUAGE sql AS 'SELECT id, owner FROM notices.carts WHERE owner = $1';
CREATE FUNCTION total(carts[]) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM unnest($1)';
CREATE TABLE former_carts (at timestamptz, cart carts);
SELECT ttl.enable('carts', '1 day');
DROP TABLE former_carts;
SELECT ttl.enable('carts', '1 day');
\set VERBOSITY terse
SELECT * FROM carts_of('ada');
\set VERBOSITY default
-- No columns are added by ttl.expire_after(), so that nothing is said.
CREATE TABLE codes (id int PRIMARY KEY, expires_at timestamptz);
CREATE FUNCTION codes_of(int) RETURNS SETOF codes LANGUAGE sql AS 'SELECT id, expires_at FROM notices.codes WHERE id = $1';
SELECT ttl.expire_after('codes', 'expires_at', 0);
SELECT * FROM codes_of(1);
-- Publications send the new columns, or do not; or deletions cannot be sent.
SET client_min_messages = error; -- wal_level
CREATE TABLE sent (id int PRIMARY KEY, what text);
CREATE TABLE sent_in_part (id int PRIMARY KEY, what text);
CREATE TABLE sent_without_key (id int, at timestamptz);
CREATE PUBLICATION regress_all FOR TABLE sent, sent_without_key;
CREATE PUBLICATION regress_some FOR TABLE sent_in_part (id, what);
RESET client_min_messages;
SELECT ttl.enable('sent', '1 day');
SELECT ttl.enable('sent_in_part', '1 day', ttl_column => NULL);
SELECT ttl.expire_after('sent_without_key', 'at', '1 day');
DROP PUBLICATION regress_all, regress_some;

--
-- 3. Foreign keys
--
CREATE TABLE users (id int PRIMARY KEY, email text UNIQUE, seen timestamptz);
CREATE TABLE posts (id int PRIMARY KEY, user_id int NOT NULL CONSTRAINT posts_user_fk REFERENCES users);
CREATE TABLE likes (post_id int, user_id int CONSTRAINT likes_user_fk REFERENCES users ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE mails (id int, user_id int REFERENCES users ON DELETE CASCADE);
SELECT ttl.expire_after('users', 'seen', '1 day');
-- A table that refers to itself: the last row keeps all former ones.
CREATE TABLE states (id int PRIMARY KEY, old_id int CONSTRAINT states_old_fk REFERENCES states, at timestamptz);
SELECT ttl.expire_after('states', 'at', '1 day');
-- A row that is kept so, and its other key.
INSERT INTO users VALUES (1, 'ada@example.com', now() - interval '2 days');
INSERT INTO users VALUES (2, 'bob@example.com', now());
INSERT INTO posts VALUES (1, 2);
UPDATE users SET seen = now() - interval '2 days' WHERE id = 2;
INSERT INTO users VALUES (3, 'ada@example.com', now());
INSERT INTO users VALUES (4, 'bob@example.com', now());

--
-- 4. Seconds, units, time zones
--
-- None, or none that can be read.
CREATE TABLE without (id int);
SELECT ttl.enable('without');
SELECT ttl.set_default('without', 'abc');
SELECT ttl.set_default('without', 0);
SELECT ttl.set_default('without', '1 month');
-- Options that are misspelled, or of a table that has no time to live.
CREATE TABLE x (id int) WITH (ttl = 60);
CREATE TABLE x (id int) WITH (ttl.defualt = 60);
CREATE TABLE x (id int) WITH (ttl.default_ttl = 'abc');
CREATE TABLE x (id int) WITH (ttl.hidden = false);
-- Columns of other types.
CREATE TABLE types (id int PRIMARY KEY, s int, at timestamptz, local timestamp, words text, flag boolean);
SELECT ttl.enable('types', 60, ts_column => 's');
SELECT ttl.enable('types', 60, ts_column => 'local');
SELECT ttl.expire_after('types', 's', 0);
SELECT ttl.expire_after('types', 's', 0, unit => 'minutes');
SELECT ttl.expire_after('types', 'at', 0, unit => 'seconds');
SELECT ttl.expire_after('types', 'words', 0);
SELECT ttl.expire_after('types', 'flag', 0);
SELECT ttl.expire_after('types', 'nothing', 0);
SELECT ttl.expire_after('types', 'local', 0);
SELECT ttl.expire_after('types', 'local', 0, time_zone => 'Atlantis');
SELECT ttl.expire_after('types', 'at', 0, time_zone => 'UTC');
-- The same of indexes.
CREATE INDEX types_s ON types (s);
CREATE INDEX types_words ON types (words);
CREATE INDEX types_upper ON types (upper(words));
CREATE INDEX types_two ON types (at, id);
CREATE INDEX types_brin ON types USING brin (at);
SELECT ttl.expire_index('types_s', 0);
SELECT ttl.expire_index('types_words', 0);
SELECT ttl.expire_index('types_upper', 0);
SELECT ttl.expire_index('types_two', 0);
SELECT ttl.expire_index('types_brin', 0);
CREATE FUNCTION mine(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE INDEX types_mine ON types (mine(at));
SELECT ttl.expire_index('types_mine', 0);

--
-- 5. An archive with a key
--
CREATE TABLE jobs (id int PRIMARY KEY, what text);
SELECT ttl.enable('jobs', 60);
CREATE TABLE jobs_archive (LIKE jobs INCLUDING INDEXES);
SELECT ttl.archive_to('jobs', 'jobs_archive');
ALTER TABLE jobs_archive DROP CONSTRAINT jobs_archive_pkey;
SELECT ttl.archive_to('jobs', 'jobs_archive');
-- A key that does not come twice.
ALTER TABLE jobs_archive ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ADD UNIQUE (id, _ts);
SELECT ttl.archive_to('jobs', 'jobs_archive');
-- what a unique index includes is no part of its key
CREATE UNIQUE INDEX "Covering" ON jobs_archive (id) INCLUDE (_ts);
SELECT ttl.archive_to('jobs', 'jobs_archive');
DROP INDEX "Covering";
CREATE UNIQUE INDEX "Upper" ON jobs_archive (upper(what));
SELECT ttl.archive_to('jobs', 'jobs_archive');

--
-- 6. Most of a table, and what a change deletes first
--
CREATE TABLE logs (id int, at timestamptz);
INSERT INTO logs SELECT i, now() - interval '1 day' FROM generate_series(1, 6000) AS i;
SELECT ttl.expire_after('logs', 'at', '1 hour');
SELECT ttl.expire_after('notices.logs', 'at', 3600, confirm => true);
CREATE TABLE past (id int);
SELECT ttl.enable('past', 60);
SET ttl.preserve_ts = on;
INSERT INTO past (id, _ts) SELECT i, now() - interval '1 day' FROM generate_series(1, 7) AS i;
RESET ttl.preserve_ts;
SELECT ttl.set_default('past', 3600);

--
-- 7. UPDATEs that find no room in their block
--
CREATE TABLE counters (id int PRIMARY KEY, n int);
INSERT INTO counters SELECT i, 0 FROM generate_series(1, 2000) AS i;
CREATE TABLE roomy (LIKE counters INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO roomy SELECT * FROM counters;
CREATE TABLE asked (LIKE counters INCLUDING ALL);
INSERT INTO asked SELECT * FROM counters;
UPDATE counters SET n = 1;
UPDATE roomy SET n = 1;
UPDATE asked SET n = 1;
SELECT pg_stat_force_next_flush();
SELECT ttl.enable('counters', 60);
SELECT ttl.enable('roomy', 60);
-- By an index of the time of the last modification every UPDATE writes to all.
ALTER TABLE asked ADD COLUMN changed timestamptz DEFAULT now();
CREATE INDEX ON asked (changed);
SELECT ttl.enable('asked', 60, ts_column => 'changed', confirm => true);
SELECT ttl.disable('asked', revive_expired => true);
SELECT ttl.enable('asked', 60, index => 'btree');

--
-- 8. Numbers that are no times to live, other relations, and NULL
--
CREATE TABLE numbered (id int PRIMARY KEY, ttl serial);
SELECT ttl.enable('numbered', 60);
CREATE TABLE counted (id int PRIMARY KEY, "Position" int GENERATED BY DEFAULT AS IDENTITY);
SELECT ttl.enable('counted', 60, ttl_column => 'Position');
CREATE TABLE computed (id int PRIMARY KEY, ttl int DEFAULT (60 * 60));
SELECT ttl.enable('computed', 60);
CREATE TABLE empty (id int PRIMARY KEY, ttl int DEFAULT NULL);
SELECT ttl.enable('empty', 60);
-- A misspelled override is a new column.
CREATE TABLE misspelled (id int PRIMARY KEY, life int);
SELECT ttl.enable('misspelled', 60, ttl_column => 'lfie');
-- An override that comes later does not count.
CREATE TABLE later (id int PRIMARY KEY);
SELECT ttl.enable('later', 60, ttl_column => NULL);
ALTER TABLE later ADD COLUMN ttl int;
SELECT ttl.disable('notices.later', drop_columns => true, revive_expired => true);
SELECT ttl.enable('notices.later', 60, ttl_column => 'ttl');
CREATE VIEW seen AS SELECT * FROM computed;
SELECT ttl.purge('seen');
SELECT ttl.reset_stats('seen');
SELECT ttl.reset_stats(0);
CREATE TABLE whole (id int) PARTITION BY LIST (id);
CREATE TABLE part PARTITION OF whole DEFAULT;
SELECT ttl.purge('part');
SELECT ttl.purge(NULL);

--
-- 9. What is left after DROP EXTENSION
--
SELECT current_database() AS db \gset
CREATE DATABASE regress_dropped;
\c regress_dropped
CREATE EXTENSION ttl_ext;
CREATE TABLE t (id int PRIMARY KEY, what text);
SELECT ttl.enable('t', 60);
INSERT INTO t (id) VALUES (1);
DROP EXTENSION ttl_ext;
DROP EXTENSION ttl_ext CASCADE;
INSERT INTO t (id) VALUES (2);
SELECT id, _ts <= now(), ttl FROM t ORDER BY id;
-- Its options are unknown in a database without the extension.
CREATE TABLE u (id int) WITH (ttl.default_ttl = 5);
\c :db
DROP DATABASE regress_dropped;
SET client_min_messages = warning;
DROP SCHEMA notices CASCADE;
