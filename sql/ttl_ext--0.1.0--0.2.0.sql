-- From 0.1.0 to 0.2.0. What is made is what the installation script of 0.2.0 makes, object by object;
-- tests/e2e/tests/upgrade/catalog.rs compares the catalogs.
--
-- A function whose arguments or results have changed is made anew, under another symbol. Views are
-- replaced, so that privileges on them, and the views of others that read them, stay.

-- The first function: with a library older than these objects, nothing below is tried.
CREATE FUNCTION ttl.check_library() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'check_library_wrapper';
COMMENT ON FUNCTION ttl.check_library() IS
    'raises an error if the server''s library is older than the extension''s objects; for CREATE and ALTER EXTENSION';
SELECT ttl.check_library();

-- The type of seconds ------------------------------------------------------

-- A number of seconds, as functions take it: 1800, '1800', '30 minutes', an interval, a parameter of
-- any of these types. One type with implicit casts, and so one function each: with overloads the
-- literals '30 minutes' and NULL fit several.
CREATE TYPE ttl.seconds;
-- STABLE: what an interval means depends on "IntervalStyle".
CREATE FUNCTION ttl.seconds_in(pg_catalog.cstring) RETURNS ttl.seconds
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'seconds_in_wrapper';
COMMENT ON FUNCTION ttl.seconds_in(pg_catalog.cstring) IS
    'reads a whole number of seconds, or an interval without months';
CREATE FUNCTION ttl.seconds_out(ttl.seconds) RETURNS pg_catalog.cstring
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_out';
COMMENT ON FUNCTION ttl.seconds_out(ttl.seconds) IS 'I/O';
CREATE FUNCTION ttl.seconds_recv(pg_catalog.internal) RETURNS ttl.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_recv';
COMMENT ON FUNCTION ttl.seconds_recv(pg_catalog.internal) IS 'I/O';
CREATE FUNCTION ttl.seconds_send(ttl.seconds) RETURNS pg_catalog.bytea
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_send';
COMMENT ON FUNCTION ttl.seconds_send(ttl.seconds) IS 'I/O';
CREATE TYPE ttl.seconds (
    INPUT = ttl.seconds_in, OUTPUT = ttl.seconds_out, RECEIVE = ttl.seconds_recv, SEND = ttl.seconds_send,
    LIKE = integer, CATEGORY = 'U');
COMMENT ON TYPE ttl.seconds IS
    'a number of seconds for the functions of ttl_ext; from numbers, intervals and text';
-- Implicit: no other function takes the type, and it has no operators, so nothing is ambiguous.
CREATE CAST (integer AS ttl.seconds) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (integer AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (smallint AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (smallint AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (bigint AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (bigint AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (numeric AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (numeric AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (real AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (real AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (double precision AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (double precision AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (interval AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (interval AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without months';
CREATE CAST (pg_catalog.text AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (pg_catalog.text AS ttl.seconds) IS 'arguments of functions of ttl_ext, from drivers';
CREATE CAST (pg_catalog.varchar AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (pg_catalog.varchar AS ttl.seconds) IS 'arguments of functions of ttl_ext, from drivers';
-- For a row's override: UPDATE … SET ttl = '30 minutes'::ttl.seconds.
CREATE CAST (ttl.seconds AS integer) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON CAST (ttl.seconds AS integer) IS 'overrides of rows';

-- Functions with other arguments ------------------------------------------

DROP FUNCTION ttl.enable(pg_catalog.regclass, integer, pg_catalog.name, pg_catalog.name, pg_catalog.name, pg_catalog.text, boolean, boolean, integer);
CREATE FUNCTION ttl.enable(
        rel pg_catalog.regclass, default_ttl ttl.seconds DEFAULT '-1', ts_column pg_catalog.name DEFAULT '_ts',
        ttl_column pg_catalog.name DEFAULT 'ttl', document_column pg_catalog.name DEFAULT NULL, index pg_catalog.text DEFAULT 'btree',
        drop_partitions boolean DEFAULT false, hidden boolean DEFAULT NULL, ts_granularity ttl.seconds DEFAULT NULL,
        confirm boolean DEFAULT false, concurrently boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'enable_0_2_wrapper';
COMMENT ON FUNCTION ttl.enable(pg_catalog.regclass, ttl.seconds, pg_catalog.name, pg_catalog.name, pg_catalog.name, pg_catalog.text, boolean, boolean, ttl.seconds, boolean, boolean) IS
    'turn on a table''s time to live: default_ttl in seconds, -1 for none; adds missing columns and indexes; with drop_partitions, partitions that are expired as a whole are dropped; with hidden => false, expired rows are seen until they are deleted; with ts_granularity, UPDATEs leave a ts that is no older than so many seconds, and stay heap-only; confirm: also if most rows expire with it; concurrently: indexes are built in the background, and deletion waits for them';

DROP FUNCTION ttl.set_default(pg_catalog.regclass, integer, boolean);
CREATE FUNCTION ttl.set_default(
        rel pg_catalog.regclass, default_ttl ttl.seconds, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_default_0_2_wrapper';
COMMENT ON FUNCTION ttl.set_default(pg_catalog.regclass, ttl.seconds, boolean, boolean) IS
    'change a table''s default time to live in seconds; -1 = none, NULL = turn TTL off; rows that are expired and would live again are deleted first, unless with revive_expired; confirm: also if most rows expire with it';

DROP FUNCTION ttl.expire_index(pg_catalog.regclass, integer, boolean, boolean, boolean);
CREATE FUNCTION ttl.expire_index(
        index pg_catalog.regclass, expire_after_seconds ttl.seconds, drop_partitions boolean DEFAULT NULL,
        hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_index_0_2_wrapper';
COMMENT ON FUNCTION ttl.expire_index(pg_catalog.regclass, ttl.seconds, boolean, boolean, boolean, boolean) IS
    'make an index a TTL index: rows expire so many seconds after the date in its column; NULL makes it an ordinary one again, after deleting what is expired by it, which lives again with revive_expired';

DROP FUNCTION ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean);
CREATE FUNCTION ttl.create_index(
        rel pg_catalog.regclass, keys pg_catalog.jsonb, options pg_catalog.jsonb DEFAULT '{}', hidden boolean DEFAULT NULL,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_index_0_2_wrapper';
COMMENT ON FUNCTION ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean, boolean) IS
    'create a TTL index as MongoDB does: keys {"column": 1}, options expireAfterSeconds, name, partialFilterExpression (an SQL predicate); {"_ts": 1} sets the table''s default; with hidden => false, expired rows of the table are seen until they are deleted';

DROP FUNCTION ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb);
CREATE FUNCTION ttl.coll_mod(rel pg_catalog.regclass, command pg_catalog.jsonb, confirm boolean DEFAULT false) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'coll_mod_0_2_wrapper';
COMMENT ON FUNCTION ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb, boolean) IS
    'change a TTL index''s seconds, or make an index a TTL index, as MongoDB''s collMod does: {"index": {"keyPattern": {"column": 1}, "expireAfterSeconds": 100}}';

DROP FUNCTION ttl.live_or_removed(pg_catalog.oid, pg_catalog.tid, boolean);
DROP FUNCTION ttl.preview(pg_catalog.regclass, integer);
CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, default_ttl ttl.seconds DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, ttl.seconds) IS
    'what a default of so many seconds (NULL: the current one) would expire at once: rows on disk, those expired, the oldest expiry';

-- New functions ------------------------------------------------------------

CREATE FUNCTION ttl.expiry_key(ts pg_catalog.timestamptz, ttl integer) RETURNS bigint
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_expiry_key';
COMMENT ON FUNCTION ttl.expiry_key(pg_catalog.timestamptz, integer) IS
    'what the index for deletion orders rows by: from 0 up, by ts, those that inherit; below 0, by their expiry, those that override it; NULL = never expires';

CREATE FUNCTION ttl.set_option(
        rel pg_catalog.regclass, option pg_catalog.text, value pg_catalog.text, revive_expired boolean DEFAULT false,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_option_wrapper';
COMMENT ON FUNCTION ttl.set_option(pg_catalog.regclass, pg_catalog.text, pg_catalog.text, boolean, boolean) IS
    'set an option of a table''s time to live by name, such as default or hidden; NULL = as if it were not set; rows that are expired and would live again are deleted first, unless with revive_expired; confirm: also if most rows expire with it';

CREATE FUNCTION ttl.resume_restored() RETURNS SETOF pg_catalog.regclass
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'resume_restored_wrapper';
COMMENT ON FUNCTION ttl.resume_restored() IS
    'let background deletion begin on all tables of the caller''s that wait because they were restored from a dump, copied with their database, or labelled by hand; returns them. A pause goes on';

CREATE FUNCTION ttl.pause(rel pg_catalog.regclass, until pg_catalog.timestamptz DEFAULT 'infinity') RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'ttl_pause';
COMMENT ON FUNCTION ttl.pause(pg_catalog.regclass, pg_catalog.timestamptz) IS
    'let background deletion of a table wait until then, or until ttl.resume(); its rows are hidden when they expire, as ever';

CREATE FUNCTION ttl.archive_to(rel pg_catalog.regclass, target pg_catalog.regclass) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'archive_to_wrapper';
COMMENT ON FUNCTION ttl.archive_to(pg_catalog.regclass, pg_catalog.regclass) IS
    'insert expired rows into another table in the transaction that deletes them; NULL ends that';

CREATE FUNCTION ttl.deleting() RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'deleting_wrapper';
COMMENT ON FUNCTION ttl.deleting() IS
    'whether what runs now was set off by a deletion of expired rows: in a trigger, that nobody else deletes';

CREATE FUNCTION ttl.expired(rel pg_catalog.anyelement) RETURNS SETOF pg_catalog.anyelement
    LANGUAGE c VOLATILE ROWS 1000 AS 'MODULE_PATHNAME', 'ttl_expired';
COMMENT ON FUNCTION ttl.expired(pg_catalog.anyelement) IS
    'the rows of a table that have expired and are still on disk, to its owner: SELECT * FROM ttl.expired(NULL::sessions)';

CREATE FUNCTION ttl.revive(rel pg_catalog.regclass, condition pg_catalog.text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'revive_wrapper';
COMMENT ON FUNCTION ttl.revive(pg_catalog.regclass, pg_catalog.text) IS
    'bring back the table''s expired rows for which the condition holds, or all, by an UPDATE that stamps them anew; returns how many';

CREATE FUNCTION ttl.remaining(rec pg_catalog.record) RETURNS interval
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_remaining';
COMMENT ON FUNCTION ttl.remaining(pg_catalog.record) IS
    'how long a row has to live: SELECT ttl.remaining(s) FROM sessions AS s; NULL if it never expires, not positive if it has expired';

CREATE FUNCTION ttl.is_live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_is_live_support';
COMMENT ON FUNCTION ttl.is_live_support(pg_catalog.internal) IS 'planner support function of ttl.is_live';

-- Called for NULL, too: the same answer as the conditions that the planner puts in its place.
CREATE FUNCTION ttl.is_live(rec pg_catalog.record) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl.is_live_support AS 'MODULE_PATHNAME', 'ttl_is_live';
COMMENT ON FUNCTION ttl.is_live(pg_catalog.record) IS
    'whether a row is not expired: SELECT * FROM sessions AS s WHERE ttl.is_live(s); by the table''s time to live and the time of the statement';

CREATE FUNCTION ttl.create_live_view(
        rel pg_catalog.regclass, view_name pg_catalog.text, drop_with_policy boolean DEFAULT false)
    RETURNS pg_catalog.regclass
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_live_view_wrapper';
COMMENT ON FUNCTION ttl.create_live_view(pg_catalog.regclass, pg_catalog.text, boolean) IS
    'create a view of a table''s live rows, for tables and readers that see expired ones; with drop_with_policy it goes with ttl.disable(drop_columns => true)';

-- STABLE, so that ttl.tables evaluates it only for queries that show its columns.
CREATE FUNCTION ttl.standing(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c STABLE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'standing_wrapper';
COMMENT ON FUNCTION ttl.standing(pg_catalog.regclass) IS
    'how deletion stands in a table: next expiry, backlog, worker; behind the view ttl.tables';

CREATE FUNCTION ttl.worker_progress(
        OUT pid integer, OUT datid pg_catalog.oid, OUT relid pg_catalog.oid, OUT phase pg_catalog.text, OUT rows_deleted bigint,
        OUT batch_size integer, OUT heap_blocks_total bigint, OUT heap_blocks_swept bigint, OUT effort double precision,
        OUT waits_for pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 5
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'worker_progress_wrapper';
COMMENT ON FUNCTION ttl.worker_progress() IS
    'what each worker of background deletion is at; behind the view ttl.progress';

CREATE FUNCTION ttl.reset_stats(rel pg_catalog.regclass DEFAULT NULL) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'reset_stats_wrapper';
COMMENT ON FUNCTION ttl.reset_stats(pg_catalog.regclass) IS
    'set the counters in ttl.stats to zero, of one table or of all in this database; for superusers, unless granted';

CREATE FUNCTION ttl.row_is_kept_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_kept_support';
COMMENT ON FUNCTION ttl.row_is_kept_support(pg_catalog.internal) IS 'planner support function of ttl.row_is_kept';

CREATE FUNCTION ttl.row_is_kept(relation pg_catalog.oid, seconds integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl.row_is_kept_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl.row_is_kept(pg_catalog.oid, integer) IS
    'stands for the condition that a row is live, or has expired less than so many seconds ago, in the extension''s own queries; raises an error in others';

-- What a comment says now
COMMENT ON FUNCTION ttl.resume(pg_catalog.regclass) IS
    'let background deletion begin on a table that was restored from a dump, or labelled by hand, or go on where it was paused';

-- Views ---------------------------------------------------------------------

CREATE OR REPLACE VIEW ttl.tables AS
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
           ttl.rules(l.objoid::pg_catalog.regclass) AS rules,
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
     CROSS JOIN LATERAL (SELECT ttl.policy(l.objoid::pg_catalog.regclass)) AS p (policy)
     -- OFFSET: evaluated once for its columns, and not at all without them. Their names are not those
     -- of ttl.stats, which joins USING (relation).
     CROSS JOIN LATERAL (SELECT ttl.standing(l.objoid::pg_catalog.regclass) OFFSET 0) AS s (standing)
     WHERE l.provider OPERATOR(pg_catalog.=) 'ttl'
       AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       AND l.objsubid OPERATOR(pg_catalog.=) 0;
COMMENT ON COLUMN ttl.tables.default_interval IS 'default_ttl as an interval; NULL = never, or TTL is off';
COMMENT ON COLUMN ttl.tables.next_expiry IS 'when the next row expires, or the oldest has that is still on disk; NULL if none does, where nobody looks, and where no b-tree tells';
COMMENT ON COLUMN ttl.tables.backlog IS 'expired rows that are still on disk, estimated, as backlog_estimate in ttl.stats; NULL where nobody looks';
COMMENT ON COLUMN ttl.tables.index_state IS 'the indexes that deletion works from: ready, building, waiting, missing, or failed and why; NULL = none is wanted, or TTL is off';
COMMENT ON COLUMN ttl.tables.worker IS 'running, or sleeping until something is due; else why no worker comes; NULL = TTL is off';
COMMENT ON COLUMN ttl.tables.keep_expired IS 'seconds for which an expired row stays on disk, where ttl.expired shows it and ttl.revive brings it back';
COMMENT ON COLUMN ttl.tables.deletion_waits_until IS 'nothing is deleted in the background before, because rows have expired by a change of the time to live; NULL = nothing waits for that';
COMMENT ON COLUMN ttl.tables.paused_until IS 'background deletion waits until then; NULL = it is not paused';
COMMENT ON COLUMN ttl.tables.delete_between IS 'the hours of background deletion, in the server''s time zone (log_timezone); NULL = always';

-- The view holds the former function until it is replaced.
ALTER FUNCTION ttl.table_stats() RENAME TO table_stats_of_0_1;
CREATE FUNCTION ttl.table_stats(
        OUT relid pg_catalog.oid, OUT rows_deleted bigint, OUT batches bigint, OUT passes bigint, OUT sub_passes bigint,
        OUT partitions_dropped bigint, OUT last_pass_at pg_catalog.timestamptz, OUT last_pass_ms double precision,
        OUT oldest_expiry pg_catalog.timestamptz, OUT lag_is_known boolean, OUT backlog_estimate bigint, OUT blocked_rows bigint,
        OUT time_used_ms double precision, OUT slow boolean,
        OUT last_error pg_catalog.text, OUT last_error_at pg_catalog.timestamptz,
        OUT stats_reset pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1000
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'table_stats_0_2_wrapper';
COMMENT ON FUNCTION ttl.table_stats() IS
    'what background deletion has done in this database; behind the view ttl.stats';

CREATE OR REPLACE VIEW ttl.stats AS
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
      FROM ttl.table_stats() AS s;
DROP FUNCTION ttl.table_stats_of_0_1();
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
      FROM ttl.worker_progress() AS p
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

-- Citus --------------------------------------------------------------------

CREATE FUNCTION ttl.purge_strictly(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_strictly_wrapper';
COMMENT ON FUNCTION ttl.purge_strictly(pg_catalog.regclass) IS
    'as ttl.purge, but fails if an expired row stays; called on shards of Citus before a change that would revive it';

CREATE FUNCTION ttl.node_reports(OUT nodename pg_catalog.text, OUT nodeport integer, OUT success boolean, OUT report pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 10
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'node_reports_wrapper';
COMMENT ON FUNCTION ttl.node_reports() IS
    'for the view ttl.placements: what each node of Citus says of its tables with a time to live';

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
      FROM ttl.node_reports() AS r
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

-- Privileges of what is new: those on other objects stay as they were set -----

GRANT USAGE ON TYPE ttl.seconds TO PUBLIC;
GRANT SELECT ON ttl.progress, ttl.placements TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    ttl.seconds_in(pg_catalog.cstring), ttl.seconds_out(ttl.seconds), ttl.seconds_recv(pg_catalog.internal),
    ttl.seconds_send(ttl.seconds), ttl.expiry_key(pg_catalog.timestamptz, integer),
    ttl.enable(pg_catalog.regclass, ttl.seconds, pg_catalog.name, pg_catalog.name, pg_catalog.name, pg_catalog.text, boolean, boolean, ttl.seconds, boolean, boolean),
    ttl.set_default(pg_catalog.regclass, ttl.seconds, boolean, boolean),
    ttl.set_option(pg_catalog.regclass, pg_catalog.text, pg_catalog.text, boolean, boolean),
    ttl.resume_restored(), ttl.pause(pg_catalog.regclass, pg_catalog.timestamptz), ttl.archive_to(pg_catalog.regclass, pg_catalog.regclass),
    ttl.deleting(), ttl.expire_index(pg_catalog.regclass, ttl.seconds, boolean, boolean, boolean, boolean),
    ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean, boolean),
    ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb, boolean), ttl.expired(pg_catalog.anyelement),
    ttl.revive(pg_catalog.regclass, pg_catalog.text), ttl.preview(pg_catalog.regclass, ttl.seconds),
    ttl.remaining(pg_catalog.record), ttl.is_live_support(pg_catalog.internal), ttl.is_live(pg_catalog.record),
    ttl.create_live_view(pg_catalog.regclass, pg_catalog.text, boolean), ttl.standing(pg_catalog.regclass),
    ttl.table_stats(), ttl.worker_progress(), ttl.purge_strictly(pg_catalog.regclass), ttl.node_reports(), ttl.row_is_kept(pg_catalog.oid, integer)
    TO PUBLIC;
REVOKE ALL ON FUNCTION ttl.check_library() FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.row_is_kept_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.reset_stats(pg_catalog.regclass) FROM PUBLIC;

ALTER FUNCTION ttl.now() NOT LEAKPROOF;
ALTER FUNCTION ttl.current_ts() NOT LEAKPROOF;
ALTER FUNCTION ttl.expiry_key(pg_catalog.timestamptz, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.is_override(integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.live(pg_catalog.timestamptz, integer, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.live(pg_catalog.timestamptz, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.live_at(pg_catalog.timestamptz, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.live_at(timestamp, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.live_at(pg_catalog.date, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.index_expires_at(pg_catalog.timestamptz, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.index_expires_at(timestamp, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.index_expires_at(pg_catalog.date, integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.earliest(pg_catalog.timestamptz[]) NOT LEAKPROOF;
ALTER FUNCTION ttl.earliest(timestamp[]) NOT LEAKPROOF;
ALTER FUNCTION ttl.earliest(pg_catalog.date[]) NOT LEAKPROOF;
ALTER FUNCTION ttl.evaluate_first(boolean) NOT LEAKPROOF;
ALTER FUNCTION ttl.locked_here(pg_catalog.oid, pg_catalog.tid) NOT LEAKPROOF;
ALTER FUNCTION ttl.cutoff(integer) NOT LEAKPROOF;
ALTER FUNCTION ttl.reads_physically(pg_catalog.oid) NOT LEAKPROOF;
ALTER FUNCTION ttl.refreshed_ts(pg_catalog.timestamptz, integer, integer) NOT LEAKPROOF;

REVOKE ALL ON FUNCTION
    ttl.seconds_in(pg_catalog.cstring), ttl.seconds_out(ttl.seconds), ttl.seconds_recv(pg_catalog.internal),
    ttl.seconds_send(ttl.seconds), ttl.is_live_support(pg_catalog.internal), ttl.row_is_live(pg_catalog.oid, integer),
    ttl.row_is_kept(pg_catalog.oid, integer), ttl.rule_applies(pg_catalog.oid, pg_catalog.text)
    FROM PUBLIC;

SELECT ttl.invalidate_plans();
