-- C6: a statement that writes many rows examines the table, and looks up no key while no row is expired. What it writes
-- is what it would be if each key were looked up.
CREATE SCHEMA free_keys_many;
SET search_path = free_keys_many;
CREATE TABLE t (id int PRIMARY KEY, n int);
SELECT ttl.enable('t', 3600);
-- The rows of a statement, in order. The planner expects few, so that only the statement itself can find out. `expired`
-- is the part of them that come expired, from the first or from the 1500th.
CREATE FUNCTION incoming(seed int, expired float8, after int) RETURNS TABLE (n int, id int, age interval) LANGUAGE sql ROWS 10 AS $$
    SELECT n, 1 + abs(hashint4(n * 31 + seed)) % 4000,
           CASE WHEN n > after AND abs(hashint4(n * 17 + seed)) % 1000 < expired * 1000 THEN '2 hours'::interval ELSE '10 s' END
      FROM generate_series(1, 9000) AS n ORDER BY n
$$;
-- What is there before: live rows, and expired ones with keys that come and that do not.
CREATE FUNCTION fill(live int, expired int) RETURNS void LANGUAGE sql SET ttl.preserve_ts = on AS $$
    TRUNCATE t;
    INSERT INTO t (id, n, _ts) SELECT i, 0, now() - interval '10 s' FROM generate_series(1, live) AS i;
    INSERT INTO t (id, n, _ts) SELECT i, 0, now() - interval '1 day' FROM generate_series(3901, 3900 + expired) AS i;
$$;
CREATE FUNCTION expired_before() RETURNS bigint LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT count(*) FROM t WHERE n = 0 AND _ts < now() - interval '1 hour'
$$;
-- Rows that should be there and are not, or are and should not: the first live row with a key stays, else the last.
CREATE FUNCTION wrong(seed int, expired float8, after int, live int) RETURNS bigint LANGUAGE sql SET ttl.show_expired = on AS $$
    WITH should AS (
        SELECT id, coalesce(min(n) FILTER (WHERE age < '1 hour'), max(n)) AS n
          FROM incoming(seed, expired, after) WHERE id > live GROUP BY id),
    does AS (SELECT id, n FROM t WHERE n > 0)
    SELECT (SELECT count(*) FROM (SELECT * FROM should EXCEPT SELECT * FROM does) AS missing)
         + (SELECT count(*) FROM (SELECT * FROM does EXCEPT SELECT * FROM should) AS surplus)
$$;
CREATE TABLE result (seed int, expired float8, after int, live int, before int, wrong bigint, "left" bigint);
SET ttl.preserve_ts = on;
DO $$
DECLARE seed int; share float8; after int; live int; before int;
BEGIN
    FOREACH share IN ARRAY ARRAY[0, 0.001, 0.3] LOOP
        FOREACH after IN ARRAY ARRAY[0, 1500] LOOP
            FOREACH live IN ARRAY ARRAY[0, 100] LOOP
                FOREACH before IN ARRAY ARRAY[0, 500, 6000] LOOP
                    seed := round(share * 1000) + after + live + before;
                    PERFORM fill(live, before);
                    -- Expired rows that the transaction itself has written stay.
                    COMMIT;
                    INSERT INTO t (id, n, _ts) SELECT id, n, now() - age FROM incoming(seed, share, after) ON CONFLICT DO NOTHING;
                    INSERT INTO result VALUES (seed, share, after, live, before, wrong(seed, share, after, live), expired_before());
                END LOOP;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
RESET ttl.preserve_ts;
SELECT count(*), count(*) FILTER (WHERE wrong > 0) AS wrong FROM result;
-- Where none come expired, those that were there before are gone, also with keys that did not come.
SELECT before, min("left"), max("left") FROM result WHERE expired = 0 GROUP BY before ORDER BY before;
-- A trigger on DELETE: only rows whose keys come are deleted.
CREATE FUNCTION keep_count() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER deleted AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep_count();
SELECT fill(0, 500);
INSERT INTO t (id, n) SELECT id, n FROM incoming(1, 0, 0) ON CONFLICT DO NOTHING;
SELECT wrong(1, 0, 0, 0), expired_before();
DROP TRIGGER deleted ON t;
-- UPDATE of keys
SELECT fill(3000, 500);
UPDATE t SET id = id + 3900, n = id;
SET ttl.show_expired = on;
SELECT count(*), count(*) FILTER (WHERE n = id - 3900), min(id), max(id) FROM t;
RESET ttl.show_expired;
-- A duplicate key among live rows is an error, before and after the table was examined.
SELECT fill(0, 0);
INSERT INTO t (id, n) SELECT CASE WHEN n = 8000 THEN 7 ELSE n END, n FROM incoming(1, 0, 0);
INSERT INTO t (id, n) SELECT CASE WHEN n = 80 THEN 7 ELSE n END, n FROM incoming(1, 0, 0);
-- COPY whose data give _ts: the 3000th row comes expired, the 3001st takes its key.
COPY t (id, n, _ts) FROM PROGRAM
    'seq 1 5000 | awk ''{ print ($1 == 3001 ? 3000 : $1) "\t" $1 "\t" ($1 == 3000 ? "2020-01-01" : "2100-01-01") }''';
SELECT count(*), (SELECT n FROM t WHERE id = 3000) FROM t;
-- The override is generated, and has no value yet when the trigger fires.
CREATE TABLE d (id int PRIMARY KEY, n int, doc jsonb);
SELECT ttl.enable('d', '1 day'::interval, document_column => 'doc');
SET ttl.preserve_ts = on;
INSERT INTO d (id, n, doc, _ts)
    SELECT CASE n WHEN 3001 THEN 3000 ELSE n END, n, CASE n WHEN 3000 THEN '{"ttl": 60}'::jsonb END, now() - interval '2 hours'
      FROM incoming(1, 0, 0);
RESET ttl.preserve_ts;
SELECT count(*), (SELECT n FROM d WHERE id = 3000) FROM d;
DROP SCHEMA free_keys_many CASCADE;
