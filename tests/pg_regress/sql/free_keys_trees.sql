-- C6 in keys of all shapes, in indexes of several pages: the key of an expired row is free, that
-- of a live one is not.
CREATE SCHEMA free_keys_trees;
SET search_path = free_keys_trees;
SET client_min_messages = warning;

-- 1,500 rows in random order, every other expired; then each key is inserted once more, and again
CREATE FUNCTION try(columns text, key text, ddl text DEFAULT '', OUT inserted int, OUT refused int,
                    OUT refused_again int, OUT rows int) LANGUAGE plpgsql AS $$
DECLARE
    names text;
    insertion text;
    round int;
BEGIN
    EXECUTE 'DROP TABLE IF EXISTS t';
    EXECUTE format('CREATE TABLE t (%s)', columns);
    EXECUTE ddl;
    SELECT string_agg(attname, ', ' ORDER BY attnum) INTO names FROM pg_attribute
      WHERE attrelid = 't'::regclass AND attnum > 0;
    PERFORM ttl.enable('t', 3600);
    PERFORM set_config('ttl.preserve_ts', 'on', true);
    EXECUTE format('INSERT INTO t (%s, _ts, ttl) SELECT %s, now() - g %% 2 * interval ''1 day'', 60
                      FROM generate_series(1, 1500) g ORDER BY md5(g::text)', names, replace(key, '$1', 'g'));
    PERFORM set_config('ttl.preserve_ts', 'off', true);
    insertion := format('INSERT INTO t (%s) SELECT %s', names, key);
    inserted := 0; refused := 0; refused_again := 0;
    FOR round IN 1..2 LOOP
        FOR g IN 1..1500 LOOP
            BEGIN
                EXECUTE insertion USING g;
                inserted := inserted + 1;
            EXCEPTION WHEN unique_violation OR exclusion_violation THEN
                IF round = 1 THEN refused := refused + 1; ELSE refused_again := refused_again + 1; END IF;
            END;
        END LOOP;
    END LOOP;
    SELECT count(*) INTO rows FROM t;
END $$;

SELECT * FROM try('a bigint PRIMARY KEY', '$1');
SELECT * FROM try('a numeric UNIQUE', '$1 / 7.0');
SELECT * FROM try('a text COLLATE "C", b int, c text, UNIQUE (a, b) INCLUDE (c)', $$repeat('k', 300) || $1 % 7, $1, 'c'$$);
SELECT * FROM try('a varchar(20), b int', $$'k' || $1 % 2, $1$$, 'CREATE UNIQUE INDEX ON t (a DESC NULLS LAST, b NULLS FIRST)');
SELECT * FROM try('a int, b int', '$1 / 2, $1 % 2', 'CREATE UNIQUE INDEX ON t (a, b DESC)');
SELECT * FROM try('a text', $$'Key' || $1$$, 'CREATE UNIQUE INDEX ON t (lower(a))');
SELECT * FROM try('a int, b int', '$1, 1', 'CREATE UNIQUE INDEX ON t (a) WHERE b > 0');
SELECT * FROM try('a int UNIQUE DEFERRABLE', '$1');
SELECT * FROM try('a int, b int, UNIQUE NULLS NOT DISTINCT (a, b)', 'NULL, $1');
SELECT * FROM try('a int, EXCLUDE USING btree (a WITH =)', '$1');
-- NULLs conflict with nothing
SELECT * FROM try('a int, b int, UNIQUE (a, b)', 'NULL, $1');
-- an index without an entry
CREATE TABLE u (a int PRIMARY KEY);
SELECT ttl.enable('u', 3600);
INSERT INTO u VALUES (1);
INSERT INTO u VALUES (1);
DELETE FROM u;
INSERT INTO u VALUES (1) RETURNING a;
DROP SCHEMA free_keys_trees CASCADE;
