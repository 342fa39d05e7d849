-- M1 to M12 in hostile cases: what must not run, what must not come back, what must not expire.
CREATE SCHEMA ttl_index_hostile;
SET search_path = ttl_index_hostile;
CREATE ROLE ttl_index_mallory;
GRANT ALL ON SCHEMA ttl_index_hostile TO ttl_index_mallory;
\set past 'now() - interval ''1 day'''
\set future 'now() + interval ''1 day'''

-- M4: a predicate runs with the rights of whoever reads. A function in C makes a value of a
-- type whose domain calls a function of the owner's.
CREATE FUNCTION populate(anyelement, jsonb) RETURNS anyelement
    LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'jsonb_populate_record';
SET ROLE ttl_index_mallory;
CREATE FUNCTION steal(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'run as %', current_user;
    RETURN true;
END $$;
CREATE DOMAIN level AS text CHECK (steal(value));
CREATE TYPE entry AS (level level);
CREATE TABLE by_type (id int, d timestamptz, j jsonb, l level[], r entry);
CREATE INDEX by_type_record ON by_type (d) WHERE (populate(NULL::ttl_index_hostile.entry, j)).level = 'debug';
SELECT ttl.expire_index('by_type_record', 0);
CREATE INDEX by_type_records ON by_type (d) WHERE (ARRAY[populate(NULL::ttl_index_hostile.entry, j)])[1] IS NULL;
SELECT ttl.expire_index('by_type_records', 0);
-- what a column holds has been checked when it was stored
CREATE INDEX by_type_column ON by_type (d) WHERE (r).level IS NULL AND l IS NULL;
SELECT ttl.expire_index('by_type_column', 0);
DROP INDEX by_type_record, by_type_records, by_type_column;
-- the same by SQL/JSON: a type to return, and a cast to json of the owner's
CREATE TYPE kind AS ENUM ('a', 'b');
CREATE FUNCTION as_json(kind) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE WARNING 'run as %', current_user;
    RETURN '1';
END $$;
CREATE CAST (kind AS json) WITH FUNCTION as_json(kind);
ALTER TABLE by_type ADD k kind;
DO $$
DECLARE
    predicates text[] := CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ARRAY[
        'json_value(j, ''$.a'' RETURNING level) = ''x''', 'json_array(k RETURNING text) <> ''''',
        'json_object(''a'': k RETURNING jsonb) IS NOT NULL', 'json_scalar(k) IS NOT NULL'] ELSE '{}' END;
    predicate text;
BEGIN
    FOREACH predicate IN ARRAY predicates LOOP
        EXECUTE 'CREATE INDEX by_json ON by_type (d) WHERE ' || predicate;
        BEGIN
            PERFORM ttl.expire_index('by_json', 0);
            RAISE WARNING 'not refused: %', predicate;
        EXCEPTION WHEN wrong_object_type THEN
            NULL;
        END;
        DROP INDEX by_json;
    END LOOP;
END $$;
-- an enum in a plain predicate is a column like any other
CREATE INDEX by_enum ON by_type (d) WHERE k = 'a';
SELECT ttl.expire_index('by_enum', 0);
INSERT INTO by_type (id, d, k) VALUES (1, :past, 'a'), (2, :past, 'b'), (3, :past, NULL), (4, :future, 'a');
SELECT id FROM by_type ORDER BY id;
RESET ROLE;

-- C6: no function of a user is called with an expired row, even inside a function of the
-- filter's. The costs are such that their sum, less itself, is rounded to below zero.
CREATE FUNCTION sees(int) RETURNS boolean LANGUAGE plpgsql COST 1 AS $$
BEGIN
    RAISE WARNING 'sees %', $1;
    RETURN true;
END $$;
CREATE FUNCTION sees6(int) RETURNS boolean LANGUAGE plpgsql COST 6 AS 'BEGIN RETURN true; END';
CREATE TABLE seen (id int, d timestamptz);
CREATE INDEX seen_d ON seen (d);
SELECT ttl.expire_index('seen_d', 0);
INSERT INTO seen VALUES (1, :past), (2, :future);
SELECT id FROM seen WHERE ttl_internal.evaluate_first(sees(id) AND sees(id) AND sees6(id));
EXPLAIN (COSTS OFF) SELECT id FROM seen WHERE ttl_internal.evaluate_first(sees(id) AND sees(id) AND sees6(id));
-- nor before a predicate that costs much, whose sum is rounded, too
DROP INDEX seen_d;
CREATE FUNCTION sees_cheaply(int) RETURNS boolean LANGUAGE plpgsql COST 1e-30 AS $$
BEGIN
    RAISE WARNING 'sees %', $1;
    RETURN true;
END $$;
CREATE INDEX seen_d ON seen (d) WHERE id * 3 + id / 7 - id % 5 > 0 OR id + 1 = 2 OR id IN (4, 5, 6) OR abs(id) > 0;
SELECT ttl.expire_index('seen_d', 0);
SELECT id FROM seen WHERE sees_cheaply(id);

-- a function in the predicate that parallel workers must not call keeps them away
CREATE FUNCTION plus(int, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL UNSAFE AS 'int4pl';
CREATE TABLE apart (id int, d timestamptz);
INSERT INTO apart SELECT i, :future FROM generate_series(1, 1000) i;
CREATE INDEX apart_d ON apart (d) WHERE plus(id, 1) > 5;
SELECT ttl.expire_index('apart_d', 0);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM apart;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- M8: an index goes with any column that it holds or whose name stands in it
CREATE TABLE with_column (id int, d timestamptz, x int, y int);
CREATE INDEX with_included ON with_column (d) INCLUDE (x);
SELECT ttl.expire_index('with_included', 0);
INSERT INTO with_column VALUES (1, :past), (2, :future);
ALTER TABLE with_column DROP COLUMN x;
SELECT id FROM with_column;
CREATE INDEX with_named ON with_column (d) WHERE y IS NULL OR true;
SELECT ttl.expire_index('with_named', 0);
INSERT INTO with_column VALUES (3, :past);
ALTER TABLE with_column DROP COLUMN y;
SELECT id FROM with_column;
SELECT ttl_internal.rules('with_column');

-- a subtransaction of an event trigger's that fails does not make the outer statement forget
CREATE TABLE followed (id int, d timestamptz, born timestamptz);
CREATE INDEX followed_d ON followed (d);
SELECT ttl.expire_index('followed_d', 0);
INSERT INTO followed VALUES (1, :past, :past), (2, :future, :past);
CREATE FUNCTION fails() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
    NULL;
END $$;
CREATE EVENT TRIGGER ttl_index_fails ON ddl_command_end EXECUTE FUNCTION fails();
ALTER INDEX followed_d RENAME TO followed_e;
SELECT id FROM followed;
SELECT ttl_internal.rules('followed');
DROP INDEX followed_e;
SELECT ttl_internal.rules('followed');
DROP EVENT TRIGGER ttl_index_fails;
-- an ordinary index of that name is none by which rows expire
CREATE INDEX followed_e ON followed (born);
SELECT id FROM followed;

-- the same where deletion waits for ttl.resume
CREATE TABLE restored (id int, d timestamptz, born timestamptz);
CREATE INDEX restored_d ON restored (d);
SECURITY LABEL FOR ttl ON TABLE restored IS
    '{"ts_column": null, "ttl_column": null, "default_ttl": null, "rules": [{"index": "restored_d", "expire_after_seconds": 0}]}';
INSERT INTO restored VALUES (1, :future, :past);
DROP INDEX restored_d;
CREATE INDEX restored_d ON restored (born);
SELECT id FROM restored;
SELECT ttl_internal.rules('restored');

-- the schema's owner may drop an index, too, and brings no row back
CREATE ROLE ttl_index_alice;
CREATE SCHEMA ttl_index_schema AUTHORIZATION ttl_index_mallory;
GRANT ALL ON SCHEMA ttl_index_schema TO ttl_index_alice;
SET ROLE ttl_index_alice;
CREATE TABLE ttl_index_schema.t (id int, d timestamptz);
CREATE INDEX t_d ON ttl_index_schema.t (d);
SELECT ttl.expire_index('ttl_index_schema.t_d', 0);
INSERT INTO ttl_index_schema.t VALUES (1, :past), (2, :future);
SET ROLE ttl_index_mallory;
DROP INDEX ttl_index_schema.t_d;
RESET ROLE;
SELECT id FROM ttl_index_schema.t;

-- an index that comes after the label counts for heirs at once, too
CREATE TABLE parent (id int, d timestamptz);
CREATE TABLE heir () INHERITS (parent);
SECURITY LABEL FOR ttl ON TABLE parent IS
    '{"ts_column": null, "ttl_column": null, "default_ttl": null, "rules": [{"index": "parent_d", "expire_after_seconds": 0}]}';
INSERT INTO heir VALUES (1, :past), (2, :future);
SELECT id FROM heir ORDER BY id;
CREATE INDEX parent_d ON parent (d);
SELECT id FROM heir ORDER BY id;

-- the extension's own query is told from those of functions that run while it is planned
CREATE TABLE ruled (id int, d timestamptz);
CREATE TABLE archive (id int, live bigint);
CREATE INDEX ruled_d ON ruled (d);
SELECT ttl.expire_index('ruled_d', 0);
CREATE FUNCTION folded(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM pg_class WHERE relname = '') + $1;
END $$;
CREATE RULE archived AS ON DELETE TO ruled DO ALSO INSERT INTO archive SELECT OLD.id, folded(0);
INSERT INTO ruled VALUES (1, :past), (2, :future), (3, :past);
SELECT ttl.purge('ruled');
SELECT * FROM archive ORDER BY id;
SELECT id FROM ruled;
DROP RULE archived ON ruled;
-- and, if a rule takes its place, from those of triggers, which see no expired row
CREATE FUNCTION count_ruled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO archive SELECT -OLD.id, count(*) FROM ruled;
    RETURN NEW;
END $$;
CREATE TRIGGER count_ruled BEFORE UPDATE ON ruled FOR EACH ROW EXECUTE FUNCTION count_ruled();
CREATE RULE kept AS ON DELETE TO ruled DO INSTEAD UPDATE ruled SET d = NULL WHERE id = OLD.id;
INSERT INTO ruled VALUES (4, :past);
SELECT ttl.purge('ruled');
SELECT * FROM archive WHERE id < 0;
SELECT id, d IS NULL AS kept FROM ruled ORDER BY id;

SET client_min_messages = error;
DROP SCHEMA ttl_index_schema CASCADE;
DROP SCHEMA ttl_index_hostile CASCADE;
DROP ROLE ttl_index_mallory;
DROP ROLE ttl_index_alice;
