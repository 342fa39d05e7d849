-- C6: COPY FROM into a table of which rows are expired, or come expired.
CREATE SCHEMA free_keys_copy;
SET search_path = free_keys_copy;
SELECT current_setting('data_directory') || '/free_keys_copy.copy' AS file \gset
CREATE TABLE t (a int PRIMARY KEY, b text, c text, UNIQUE (b, c));
SELECT ttl.enable('t', 3600);
-- so many expired rows that they are not all removed beforehand
CREATE FUNCTION refill() RETURNS void LANGUAGE sql SET ttl.preserve_ts = on AS $$
    TRUNCATE t;
    INSERT INTO t (a, b, c, _ts) SELECT i, 'old ' || i, 'old', now() - interval '1 day' FROM generate_series(1, 4000) i;
    INSERT INTO t (a, b, c) VALUES (5000, 'live', 'live'), (5001, NULL, 'live');
$$;
CREATE FUNCTION on_disk() RETURNS TABLE (what text, n bigint, sum bigint) LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT concat_ws(' ', c, CASE WHEN _ts < now() - interval '1 h' THEN 'EXPIRED' END), count(*), sum(a)
      FROM t GROUP BY 1 ORDER BY 1
$$;

-- other keys than those of the expired rows, before, after and between them
SELECT refill();
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(6000, 8999) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT what, n FROM on_disk() WHERE what = 'new';
-- the expired ones are deleted once as many rows have come as that costs
SELECT count(*) AS left FROM on_disk() WHERE what = 'old EXPIRED';
-- the same keys: by the first constraint, by the second, in another order
SELECT refill();
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(1, 3000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT * FROM on_disk() WHERE what = 'new';
SELECT count(*) FROM t WHERE a BETWEEN 1 AND 4000;
SELECT refill();
COPY (SELECT 10000 - i, 'old ' || i, 'old' FROM generate_series(4000, 2000, -1) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*), min(a), max(a) FROM t WHERE c = 'old';
-- half of the rows are in the way, keys at random; some lack a part of a key
SELECT refill();
COPY (SELECT (i * 37) % 8009, CASE WHEN i % 3 > 0 THEN 'new ' || i END, 'new' FROM generate_series(1, 4000) i WHERE (i * 37) % 8009 NOT IN (5000, 5001)) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*), sum(a) FROM t WHERE c = 'new';
-- live rows are in the way as ever, in the table and in the data
SELECT refill();
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(3500, 5000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
COPY (SELECT i % 1500, 'new ' || i, 'new' FROM generate_series(1, 1501) i) TO :'file';
COPY t (a, b, c) FROM :'file';
COPY (SELECT i, CASE WHEN i > 1990 THEN 'new' ELSE 'new ' || i END, 'new' FROM generate_series(1, 2000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT what, n FROM on_disk() WHERE what = 'new';

-- rows that come expired: they stay, unless a later row has one of their keys
TRUNCATE t;
COPY t (a, b, c, _ts) FROM STDIN (DELIMITER ',', NULL '');
1,one,first,2000-01-01
2,two,first,2000-01-01
1,one,second,2000-01-01
3,two,first,2100-01-01
4,one,second,2100-01-01
5,,null,2000-01-01
6,,null,2000-01-01
5,,null,2100-01-01
7,seven,alone,2000-01-01
1,eight,third,2000-01-01
1,nine,third,2100-01-01
\.
SELECT a, b, c FROM t ORDER BY a;
SELECT * FROM on_disk();
-- many of them
TRUNCATE t;
COPY (SELECT i % 1500, 'b ' || i % 1400, 'c', CASE WHEN i < 4500 THEN '2000-01-01' ELSE '2100-01-01' END FROM generate_series(1, 5000) i) TO :'file';
COPY t (a, b, c, _ts) FROM :'file';
SELECT count(*), min(a), max(a) FROM t;
SELECT what, n FROM on_disk();
-- by the override
TRUNCATE t;
COPY (SELECT 1, 'b', 'c', now() - interval '1 min', 30 UNION ALL SELECT 1, 'b', 'c', now() - interval '1 min', 600) TO :'file';
COPY t (a, b, c, _ts, ttl) FROM :'file';
SELECT a, ttl FROM t;
-- one that is live when it comes is in the way of those that come expired
COPY (SELECT 1, 'x', 'y', date '2000-01-01') TO :'file';
COPY t (a, b, c, _ts) FROM :'file';

-- NULLS NOT DISTINCT
CREATE TABLE n (a int UNIQUE NULLS NOT DISTINCT, v text);
SELECT ttl.enable('n', 3600);
COPY (SELECT NULL::int, 'row ' || i, CASE WHEN i < 5 THEN '2000-01-01' ELSE '2100-01-01' END FROM generate_series(1, 5) i) TO :'file';
COPY n (a, v, _ts) FROM :'file';
SELECT * FROM (SELECT a, v FROM n) live;
SELECT count(*) FROM n;

-- other statements within COPY: a trigger that writes to the table, a function that makes
-- PostgreSQL forget what it knows of the table, and one that fails
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO t (a, b, c) VALUES (NEW.a - 1000, 'by trigger', NEW.b);
    RETURN NULL;
END $$;
CREATE FUNCTION disturb(a int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    IF a % 300 = 0 THEN ANALYZE t; END IF;
    IF a % 700 = 0 THEN
        BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
    END IF;
    RETURN true;
END $$;
SELECT refill();
CREATE TRIGGER again AFTER INSERT ON t FOR EACH ROW WHEN (NEW.a BETWEEN 1990 AND 2000) EXECUTE FUNCTION again();
ALTER TABLE t ADD CONSTRAINT disturb CHECK (disturb(a));
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(1001, 4000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*), sum(a) FROM t WHERE c = 'new';
SELECT count(*), sum(a) FROM t WHERE b = 'by trigger';
DROP TRIGGER again ON t;
-- what fails leaves nothing behind, and the trigger goes on
SELECT refill();
COPY (SELECT CASE WHEN i = 3000 THEN 5000 ELSE i END, 'new ' || i, 'new' FROM generate_series(1001, 3000) i) TO :'file';
DO $$ BEGIN
    EXECUTE format('COPY t (a, b, c) FROM %L', current_setting('data_directory') || '/free_keys_copy.copy');
EXCEPTION WHEN unique_violation THEN RAISE NOTICE '%', SQLERRM;
END $$;
INSERT INTO t (a, b, c) VALUES (4000, 'new', 'new');
INSERT INTO t (a, b, c) VALUES (1, 'old 3999', 'old') RETURNING a;
SELECT * FROM on_disk() WHERE what <> 'old EXPIRED';
-- a volatile default
ALTER TABLE t DROP CONSTRAINT disturb, ADD r float DEFAULT random();
SELECT refill();
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(1, 4000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*) FROM t WHERE c = 'new';

-- the same where ANALYZE changes the table's row in pg_class after the first rows have come
CREATE TABLE d (a int PRIMARY KEY, b text);
SELECT ttl.enable('d', 3600);
SET ttl.preserve_ts = on;
INSERT INTO d (a, b, _ts) SELECT i, 'old', now() - interval '1 day' FROM generate_series(1, 4000) i;
RESET ttl.preserve_ts;
CREATE FUNCTION analyze_d(a int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    IF a % 300 = 0 THEN ANALYZE d; END IF;
    RETURN true;
END $$;
ALTER TABLE d ADD CHECK (analyze_d(a)) NOT VALID;
COPY (SELECT i, 'new' FROM generate_series(1001, 4000) i) TO :'file';
COPY d (a, b) FROM :'file';
SELECT count(*), sum(a) FROM d WHERE b = 'new';

-- partitions
CREATE TABLE p (a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2000);
CREATE TABLE p2 (b text, gone int, a int NOT NULL);
ALTER TABLE p2 DROP gone;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (2000) TO (9000);
SELECT ttl.enable('p', 3600);
SET ttl.preserve_ts = on;
INSERT INTO p (a, b, _ts) SELECT i, 'old', now() - interval '1 day' FROM generate_series(1, 4000) i;
RESET ttl.preserve_ts;
COPY (SELECT i, 'new' FROM generate_series(1001, 5000) i) TO :'file';
COPY p (a, b) FROM :'file';
SELECT tableoid::regclass, count(*), sum(a) FROM p GROUP BY 1 ORDER BY 1;
COPY (SELECT 6000 + i % 700, 'given', CASE WHEN i <= 2100 THEN '2000-01-01' ELSE '2100-01-01' END FROM generate_series(1, 2800) i) TO :'file';
COPY p (a, b, _ts) FROM :'file';
SELECT count(*), sum(a) FROM p WHERE b = 'given';
COPY p2 (a, b, _ts) FROM :'file';
INSERT INTO p VALUES (500, 'again') RETURNING a;

-- keys that are evaluated, and DELETE triggers
CREATE UNIQUE INDEX by_expression ON t (lower(b)) WHERE b IS NOT NULL;
SELECT refill();
COPY (SELECT 10000 + i, 'OLD ' || i, 'new' FROM generate_series(1, 4000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*) FROM t WHERE c = 'new';
DROP INDEX by_expression;
CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF OLD.a % 1000 = 0 THEN RAISE NOTICE '% is gone', OLD.a; END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone();
SELECT refill();
COPY (SELECT i, 'new ' || i, 'new' FROM generate_series(1, 4000) i) TO :'file';
COPY t (a, b, c) FROM :'file';
SELECT count(*) FROM t WHERE c = 'new';
DROP TRIGGER gone ON t;

-- INSERT of many rows: a part of them may be removed first
SELECT refill();
INSERT INTO t (a, b, c) SELECT i, 'new ' || i, 'new' FROM generate_series(3000, 4999) i;
SELECT count(*) FROM t WHERE c = 'new';
SELECT refill();
INSERT INTO t (a, b, c) SELECT i, 'new ' || i, 'new' FROM generate_series(20001, 40000) i;
SELECT * FROM on_disk();

SET client_min_messages = warning;
DROP SCHEMA free_keys_copy CASCADE;
