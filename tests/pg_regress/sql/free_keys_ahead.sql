-- C6: keys of new rows are looked up before the trigger, which fires only for a row whose key has an
-- entry in the index. What a statement does is what it would do if the trigger fired for each.
CREATE SCHEMA ahead;
SET search_path = ahead;
SET client_min_messages = warning;
SELECT setseed(0.5);

-- How often the trigger fires in a statement.
CREATE FUNCTION fired(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || statement INTO plan;
    RETURN coalesce((SELECT sum((it->>'Calls')::numeric)::int FROM json_array_elements(plan->0->'Triggers') it
                      WHERE it->>'Trigger Name' = '~ttl_free_expired_keys'), 0);
EXCEPTION WHEN unique_violation THEN
    RETURN SQLERRM;
END $$;

CREATE TABLE t (id int PRIMARY KEY, v text, UNIQUE (v));
SELECT ttl.enable('t', 1000000);
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, _ts, ttl) SELECT g, 'expired ' || g, now() - interval '1 day', 60 FROM generate_series(1, 10) g;
RESET ttl.preserve_ts;
INSERT INTO t VALUES (11, 'live');
VACUUM ANALYZE t;
SELECT fired($$INSERT INTO t VALUES (101, 'new')$$);
SELECT fired($$INSERT INTO t VALUES (102, NULL)$$);
SELECT fired($$INSERT INTO t VALUES (1, 'new 1')$$);
SELECT fired($$INSERT INTO t VALUES (103, 'expired 2')$$);
SELECT fired($$INSERT INTO t VALUES (104, 'live')$$);
SELECT fired($$INSERT INTO t VALUES (11, 'new 11')$$);
-- for those rows only that need it, whichever come first
SELECT fired($$INSERT INTO t VALUES (105, 'a'), (3, 'b'), (106, 'c'), (4, 'd'), (5, 'e'), (107, 'f')$$);
SELECT fired($$INSERT INTO t SELECT g, 'query ' || g FROM generate_series(6, 405, 199) g ORDER BY -g$$);
SELECT fired($$INSERT INTO t VALUES (108, 'g'), (108, 'h')$$);
SELECT fired($$INSERT INTO t SELECT 209, 'i' UNION ALL SELECT 209 + g % 2, 'j' || g FROM generate_series(1, 2) g$$);
SET ttl.show_expired = on;
SELECT id, v, _ts < now() - interval '1 hour' AS expired FROM t ORDER BY id;
SELECT fired($$INSERT INTO t VALUES (12, 'shown')$$);
RESET ttl.show_expired;
-- a conflict is looked for by the trigger
SELECT fired($$INSERT INTO t VALUES (13, 'upsert') ON CONFLICT DO NOTHING$$);
-- RETURNING, cursors, WITH, PL/pgSQL
INSERT INTO t VALUES (7, 'again'), (201, 'once') RETURNING id, v, _ts > now() - interval '1 hour' AS fresh;
WITH w AS (INSERT INTO t VALUES (8, 'with'), (202, 'w2') RETURNING id) SELECT * FROM w ORDER BY id;
DO $$ DECLARE r record; BEGIN
    FOR r IN INSERT INTO t VALUES (9, 'loop'), (203, 'l2') RETURNING id LOOP RAISE WARNING 'inserted %', r.id; END LOOP;
END $$;

-- another trigger gives the row its key: the last trigger looks
CREATE TABLE changed (id int PRIMARY KEY);
SELECT ttl.enable('changed', 1000000);
CREATE FUNCTION to_seven() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := 7; RETURN NEW; END $$;
CREATE TRIGGER a_change BEFORE INSERT ON changed FOR EACH ROW EXECUTE FUNCTION to_seven();
SET ttl.preserve_ts = on;
INSERT INTO changed (id, _ts, ttl) VALUES (1, now() - interval '1 day', 60);
RESET ttl.preserve_ts;
SELECT fired('INSERT INTO changed VALUES (99)');
SELECT id, _ts > now() - interval '1 hour' AS fresh FROM changed;

-- NULLs, several columns, columns that are gone, collations, a generated key, an expression, a predicate
CREATE TABLE parts (gone int, a text COLLATE "C", b numeric, c int GENERATED ALWAYS AS (b * 2) STORED, n int);
ALTER TABLE parts DROP COLUMN gone;
CREATE UNIQUE INDEX ON parts (b DESC NULLS LAST, a);
SELECT ttl.enable('parts', 1000000);
SET ttl.preserve_ts = on;
INSERT INTO parts (a, b, n, _ts, ttl) VALUES ('x', 1.0, 1, now() - interval '1 day', 60), (NULL, 2, 2, now() - interval '1 day', 60);
RESET ttl.preserve_ts;
SELECT fired($$INSERT INTO parts (a, b) VALUES ('x', 1.00)$$), fired($$INSERT INTO parts (a, b) VALUES ('X', 1)$$),
       fired($$INSERT INTO parts (a, b) VALUES ('x', NULL)$$), fired($$INSERT INTO parts (a, b) VALUES (NULL, 2)$$),
       fired($$INSERT INTO parts (a, b) VALUES ('x', 1.000)$$);
DELETE FROM parts WHERE a = 'X';
CREATE UNIQUE INDEX ON parts (c);
SELECT fired($$INSERT INTO parts (a, b) VALUES ('y', 1)$$), fired($$INSERT INTO parts (a, b) VALUES ('y', 5)$$);
DROP INDEX parts_c_idx;
CREATE UNIQUE INDEX ON parts (abs(n)) WHERE b > 0;
SELECT fired($$INSERT INTO parts (a, b, n) VALUES ('z', 7, -1)$$), fired($$INSERT INTO parts (a, b, n) VALUES ('z', 8, 1)$$);

-- a partition, and the table above it
CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
SELECT ttl.enable('p', 1000000);
SET ttl.preserve_ts = on;
INSERT INTO p (id, _ts, ttl) SELECT g, now() - interval '1 day', 60 FROM generate_series(10, 190, 20) g;
RESET ttl.preserve_ts;
SELECT fired('INSERT INTO p1 VALUES (10), (11)'), fired('INSERT INTO p2 VALUES (111)');

-- Any order of keys, and leaves that are split meanwhile: each statement does what the rows say.
CREATE TABLE r (id int PRIMARY KEY, pad text);
SELECT ttl.enable('r', 1000000);
CREATE TABLE model (id int PRIMARY KEY, live boolean);
CREATE FUNCTION compare(keys int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE key int; state boolean; wrong int := 0; taken boolean;
BEGIN
    FOREACH key IN ARRAY keys LOOP
        SELECT live INTO state FROM model WHERE id = key;
        BEGIN
            INSERT INTO r (id, pad) VALUES (key, 'new');
            taken := false;
        EXCEPTION WHEN unique_violation THEN taken := true;
        END;
        IF taken <> coalesce(state, false) THEN wrong := wrong + 1; END IF;
        INSERT INTO model VALUES (key, true) ON CONFLICT (id) DO UPDATE SET live = true;
    END LOOP;
    SELECT wrong + abs(count(*) - (SELECT count(*) FROM model WHERE live)) INTO wrong FROM r;
    RETURN format('%s statements, %s wrong', cardinality(keys), wrong);
END $$;
SET ttl.preserve_ts = on;
INSERT INTO r (id, pad, _ts, ttl) SELECT g * 3, 'expired', now() - interval '1 day', 60 FROM generate_series(1, 700) g;
RESET ttl.preserve_ts;
INSERT INTO r (id, pad) SELECT g * 3 + 1, 'live' FROM generate_series(1, 700) g;
INSERT INTO model SELECT g * 3 + n, n = 1 FROM generate_series(1, 700) g, generate_series(0, 1) n;
SELECT compare(ARRAY(SELECT (random() * 2500)::int FROM generate_series(1, 1500)));
SELECT compare(ARRAY(SELECT g FROM generate_series(1900, 3400) g));
SELECT compare(ARRAY(SELECT g FROM generate_series(5000, 4000, -1) g));
SELECT compare(ARRAY(SELECT 6000 + g / 2 FROM generate_series(1, 1500) g));
TRUNCATE r, model;
SELECT compare(ARRAY(SELECT g FROM generate_series(1, 900) g));
REINDEX TABLE r;
SELECT compare(ARRAY(SELECT g FROM generate_series(800, 1200) g));
DELETE FROM r; DELETE FROM model;
VACUUM r;
SELECT compare(ARRAY(SELECT g FROM generate_series(1100, 2400) g));

DROP SCHEMA ahead CASCADE;
