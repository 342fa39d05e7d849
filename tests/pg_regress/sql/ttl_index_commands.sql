-- needs: citext
-- D4, M1, M6, M7: ttl.create_index, ttl.coll_mod and ttl.expire_index: what they answer,
-- and what they refuse, each with its SQLSTATE, DETAIL and HINT.
CREATE SCHEMA ttl_index_commands;
SET search_path = ttl_index_commands;
SET timezone = 'UTC';
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; detail text; hint text; state text; result text;
BEGIN
    EXECUTE statement INTO result;
    RETURN coalesce(nullif(result, ''), 'no error');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    -- the form of a whole command is the same in every HINT
    RETURN state || ': ' || message || coalesce(E'\n   ' || nullif(detail, ''), '')
        || coalesce(E'\n   ' || nullif(CASE WHEN hint LIKE 'A TTL index: %' OR hint LIKE 'A change: %' THEN '(the form)' ELSE hint END, ''), '');
END $$;
\pset format unaligned
\pset tuples_only on

-- D4: what they answer -------------------------------------------------------------
CREATE TABLE t (id int PRIMARY KEY, d timestamptz, e date, a timestamp[], level text, doc jsonb);
SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 3600}');
SELECT ttl.create_index('t', '{"e": -1}', '{"expireAfterSeconds": 0, "name": "by day"}');
SELECT ttl.create_index('t', '{"a": 1.0}', '{"expireAfterSeconds": 2147483647.0}');
SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 1e1, "partialFilterExpression": "level = ''debug'' -- those"}');
SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY 1;
SELECT jsonb_path_query(rules, '$[*]') FROM ttl.tables WHERE relation = 't'::regclass;
-- the same again: nothing to be done; the other direction is another index, as in MongoDB
SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 3600}');
SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 3600, "name": "t_d_idx"}');
SELECT ttl.create_index('t', '{"a": 1}', '{"expireAfterSeconds": 2147483647}');
SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 10, "partialFilterExpression": "  ((level)) = (''debug''::text)"}');
SELECT ttl.create_index('t', '{"d": -1}', '{"expireAfterSeconds": 7200}');
SELECT ttl.coll_mod('t', '{"index": {"keyPattern": {"d": -1}, "expireAfterSeconds": 7201}}');
SELECT jsonb_path_query(rules, '$[*]') FROM ttl.tables WHERE relation = 't'::regclass;
DROP INDEX t_d_idx2;
-- M7: the same key and predicate with other seconds, or another name
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 3601}') $$);
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 3600, "name": "other"}') $$);
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 9, "partialFilterExpression": "level = ''debug''"}') $$);
SELECT try($$ SELECT ttl.create_index('t', '{"a": 1}', '{"expireAfterSeconds": 1}') $$);
CREATE INDEX plain_level ON t (d) WHERE level = 'plain';
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 9, "partialFilterExpression": "level = ''plain''"}') $$);
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 9, "name": "by day", "partialFilterExpression": "level = ''x''"}') $$);
SELECT try($$ SELECT ttl.create_index('t', '{"d": 1}', '{"expireAfterSeconds": 9, "name": "try", "partialFilterExpression": "level = ''x''"}') $$);

-- what drivers send and getIndexes() shows pastes in
CREATE TABLE pasted (id int, d timestamptz, a date[], "key" date, body jsonb);
SELECT ttl.create_index('pasted', '{"d": 1}', '{"v": 2, "key": {"d": 1}, "name": "d_1", "ns": "app.pasted", "background": true, "expireAfterSeconds": 60}');
SELECT ttl.create_index('pasted', '{"v": 2, "key": {"d": -1}, "name": "d_-1", "expireAfterSeconds": 60, "sparse": true, "unique": false}');
SELECT ttl.create_index('pasted', '{"key": 1}', '{"expireAfterSeconds": 60}');
SELECT ttl.create_index('pasted', '{"v": 1, "key": {"_ts": 1}, "name": "_ts_1", "ns": "app.pasted", "expireAfterSeconds": 60}');
SELECT default_ttl, jsonb_path_query(rules, '$[*]') FROM ttl.tables WHERE relation = 'pasted'::regclass;
SELECT try(format('SELECT ttl.create_index(''pasted'', %s)', arguments)) FROM (VALUES
    ($$'{"d": 1}'$$), ($$'{"d": 1}', '{}'$$), ($$'{"d": 1}', NULL$$), ($$'{"key": {"d": 1}}'$$), ($$'{"d": 1}', '{"key": {"d": -1}, "expireAfterSeconds": 60}'$$),
    ($$'{"key": {"d": 1}, "expireAfterSeconds": 60}', '{"name": "x"}'$$), ($$'{"key": {"d": 1}, "expireAfterSeconds": 60, "weights": {}}'$$),
    ($$'{"d": 1}', '{"expireAfterSeconds": 60, "unique": true}'$$), ($$'{"a": -1}', '{"expireAfterSeconds": 60, "unique": true, "name": "By \"a\"", "partialFilterExpression": "id > 5"}'$$),
    ($$'{"_ts": 1}', '{"expireAfterSeconds": 60, "unique": true}'$$), ($$'{"_ts": -1}', '{"expireAfterSeconds": 60, "name": "_ts_1"}'$$)) a (arguments);
-- each HINT shows the form, and lists what is accepted
SELECT ttl.create_index('pasted', '{"d": 1}');
SELECT ttl.coll_mod('pasted', '{"validator": {}}');
DROP TABLE pasted;

-- M6: coll_mod answers with the seconds before and after; no index is built
CREATE TEMP TABLE nodes AS SELECT oid, relfilenode FROM pg_class WHERE relname IN ('t_d_idx', 'plain_level');
SELECT ttl.coll_mod('t', '{"index": {"name": "t_d_idx", "expireAfterSeconds": 100}}');
SELECT ttl.coll_mod('t', '{"index": {"name": "t_d_idx", "expireAfterSeconds": 100}}');
SELECT ttl.coll_mod('t', '{"collMod": "t", "index": {"keyPattern": {"e": -1}, "expireAfterSeconds": 50}}');
SELECT ttl.coll_mod('t', '{"collMod": "ttl_index_commands.t", "index": {"keyPattern": {"a": 1}, "expireAfterSeconds": 0}}');
SET quote_all_identifiers = on;
SELECT ttl.coll_mod('t', '{"collMod": "ttl_index_commands.t", "index": {"keyPattern": {"a": 1}, "expireAfterSeconds": 0}}');
RESET quote_all_identifiers;
SELECT ttl.coll_mod('t', '{"collMod": "TTL_index_commands.\"t\"", "index": {"keyPattern": {"a": 1}, "expireAfterSeconds": 0}}');
SELECT ttl.coll_mod('t', '{"index": {"name": "plain_level", "expireAfterSeconds": 7}}');
SELECT count(*) FROM nodes NATURAL JOIN pg_class;
SELECT try(format('SELECT ttl.coll_mod(''t'', %L)', command)) FROM (VALUES
    ('{"index": {"name": "none", "expireAfterSeconds": 7}}'), ('{"index": {"name": "t_pkey", "expireAfterSeconds": 7}}'),
    ('{"index": {"name": "try", "expireAfterSeconds": 7}}'), ('{"index": {"name": "pg_class_oid_index", "expireAfterSeconds": 7}}'),
    ('{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 7}}'), ('{"index": {"keyPattern": {"d": -1}, "expireAfterSeconds": 7}}'),
    ('{"index": {"keyPattern": {"e": 1}, "expireAfterSeconds": 7}}'), ('{"index": {"keyPattern": {"id": 1}, "expireAfterSeconds": 7}}'),
    ('{"index": {"keyPattern": {"nosuch": 1}, "expireAfterSeconds": 7}}'), ('{"index": {"keyPattern": {"E": -1}, "expireAfterSeconds": 7}}'),
    ('{"collMod": "other", "index": {"name": "t_d_idx", "expireAfterSeconds": 7}}'),
    ('{"index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": 7}}')) c (command);
-- D4: {"_ts": 1} is the table's default
SELECT ttl.create_index('t', '{"_ts": 1}', '{"expireAfterSeconds": 3600}');
SELECT ttl.create_index('t', '{"_ts": 1}', '{"expireAfterSeconds": 3600}');
SELECT ttl.coll_mod('t', '{"index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": -1}}');
SELECT ttl.create_index('t', '{"_ts": -1}', '{"expireAfterSeconds": 60}');
SELECT default_ttl, ts_column, ttl_column, jsonb_array_length(rules), problems FROM ttl.tables WHERE relation = 't'::regclass;
SELECT try(format('SELECT ttl.create_index(''t'', ''{"_ts": 1}'', %L)', options)) FROM (VALUES
    ('{"expireAfterSeconds": 61}'), ('{"expireAfterSeconds": 0}'), ('{"expireAfterSeconds": -2}'),
    ('{"expireAfterSeconds": 60, "name": "x"}'), ('{"expireAfterSeconds": 60, "partialFilterExpression": "true"}')) o (options);
SELECT try($$ SELECT ttl.coll_mod('t', '{"index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": 0}}') $$);
-- a clock of another name is the default's key, and "_ts" a column like any other
CREATE TABLE clock (id int, changed timestamptz, _ts timestamptz);
SELECT ttl.enable('clock', 100, ts_column => 'changed');
SELECT ttl.coll_mod('clock', '{"index": {"keyPattern": {"changed": 1}, "expireAfterSeconds": 200}}');
SELECT ttl.coll_mod('clock', '{"index": {"name": "changed_1", "expireAfterSeconds": 300}}');
SELECT try($$ SELECT ttl.coll_mod('clock', '{"index": {"name": "_ts_1", "expireAfterSeconds": 300}}') $$);
SELECT ttl.coll_mod('clock', '{"index": {"name": "changed_1", "expireAfterSeconds": 200}}');
SELECT ttl.create_index('clock', '{"_ts": 1}', '{"expireAfterSeconds": 3}');
SELECT default_ttl, rules FROM ttl.tables WHERE relation = 'clock'::regclass;
-- after ttl.disable, and with an option of the table that must stay
SELECT ttl.disable('clock');
SELECT ttl.create_index('clock', '{"changed": 1}', '{"expireAfterSeconds": 5}');
CREATE TABLE parted (d date) PARTITION BY RANGE (d);
CREATE INDEX parted_d ON parted (d);
SELECT ttl.expire_index('parted_d', 5, drop_partitions => true, hidden => false);
SELECT ttl.create_index('parted', '{"_ts": 1}', '{"expireAfterSeconds": 5}');
SELECT default_ttl, hidden, label::jsonb -> 'drop_partitions', rules FROM ttl.tables
  JOIN pg_seclabel ON objoid = relation AND provider = 'ttl' WHERE relation = 'parted'::regclass;

-- M7: the form ------------------------------------------------------------------
SELECT try(format('SELECT ttl.create_index(''t'', ''{"d": 1}'', %L)', options)) FROM (VALUES
    (NULL), ('{}'), ('[]'), ('1'), ('"expireAfterSeconds"'), ('null'), ('{"expireAfterSeconds": null}'), ('{"expireAfterSeconds": "10"}'),
    ('{"expireAfterSeconds": 1.5}'), ('{"expireAfterSeconds": -1}'), ('{"expireAfterSeconds": -2}'), ('{"expireAfterSeconds": 2147483648}'),
    ('{"expireAfterSeconds": 1e400}'), ('{"expireAfterSeconds": "NaN"}'), ('{"expireAfterSeconds": true}'), ('{"expireAfterSeconds": [1]}'),
    ('{"expireAfterSeconds": {}}'), ('{"expireafterseconds": 1}'), ('{"expireAfterSeconds": 1, "unique": true}'),
    ('{"expireAfterSeconds": 1, "name": ""}'), ('{"expireAfterSeconds": 1, "name": 1}'), ('{"expireAfterSeconds": 1, "name": null}'),
    ('{"expireAfterSeconds": 1, "name": "a2345678901234567890123456789012345678901234567890123456789012345"}'),
    ('{"expireAfterSeconds": 1, "partialFilterExpression": {"level": "debug"}}'), ('{"expireAfterSeconds": 1, "partialFilterExpression": ""}'),
    ('{"expireAfterSeconds": 1, "partialFilterExpression": true}')) o (options);
SELECT try(format('SELECT ttl.create_index(''t'', %L, ''{"expireAfterSeconds": 1}'')', keys)) FROM (VALUES
    (NULL), ('{}'), ('[]'), ('"d"'), ('{"d": 1, "e": 1}'), ('{"d": 2}'), ('{"d": "1"}'), ('{"d": "hashed"}'), ('{"d": true}'), ('{"": 1}'),
    ('{"nosuch": 1}'), ('{"D": 1}'), ('{"id": 1}'), ('{"level": 1}'), ('{"doc": 1}'), ('{"doc.date": 1}'), ('{"ctid": 1}'), ('{"tableoid": 1}'),
    ('{"lower(level)": 1}'), ('{"d, e": 1}'), ('{"d) WHERE (true": 1}')) k (keys);
-- an index that no date leads into is not meant by a key pattern
CREATE TABLE several (d date);
CREATE INDEX several_hash ON several USING hash (d);
CREATE INDEX several_brin ON several USING brin (d);
SELECT try($$ SELECT ttl.coll_mod('several', '{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}}') $$);
CREATE INDEX several_d ON several (d);
SELECT ttl.coll_mod('several', '{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}}');
SELECT rules FROM ttl.tables WHERE relation = 'several'::regclass;
SELECT try(format('SELECT ttl.coll_mod(''t'', %L)', command)) FROM (VALUES
    (NULL), ('{}'), ('[]'), ('{"index": []}'), ('{"index": {}}'), ('{"index": {"name": "t_d_idx"}}'), ('{"index": {"expireAfterSeconds": 1}}'),
    ('{"index": {"name": "t_d_idx", "keyPattern": {"d": 1}, "expireAfterSeconds": 1}}'), ('{"index": {"name": "t_d_idx", "expireAfterSeconds": -1}}'),
    ('{"index": {"name": "t_d_idx", "expireAfterSeconds": 1, "hidden": true}}'), ('{"index": {"keyPattern": {}, "expireAfterSeconds": 1}}'),
    ('{"index": {"keyPattern": {"d": 1, "e": 1}, "expireAfterSeconds": 1}}'), ('{"validator": {}}'), ('{"collMod": 1, "index": {"name": "t_d_idx", "expireAfterSeconds": 1}}')) c (command);
-- M7: predicates
SELECT try(format('SELECT ttl.create_index(''t'', ''{"d": 1}'', %L)', jsonb_build_object('expireAfterSeconds', 1, 'partialFilterExpression', predicate)))
  FROM (VALUES ('level ='), ('nosuch = 1'), ('level'), ('1=1) UNION SELECT (1'), ('true) OR (true'), ('true; DROP TABLE t'), ('true LIMIT 1'), ('true AS x'),
    ('true FROM t'), ('true, false'), ('true)--'), ('SELECT true'), ('EXISTS (SELECT FROM t)'), ('id = (SELECT 1)'), ('count(*) > 1'), ('row_number() OVER () = 1'), ('random() > 0.5'),
    ('d < now()'), ('generate_series(1, 2) = 1'), ('t IS NULL'), ('t.* = t.*'), ('$1'), ('ctid = ''(0,1)'''), ('tableoid = 1'), ('level = E''\x00''')) p (predicate);
-- a predicate may use functions of the server and in C, no others: its readers run them
CREATE FUNCTION mine(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END';
CREATE FUNCTION inlined(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 = ''x''';
CREATE FUNCTION equals(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END';
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = equals);
CREATE DOMAIN word AS text CHECK (mine(VALUE));
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE pair AS (a int, b int);
CREATE CAST (text AS mood) WITH INOUT;
ALTER TABLE t ADD COLUMN w word, ADD COLUMN m mood, ADD COLUMN p pair;
CREATE EXTENSION citext SCHEMA public;
SELECT try(format('SELECT ttl.create_index(''t'', ''{"d": 1}'', %L)', jsonb_build_object('expireAfterSeconds', 1, 'partialFilterExpression', predicate)))
  FROM (VALUES ('mine(level)'), ('inlined(level)'), ('level === ''x'''), ('level::word = ''x'''), ('level = ''x''::word'), ('w = ''x'''), ('m = ''bad'''), ('level::mood = ''bad'''),
    ('(p).a = 1'), ('p = ROW(1, 2)::pair'), ('level::public.citext = ''X'''), ('level IN (''1'', ''2'') OR id = ANY (ARRAY[1, 2])'),
    ('CASE WHEN mine(''constant'') THEN true ELSE level = ''y'' END'), ('doc @> ''{"a": 1}'''), ('doc ->> ''level'' = ''debug'''), ('COALESCE(level, '''') ~ ''^a''')) p (predicate);
SELECT name, partial FROM ttl.tables, jsonb_to_recordset(rules) AS r (name text, "partialFilterExpression" text), LATERAL (SELECT "partialFilterExpression" AS partial) p
 WHERE relation = 't'::regclass AND partial IS NOT NULL ORDER BY partial COLLATE "C";

-- ttl.expire_index -----------------------------------------------------------------
CREATE TABLE u (id int PRIMARY KEY, d timestamptz, e timestamp UNIQUE, a date[], n int, when_ timestamptz NOT NULL, tz time, i interval, day word, x text);
CREATE DOMAIN moment AS timestamptz;
ALTER TABLE u ADD COLUMN dom moment, ADD COLUMN gen timestamp GENERATED ALWAYS AS (e + interval '1 h') STORED;
CREATE INDEX x_two ON u (d, e);
CREATE INDEX x_includes ON u (d) INCLUDE (e);
CREATE INDEX x_expression ON u ((n + 1));
CREATE INDEX x_in_utc ON u ((d AT TIME ZONE 'UTC'));
CREATE INDEX x_hash ON u USING hash (d);
CREATE INDEX x_brin ON u USING brin (d);
CREATE INDEX x_array ON u (a);
CREATE INDEX x_gin ON u USING gin (a);
CREATE INDEX x_earliest ON u (ttl.earliest(a));
CREATE INDEX x_int ON u (n);
CREATE INDEX x_time ON u (tz);
CREATE INDEX x_interval ON u (i);
CREATE INDEX x_domain ON u (dom);
CREATE INDEX x_generated ON u (gen DESC NULLS LAST);
CREATE INDEX x_mine ON u (when_) WHERE mine(x);
CREATE INDEX x_whole_row ON u (when_) WHERE u IS NOT NULL;
CREATE INDEX x_debug ON u (when_) WHERE x = 'debug';
CREATE INDEX x_debug_2 ON u (when_ DESC) WHERE 'debug' = x;
CREATE INDEX x_debug_3 ON u (when_ DESC) WHERE x = 'debug' AND true;
CREATE UNIQUE INDEX x_unique ON u (when_);
CREATE FUNCTION backwards(timestamptz, timestamptz) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT timestamptz_cmp($2, $1)';
CREATE OPERATOR CLASS backwards FOR TYPE timestamptz USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 backwards(timestamptz, timestamptz);
CREATE INDEX x_backwards ON u (d backwards);
SELECT try(format('SELECT ttl.expire_index(%L, 60)', indexrelid::regclass)) || ' (' || indexrelid::regclass || ')' FROM pg_index WHERE indrelid = 'u'::regclass ORDER BY indexrelid;
SELECT jsonb_path_query(rules, '$[*].name') FROM ttl.tables WHERE relation = 'u'::regclass;
SELECT problems FROM ttl.tables WHERE relation = 'u'::regclass;
SELECT regexp_replace(try(format('SELECT ttl.expire_index(%s)', arguments)), 'pg_toast_\d+', 'pg_toast_N') FROM (VALUES ($$'x_debug', -1$$), ($$'x_debug', -2147483648$$), ($$NULL, 1$$), ($$0, 1$$), ($$'u', 1$$), ($$'nosuch', 1$$),
    ($$'x_two', NULL$$), ($$'x_debug_2', NULL$$), ($$'x_debug', 1, drop_partitions => true$$), ($$'x_debug', 1, revive_expired => NULL$$), ($$'x_debug', 2147483647$$), ($$'x_debug', NULL$$),
    ($$'x_debug', NULL$$), ($$'pg_class_oid_index', 1$$), ($$(SELECT indexrelid FROM pg_index JOIN pg_class t ON t.oid = indrelid JOIN pg_class c ON c.reltoastrelid = t.oid WHERE c.oid = 't'::regclass), 1$$)) a (arguments);

-- relations that cannot have it -------------------------------------------------------
CREATE VIEW v AS SELECT * FROM t;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM t;
CREATE INDEX mv_d ON mv (d);
CREATE SEQUENCE s;
CREATE FOREIGN DATA WRAPPER regress_tic_fdw;
CREATE SERVER regress_tic FOREIGN DATA WRAPPER regress_tic_fdw;
CREATE FOREIGN TABLE ft (d date) SERVER regress_tic;
SELECT try(format('SELECT ttl.create_index(%L, ''{"d": 1}'', ''{"expireAfterSeconds": 1}'')', r)) FROM unnest('{v,mv,s,ft,t_d_idx,pg_catalog.pg_class,nosuch}'::text[]) r;
SELECT try(format('SELECT ttl.coll_mod(%L, ''{"index": {"name": "mv_d", "expireAfterSeconds": 1}}'')', r)) FROM unnest('{v,mv,pg_catalog.pg_class}'::text[]) r;
SELECT try('SELECT ttl.expire_index(''mv_d'', 1)');
SELECT try($$ SELECT ttl.create_index(NULL, '{"d": 1}', '{"expireAfterSeconds": 1}') $$), try($$ SELECT ttl.coll_mod(NULL, '{}') $$), try($$ SELECT ttl.create_index(0, '{"d": 1}', '{"expireAfterSeconds": 1}') $$);
-- temporary and unlogged tables; names that need quotes; other schemas
CREATE TEMP TABLE tmp (id int, d date);
-- the NOTICE of its time zone names the session's schema
SET client_min_messages = warning;
SELECT ttl.create_index('tmp', '{"d": 1}', '{"expireAfterSeconds": 1}');
RESET client_min_messages;
INSERT INTO tmp VALUES (1, '2000-01-01'), (2, '3000-01-01');
SELECT id FROM tmp;
SELECT relation, rules FROM ttl.tables WHERE relation = 'tmp'::regclass;
CREATE UNLOGGED TABLE unlogged (d date);
SELECT ttl.create_index('unlogged', '{"d": 1}', '{"expireAfterSeconds": 1}') ->> 'ok';
CREATE SCHEMA "Sch ""ema";
CREATE TABLE "Sch ""ema"."T.able" ("D, ate" timestamptz, "Level" text, "Größe" date, "_ts" text);
SELECT ttl.create_index('"Sch ""ema"."T.able"', '{"D, ate": 1}', '{"expireAfterSeconds": 1, "name": "In\"dex", "partialFilterExpression": "\"Level\" = ''debug''"}');
SELECT ttl.create_index('"Sch ""ema"."T.able"', '{"Größe": 1}', '{"expireAfterSeconds": 1}');
SELECT ttl.coll_mod('"Sch ""ema"."T.able"', '{"collMod": "T.able", "index": {"name": "In\"dex", "expireAfterSeconds": 2}}');
SELECT ttl.expire_index('"Sch ""ema"."In""dex"', 3);
SELECT relation, rules, problems FROM ttl.tables WHERE relation = '"Sch ""ema"."T.able"'::regclass;
SELECT try($$ SELECT ttl.create_index('"Sch ""ema"."T.able"', '{"_ts": 1}', '{"expireAfterSeconds": 1}') $$);
-- partitions and heirs
CREATE TABLE part_1 PARTITION OF parted FOR VALUES FROM ('2000-01-01') TO ('3000-01-01');
SELECT try('SELECT ttl.expire_index(''part_1_d_idx'', 1)'), try($$ SELECT ttl.create_index('part_1', '{"d": 1}', '{"expireAfterSeconds": 1}') $$);
CREATE TABLE heir (e date) INHERITS (unlogged);
SELECT try($$ SELECT ttl.create_index('heir', '{"e": 1}', '{"expireAfterSeconds": 1}') $$);

-- who may, and when ---------------------------------------------------------------------
CREATE ROLE regress_tic_owner;
CREATE ROLE regress_tic_member IN ROLE regress_tic_owner;
CREATE ROLE regress_tic_other;
CREATE TABLE owned (id int, d date);
CREATE INDEX owned_d ON owned (d);
ALTER TABLE owned OWNER TO regress_tic_owner;
GRANT ALL ON SCHEMA ttl_index_commands TO regress_tic_owner, regress_tic_other;
GRANT ALL ON owned TO regress_tic_other;
SET ROLE regress_tic_other;
SELECT try('SELECT ttl.expire_index(''owned_d'', 1)');
SELECT try($$ SELECT ttl.create_index('owned', '{"d": -1}', '{"expireAfterSeconds": 1}') $$);
SELECT try($$ SELECT ttl.coll_mod('owned', '{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}}') $$);
SELECT try($$ SELECT ttl.create_index('owned', '{"_ts": -1}', '{"expireAfterSeconds": 1}') $$);
SET ROLE regress_tic_member;
SELECT ttl.coll_mod('owned', '{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}}');
SELECT ttl.create_index('owned', '{"d": 1}', '{"expireAfterSeconds": 1, "partialFilterExpression": "id > 5"}');
SELECT ttl.expire_index('owned_d', NULL);
RESET ROLE;
SELECT rules FROM ttl.tables WHERE relation = 'owned'::regclass;
BEGIN READ ONLY;
SELECT try('SELECT ttl.expire_index(''owned_d'', 1)');
SELECT try($$ SELECT ttl.create_index('owned', '{"d": 1}', '{"expireAfterSeconds": 1}') $$);
SELECT try($$ SELECT ttl.coll_mod('owned', '{"index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}}') $$);
COMMIT;

-- labels by hand ---------------------------------------------------------------------------
CREATE TABLE byhand (id int, d date, n int);
SELECT try(format('SECURITY LABEL FOR ttl ON TABLE byhand IS %L', label)) FROM (VALUES
    ('{"ts_column": null, "ttl_column": null, "rules": [{"index": "i", "expire_after_seconds": -1}]}'),
    ('{"ts_column": null, "ttl_column": null, "rules": [{"index": "i", "expire_after_seconds": 2147483648}]}'),
    ('{"ts_column": null, "ttl_column": null, "rules": [{"index": "i"}]}'),
    ('{"ts_column": null, "ttl_column": null, "rules": [{"index": "i", "expire_after_seconds": 1, "more": 1}]}'),
    ('{"ts_column": null, "ttl_column": null, "rules": [{"index": "i", "expire_after_seconds": 1}, {"index": "i", "expire_after_seconds": 2}]}'),
    ('{"ts_column": null, "ttl_column": null, "rules": {}}'), ('{"ts_column": null, "ttl_column": null, "hidden": "no"}'),
    ('{"ts_column": null, "rules": []}'), ('{"ts_column": null, "ttl_column": null, "default_ttl": 5}')) l (label);
SECURITY LABEL FOR ttl ON TABLE byhand IS '{"ts_column": null, "ttl_column": null, "rules": [{"index": "byhand_d", "expire_after_seconds": 1}, {"index": "byhand_n", "expire_after_seconds": 1}]}';
INSERT INTO byhand VALUES (1, '2000-01-01'), (2, NULL);
SELECT id FROM byhand ORDER BY id;
CREATE INDEX byhand_d ON byhand (d);
CREATE INDEX byhand_n ON byhand (n);
SELECT id FROM byhand ORDER BY id;
SELECT rules, problems FROM ttl.tables WHERE relation = 'byhand'::regclass;
-- what was labelled by hand stays guarded, whatever is changed
SELECT try('SELECT ttl.expire_index(''byhand_n'', NULL)');
SET client_min_messages = error; -- the warnings of resume.sql
SELECT ttl.expire_index('byhand_n', NULL, revive_expired => true);
SELECT ttl.coll_mod('byhand', '{"index": {"name": "byhand_d", "expireAfterSeconds": 0}}');
RESET client_min_messages;
SELECT problems FROM ttl.tables WHERE relation = 'byhand'::regclass;
SELECT ttl.resume('byhand');
SELECT ttl.purge('byhand');

SET client_min_messages = warning;
DROP SCHEMA ttl_index_commands, "Sch ""ema" CASCADE;
DROP EXTENSION citext;
DROP FOREIGN DATA WRAPPER regress_tic_fdw CASCADE;
DROP ROLE regress_tic_member, regress_tic_owner, regress_tic_other;
