-- What a call or a statement must not do behind a user's back: delete rows that can be brought back, adopt a key, read a
-- column in two ways, lose a TTL index without a word.
CREATE SCHEMA taking_back;
SET search_path = taking_back;
CREATE FUNCTION on_disk(name regclass) RETURNS bigint LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE n bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s', name) INTO n;
    RETURN n;
END $$;
CREATE TABLE t (id int PRIMARY KEY, n int, at timestamptz);
SELECT ttl.enable('t', '365 days');
CREATE TABLE dated (id int PRIMARY KEY, at timestamptz);
SELECT ttl.expire_after('dated', 'at', '1 hour');
-- C23: as long as the table keeps what has expired
CREATE TABLE kept (id int PRIMARY KEY, n int);
SELECT ttl.enable('kept', 60);
SELECT ttl.set_option('kept', 'keep_expired', '1 day');
SET ttl.preserve_ts = on;
INSERT INTO kept (id, n, _ts) VALUES (1, 7, now() - interval '1 hour'), (2, 7, now());
RESET ttl.preserve_ts;
CREATE UNIQUE INDEX ON kept (n);
SELECT on_disk('kept');
SELECT ttl.purge('kept');
CREATE UNIQUE INDEX ON kept (n);

-- A key is no override.
CREATE TABLE keyed (id int PRIMARY KEY, seconds int, UNIQUE (seconds, id));
SELECT ttl.enable('keyed', '30 days', ttl_column => 'id');
SELECT ttl.enable('keyed', '30 days', ttl_column => 'seconds');

-- A column of numbers has one unit.
CREATE TABLE numbers (id int PRIMARY KEY, at bigint);
INSERT INTO numbers SELECT i, extract(epoch FROM now()) FROM generate_series(1, 10) AS i;
SELECT * FROM ttl.preview('numbers', 'at', '1 hour');
SELECT total, expired FROM ttl.preview('numbers', 'at', 3600, unit => 'seconds');
SELECT ttl.expire_after('numbers', 'at', '1 hour', unit => 'milliseconds', confirm => true);
SELECT ttl.expire_after('numbers', 'at', '1 hour', unit => 'seconds', revive_expired => true);
SELECT ttl.expire_index('taking_back.numbers_from_epoch_ms_idx', NULL, revive_expired => true);
SELECT ttl.expire_after('numbers', 'at', '1 hour', unit => 'seconds');
SELECT ttl.expire_after('numbers', 'at', '2 hours', unit => 'seconds');
SELECT count(*) FROM numbers;

-- A TTL index that is replaced; a table that is copied
CREATE INDEX new_idx ON numbers (ttl.from_epoch(at), id);
DROP INDEX numbers_from_epoch_idx;
ALTER TABLE dated DROP COLUMN at;
CREATE TABLE copied (LIKE t INCLUDING ALL);
SELECT relation, to_do FROM ttl.check() WHERE relation IS NOT NULL ORDER BY relation::text;
DROP TABLE copied;
-- The clock's column must be there in a statement, too.
CREATE TABLE named (id int) WITH (ttl.default_ttl = 60, ttl.ts_column = nosuch);
CREATE TABLE named (id int);
ALTER TABLE named SET (ttl.default_ttl = 60, ttl.ts_column = nosuch);
-- NULL is no table.
SELECT ttl.purge(NULL);
SELECT ttl.resume(NULL);
DROP SCHEMA taking_back CASCADE;
