SET ttl.preserve_ts = on;
CALL partman.partition_data_proc('public.events', p_interval := '1 day', p_wait := 0);
RESET ttl.preserve_ts;
