-- Fails if somebody has made a schema of this name before: nothing of theirs
-- may stand where the extension's functions are looked up.
CREATE SCHEMA ttl;
COMMENT ON SCHEMA ttl IS 'time to live for tables (extension ttl_ext)';
