CREATE TABLE events (
    id bigint NOT NULL,
    what text,
    _ts timestamptz NOT NULL DEFAULT ttl.current_ts()
) PARTITION BY RANGE (_ts);
SELECT ttl.enable('events', '30 days', ttl_column => NULL, drop_partitions => true);
SELECT partman.create_parent('public.events', '_ts', 'native', 'daily');
