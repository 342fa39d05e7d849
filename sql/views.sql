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
           CASE WHEN p.policy OPERATOR(pg_catalog.?) 'rules'
                THEN ttl_internal.rules(l.objoid::pg_catalog.regclass) ELSE '[]' END AS rules,
           w.problems,
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
     -- OFFSET: each is evaluated once for all that is shown of it, and not at all if nothing is.
     CROSS JOIN LATERAL (SELECT ttl_internal.policy(l.objoid::pg_catalog.regclass) OFFSET 0) AS p (policy)
     CROSS JOIN LATERAL (SELECT ttl_internal.standing(l.objoid::pg_catalog.regclass) OFFSET 0) AS s (standing)
     CROSS JOIN LATERAL (SELECT ttl.problems(l.objoid::pg_catalog.regclass) OFFSET 0) AS w (problems)
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
           s.stats_reset
      FROM ttl_internal.table_stats() AS s;

COMMENT ON VIEW ttl.stats IS 'counters of background deletion for each table with a time to live; they are kept over a restart, and reset by a crash';
COMMENT ON COLUMN ttl.stats.relation IS 'table; includes its partitions and inheriting tables';
COMMENT ON COLUMN ttl.stats.rows_deleted IS 'number of expired rows deleted, without rows deleted by cascades or with dropped partitions';
COMMENT ON COLUMN ttl.stats.batches IS 'number of transactions that deleted rows';
COMMENT ON COLUMN ttl.stats.passes IS 'number of times that all expired rows had been removed, except locked and blocked ones';
COMMENT ON COLUMN ttl.stats.sub_passes IS 'number of work units: each ends after 50,000 rows, after one second, or when no row is left';
COMMENT ON COLUMN ttl.stats.partitions_dropped IS 'number of partitions dropped because all their rows had expired';
COMMENT ON COLUMN ttl.stats.last_pass_at IS 'time at which the last pass ended';
COMMENT ON COLUMN ttl.stats.last_pass_ms IS 'duration of the last pass, including pauses, in milliseconds';
COMMENT ON COLUMN ttl.stats.lag IS 'time since the oldest row on disk expired; NULL if no worker scans the table (see ttl.tables.problems)';
COMMENT ON COLUMN ttl.stats.backlog_estimate IS 'estimated number of expired rows on disk; NULL if no worker scans the table';
COMMENT ON COLUMN ttl.stats.blocked_rows IS 'number of expired rows that could not be deleted and will be retried later';
COMMENT ON COLUMN ttl.stats.time_used_ms IS 'time that workers have spent on the table, excluding pauses, in milliseconds';
COMMENT ON COLUMN ttl.stats.slow IS 'whether the last work unit ran into a time limit, or took very long for few rows; tables of other owners then take precedence';
COMMENT ON COLUMN ttl.stats.last_error IS 'last error of deletion; visible to the table''s owner and to members of pg_read_all_stats';
COMMENT ON COLUMN ttl.stats.last_error_at IS 'time of the last error';
COMMENT ON COLUMN ttl.stats.stats_reset IS 'time at which the counters were last reset by ttl.reset_stats(); NULL if not since the last crash';

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

COMMENT ON VIEW ttl.progress IS 'current activity of each worker; workers of other databases are visible to members of pg_read_all_stats';
COMMENT ON COLUMN ttl.progress.pid IS 'process ID, as in pg_stat_activity';
COMMENT ON COLUMN ttl.progress.datid IS 'OID of the database to which the worker is connected';
COMMENT ON COLUMN ttl.progress.datname IS 'name of that database';
COMMENT ON COLUMN ttl.progress.relid IS 'OID of the table or partition that is processed; NULL between two tables';
COMMENT ON COLUMN ttl.progress.relation IS 'name of that table, if it is in this database';
COMMENT ON COLUMN ttl.progress.phase IS 'current phase: idle, preparing, dropping partition, sweeping index, sweeping heap, looking ahead';
COMMENT ON COLUMN ttl.progress.rows_deleted IS 'number of expired rows deleted in this pass';
COMMENT ON COLUMN ttl.progress.batch_size IS 'current maximum number of rows deleted per transaction';
COMMENT ON COLUMN ttl.progress.heap_blocks_total IS 'total number of heap blocks to scan; NULL if the heap is not scanned';
COMMENT ON COLUMN ttl.progress.heap_blocks_swept IS 'number of heap blocks scanned';
COMMENT ON COLUMN ttl.progress.effort IS 'percentage of its time that the worker spends deleting; NULL before its first batch';
COMMENT ON COLUMN ttl.progress.waits_for IS 'reason why the worker pauses: clients, standbys, disks, ttl.max_effort, or expired rows (none is known); NULL while it works';


COMMENT ON VIEW ttl.tables IS 'tables with a time to live, their options, and their problems';
COMMENT ON COLUMN ttl.tables.relation IS 'table; the policy also applies to its partitions and inheriting tables';
COMMENT ON COLUMN ttl.tables.default_ttl IS 'seconds after which a row without an override expires; -1 if never; NULL if time to live is disabled';
COMMENT ON COLUMN ttl.tables.ts_column IS 'column with the time of the row''s last modification; NULL if rows expire by TTL indexes only';
COMMENT ON COLUMN ttl.tables.ttl_column IS 'column with the row''s override in seconds; NULL if there is none';
COMMENT ON COLUMN ttl.tables.document_column IS 'jsonb column from whose property "ttl" the override is generated';
COMMENT ON COLUMN ttl.tables.hidden IS 'whether expired rows are hidden; if not, they are visible until they are removed';
COMMENT ON COLUMN ttl.tables.ts_granularity IS 'an UPDATE keeps a time of last modification that is not older than that many seconds; 0 if every UPDATE writes it';
COMMENT ON COLUMN ttl.tables.rules IS 'TTL indexes: name, key, expireAfterSeconds, partialFilterExpression';
COMMENT ON COLUMN ttl.tables.problems IS 'problems of the time to live; empty if there are none; ttl.check() says what to do';
COMMENT ON COLUMN ttl.tables.default_interval IS 'default_ttl as an interval; NULL if never, or if time to live is disabled';
COMMENT ON COLUMN ttl.tables.next_expiry IS 'time at which the next row expires, or the oldest row on disk has expired; NULL if none does, if no worker scans the table, or if no B-tree index provides it';
COMMENT ON COLUMN ttl.tables.backlog IS 'estimated number of expired rows on disk, as ttl.stats.backlog_estimate; NULL if no worker scans the table';
COMMENT ON COLUMN ttl.tables.index_state IS 'state of the index for deletion: ready, building, waiting, missing, failed with the reason, not needed, or none; NULL if rows expire by other indexes, or if time to live is disabled';
COMMENT ON COLUMN ttl.tables.worker IS 'running, sleeping until a row is due, or the reason why no worker removes rows; NULL if time to live is disabled';
COMMENT ON COLUMN ttl.tables.keep_expired IS 'seconds for which an expired row is kept on disk, where ttl.expired() returns it and ttl.revive() makes it live again';
COMMENT ON COLUMN ttl.tables.deletion_waits_until IS 'time before which workers remove no rows, because a change of the policy can still be taken back; NULL if there is none';
COMMENT ON COLUMN ttl.tables.paused_until IS 'end of the pause of background deletion; NULL if it is not paused';
COMMENT ON COLUMN ttl.tables.delete_between IS 'hours of background deletion, in the server''s time zone (log_timezone); NULL if always';

CREATE VIEW ttl.placements AS
    SELECT r.nodename,
           r.nodeport,
           p.relation,
           p.rows_deleted,
           p.partitions_dropped,
           p.lag,
           p.backlog_estimate,
           p.blocked_rows,
           p.last_error,
           p.last_error_at,
           p.problems,
           CASE WHEN NOT r.success THEN r.report END AS error
      FROM ttl_internal.node_reports() AS r
      LEFT JOIN LATERAL pg_catalog.json_to_recordset(CASE WHEN r.success THEN r.report::pg_catalog.json END)
             AS p (relation pg_catalog.text, rows_deleted pg_catalog.int8, partitions_dropped pg_catalog.int8,
                   lag pg_catalog."interval", backlog_estimate pg_catalog.int8, blocked_rows pg_catalog.int8,
                   last_error pg_catalog.text, last_error_at pg_catalog.timestamptz, problems pg_catalog.text[])
        ON true;

COMMENT ON VIEW ttl.placements IS 'background deletion on each node of Citus, or, without Citus, on this server';
COMMENT ON COLUMN ttl.placements.nodename IS 'host name of the node, as in pg_dist_node; NULL without Citus';
COMMENT ON COLUMN ttl.placements.nodeport IS 'port of the node';
COMMENT ON COLUMN ttl.placements.relation IS 'table; includes its shards on the node';
COMMENT ON COLUMN ttl.placements.rows_deleted IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.partitions_dropped IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.lag IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.backlog_estimate IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.blocked_rows IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.last_error IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.last_error_at IS 'as in ttl.stats, on the node';
COMMENT ON COLUMN ttl.placements.problems IS 'result of ttl.problems() on the node';
COMMENT ON COLUMN ttl.placements.error IS 'reason why the node could not be reached; NULL if it was';
