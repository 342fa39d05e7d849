-- C6: the key of an expired row is free. What a statement writes and returns is what
-- it would be if the expired row were absent, and nothing of that row remains.
CREATE SCHEMA free_keys;
SET search_path = free_keys;
CREATE TABLE t (id int PRIMARY KEY, v text DEFAULT 'default', w text);
SELECT ttl.enable('t', 3600);
-- 1 to 6 are expired and have every column filled, 11 to 13 live
CREATE FUNCTION refill() RETURNS void LANGUAGE sql SET ttl.preserve_ts = on AS $$
    TRUNCATE t;
    INSERT INTO t (id, v, w, _ts, ttl) SELECT i, 'old', 'old', now() - interval '1 day', 60 FROM generate_series(1, 6) i;
    INSERT INTO t (id, v, w) SELECT i, 'live', 'live' FROM generate_series(11, 13) i;
$$;
-- what is on disk, but for the expired rows that nobody touched
CREATE FUNCTION rows_there() RETURNS SETOF text LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT concat_ws(' ', id, v, w, 'ttl=' || ttl, CASE WHEN _ts < now() - interval '1 h' THEN 'EXPIRED' END)
      FROM t WHERE (v, w, ttl) IS DISTINCT FROM ('old', 'old', 60) AND v IS DISTINCT FROM 'live' ORDER BY t.*::text
$$;
CREATE FUNCTION old_rows() RETURNS int[] LANGUAGE sql SET ttl.show_expired = on AS $$
    SELECT array_agg(id ORDER BY id) FROM t WHERE v = 'old'
$$;
-- the fields of an error, or nothing
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text; s text; t text; c text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT, s = SCHEMA_NAME, t = TABLE_NAME, c = CONSTRAINT_NAME;
    RETURN concat_ws(' | ', state, message, detail, hint, s, t, c);
END $$;

-- INSERT: of one row, of several, with a live key among them, from a query
SELECT refill();
INSERT INTO t VALUES (1, 'new') RETURNING id, v, w, ttl, _ts > now() - interval '10 s' AS fresh, xmax = 0 AS inserted;
INSERT INTO t (id) VALUES (2), (22), (3) RETURNING id, v, w, ttl;
INSERT INTO t (v, id) SELECT 'query', i FROM generate_series(4, 5) i;
\echo :ROW_COUNT
SELECT rows_there();
SELECT old_rows();
-- a live key fails as always, and takes back what the statement did
SELECT refill();
INSERT INTO t VALUES (1, 'new'), (11, 'new'), (2, 'new');
SELECT try('INSERT INTO t VALUES (1, ''new''), (11, ''new'')');
INSERT INTO t VALUES (1, 'new'), (2, 'new'), (1, 'twice');
SELECT rows_there();
SELECT old_rows();

-- ON CONFLICT DO NOTHING inserts, with every way to name the arbiter or none
SELECT refill();
INSERT INTO t VALUES (1, 'new') ON CONFLICT DO NOTHING RETURNING id, v, w;
INSERT INTO t VALUES (2, 'new'), (11, 'new') ON CONFLICT (id) DO NOTHING RETURNING id, v, w;
INSERT INTO t VALUES (3, 'new'), (3, 'twice') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING RETURNING id, v, w;
INSERT INTO t SELECT i, 'new' FROM generate_series(4, 6) i ON CONFLICT DO NOTHING;
\echo :ROW_COUNT
SELECT rows_there();
SELECT old_rows();

-- ON CONFLICT DO UPDATE inserts the whole new row
SELECT refill();
INSERT INTO t VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET v = t.v || ' updated', w = 'updated'
    RETURNING id, v, w, ttl, xmax = 0 AS inserted;
INSERT INTO t VALUES (2, 'new'), (11, 'new') ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET w = t.w || '+' || excluded.v
    RETURNING id, v, w, ttl, xmax = 0 AS inserted;
INSERT INTO t VALUES (3, 'new'), (12, 'new') ON CONFLICT (id) DO UPDATE SET w = 'updated' WHERE t.v = 'no'
    RETURNING id, v, w;
INSERT INTO t AS x (id) VALUES (4) ON CONFLICT (id) WHERE true DO UPDATE SET (v, w) = (SELECT 'updated', x.v) RETURNING id, v, w;
-- the row that was just inserted is met the second time
INSERT INTO t VALUES (5, 'new'), (5, 'twice') ON CONFLICT (id) DO UPDATE SET v = 'updated';
SELECT rows_there();
SELECT old_rows();
-- the update moves the row onto an expired key
INSERT INTO t VALUES (13, 'new') ON CONFLICT (id) DO UPDATE SET id = 6, v = 'moved' RETURNING id, v, w;
SELECT old_rows();

-- MERGE: an expired target row is NOT MATCHED
SELECT refill();
MERGE INTO t USING (VALUES (1), (2), (11), (21)) s (id) ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET v = 'matched'
    WHEN NOT MATCHED AND s.id = 2 THEN DO NOTHING
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'not matched');
\echo :ROW_COUNT
MERGE INTO t USING (VALUES (3), (12)) s (id) ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET id = 4, v = 'moved'
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'not matched');
SELECT rows_there();
SELECT old_rows();

-- UPDATE of a key onto an expired row's
SELECT refill();
UPDATE t SET id = 1, v = 'moved' WHERE id = 11 RETURNING id, v, w, ttl;
UPDATE t SET id = id - 10, v = 'moved' WHERE id > 11 RETURNING id, v;
SELECT try('UPDATE t SET id = 2 WHERE id = 3');
UPDATE t SET id = id, v = 'the same' WHERE id = 2;
-- onto one's own key, and another's that has expired
UPDATE t SET id = CASE id WHEN 1 THEN 4 WHEN 2 THEN 5 ELSE 6 END, v = 'again';
SELECT rows_there();
SELECT old_rows();

-- COPY FROM, which may remove all expired rows first, or go by the trigger: where the
-- time of modification is given, and where there are many
-- (from a file where it fails: what psql does with data that follows depends on its minor version)
SELECT current_setting('data_directory') || '/free_keys.copy' AS file \gset
SELECT refill();
COPY (VALUES (3, 'copied'), (11, 'copied')) TO :'file';
COPY t (id, v) FROM :'file';
COPY (VALUES (3, 'copied'), (3, 'twice')) TO :'file';
COPY t (id, v) FROM :'file';
SELECT old_rows();
COPY t (id, v) FROM STDIN;
1	copied
21	copied
2	copied
\.
SELECT rows_there();
SELECT refill();
COPY t FROM STDIN (DELIMITER ',', NULL '');
1,copied,whole,2100-01-01,
2,copied,expired,2000-01-01,
2,copied,expired again,2000-01-01,
\.
COPY (VALUES (3, 'copied', 'whole', '2100-01-01', NULL), (11, 'copied', 'whole', '2100-01-01', NULL)) TO :'file' (DELIMITER ',', NULL '');
COPY t FROM :'file' (DELIMITER ',', NULL '');
SELECT rows_there();
SELECT old_rows();
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, _ts) SELECT i, 'many', now() - interval '1 day' FROM generate_series(1001, 2500) i;
RESET ttl.preserve_ts;
COPY t (id, v) FROM STDIN;
1001	copied
2500	copied
\.
COPY (VALUES (1002, 'copied'), (11, 'copied')) TO :'file';
COPY t (id, v) FROM :'file';
SELECT count(*), max(id) FROM t WHERE v = 'copied' AND id > 1000;
-- one that fails in a function leaves nothing behind
DO $$ BEGIN
    PERFORM refill();
    BEGIN
        COPY t (id) FROM PROGRAM 'echo 1; echo 1';
    EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'COPY failed';
    END;
    PERFORM refill();
    INSERT INTO t (id) VALUES (1), (2);
END $$;
SELECT id FROM t ORDER BY id;

-- many rows at once; EXPLAIN removes nothing
SELECT refill();
DO $$ DECLARE line text; BEGIN
    FOR line IN EXPLAIN INSERT INTO t (id, v) SELECT i, 'many' FROM generate_series(1, 5000) i LOOP END LOOP;
END $$;
INSERT INTO t (id, v) SELECT i, 'many' FROM generate_series(1, 5000) i;
SELECT old_rows();
INSERT INTO t (id, v) SELECT i, 'many' FROM generate_series(1, 5000) i ON CONFLICT (id) DO UPDATE SET w = 'updated';
\echo :ROW_COUNT
SELECT count(*), count(*) FILTER (WHERE w = 'updated') AS updated, count(*) FILTER (WHERE w = 'old') AS old FROM t;
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, _ts) SELECT 10000 + i % 2, 'born expired', now() - interval '1 day' FROM generate_series(1, 2000) i;
RESET ttl.preserve_ts;
SELECT count(*) FROM rows_there() r WHERE r ~ 'born';

-- prepared statements, functions, data-modifying CTEs
SELECT refill();
SET plan_cache_mode = force_generic_plan;
PREPARE ins (int) AS INSERT INTO t VALUES ($1, 'prepared') RETURNING id;
EXECUTE ins (1);
EXECUTE ins (2);
EXECUTE ins (2);
RESET plan_cache_mode;
DEALLOCATE ins;
DO $$ BEGIN FOR i IN 2..4 LOOP
    BEGIN INSERT INTO t VALUES (i, 'in DO'); EXCEPTION WHEN unique_violation THEN RAISE NOTICE '% is taken', i; END;
END LOOP; END $$;
WITH a AS (INSERT INTO t VALUES (5, 'cte') RETURNING id)
INSERT INTO t SELECT id + 1, 'after cte' FROM a RETURNING id;
SELECT rows_there();
WITH gone AS (DELETE FROM t WHERE id = 5 RETURNING id) SELECT id FROM gone;

-- a row that is born expired holds its key no longer than any other
SELECT refill();
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, _ts) VALUES (1, 'born expired', now() - interval '2 days');
INSERT INTO t (id, v, _ts) VALUES (1, 'born expired too', now() - interval '2 days');
SELECT rows_there();
INSERT INTO t (id, v, _ts) VALUES (2, 'first', now() - interval '2 days'), (2, 'second', now() - interval '2 days');
INSERT INTO t (id, v, _ts) VALUES (3, 'first', now() - interval '2 days'), (3, 'second', now());
INSERT INTO t (id, v, _ts) VALUES (4, 'first', now() - interval '2 days'), (4, 'second', now() - interval '2 days')
    ON CONFLICT (id) DO UPDATE SET v = 'updated';
-- an upsert that makes a live row expire
INSERT INTO t (id, v, _ts) VALUES (11, 'x', now()) ON CONFLICT (id) DO UPDATE SET v = 'ended', _ts = now() - interval '2 days';
RESET ttl.preserve_ts;
INSERT INTO t (id, v) VALUES (11, 'new');
SELECT rows_there();

-- with ttl.show_expired the rows are there
SELECT refill();
SET ttl.show_expired = on;
SELECT try('INSERT INTO t VALUES (1, ''new'')');
INSERT INTO t VALUES (1, 'new') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO t VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET w = 'updated' RETURNING id, v, w, xmax = 0 AS inserted;
UPDATE t SET id = 2 WHERE id = 11;
RESET ttl.show_expired;
-- with row_security off, as pg_dump and pg_restore set it, keys are free
SET row_security = off;
INSERT INTO t VALUES (2, 'new') RETURNING id;
RESET row_security;
SELECT rows_there();

-- roll-back brings the expired row back, as one that is expired
SELECT refill();
BEGIN;
INSERT INTO t VALUES (1, 'new');
SAVEPOINT a;
INSERT INTO t VALUES (2, 'new');
SAVEPOINT b;
INSERT INTO t VALUES (3, 'new');
ROLLBACK TO b;
SELECT old_rows();
INSERT INTO t VALUES (3, 'again');
ROLLBACK TO a;
SELECT old_rows();
INSERT INTO t VALUES (2, 'after all');
UPDATE t SET id = 3 WHERE id = 2;
INSERT INTO t VALUES (2, 'after that');
COMMIT;
SELECT rows_there();
BEGIN;
INSERT INTO t VALUES (4, 'new');
ROLLBACK;
SELECT old_rows();
SELECT id FROM t ORDER BY id;

-- replicas' sessions, which fire no triggers of users
SET session_replication_role = replica;
INSERT INTO t VALUES (4, 'replica') RETURNING id;
INSERT INTO t VALUES (5, 'replica') ON CONFLICT (id) DO UPDATE SET w = 'updated' RETURNING id, v, w;
UPDATE t SET id = 6 WHERE id = 11;
RESET session_replication_role;
SELECT old_rows();

-- rows that have outlived the default by an override hold their keys
SELECT refill();
SET ttl.preserve_ts = on;
INSERT INTO t (id, v, _ts, ttl) VALUES (31, 'never', '2020-01-01', -1), (32, 'later', now() - interval '2 h', 86400);
RESET ttl.preserve_ts;
SELECT try('INSERT INTO t VALUES (31)');
SELECT try('INSERT INTO t VALUES (32)');

SET client_min_messages = warning;
DROP SCHEMA free_keys CASCADE;
