-- C17: seconds as functions take them: numbers, intervals, and their text, typed and not.
CREATE SCHEMA seconds;
SET search_path = seconds;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; detail text; hint text; state text; result text;
BEGIN
    EXECUTE statement INTO result;
    RETURN coalesce(nullif(result, ''), 'no error');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    -- 19 words these hints in another way
    IF state = '42883' THEN RETURN state || ': ' || message; END IF;
    RETURN state || ': ' || message || coalesce(E'\n   ' || nullif(detail, ''), '') || coalesce(E'\n   ' || nullif(hint, ''), '');
END $$;
\pset format unaligned
\pset tuples_only on

-- every form of a literal, typed and not
CREATE TABLE t (id int PRIMARY KEY);
SELECT ttl.enable('t', '30 minutes');
CREATE FUNCTION default_of(literal text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT ttl.set_default(''t'', %s)', literal);
    RETURN (SELECT coalesce(default_ttl::text, 'off') FROM ttl.tables WHERE relation = 't'::regclass);
END $$;
SELECT literal, try(format('SELECT default_of(%L)', literal)) FROM (VALUES
    ('1800'), ('''1801'''), ('1802::smallint'), ('1803::bigint'), ('1804::numeric'), ('1805.00'), ('1.806e3'), ('1807::real'), ('1808::double precision'),
    ('''1809''::text'), ('''1810''::varchar'), ('1811::oid::bigint'), ('''1812 s'''), ('''1813.000'''), ('''30 min 14 s'''), ('interval ''00:30:15'''),
    ('interval ''1 day'' + interval ''-12 hours'''), ('''PT1H'''), ('''@ 1 hour 1 sec'''), ('''1:00:02'''), ('''1 week'''), ('''7 days 1 s'''::text),
    ('make_interval(hours => 24)'), ('2 * interval ''1 hour'''), ('''2 hours''::ttl.seconds'), ('(SELECT 77)'), ('''-1'''), ('-1'), ('-1.0'), ('NULL'), ('NULL::interval'),
    ('NULL::bigint'), ('2147483647'), ('''24855 days 11647 s''')) l (literal);
-- what is none, or no seconds
SELECT literal, try(format('SELECT default_of(%L)', literal)) FROM (VALUES
    ('''1 month'''), ('interval ''1 year 2 days'''), ('''0.5 year'''), ('''1.5 months'''), ('''1 mon -30 days'''),
    ('1800.5'), ('''1800.5'''), ('1800.5::double precision'), ('''1.5 s'''), ('interval ''1 microsecond'''),
    ('2147483648'), ('''2147483648'''), ('1e10::double precision'), ('99999999999999999999'), ('''24855 days 11648 s'''), ('-2147483649'),
    ('''NaN'''), ('''NaN''::double precision'), ('''infinity''::double precision'), ('''NaN''::numeric'),
    ('interval ''-1 second'''), ('''-1 second'''), ('''1 hour ago'''), ('repeat(''9'', 200)'),
    ('0'), ('''0'''), ('''0 s'''), ('-2'), ('''-2'''), ('''half an hour'''), (''''''), ('''30 minuts'''), ('true'), ('''2020-01-01''::date'), ('now()')) l (literal);
-- whatever the styles of the session
SET IntervalStyle = sql_standard;
SELECT default_of('interval ''1 day 1 hour'''), default_of('interval ''0 days 5 s'''), try('SELECT default_of(''interval ''''-1 s'''''')');
SET IntervalStyle = iso_8601;
SELECT default_of('interval ''1 day 2 hours'''), try('SELECT default_of(''interval ''''-1 s'''''')');
SET IntervalStyle = postgres_verbose;
SELECT default_of('interval ''1 day 3 hours'''), try('SELECT default_of(''interval ''''-1 s'''''')');
RESET IntervalStyle;

-- prepared statements: the parameter's type is the driver's, or left to the server
PREPARE unknown_type AS SELECT ttl.set_default('t', $1);
PREPARE int2 (smallint) AS SELECT ttl.set_default('t', $1);
PREPARE int4 (integer) AS SELECT ttl.set_default('t', $1);
PREPARE int8 (bigint) AS SELECT ttl.set_default('t', $1);
PREPARE num (numeric) AS SELECT ttl.set_default('t', $1);
PREPARE dbl (double precision) AS SELECT ttl.set_default('t', $1);
PREPARE txt (text) AS SELECT ttl.set_default('t', $1);
PREPARE vch (varchar) AS SELECT ttl.set_default('t', $1);
PREPARE ivl (interval) AS SELECT ttl.set_default('t', $1);
SELECT name, parameter_types FROM pg_prepared_statements WHERE name = 'unknown_type';
CREATE VIEW now_is AS SELECT default_ttl FROM ttl.tables WHERE relation = 't'::regclass;
EXECUTE unknown_type (11); TABLE now_is;
EXECUTE unknown_type ('12'); TABLE now_is;
EXECUTE unknown_type ('13 s'); TABLE now_is;
EXECUTE int2 (14); TABLE now_is;
EXECUTE int4 (15); TABLE now_is;
EXECUTE int8 (16); TABLE now_is;
EXECUTE num (17); TABLE now_is;
EXECUTE dbl (18); TABLE now_is;
EXECUTE txt ('19'); TABLE now_is;
EXECUTE txt ('20 s'); TABLE now_is;
EXECUTE vch ('21'); TABLE now_is;
EXECUTE ivl ('22 s'); TABLE now_is;
EXECUTE int8 (2147483648);
EXECUTE int4 (NULL); TABLE now_is;
EXECUTE unknown_type (NULL); TABLE now_is;
DO $$
DECLARE i int := 31; b bigint := 32; n numeric := 33; v interval := '34 s'; x text := '35 s'; r record;
BEGIN
    PERFORM ttl.set_default('t', i); PERFORM ttl.set_default('t', b); PERFORM ttl.set_default('t', n);
    PERFORM ttl.set_default('t', v); PERFORM ttl.set_default('t', x);
    FOR r IN SELECT 36::bigint AS seconds LOOP PERFORM ttl.set_default('t', r.seconds); END LOOP;
END $$;
TABLE now_is;

-- by position and by name, in each function
CREATE TABLE u (id int PRIMARY KEY, d timestamptz);
CREATE INDEX u_d ON u (d);
SELECT ttl.enable('u');
SELECT ttl.enable('u', default_ttl => '1 hour', ts_granularity => '1 minute');
SELECT ttl.enable('u', ts_granularity => interval '2 minutes', default_ttl => 7200);
SELECT try('SELECT ttl.enable(''u'', ''1 hour'', ts_granularity => ''31 minutes'')');
SELECT try('SELECT ttl.enable(''u'', NULL)');
SELECT default_ttl, ts_granularity FROM ttl.tables WHERE relation = 'u'::regclass;
SELECT ttl.expire_index('u_d', '1 day');
SELECT rules -> 0 -> 'expireAfterSeconds' FROM ttl.tables WHERE relation = 'u'::regclass;
SELECT ttl.expire_index('u_d', expire_after_seconds => '0');
SELECT ttl.expire_index('u_d', interval '0');
SELECT rules -> 0 -> 'expireAfterSeconds' FROM ttl.tables WHERE relation = 'u'::regclass;
SELECT try('SELECT ttl.expire_index(''u_d'', ''-1 month'')');
SELECT try('SELECT ttl.expire_index(''u_d'', ''-1'')');
SELECT ttl.expire_index('u_d', NULL);
SELECT * FROM ttl.preview('u', '1 day');
SELECT * FROM ttl.preview('u');

-- at a glance
SELECT ttl.set_default('t', '30 days');
SELECT relation, default_ttl, default_interval, next_expiry, backlog, worker FROM ttl.tables
 WHERE relation IN ('t'::regclass, 'u'::regclass) ORDER BY 1;
SELECT ttl.set_default('t', -1);
SELECT default_interval, worker FROM ttl.tables WHERE relation = 't'::regclass;
SELECT ttl.set_default('t', NULL);
SELECT default_interval, worker FROM ttl.tables WHERE relation = 't'::regclass;
-- no name is in both views but the table's
SELECT attname FROM pg_attribute WHERE attrelid IN ('ttl.tables'::regclass, 'ttl.stats'::regclass) AND attnum > 0 GROUP BY 1 HAVING count(*) > 1;
-- what is not shown is not evaluated
CREATE FUNCTION evaluates(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
        IF line ~ 'ttl_internal\.standing' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT evaluates('SELECT worker FROM ttl.tables'), evaluates('SELECT relation, default_ttl, default_interval, problems FROM ttl.tables');

-- \d+ tells what the columns are
SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname IN ('_ts', 'ttl') ORDER BY 1;

-- a row's override, in words
INSERT INTO u (id, ttl) VALUES (1, '2 days'::ttl.seconds), (2, ttl.seconds '-1'), (3, (interval '90 min')::ttl.seconds);
SELECT id, ttl FROM u ORDER BY id;
SELECT try('INSERT INTO u (id, ttl) VALUES (4, ''-1 month''::ttl.seconds)');
-- the type is one for arguments: it compares with nothing
SELECT try('SELECT ''5''::ttl.seconds = 5');
SELECT '1 hour'::ttl.seconds, '1 hour'::ttl.seconds::int + 1, pg_typeof('1 hour'::ttl.seconds);

SET client_min_messages = warning;
DROP SCHEMA seconds CASCADE;
