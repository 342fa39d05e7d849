-- C11: whatever writes a row, its entry in the index for deletion has the row's key.
CREATE SCHEMA index_entries;
SET search_path = index_entries;
SET client_min_messages = warning;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;

-- Reads the index in its order, and computes each row's key: rows, and those out of order.
CREATE FUNCTION entries(OUT rows int, OUT out_of_order int) LANGUAGE plpgsql SET ttl.show_expired = on AS $$
DECLARE
    former bigint := '-9223372036854775808';
    key bigint;
BEGIN
    rows := 0; out_of_order := 0;
    FOR key IN SELECT ttl.expiry_key(_ts, ttl) FROM t WHERE ttl.expiry_key(_ts, ttl) IS NOT NULL
                ORDER BY ttl.expiry_key(_ts, ttl) LOOP
        rows := rows + 1;
        IF key < former THEN out_of_order := out_of_order + 1; END IF;
        former := key;
    END LOOP;
END $$;
CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0);
SELECT ttl.enable('t', 1000000, index => 'btree');
SET ttl.show_expired = on;
EXPLAIN (COSTS OFF) SELECT ttl.expiry_key(_ts, ttl) FROM t WHERE ttl.expiry_key(_ts, ttl) IS NOT NULL
  ORDER BY ttl.expiry_key(_ts, ttl);
RESET ttl.show_expired;
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts, ttl) SELECT g, now() - g * interval '1 min', CASE g % 3 WHEN 0 THEN g * 100 END
  FROM generate_series(1, 300) g ORDER BY md5(g::text);
RESET ttl.preserve_ts;
SELECT * FROM entries();

-- one row at a time, prepared, with all kinds of ttl
PREPARE one AS INSERT INTO t (id, ttl) VALUES ($1, $2);
DO $$ BEGIN FOR g IN 1001..1100 LOOP
    EXECUTE format('EXECUTE one(%s, %s)', g, (ARRAY['NULL', '-1', '5', '2147483647', '70000'])[g % 5 + 1]);
END LOOP; END $$;
SELECT * FROM entries();
INSERT INTO t (id, ttl) SELECT g, nullif(g % 7, 0) * 1000 FROM generate_series(2001, 2100) g;
SELECT * FROM entries();
-- a time that is given, and rows that never expire
SET ttl.preserve_ts = on;
INSERT INTO t (id, _ts, ttl) VALUES (3001, 'infinity', NULL), (3002, '-infinity', NULL), (3003, '-infinity', 5), (3004, '4000-01-01', 60);
RESET ttl.preserve_ts;
SELECT * FROM entries();
-- UPDATE of other columns, of the override, of both, of nothing
UPDATE t SET n = n + 1 WHERE id % 5 = 0;
UPDATE t SET ttl = id * 10 WHERE id % 4 = 0;
UPDATE t SET ttl = NULL, n = 5 WHERE id % 9 = 0;
UPDATE t SET n = 7 WHERE id < 0;
SELECT * FROM entries();
-- upserts and MERGE
INSERT INTO t (id) SELECT g FROM generate_series(50, 350) g ON CONFLICT (id) DO UPDATE SET ttl = EXCLUDED.id * 7;
INSERT INTO t (id, ttl) VALUES (60, 60000), (4001, 60000) ON CONFLICT DO NOTHING;
INSERT INTO t (id, ttl) VALUES (61, 60000) ON CONFLICT (id) DO UPDATE SET n = 1, ttl = -1;
MERGE INTO t USING generate_series(340, 380) g ON id = g
  WHEN MATCHED THEN UPDATE SET ttl = g * 3 WHEN NOT MATCHED THEN INSERT (id, ttl) VALUES (g, g * 5);
WITH written AS (UPDATE t SET ttl = 123456 WHERE id = 70 RETURNING id) INSERT INTO t (id, ttl) SELECT id + 5000, 234567 FROM written;
SELECT * FROM entries();
-- a trigger that changes the columns, and an index that somebody else has on an expression
CREATE FUNCTION other_ttl() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.ttl := NEW.id * 2; RETURN NEW; END $$;
CREATE TRIGGER other BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION other_ttl();
CREATE INDEX ON t (abs(n));
INSERT INTO t (id) VALUES (6001), (6002);
UPDATE t SET n = -n - 1 WHERE id BETWEEN 100 AND 120;
SELECT * FROM entries();
SELECT count(*) FROM t WHERE abs(n) = n AND id BETWEEN 100 AND 120;
SELECT count(*) FROM t WHERE abs(n) = 1 AND id BETWEEN 100 AND 120;
-- COPY, granularity
DROP TRIGGER other ON t;
COPY t (id, ttl) FROM stdin;
7001	\N
7002	777
\.
SELECT ttl.enable('t', 1000000, ts_granularity => 600, index => 'btree');
UPDATE t SET n = 0;
SELECT * FROM entries();
DROP SCHEMA index_entries CASCADE;
