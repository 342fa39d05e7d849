CREATE ROLE importer LOGIN;
ALTER ROLE importer SET ttl.preserve_ts = on;
