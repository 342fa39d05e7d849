-- C1: every write stamps the row; clients do not set the clock.
CREATE SCHEMA clock;
SET search_path = clock;
CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0);
SELECT ttl.enable('t', 3600);
CREATE VIEW stamped AS SELECT id, n, _ts > now() - interval '10 s' AS fresh, _ts = date_trunc('second', _ts) AS whole FROM t ORDER BY id;
CREATE PROCEDURE age() LANGUAGE plpgsql SET ttl.preserve_ts = on AS $$ BEGIN UPDATE clock.t SET _ts = now() - interval '30 min'; END $$;

-- INSERT, of one row, of several, from a query, with a time of its own or DEFAULT
INSERT INTO t VALUES (1);
INSERT INTO t (id, _ts) VALUES (2, '2000-01-01'), (3, '2100-01-01'), (4, DEFAULT);
INSERT INTO t (id, _ts) SELECT 5, '2000-01-01'::timestamptz;
INSERT INTO t (_ts, id) VALUES (NULL, 6);
INSERT INTO t SELECT 7, 1 RETURNING id, _ts > now() - interval '10 s' AS fresh;
SELECT * FROM stamped;

-- UPDATE, also of _ts itself, with FROM, of several columns from a sub-query
BEGIN; CALL age(); SELECT bool_or(fresh) FROM stamped;
UPDATE t SET n = 1 WHERE id = 1;
UPDATE t SET _ts = '2000-01-01' WHERE id = 2;
UPDATE t SET n = x.n FROM t x WHERE x.id = 1 AND t.id = 3;
UPDATE t SET (n, ttl) = (SELECT 5, 100) WHERE id = 4;
UPDATE t SET (_ts, n) = ('2000-01-01', 6) WHERE id = 5;
UPDATE t SET id = id WHERE id = 6;
SELECT * FROM stamped; ROLLBACK;

-- ON CONFLICT DO UPDATE
BEGIN; CALL age();
INSERT INTO t (id) VALUES (1), (2) ON CONFLICT (id) DO UPDATE SET n = t.n + 10;
INSERT INTO t (id) VALUES (3) ON CONFLICT (id) DO UPDATE SET _ts = '2000-01-01';
INSERT INTO t (id) VALUES (4) ON CONFLICT DO NOTHING;
SELECT * FROM stamped; ROLLBACK;

-- MERGE
BEGIN; CALL age();
MERGE INTO t USING (VALUES (1), (2), (8)) AS s (i) ON id = i
    WHEN MATCHED AND i = 1 THEN UPDATE SET n = 5
    WHEN MATCHED THEN UPDATE SET _ts = '2000-01-01', n = 6
    WHEN NOT MATCHED THEN INSERT (id, _ts) VALUES (i, '2000-01-01');
SELECT * FROM stamped; ROLLBACK;

-- data-modifying WITH
BEGIN; CALL age();
WITH a AS (UPDATE t SET n = 1 WHERE id = 1 RETURNING id), b AS (INSERT INTO t (id, _ts) VALUES (9, '2000-01-01') RETURNING id)
UPDATE t SET n = 3 WHERE id = 3;
SELECT * FROM stamped; ROLLBACK;

-- through views, rules, and functions
CREATE VIEW v AS SELECT id, n FROM t WHERE id < 5;
CREATE VIEW with_rule AS SELECT id, n FROM t;
CREATE RULE upd AS ON UPDATE TO with_rule DO INSTEAD UPDATE t SET n = NEW.n WHERE id = OLD.id;
CREATE FUNCTION set_n(int) RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE clock.t SET n = 9 WHERE id = $1; END';
BEGIN; CALL age();
UPDATE v SET n = 1 WHERE id = 1;
UPDATE with_rule SET n = 2 WHERE id = 2;
SELECT set_n(3);
INSERT INTO v VALUES (0);
SELECT * FROM stamped WHERE fresh; ROLLBACK;

-- prepared statements, also made before the table got its time to live
CREATE TABLE late (id int, n int);
INSERT INTO late VALUES (1, 1);
PREPARE upd AS UPDATE late SET n = n + 1;
EXECUTE upd;
SELECT ttl.enable('late', 100);
SET ttl.preserve_ts = on;
UPDATE late SET _ts = now() - interval '50 s';
RESET ttl.preserve_ts;
EXECUTE upd;
SELECT n, _ts > now() - interval '10 s' AS fresh FROM late;

-- ttl.preserve_ts keeps what the statement gives, and what it does not give
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts) VALUES (20, now() - interval '20 min');
UPDATE t SET n = 20 WHERE id = 20;
INSERT INTO t (id) VALUES (21);
RESET ttl.preserve_ts;
SELECT * FROM stamped WHERE id >= 20;

-- the time of a statement and of a snapshot
BEGIN;
SELECT ttl.now() = statement_timestamp() AS statement, ttl.now() > now() AS later;
SELECT ttl.now() = statement_timestamp() AS statement, ttl.current_ts() BETWEEN date_trunc('second', statement_timestamp()) AND clock_timestamp() AS current;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT ttl.now() = now() AS transaction;
SELECT ttl.now() = now() AS transaction, ttl.current_ts() BETWEEN date_trunc('second', statement_timestamp()) AND clock_timestamp() AS current;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT ttl.now() = now() AS transaction;
COMMIT;

-- a long function or procedure writes rows that are new, not as old as its call
DO $$
DECLARE before timestamptz; n int;
BEGIN
    PERFORM pg_sleep(1.1);
    before := clock_timestamp();
    INSERT INTO clock.t (id) VALUES (40);
    UPDATE clock.t SET n = 1 WHERE id = 1;
    INSERT INTO clock.t (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET n = 1;
    SELECT count(*) INTO n FROM clock.t WHERE id IN (1, 2, 40) AND _ts >= date_trunc('second', before);
    RAISE NOTICE '% of 3 rows are new', n;
END $$;
-- and one that commits sees rows expire while it runs
CREATE TABLE brief (id int);
SELECT ttl.enable('brief', 1);
DO $$
DECLARE at_first int; at_last int;
BEGIN
    INSERT INTO clock.brief VALUES (1);
    SET LOCAL ttl.show_expired = on;
    SELECT count(*) INTO at_first FROM clock.brief;
    COMMIT;
    PERFORM pg_sleep(2.1);
    COMMIT;
    SELECT count(*) INTO at_last FROM clock.brief;
    RAISE NOTICE '%, then %', at_first, at_last;
END $$;
-- an expression that PL/pgSQL keeps for the whole transaction does not keep the time
CREATE FUNCTION stamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RETURN ttl.current_ts(); END';
BEGIN;
SELECT stamp() AS first \gset
SELECT pg_sleep(1.1);
SELECT stamp() > :'first' AS later;
COMMIT;
-- one time for all rows of an execution
INSERT INTO t (id) SELECT 50 + i FROM generate_series(1, 3) i WHERE pg_sleep(0.6) IS NOT NULL;
SELECT count(DISTINCT _ts) FROM t WHERE id > 50;
DELETE FROM t WHERE id >= 40;

-- the clock is kept while TTL is off, so that turning it on again takes no live row
BEGIN; CALL age();
SELECT ttl.disable('t');
UPDATE t SET n = 1 WHERE id = 1;
SELECT * FROM stamped WHERE fresh; ROLLBACK;

-- C1 triggers see the stamp; a BEFORE trigger of the owner has the last word
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% fresh: %', TG_OP, NEW._ts > now() - interval '10 s'; RETURN NEW; END $$;
CREATE TRIGGER tell BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO t (id, _ts) VALUES (30, '2000-01-01');
UPDATE t SET n = 1 WHERE id = 30;

SET client_min_messages = warning;
DROP SCHEMA clock CASCADE;
