-- Fails if the schema exists: it may hold somebody else's functions, which would be taken for
-- the extension's.
CREATE SCHEMA ttl;
COMMENT ON SCHEMA ttl IS 'time to live for tables (extension ttl_ext)';

-- The first function: with a library older than these objects, nothing below is tried.
CREATE FUNCTION ttl.check_library() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'check_library_wrapper';
COMMENT ON FUNCTION ttl.check_library() IS
    'raises an error if the server''s library is older than the extension''s objects; for CREATE and ALTER EXTENSION';
SELECT ttl.check_library();
