-- C6: keys of new rows are looked up in the order, collation and operators of their indexes, whatever
-- the statement and however the index's pages are split.
CREATE SCHEMA lookup;
SET search_path = lookup;
SET client_min_messages = warning;
SELECT setseed(0.5);

-- How a statement ends.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE written int;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
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
SELECT try($$INSERT INTO t VALUES (101, 'new')$$);
SELECT try($$INSERT INTO t VALUES (102, NULL)$$);
SELECT try($$INSERT INTO t VALUES (1, 'new 1')$$);
SELECT try($$INSERT INTO t VALUES (103, 'expired 2')$$);
SELECT try($$INSERT INTO t VALUES (104, 'live')$$);
SELECT try($$INSERT INTO t VALUES (11, 'new 11')$$);
-- several rows, of which some meet others
SELECT try($$INSERT INTO t VALUES (105, 'a'), (3, 'b'), (106, 'c'), (4, 'd'), (5, 'e'), (107, 'f')$$);
SELECT try($$INSERT INTO t SELECT g, 'query ' || g FROM generate_series(6, 405, 199) g ORDER BY -g$$);
SELECT try($$INSERT INTO t VALUES (108, 'g'), (108, 'h')$$);
SELECT try($$INSERT INTO t SELECT 209, 'i' UNION ALL SELECT 209 + g % 2, 'j' || g FROM generate_series(1, 2) g$$);
SET ttl.show_expired = on;
SELECT id, v, _ts < now() - interval '1 hour' AS expired FROM t ORDER BY id;
SELECT try($$INSERT INTO t VALUES (12, 'shown')$$);
RESET ttl.show_expired;
SELECT try($$INSERT INTO t VALUES (13, 'upsert') ON CONFLICT DO NOTHING$$);
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
SELECT try('INSERT INTO changed VALUES (99)');
SELECT id, _ts > now() - interval '1 hour' AS fresh FROM changed;

-- NULLs, several columns, columns that are gone, collations, a generated key, an expression, a predicate
CREATE TABLE parts (gone int, a text COLLATE "C", b numeric, c int GENERATED ALWAYS AS (b * 2) STORED, n int);
ALTER TABLE parts DROP COLUMN gone;
CREATE UNIQUE INDEX ON parts (b DESC NULLS LAST, a);
SELECT ttl.enable('parts', 1000000);
SET ttl.preserve_ts = on;
INSERT INTO parts (a, b, n, _ts, ttl) VALUES ('x', 1.0, 1, now() - interval '1 day', 60), (NULL, 2, 2, now() - interval '1 day', 60);
RESET ttl.preserve_ts;
SELECT try($$INSERT INTO parts (a, b) VALUES ('x', 1.00)$$), try($$INSERT INTO parts (a, b) VALUES ('X', 1)$$),
       try($$INSERT INTO parts (a, b) VALUES ('x', NULL)$$), try($$INSERT INTO parts (a, b) VALUES (NULL, 2)$$),
       try($$INSERT INTO parts (a, b) VALUES ('x', 1.000)$$);
DELETE FROM parts WHERE a = 'X';
CREATE UNIQUE INDEX ON parts (c);
SELECT try($$INSERT INTO parts (a, b) VALUES ('y', 1)$$), try($$INSERT INTO parts (a, b) VALUES ('y', 5)$$);
DROP INDEX parts_c_idx;
CREATE UNIQUE INDEX ON parts (abs(n)) WHERE b > 0;
SELECT try($$INSERT INTO parts (a, b, n) VALUES ('z', 7, -1)$$), try($$INSERT INTO parts (a, b, n) VALUES ('z', 8, 1)$$);

-- a partition, and the table above it
CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
SELECT ttl.enable('p', 1000000);
SET ttl.preserve_ts = on;
INSERT INTO p (id, _ts, ttl) SELECT g, now() - interval '1 day', 60 FROM generate_series(10, 190, 20) g;
RESET ttl.preserve_ts;
SELECT try('INSERT INTO p1 VALUES (10), (11)'), try('INSERT INTO p2 VALUES (111)');

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

DROP SCHEMA lookup CASCADE;
