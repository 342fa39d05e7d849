-- ttl_internal.policy() reads the labels. The library refuses invalid ones, but the view must not fail
-- if there is one: its columns are NULL then.
CREATE VIEW ttl.tables AS
    SELECT l.objoid::pg_catalog.regclass AS relation,
           (p.policy OPERATOR(pg_catalog.->>) 'default_ttl')::pg_catalog.int4 AS default_ttl,
           (p.policy OPERATOR(pg_catalog.->>) 'ts_column')::pg_catalog.name AS ts_column,
           (p.policy OPERATOR(pg_catalog.->>) 'ttl_column')::pg_catalog.name AS ttl_column,
           (p.policy OPERATOR(pg_catalog.->>) 'document_column')::pg_catalog.name AS document_column,
           CASE WHEN p.policy OPERATOR(pg_catalog.?) 'hidden'
                THEN (p.policy OPERATOR(pg_catalog.->>) 'hidden')::pg_catalog.bool
                WHEN p.policy IS NOT NULL THEN true END AS hidden,
           CASE WHEN p.policy IS NOT NULL
                THEN COALESCE((p.policy OPERATOR(pg_catalog.->>) 'ts_granularity')::pg_catalog.int4, 0) END AS ts_granularity,
           ttl_internal.rules(l.objoid::pg_catalog.regclass) AS rules,
           ttl.problems(l.objoid::pg_catalog.regclass) AS problems,
           CASE WHEN (p.policy OPERATOR(pg_catalog.->>) 'default_ttl')::pg_catalog.int4 OPERATOR(pg_catalog.>) 0
                THEN pg_catalog.justify_hours(pg_catalog.make_interval(
                         secs => (p.policy OPERATOR(pg_catalog.->>) 'default_ttl')::pg_catalog.int4)) END AS default_interval,
           (s.standing OPERATOR(pg_catalog.->>) 'next_expiry')::pg_catalog.timestamptz AS next_expiry,
           (s.standing OPERATOR(pg_catalog.->>) 'backlog')::pg_catalog.int8 AS backlog,
           s.standing OPERATOR(pg_catalog.->>) 'worker' AS worker,
           CASE WHEN p.policy IS NOT NULL
                THEN COALESCE((p.policy OPERATOR(pg_catalog.->>) 'keep_expired')::pg_catalog.int4, 0) END AS keep_expired,
           (s.standing OPERATOR(pg_catalog.->>) 'waits_until')::pg_catalog.timestamptz AS deletion_waits_until,
           -- NULL once it is over
           CASE WHEN pg_catalog.to_timestamp((p.policy OPERATOR(pg_catalog.->>) 'paused_until')::pg_catalog.float8)
                     OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
                THEN pg_catalog.to_timestamp((p.policy OPERATOR(pg_catalog.->>) 'paused_until')::pg_catalog.float8)
           END AS paused_until,
           p.policy OPERATOR(pg_catalog.->>) 'delete_between' AS delete_between,
           s.standing OPERATOR(pg_catalog.->>) 'index_state' AS index_state
      FROM pg_catalog.pg_seclabel AS l
     CROSS JOIN LATERAL (SELECT ttl_internal.policy(l.objoid::pg_catalog.regclass)) AS p (policy)
     -- OFFSET: evaluated once for its columns, and not at all without them. Their names are not those
     -- of ttl.stats, which joins USING (relation).
     CROSS JOIN LATERAL (SELECT ttl_internal.standing(l.objoid::pg_catalog.regclass) OFFSET 0) AS s (standing)
     WHERE l.provider OPERATOR(pg_catalog.=) 'ttl'
       AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       AND l.objsubid OPERATOR(pg_catalog.=) 0;

CREATE VIEW ttl.stats AS
    SELECT s.relid::pg_catalog.regclass AS relation,
           s.rows_deleted,
           s.batches,
           s.passes,
           s.sub_passes,
           s.partitions_dropped,
           s.last_pass_at,
           s.last_pass_ms,
           -- NULL if unknown: 0 would mean that all is well.
           CASE WHEN s.lag_is_known THEN
                CASE WHEN s.oldest_expiry OPERATOR(pg_catalog.<) pg_catalog.clock_timestamp()
                     THEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) s.oldest_expiry
                     ELSE '0 seconds'::pg_catalog.interval END END AS lag,
           s.backlog_estimate,
           s.blocked_rows,
           s.time_used_ms,
           s.slow,
           s.last_error,
           s.last_error_at,
           CASE WHEN s.lag_is_known THEN
                GREATEST(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) s.oldest_expiry), 0)
           END AS lag_seconds,
           s.last_pass_ms OPERATOR(pg_catalog./) 1000 AS last_pass_seconds,
           s.time_used_ms OPERATOR(pg_catalog./) 1000 AS time_used_seconds,
           s.stats_reset
      FROM ttl_internal.table_stats() AS s;

COMMENT ON VIEW ttl.stats IS 'what background deletion has done in each table with a time to live; the counters survive a restart, but not a crash';
COMMENT ON COLUMN ttl.stats.relation IS 'the table; partitions and inheriting tables are summed up in it';
COMMENT ON COLUMN ttl.stats.rows_deleted IS 'expired rows deleted; not those to which deletions cascaded, nor those of dropped partitions';
COMMENT ON COLUMN ttl.stats.batches IS 'transactions that deleted';
COMMENT ON COLUMN ttl.stats.passes IS 'times that all expired rows were gone, but for those locked or blocked';
COMMENT ON COLUMN ttl.stats.sub_passes IS 'turns at the table: of 50,000 rows or one second, or until none was left';
COMMENT ON COLUMN ttl.stats.partitions_dropped IS 'partitions dropped as a whole';
COMMENT ON COLUMN ttl.stats.last_pass_at IS 'when the last pass ended';
COMMENT ON COLUMN ttl.stats.last_pass_ms IS 'how long the last pass took, pauses included, in milliseconds';
COMMENT ON COLUMN ttl.stats.lag IS 'how long ago the oldest row expired that is still on disk; NULL where nobody looks: see the problems in ttl.tables';
COMMENT ON COLUMN ttl.stats.backlog_estimate IS 'expired rows that are still on disk, estimated; NULL where nobody looks';
COMMENT ON COLUMN ttl.stats.blocked_rows IS 'expired rows that could not be deleted and are set aside for a while';
COMMENT ON COLUMN ttl.stats.time_used_ms IS 'how long workers have been at it in all, pauses excluded, in milliseconds';
COMMENT ON COLUMN ttl.stats.slow IS 'whether its last turn ran into a time limit, or took very long for few rows: tables of other owners go before those of its owner';
COMMENT ON COLUMN ttl.stats.last_error IS 'the last error of deletion; shown to the table''s owner and to those who read all statistics';
COMMENT ON COLUMN ttl.stats.last_error_at IS 'when that error occurred';
COMMENT ON COLUMN ttl.stats.lag_seconds IS 'lag, in seconds';
COMMENT ON COLUMN ttl.stats.last_pass_seconds IS 'how long the last pass took, pauses included, in seconds';
COMMENT ON COLUMN ttl.stats.time_used_seconds IS 'how long workers have been at it in all, pauses excluded, in seconds';
COMMENT ON COLUMN ttl.stats.stats_reset IS 'when ttl.reset_stats() last set its counters to zero; NULL: not since the last crash';

CREATE VIEW ttl.progress AS
    SELECT p.pid,
           p.datid,
           d.datname,
           p.relid,
           CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
                THEN p.relid::pg_catalog.regclass END AS relation,
           p.phase,
           p.rows_deleted,
           p.batch_size,
           p.heap_blocks_total,
           p.heap_blocks_swept,
           p.effort,
           p.waits_for
      FROM ttl_internal.worker_progress() AS p
      LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) p.datid;

COMMENT ON VIEW ttl.progress IS 'what each worker of background deletion is at; of other databases only for those who read all statistics';
COMMENT ON COLUMN ttl.progress.pid IS 'the process, as in pg_stat_activity';
COMMENT ON COLUMN ttl.progress.datid IS 'the database that it is connected to';
COMMENT ON COLUMN ttl.progress.datname IS 'the name of that database';
COMMENT ON COLUMN ttl.progress.relid IS 'the table or partition that it is at; NULL between two';
COMMENT ON COLUMN ttl.progress.relation IS 'the name of that table, if it is in this database';
COMMENT ON COLUMN ttl.progress.phase IS 'idle, preparing, dropping partition, sweeping index, sweeping heap, looking ahead';
COMMENT ON COLUMN ttl.progress.rows_deleted IS 'expired rows deleted in this pass over the table';
COMMENT ON COLUMN ttl.progress.batch_size IS 'the most rows that a transaction deletes at present';
COMMENT ON COLUMN ttl.progress.heap_blocks_total IS 'how many blocks the sweep of the heap reads; NULL outside one';
COMMENT ON COLUMN ttl.progress.heap_blocks_swept IS 'how many of them it has read';
COMMENT ON COLUMN ttl.progress.effort IS 'the share of its time that it deletes, in percent; NULL before its first batch';
COMMENT ON COLUMN ttl.progress.waits_for IS 'why it pauses: clients, standbys, disks, ttl.max_effort; expired rows, if none is known; NULL while it works';


COMMENT ON VIEW ttl.tables IS 'the tables that have a time to live, their settings, and what is wrong with them';
COMMENT ON COLUMN ttl.tables.relation IS 'the table; partitions and inheriting tables follow it';
COMMENT ON COLUMN ttl.tables.default_ttl IS 'seconds after which a row without an override expires; -1 = never; NULL = TTL is off';
COMMENT ON COLUMN ttl.tables.ts_column IS 'the column with the time of the row''s last modification; NULL = the table has TTL indexes only';
COMMENT ON COLUMN ttl.tables.ttl_column IS 'the column with the row''s override in seconds; NULL = the table has none';
COMMENT ON COLUMN ttl.tables.document_column IS 'the jsonb column from whose property "ttl" the override is generated';
COMMENT ON COLUMN ttl.tables.hidden IS 'whether expired rows are hidden at once; if not, they are seen until they are deleted';
COMMENT ON COLUMN ttl.tables.ts_granularity IS 'UPDATEs leave a time of last modification that is no older than so many seconds; 0: every UPDATE writes it';
COMMENT ON COLUMN ttl.tables.rules IS 'its TTL indexes: name, key, expireAfterSeconds, partialFilterExpression';
COMMENT ON COLUMN ttl.tables.problems IS 'what keeps the time to live from working as it should; empty if nothing does';
COMMENT ON COLUMN ttl.tables.default_interval IS 'default_ttl as an interval; NULL = never, or TTL is off';
COMMENT ON COLUMN ttl.tables.next_expiry IS 'when the next row expires, or the oldest has that is still on disk; NULL if none does, where nobody looks, and where no b-tree tells';
COMMENT ON COLUMN ttl.tables.backlog IS 'expired rows that are still on disk, estimated, as backlog_estimate in ttl.stats; NULL where nobody looks';
COMMENT ON COLUMN ttl.tables.index_state IS 'the indexes that deletion works from: ready, building, waiting, missing, or failed and why; NULL = none is wanted, or TTL is off';
COMMENT ON COLUMN ttl.tables.worker IS 'running, or sleeping until something is due; else why no worker comes; NULL = TTL is off';
COMMENT ON COLUMN ttl.tables.keep_expired IS 'seconds for which an expired row stays on disk, where ttl.expired shows it and ttl.revive brings it back';
COMMENT ON COLUMN ttl.tables.deletion_waits_until IS 'nothing is deleted in the background before, because rows have expired by a change of the time to live; NULL = nothing waits for that';
COMMENT ON COLUMN ttl.tables.paused_until IS 'background deletion waits until then; NULL = it is not paused';
COMMENT ON COLUMN ttl.tables.delete_between IS 'the hours of background deletion, in the server''s time zone (log_timezone); NULL = always';

CREATE VIEW ttl.placements AS
    SELECT r.nodename,
           r.nodeport,
           p.relation,
           p.rows_deleted,
           p.partitions_dropped,
           p.lag_seconds,
           p.backlog_estimate,
           p.blocked_rows,
           p.last_error,
           p.last_error_at,
           p.problems,
           CASE WHEN NOT r.success THEN r.report END AS error
      FROM ttl_internal.node_reports() AS r
      LEFT JOIN LATERAL pg_catalog.json_to_recordset(CASE WHEN r.success THEN r.report::pg_catalog.json END)
             AS p (relation pg_catalog.text, rows_deleted pg_catalog.int8, partitions_dropped pg_catalog.int8,
                   lag_seconds pg_catalog.float8, backlog_estimate pg_catalog.int8, blocked_rows pg_catalog.int8,
                   last_error pg_catalog.text, last_error_at pg_catalog.timestamptz, problems pg_catalog.text[])
        ON true;

COMMENT ON VIEW ttl.placements IS 'background deletion on each node of Citus; asks all of them. Without Citus: on this server';
COMMENT ON COLUMN ttl.placements.nodename IS 'the node, as in pg_dist_node; NULL without Citus';
COMMENT ON COLUMN ttl.placements.nodeport IS 'its port';
COMMENT ON COLUMN ttl.placements.relation IS 'the table; its shards on that node are summed up in it';
COMMENT ON COLUMN ttl.placements.rows_deleted IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.partitions_dropped IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.lag_seconds IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.backlog_estimate IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.blocked_rows IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.last_error IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.last_error_at IS 'as in ttl.stats, on that node';
COMMENT ON COLUMN ttl.placements.problems IS 'what ttl.problems says on that node';
COMMENT ON COLUMN ttl.placements.error IS 'why the node could not be asked; NULL if it was';
