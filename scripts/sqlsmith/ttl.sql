-- The same tables with a time to live.
SELECT ttl.enable('by_default', 3600);
SELECT ttl.enable('by_override', 3600);
SELECT ttl.enable('by_document', 3600, document_column => 'doc');
SELECT ttl.enable('seen', 3600, hidden => false);
SELECT ttl.enable('unlogged', 3600, index => 'none');
SELECT ttl.expire_index('by_index_at', 60);
SELECT ttl.expire_index('by_index_plain', 60);
SELECT ttl.expire_index('by_index_day', 60);
SELECT ttl.create_index('by_index', '{"many": 1}', '{"expireAfterSeconds": 60}');
SELECT ttl.enable('parts', 3600, drop_partitions => true);
SELECT ttl.enable('ancestor', 3600);
SELECT ttl.enable('master', 3600);
SELECT ttl.enable('detail', 7200);
SELECT ttl.enable('audited', 3600);
GRANT ALL ON ALL TABLES IN SCHEMA public TO writer;
