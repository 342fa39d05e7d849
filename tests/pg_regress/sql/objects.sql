-- Promise of the reference: the extension's own objects are documented, settings as the reference says, all gone with it.
SELECT pg_describe_object(classid, objid, 0) AS without_comment
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND classid <> 'pg_type'::regclass
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ttl_ext')
   AND obj_description(objid, classid::regclass::name) IS NULL;
SELECT attname AS column_without_comment FROM pg_attribute
 WHERE attrelid IN ('ttl.tables'::regclass, 'ttl.stats'::regclass, 'ttl.progress'::regclass) AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;
SELECT name, setting, context, vartype, short_desc FROM pg_settings WHERE name LIKE 'ttl.%' ORDER BY name;
SET ttl.nosuch = 1;
\df ttl.*
\df ttl_internal.*
-- what PUBLIC may do
SELECT relname, privilege_type FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'ttl'::regnamespace AND grantee = 0 ORDER BY 1;
SELECT proname FROM pg_proc WHERE pronamespace IN ('ttl'::regnamespace, 'ttl_internal'::regnamespace) AND NOT has_function_privilege('pg_monitor', oid, 'EXECUTE') ORDER BY 1;
-- volatility and safety are written down, not inherited from defaults
SELECT proname, provolatile, proparallel, proleakproof, prosecdef FROM pg_proc WHERE pronamespace IN ('ttl'::regnamespace, 'ttl_internal'::regnamespace) ORDER BY 1, oid::regprocedure::text;

-- works where PUBLIC gets nothing by default
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
DROP EXTENSION ttl_ext;
CREATE EXTENSION ttl_ext;
SELECT proname FROM pg_proc WHERE pronamespace IN ('ttl'::regnamespace, 'ttl_internal'::regnamespace) AND NOT has_function_privilege('pg_monitor', oid, 'EXECUTE') ORDER BY 1;
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC;

-- without the extension a label means nothing; dropping needs CASCADE while tables use it
CREATE TABLE objects_t (id int);
SELECT ttl.enable('objects_t', 100);
SET ttl.preserve_ts = on;
INSERT INTO objects_t (id, _ts) VALUES (1, now() - interval '1 h');
RESET ttl.preserve_ts;
PREPARE q AS SELECT count(*) FROM objects_t;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
\set VERBOSITY terse
DROP EXTENSION ttl_ext;
SET client_min_messages = warning;
DROP EXTENSION ttl_ext CASCADE;
RESET client_min_messages;
EXECUTE q;
UPDATE objects_t SET id = 2;
INSERT INTO objects_t (id, _ts) VALUES (3, now());
\d objects_t
SECURITY LABEL FOR ttl ON TABLE objects_t IS '{"default_ttl": 100}';
-- a schema of that name that somebody else made is not taken for it
CREATE SCHEMA ttl;
CREATE FUNCTION ttl.live(timestamptz, integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
SELECT count(*) FROM objects_t;
CREATE EXTENSION ttl_ext;
DROP SCHEMA ttl CASCADE;
CREATE EXTENSION ttl_ext;
EXECUTE q;
DROP TABLE objects_t;
