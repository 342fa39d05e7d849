-- Fails if the schema exists: it may hold somebody else's functions, which would be taken for
-- the extension's.
CREATE SCHEMA ttl;
COMMENT ON SCHEMA ttl IS 'time to live for tables (extension ttl_ext)';
