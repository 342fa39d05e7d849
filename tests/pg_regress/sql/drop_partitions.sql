-- M11: the choice to drop whole partitions.
CREATE SCHEMA drop_partitions;
SET search_path = drop_partitions;
CREATE VIEW chosen AS
    SELECT relation, label::jsonb -> 'drop_partitions' AS drop_partitions, problems
      FROM ttl.tables JOIN pg_seclabel ON objoid = relation AND provider = 'ttl'
     WHERE relation::text NOT LIKE '%.%' ORDER BY relation::text;
CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts()) PARTITION BY RANGE (_ts);

-- chosen, and not chosen; a table that has TTL gets what is given
SELECT ttl.enable('p', 100);
SELECT * FROM chosen;
SELECT ttl.enable('p', 100, drop_partitions => true);
SELECT * FROM chosen;
SELECT ttl.set_default('p', 200);
SELECT ttl.disable('p');
SELECT * FROM chosen;
SELECT ttl.set_default('p', 300);
SELECT * FROM chosen;
SELECT ttl.enable('p', 100);
SELECT * FROM chosen;
DROP TABLE p;

-- no effect without a default, or a level partitioned by the time column
CREATE TABLE p (id int, _ts timestamptz NOT NULL DEFAULT ttl.current_ts()) PARTITION BY RANGE (_ts);
SELECT ttl.enable('p', drop_partitions => true);
SELECT * FROM chosen;
DROP TABLE p;
CREATE TABLE p (id int, other timestamptz) PARTITION BY RANGE (other);
SELECT ttl.enable('p', 100, drop_partitions => true);
SELECT * FROM chosen;
DROP TABLE p;
CREATE TABLE p (id int, "the time" timestamptz) PARTITION BY RANGE (id, "the time");
SELECT ttl.enable('p', 100, ts_column => 'the time', drop_partitions => true);
SELECT problems[1] FROM chosen;
-- it may come later, at any level
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0, MINVALUE) TO (9, MINVALUE) PARTITION BY LIST (id);
CREATE TABLE p2 PARTITION OF p1 DEFAULT PARTITION BY RANGE ("the time", id);
SELECT problems FROM chosen;
DROP TABLE p2;
SELECT problems[1] FROM chosen;
DROP TABLE p;

-- by a number: the column itself is the key, in a function of the extension's
CREATE FUNCTION of_numbers(type text, expression text, predicate text DEFAULT 'true') RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[];
BEGIN
    EXECUTE format('CREATE TABLE numbers (id int, c %s, d %1$s) PARTITION BY RANGE (c)', type);
    EXECUTE format('CREATE INDEX numbers_idx ON numbers (%s) WHERE %s', expression, predicate);
    PERFORM ttl.expire_index('numbers_idx', 60, drop_partitions => true);
    SELECT problems INTO found FROM ttl.tables WHERE relation = 'numbers'::regclass;
    DROP TABLE numbers;
    RETURN found;
END $$;
SELECT expression, of_numbers(type, expression, predicate)
  FROM (VALUES ('int', 'ttl.from_epoch(c)', 'true'), ('bigint', 'ttl.from_epoch(c)', 'true'), ('bigint', 'ttl.from_epoch_ms(c)', 'true'), ('bigint', 'ttl.from_epoch_us(c)', 'true'),
               ('bigint', 'ttl.from_epoch(c::float8)', 'true'), ('bigint', 'ttl.from_epoch(c + 1)', 'true'), ('bigint', 'ttl.from_epoch(d)', 'true'), ('bigint', 'ttl.from_epoch(c)', 'd > 1'),
               ('float8', 'ttl.from_epoch(c)', 'true'), ('numeric', 'ttl.from_epoch(c)', 'true'), ('int', 'to_timestamp(c)', 'true')) AS t (type, expression, predicate);

-- refused
CREATE TABLE t (id int);
SELECT ttl.enable('t', 100, drop_partitions => true);
\echo :SQLSTATE
SELECT count(*) AS columns FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0;
CREATE TABLE heir () INHERITS (t);
SELECT ttl.enable('t', 100, drop_partitions => true);
SELECT ttl.enable('t', 100);
SELECT ttl.enable('t', 100, drop_partitions => true);
SELECT ttl.enable('t', 100, drop_partitions => NULL);
\echo :SQLSTATE
-- by hand it can be written, and is shown
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100, "drop_partitions": true}';
SELECT unnest(problems) FROM chosen;
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": 100, "drop_partitions": 1}';
\echo :SQLSTATE
-- off, there is no problem
SECURITY LABEL FOR ttl ON TABLE t IS '{"default_ttl": null, "drop_partitions": true}';
SELECT problems FROM chosen;

SET client_min_messages = warning;
DROP SCHEMA drop_partitions CASCADE;
