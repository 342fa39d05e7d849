-- C16: with a granularity an UPDATE leaves a recent _ts as it is, and so stays heap-only.
CREATE SCHEMA granularity;
SET search_path = granularity;
CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0) WITH (fillfactor = 50);
SELECT ttl.enable('t', 1800, ts_granularity => 60);
SELECT ts_granularity FROM ttl.tables WHERE relation = 't'::regclass;
-- Rows that were modified so many seconds ago.
CREATE PROCEDURE fill() LANGUAGE plpgsql SET ttl.preserve_ts = on AS $$ BEGIN
  DELETE FROM granularity.t;
  INSERT INTO granularity.t (id, _ts, ttl)
    SELECT x.id, date_trunc('second', statement_timestamp()) - x.age * interval '1 s', x.ttl
      FROM (VALUES (1, 0, NULL), (2, 40, NULL), (3, 200, NULL), (4, -500, NULL), (5, 40, 70), (6, 20, 70), (7, 40, -1), (8, 200, -1)) AS x (id, age, ttl);
  INSERT INTO granularity.t (id, _ts) VALUES (9, 'infinity'), (10, '2000-01-01'); END $$;
-- What a row's age in seconds may be at the end, on a machine that is slow.
CREATE FUNCTION age_of(ts timestamptz) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN ts = 'infinity' THEN 'infinite' WHEN s < -1 THEN 'of the future' WHEN s < 15 THEN 'new'
              WHEN s < 35 THEN '20 s' WHEN s < 55 THEN '40 s' WHEN s < 240 THEN '200 s' ELSE 'old' END
    FROM extract(epoch FROM clock_timestamp() - ts) AS e (s) $$;

-- UPDATE: kept if recent, with an override up to half of it; never from the future; expired rows
-- are not reached. RETURNING shows the row as it is stored.
BEGIN; CALL fill();
UPDATE t SET n = 1 RETURNING id, ttl, granularity.age_of(_ts);
SELECT id, n, granularity.age_of(_ts) FROM t WHERE n <> 1;
SET LOCAL ttl.show_expired = on;
SELECT id, n, granularity.age_of(_ts) FROM t WHERE id = 10;
ROLLBACK;

-- A _ts that the statement gives does not count; one that sets the override stamps.
BEGIN; CALL fill();
UPDATE t SET _ts = '2100-01-01' WHERE id = 2 RETURNING id, granularity.age_of(_ts);
UPDATE t SET ttl = 100 WHERE id = 5 RETURNING id, granularity.age_of(_ts);
UPDATE t SET ttl = ttl WHERE id = 6 RETURNING id, granularity.age_of(_ts);
UPDATE t SET (n, ttl) = (SELECT 2, -1) WHERE id = 7 RETURNING id, granularity.age_of(_ts);
ROLLBACK;

-- Upserts and MERGE; INSERT stamps.
BEGIN; CALL fill();
INSERT INTO t (id) VALUES (2), (3), (11), (10) ON CONFLICT (id) DO UPDATE SET n = 2 RETURNING id, n, granularity.age_of(_ts);
INSERT INTO t (id) VALUES (5) ON CONFLICT (id) DO UPDATE SET ttl = 80 RETURNING id, granularity.age_of(_ts);
MERGE INTO t USING (VALUES (1), (2), (3), (6), (12)) AS v (i) ON t.id = v.i
  WHEN MATCHED AND v.i = 6 THEN UPDATE SET ttl = 90
  WHEN MATCHED THEN UPDATE SET n = 3
  WHEN NOT MATCHED THEN INSERT (id) VALUES (v.i);
SELECT id, n, ttl, granularity.age_of(_ts) FROM t WHERE id IN (1, 2, 3, 6, 12) ORDER BY id;
ROLLBACK;

-- Cascades; what a trigger sets; a session that keeps times.
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES t ON UPDATE CASCADE);
SELECT ttl.enable('child', 1800, ts_granularity => 900);
BEGIN; CALL fill();
SET LOCAL ttl.preserve_ts = on;
INSERT INTO child (id, p, _ts) VALUES (1, 2, now() - interval '40 s'), (2, 3, now() - interval '1000 s'), (3, 1, now() - interval '1 day');
SET LOCAL ttl.preserve_ts = off;
UPDATE t SET id = id + 100 WHERE id IN (1, 2, 3);
SELECT id, p, granularity.age_of(_ts) FROM child ORDER BY id;
SET LOCAL ttl.show_expired = on;
SELECT id, p, granularity.age_of(_ts) FROM child WHERE id = 3;
ROLLBACK;
DROP TABLE child;
BEGIN; CALL fill();
SET LOCAL ttl.preserve_ts = on;
UPDATE t SET _ts = now() - interval '20 s' WHERE id = 3 RETURNING id, granularity.age_of(_ts);
ROLLBACK;

-- Heap-only: the index on _ts is not touched. Prepared, and for many rows.
CREATE TABLE hot (id int PRIMARY KEY, n int DEFAULT 0) WITH (fillfactor = 50);
SELECT ttl.enable('hot', 1800, ts_granularity => 900);
INSERT INTO hot SELECT g FROM generate_series(1, 50) g;
BEGIN;
PREPARE click AS UPDATE hot SET n = n + 1 WHERE id = $1;
EXECUTE click(1); EXECUTE click(2); EXECUTE click(1);
UPDATE hot SET n = -1 WHERE id > 40;
SELECT pg_stat_get_xact_tuples_updated('hot'::regclass) AS updated, pg_stat_get_xact_tuples_hot_updated('hot'::regclass) AS heap_only;
COMMIT;
-- A change of the granularity counts for prepared statements, too.
SELECT ttl.enable('hot', 1800, ts_granularity => 0);
SELECT ts_granularity FROM ttl.tables WHERE relation = 'hot'::regclass;
BEGIN;
SET LOCAL ttl.preserve_ts = on; UPDATE hot SET _ts = _ts - interval '20 s'; SET LOCAL ttl.preserve_ts = off;
EXECUTE click(3);
SELECT granularity.age_of(_ts) FROM hot WHERE id = 3;
COMMIT;
-- Not spoken of, it stays.
SELECT ttl.enable('hot', 1800, ts_granularity => 900);
SELECT ttl.enable('hot', 3600), ttl.set_default('hot', 7200);
SELECT ts_granularity FROM ttl.tables WHERE relation = 'hot'::regclass;

-- Triggers UPDATE OF _ts, and columns generated from it.
CREATE TABLE watched (id int PRIMARY KEY, n int, _ts timestamptz NOT NULL DEFAULT now(),
  age interval GENERATED ALWAYS AS ('2100-01-01 00:00+00' - _ts) STORED);
SELECT ttl.enable('watched', 1800, ts_granularity => 900);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'changed: %', new._ts <> old._ts; RETURN new; END $$;
CREATE TRIGGER tell BEFORE UPDATE OF _ts ON watched FOR EACH ROW EXECUTE FUNCTION tell();
SET ttl.preserve_ts = on;
INSERT INTO watched VALUES (1, 0, now() - interval '40 s'), (2, 0, now() - interval '1000 s');
RESET ttl.preserve_ts;
UPDATE watched SET n = 1 WHERE id = 1;
UPDATE watched SET n = 1 WHERE id = 2;
SELECT id, n, granularity.age_of(_ts), age = '2100-01-01 00:00+00' - _ts AS right FROM watched ORDER BY id;

-- The override in a document: what changes the document stamps.
CREATE TABLE docs (id int PRIMARY KEY, doc jsonb, n int);
SELECT ttl.enable('docs', 1800, document_column => 'doc', ts_granularity => 900);
SET ttl.preserve_ts = on;
INSERT INTO docs (id, doc, _ts) VALUES (1, '{}', now() - interval '40 s'), (2, '{}', now() - interval '40 s');
RESET ttl.preserve_ts;
UPDATE docs SET n = 1 WHERE id = 1 RETURNING granularity.age_of(_ts);
UPDATE docs SET doc = '{"ttl": 50}' WHERE id = 2 RETURNING ttl, granularity.age_of(_ts);

-- Partitions whose columns stand elsewhere, and rows that move; children; a table without overrides.
CREATE TABLE parts (id int, n int, PRIMARY KEY (id, n)) PARTITION BY LIST (n);
CREATE TABLE part0 (x int, y int, n int NOT NULL, id int NOT NULL);
ALTER TABLE part0 DROP COLUMN x, DROP COLUMN y;
ALTER TABLE parts ATTACH PARTITION part0 FOR VALUES IN (0);
SELECT ttl.enable('parts', 1800, ts_granularity => 900);
CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1);
SET ttl.preserve_ts = on;
INSERT INTO parts (id, n, _ts) VALUES (1, 0, now() - interval '40 s'), (2, 0, now() - interval '1000 s'), (3, 0, now() - interval '40 s');
RESET ttl.preserve_ts;
UPDATE parts SET id = id WHERE id = 1 RETURNING granularity.age_of(_ts);
UPDATE parts SET id = id WHERE id = 2 RETURNING granularity.age_of(_ts);
UPDATE parts SET n = 1 WHERE id = 3 RETURNING tableoid::regclass, granularity.age_of(_ts);
UPDATE part1 SET id = 4 RETURNING granularity.age_of(_ts);
CREATE TABLE plain (id int PRIMARY KEY, n int);
SELECT ttl.enable('plain', 1800, ttl_column => NULL, ts_granularity => 900);
SET ttl.preserve_ts = on;
INSERT INTO plain (id, _ts) VALUES (1, now() - interval '40 s'), (2, now() - interval '1000 s');
RESET ttl.preserve_ts;
UPDATE plain SET n = 1 WHERE id = 1 RETURNING granularity.age_of(_ts);
UPDATE plain SET n = 1 WHERE id = 2 RETURNING granularity.age_of(_ts);
CREATE VIEW seen AS SELECT id, n FROM plain;
BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE plain SET _ts = now() - interval '40 s'; SET LOCAL ttl.preserve_ts = off;
UPDATE seen SET n = 2;
SELECT id, n, granularity.age_of(_ts) FROM plain ORDER BY id;
ROLLBACK;

-- Without a default, rows that inherit are stamped: one may come later. Overrides count as ever.
CREATE TABLE endless (id int PRIMARY KEY, n int);
SELECT ttl.enable('endless', -1, ts_granularity => 2147483647);
SET ttl.preserve_ts = on;
INSERT INTO endless (id, _ts, ttl) VALUES (1, now() - interval '40 s', NULL), (2, now() - interval '40 s', -1), (3, now() - interval '40 s', 100);
RESET ttl.preserve_ts;
UPDATE endless SET n = 1 RETURNING id, granularity.age_of(_ts);
SET ttl.preserve_ts = on; UPDATE plain SET _ts = now() - interval '40 s'; RESET ttl.preserve_ts;
SELECT ttl.enable('plain', -1);
UPDATE plain SET n = 3 RETURNING id, granularity.age_of(_ts);

-- Refused
CREATE TABLE bad (id int);
DO $$
DECLARE call text; message text; detail text; hint text;
BEGIN
  FOREACH call IN ARRAY ARRAY[
    $c$ttl.enable('bad', 1800, ts_granularity => 901)$c$, $c$ttl.enable('bad', 1, ts_granularity => 1)$c$,
    $c$ttl.enable('bad', -1, ts_granularity => -1)$c$, $c$ttl.enable('t', 100)$c$, $c$ttl.set_default('t', 119)$c$,
    $c$ttl.enable('t', 1800, ts_granularity => 901)$c$] LOOP
    BEGIN
      EXECUTE 'SELECT ' || call;
      RAISE NOTICE '%: accepted', call;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
      RAISE NOTICE E'%: % %\n%\n%', call, sqlstate, message, detail, hint;
    END;
  END LOOP;
END $$;
-- On the border; off, and on again.
SELECT ttl.set_default('t', 120), ttl.set_default('t', NULL), ttl.set_default('t', 120);
DO $$ BEGIN PERFORM ttl.set_default('t', NULL); PERFORM ttl.set_default('t', 119);
  RAISE NOTICE 'accepted'; EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '%', sqlerrm; END $$;
-- By hand
SECURITY LABEL FOR ttl ON TABLE bad IS '{"default_ttl": 100, "ts_granularity": 51}';
SECURITY LABEL FOR ttl ON TABLE bad IS '{"default_ttl": 100, "ts_granularity": 1.5}';
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA granularity CASCADE;
