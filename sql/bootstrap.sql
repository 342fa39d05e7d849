-- Fails if one of the schemas exists: it may hold somebody else's functions, which would be taken for
-- the extension's. What users and operators call, and what plans, defaults and triggers show, is in ttl; what
-- only the extension and its views call is in ttl_internal.
CREATE SCHEMA ttl;
COMMENT ON SCHEMA ttl IS 'time to live for tables (extension ttl_ext)';
CREATE SCHEMA ttl_internal;
COMMENT ON SCHEMA ttl_internal IS 'internal objects of extension ttl_ext';

-- The first function: with a library older than these objects, nothing below is tried.
CREATE FUNCTION ttl_internal.check_library() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'check_library_wrapper';
COMMENT ON FUNCTION ttl_internal.check_library() IS
    'raises an error if the server''s library is older than the extension''s objects; for CREATE and ALTER EXTENSION';
SELECT ttl_internal.check_library();
