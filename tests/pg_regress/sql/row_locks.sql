-- C15: rows that this transaction has locked are there for its later statements, expired or
-- not; others are not.
SET client_min_messages = warning;
CREATE TABLE t (id integer PRIMARY KEY, v integer);
SELECT ttl.enable('t', 4);
CREATE TABLE dated (id integer PRIMARY KEY, v integer, expires timestamptz, temporary boolean);
CREATE INDEX dated_expires ON dated (expires) WHERE temporary;
SELECT ttl.expire_index('dated_expires', 0);
CREATE TABLE parted (id integer, _ts timestamptz NOT NULL DEFAULT ttl.current_ts()) PARTITION BY RANGE (_ts);
CREATE TABLE parted_all PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SELECT ttl.enable('parted', 4, ttl_column => NULL);
CREATE TABLE base (id integer);
CREATE TABLE heir () INHERITS (base);
SELECT ttl.enable('heir', 4);
CREATE TABLE plain (id integer PRIMARY KEY);
INSERT INTO plain VALUES (1);
CREATE TABLE child (t integer REFERENCES t);
CREATE VIEW v AS SELECT id FROM t;
CREATE INDEX covering ON t (id) INCLUDE (_ts, ttl);
CREATE FUNCTION find(integer) RETURNS integer LANGUAGE plpgsql AS
    $$DECLARE n integer; BEGIN SELECT id INTO n FROM t WHERE id = $1; RETURN n; END$$;

-- Plans that were made before.
PREPARE find AS SELECT id FROM t WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
INSERT INTO t VALUES (0, 0);
EXECUTE find(0);
SELECT find(0);
DELETE FROM t;

INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0);
INSERT INTO dated VALUES (1, 0, clock_timestamp() + interval '3 seconds', true),
    (2, 0, clock_timestamp() + interval '3 seconds', true);
INSERT INTO parted VALUES (1), (2);
INSERT INTO heir VALUES (1), (2);
BEGIN;
SELECT id FROM t WHERE id = 1 FOR UPDATE;
SELECT id FROM t WHERE id = 2 FOR KEY SHARE;
SELECT id FROM t WHERE id = 5 FOR NO KEY UPDATE;
SELECT t.id FROM t JOIN plain ON t.id = plain.id + 5 FOR SHARE OF t;
SAVEPOINT s;
SELECT id FROM t WHERE id = 3 FOR UPDATE;
ROLLBACK TO s;
SELECT id FROM dated WHERE id = 1 FOR UPDATE;
SELECT id FROM parted WHERE id = 1 FOR UPDATE;
SELECT id FROM heir WHERE id = 1 FOR UPDATE;
SELECT pg_sleep(4.1) IS NULL AS slept;
SELECT id FROM t ORDER BY id;
EXECUTE find(1);
EXECUTE find(4);
SELECT find(2), find(3);
SELECT id FROM v ORDER BY id;
SELECT id FROM dated;
SELECT id FROM parted;
SELECT id FROM base;
SELECT count(*) FROM t, plain WHERE t.id = plain.id;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT id FROM t WHERE id > 0 ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT id FROM t WHERE id = 1 FOR UPDATE;
-- A key of it is taken, and it can be referred to.
INSERT INTO t VALUES (1, 1), (3, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 10 RETURNING id, v;
INSERT INTO child VALUES (2);
MERGE INTO t USING plain ON t.id = plain.id + 4 WHEN MATCHED THEN UPDATE SET v = 7
    WHEN NOT MATCHED THEN INSERT VALUES (plain.id + 4, 8);
UPDATE dated SET v = 1, expires = 'infinity' RETURNING id;
DELETE FROM t WHERE id = 6 RETURNING id;
UPDATE parted SET id = 3 RETURNING id;
COMMIT;
-- What was written counts from then, what was only locked is gone.
SELECT id, v FROM t ORDER BY id;
SELECT id FROM dated;
SELECT id FROM parted;
SELECT id FROM heir;
SELECT id FROM t WHERE id = 2 FOR UPDATE;
-- What the transaction makes of a row counts as without a lock.
BEGIN;
SELECT id FROM dated WHERE id = 1 FOR UPDATE;
UPDATE dated SET expires = 'epoch' RETURNING id;
SELECT id FROM dated;
ROLLBACK;

-- In the plans of sessions that lock rows of the table, and no others.
EXPLAIN (COSTS off) SELECT v FROM dated WHERE v = 1;
\c -
EXPLAIN (COSTS off) SELECT v FROM dated WHERE v = 1;
SELECT ttl_internal.locked_here('t'::regclass, '(0,1)');
DROP TABLE child, t, dated, parted, base, heir, plain CASCADE;
DROP FUNCTION find;
