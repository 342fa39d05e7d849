CREATE TABLE readings (device integer, at timestamptz, value double precision, PRIMARY KEY (device, at))
    WITH (tsdb.hypertable, tsdb.partition_column = 'at', tsdb.chunk_interval = '1 day', tsdb.columnstore = false);
SELECT ttl.enable('readings', '30 days');
