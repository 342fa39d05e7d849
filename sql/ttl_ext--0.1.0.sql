-- The installation script of 0.1.0, frozen: what that version made of its sql/ folder. Databases are
-- created from it in tests only; others have come from it, and go on by ttl_ext--0.1.0--0.2.0.sql.

-- Fails if the schema exists: it may hold somebody else's functions, which would be taken for
-- the extension's.
CREATE SCHEMA ttl;
COMMENT ON SCHEMA ttl IS 'time to live for tables (extension ttl_ext)';

-- The clock ---------------------------------------------------------------

CREATE FUNCTION ttl.now() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_now';
COMMENT ON FUNCTION ttl.now() IS
    'the time against which rows expire: the start of the statement in which the query began, or the transaction''s start in REPEATABLE READ and SERIALIZABLE';

CREATE FUNCTION ttl.current_ts() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_current_ts';
COMMENT ON FUNCTION ttl.current_ts() IS
    'the time with which rows are stamped: the statement''s start, or the current time in a statement that has run for a second, cut to whole seconds';

-- The rule ----------------------------------------------------------------

CREATE FUNCTION ttl.expires_at(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expires_at';
COMMENT ON FUNCTION ttl.expires_at(pg_catalog.timestamptz, integer, integer) IS
    'when a row expires: ts plus its ttl, or plus default_ttl where ttl is NULL; infinity = never (-1, or no ttl at all)';

CREATE FUNCTION ttl.is_override(ttl integer) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_is_override';
COMMENT ON FUNCTION ttl.is_override(integer) IS
    'whether a row may have this override: -1 (never expires) or a positive number of seconds; the constraint of override columns';

CREATE FUNCTION ttl.document_ttl(document pg_catalog.jsonb) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_document_ttl';
COMMENT ON FUNCTION ttl.document_ttl(pg_catalog.jsonb) IS
    'the override in the property "ttl" at the document''s root; NULL (inherit) unless it is -1 or a whole number from 1 to 2147483647';

CREATE FUNCTION ttl.live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_live_support';
COMMENT ON FUNCTION ttl.live_support(pg_catalog.internal) IS 'planner support function of ttl.live';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_override';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer, integer) IS
    'whether a row with this ts and ttl is not expired; the filter on tables with an override column';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_default';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer) IS
    'whether a row with this ts is not expired; the filter on tables without an override column';

-- One for each kind of date; a timestamp is read as UTC, a date as its midnight in UTC.

CREATE FUNCTION ttl.live_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.timestamptz, integer) IS
    'whether a row with this date in the column of a TTL index of so many seconds is not expired; the filter on tables with TTL indexes';

CREATE FUNCTION ttl.live_at(date timestamp, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(timestamp, integer) IS
    'whether a row with this date, in UTC, in the column of a TTL index of so many seconds is not expired';

CREATE FUNCTION ttl.live_at(date pg_catalog.date, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at_date';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.date, integer) IS
    'whether a row with this date (its midnight in UTC) in the column of a TTL index of so many seconds is not expired';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.timestamptz, integer) IS
    'when a row with this date expires by a TTL index of so many seconds; infinity = never (NULL, an infinite date, a sum past the end)';

CREATE FUNCTION ttl.index_expires_at(date timestamp, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(timestamp, integer) IS
    'when a row with this date, in UTC, expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.date, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at_date';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.date, integer) IS
    'when a row with this date (its midnight in UTC) expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.earliest(dates pg_catalog.timestamptz[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.timestamptz[]) IS
    'the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates timestamp[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(timestamp[]) IS
    'the earliest date of an array, in UTC, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates pg_catalog.date[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest_date';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.date[]) IS
    'midnight in UTC of the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.evaluate_first(condition boolean) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_evaluate_first';
COMMENT ON FUNCTION ttl.evaluate_first(boolean) IS
    'its argument; the planner takes the whole for free, so that it stands before all other conditions; in the filter on tables with partial TTL indexes';

CREATE FUNCTION ttl.locked_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_locked_here';
COMMENT ON FUNCTION ttl.locked_here(pg_catalog.oid, pg_catalog.tid) IS
    'whether the present transaction has locked the row at this place; in the filter, in sessions that lock rows of the table';

CREATE FUNCTION ttl.cutoff(default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_cutoff';
COMMENT ON FUNCTION ttl.cutoff(integer) IS
    'the newest ts that is expired under this default; used in the filter on tables partitioned by ts';

CREATE FUNCTION ttl.reads_physically(relation pg_catalog.oid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_reads_physically';
COMMENT ON FUNCTION ttl.reads_physically(pg_catalog.oid) IS
    'whether every row of the table on disk is read: row_security is off, and the user its owner or a superuser';

CREATE FUNCTION ttl.refreshed_ts(ts pg_catalog.timestamptz, ttl integer, granularity integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_refreshed_ts';
COMMENT ON FUNCTION ttl.refreshed_ts(pg_catalog.timestamptz, integer, integer) IS
    'what an UPDATE writes as ts: the row''s own if it is no older than so many seconds, nor than half of its override, else the current one; in UPDATEs of tables with a ts_granularity';

-- Turning it on and off ---------------------------------------------------

-- Functions that may delete set no search_path, so that triggers find what they always
-- find; the rest of their work has a safe one.

CREATE FUNCTION ttl.enable(
        rel pg_catalog.regclass, default_ttl integer DEFAULT -1, ts_column pg_catalog.name DEFAULT '_ts',
        ttl_column pg_catalog.name DEFAULT 'ttl', document_column pg_catalog.name DEFAULT NULL, index pg_catalog.text DEFAULT 'btree',
        drop_partitions boolean DEFAULT false, hidden boolean DEFAULT NULL, ts_granularity integer DEFAULT NULL)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'enable_wrapper';
COMMENT ON FUNCTION ttl.enable(pg_catalog.regclass, integer, pg_catalog.name, pg_catalog.name, pg_catalog.name, pg_catalog.text, boolean, boolean, integer) IS
    'turn on a table''s time to live: default_ttl in seconds, -1 for none; adds missing columns and indexes; with drop_partitions, partitions that are expired as a whole are dropped; with hidden => false, expired rows are seen until they are deleted; with ts_granularity, UPDATEs leave a ts that is no older than so many seconds, and stay heap-only';

CREATE FUNCTION ttl.set_default(rel pg_catalog.regclass, default_ttl integer, revive_expired boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_default_wrapper';
COMMENT ON FUNCTION ttl.set_default(pg_catalog.regclass, integer, boolean) IS
    'change a table''s default time to live in seconds; -1 = none, NULL = turn TTL off; rows that are expired and would live again are deleted first, unless with revive_expired';

CREATE FUNCTION ttl.disable(
        rel pg_catalog.regclass, drop_columns boolean DEFAULT false, revive_expired boolean DEFAULT false,
        drop_adopted_columns boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'disable_wrapper';
COMMENT ON FUNCTION ttl.disable(pg_catalog.regclass, boolean, boolean, boolean) IS
    'turn off a table''s time to live, after deleting its expired rows, which live again with revive_expired; with drop_columns also remove the policy and what ttl.enable added; with drop_adopted_columns, too, also the columns that it found';

CREATE FUNCTION ttl.resume(rel pg_catalog.regclass) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'resume_wrapper';
COMMENT ON FUNCTION ttl.resume(pg_catalog.regclass) IS
    'let background deletion begin on a table that was restored from a dump, or labelled by hand';

-- TTL indexes --------------------------------------------------------------

CREATE FUNCTION ttl.expire_index(
        index pg_catalog.regclass, expire_after_seconds integer, drop_partitions boolean DEFAULT NULL,
        hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_index_wrapper';
COMMENT ON FUNCTION ttl.expire_index(pg_catalog.regclass, integer, boolean, boolean, boolean) IS
    'make an index a TTL index: rows expire so many seconds after the date in its column; NULL makes it an ordinary one again, after deleting what is expired by it, which lives again with revive_expired';

CREATE FUNCTION ttl.create_index(
        rel pg_catalog.regclass, keys pg_catalog.jsonb, options pg_catalog.jsonb, hidden boolean DEFAULT NULL)
    RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_index_wrapper';
COMMENT ON FUNCTION ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean) IS
    'create a TTL index as MongoDB does: keys {"column": 1}, options expireAfterSeconds, name, partialFilterExpression (an SQL predicate); {"_ts": 1} sets the table''s default; with hidden => false, expired rows of the table are seen until they are deleted';

CREATE FUNCTION ttl.coll_mod(rel pg_catalog.regclass, command pg_catalog.jsonb) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'coll_mod_wrapper';
COMMENT ON FUNCTION ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb) IS
    'change a TTL index''s seconds, or make an index a TTL index, as MongoDB''s collMod does: {"index": {"keyPattern": {"column": 1}, "expireAfterSeconds": 100}}';

CREATE FUNCTION ttl.rules(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'rules_wrapper';
COMMENT ON FUNCTION ttl.rules(pg_catalog.regclass) IS
    'the table''s TTL indexes, as MongoDB''s listIndexes shows them: name, key, expireAfterSeconds, partialFilterExpression';

-- Looking and deleting ----------------------------------------------------

-- Sets no search_path, so that triggers find what they always find; its query qualifies
-- all names.

CREATE FUNCTION ttl.purge(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_wrapper';
COMMENT ON FUNCTION ttl.purge(pg_catalog.regclass) IS
    'delete the table''s expired rows now, in this transaction; returns how many';

CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, default_ttl integer DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, integer) IS
    'what a default of so many seconds (NULL: the current one) would expire at once: rows on disk, those expired, the oldest expiry';

CREATE FUNCTION ttl.policy(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'policy_wrapper';
COMMENT ON FUNCTION ttl.policy(pg_catalog.regclass) IS
    'the table''s label; NULL if there is none that can be read; behind the view ttl.tables';

CREATE FUNCTION ttl.problems(rel pg_catalog.regclass) RETURNS pg_catalog.text[]
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'problems_wrapper';
COMMENT ON FUNCTION ttl.problems(pg_catalog.regclass) IS
    'what keeps a table''s time to live from working as it should; empty if nothing does';

CREATE FUNCTION ttl.table_stats(
        OUT relid pg_catalog.oid, OUT rows_deleted bigint, OUT batches bigint, OUT passes bigint, OUT sub_passes bigint,
        OUT partitions_dropped bigint, OUT last_pass_at pg_catalog.timestamptz, OUT last_pass_ms double precision,
        OUT oldest_expiry pg_catalog.timestamptz, OUT lag_is_known boolean, OUT backlog_estimate bigint, OUT blocked_rows bigint,
        OUT time_used_ms double precision, OUT slow boolean,
        OUT last_error pg_catalog.text, OUT last_error_at pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 10
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'table_stats_wrapper';
COMMENT ON FUNCTION ttl.table_stats() IS
    'what background deletion has done in this database; behind the view ttl.stats';

-- Keys -----------------------------------------------------------------------

CREATE FUNCTION ttl.free_expired_keys() RETURNS pg_catalog.trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'ttl_free_expired_keys';
COMMENT ON FUNCTION ttl.free_expired_keys() IS
    'trigger on tables with a time to live and a unique or exclusion constraint: removes the expired row that holds a new row''s key';

-- By its cost it is evaluated after all other conditions.
CREATE FUNCTION ttl.live_or_removed(relation pg_catalog.oid, place pg_catalog.tid, live boolean) RETURNS boolean
    LANGUAGE c VOLATILE COST 100 AS 'MODULE_PATHNAME', 'ttl_live_or_removed';
COMMENT ON FUNCTION ttl.live_or_removed(pg_catalog.oid, pg_catalog.tid, boolean) IS
    'whether a row is not expired; removes one that is; in the statements of foreign keys on the referencing side';

-- The same holds here.
CREATE FUNCTION ttl.live_or_unneeded(relation pg_catalog.oid, place pg_catalog.tid, live boolean) RETURNS boolean
    LANGUAGE c VOLATILE COST 100 AS 'MODULE_PATHNAME', 'ttl_live_or_unneeded';
COMMENT ON FUNCTION ttl.live_or_unneeded(pg_catalog.oid, pg_catalog.tid, boolean) IS
    'raises an error if a row is expired and the present transaction has made others refer to it; in cascades and the extension''s own deletions';

CREATE FUNCTION ttl.written_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 100 AS 'MODULE_PATHNAME', 'ttl_written_here';
COMMENT ON FUNCTION ttl.written_here(pg_catalog.oid, pg_catalog.tid) IS
    'whether the row at this place was written by the present transaction; such rows keep an expired row from being deleted that they have been made refer to';

-- The extension's own queries ----------------------------------------------------

CREATE FUNCTION ttl.row_is_live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_live_support';
COMMENT ON FUNCTION ttl.row_is_live_support(pg_catalog.internal) IS 'planner support function of ttl.row_is_live';

CREATE FUNCTION ttl.rule_applies_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_rule_applies_support';
COMMENT ON FUNCTION ttl.rule_applies_support(pg_catalog.internal) IS 'planner support function of ttl.rule_applies';

CREATE FUNCTION ttl.row_is_live(relation pg_catalog.oid, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl.row_is_live_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl.row_is_live(pg_catalog.oid, integer) IS
    'stands for the filter in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl.rule_applies(relation pg_catalog.oid, index pg_catalog.text) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl.rule_applies_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl.rule_applies(pg_catalog.oid, pg_catalog.text) IS
    'stands for the predicate of a TTL index in the extension''s own queries; raises an error in others';

-- Internal ------------------------------------------------------------------

CREATE FUNCTION ttl.invalidate_plans() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'invalidate_plans_wrapper';
COMMENT ON FUNCTION ttl.invalidate_plans() IS
    'make all sessions replan statements on tables with a label; for CREATE EXTENSION where labels are there already';

-- ttl.policy() reads the labels. The library refuses invalid ones, but the view must not fail
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
           ttl.rules(l.objoid::pg_catalog.regclass) AS rules,
           ttl.problems(l.objoid::pg_catalog.regclass) AS problems
      FROM pg_catalog.pg_seclabel AS l
     CROSS JOIN LATERAL (SELECT ttl.policy(l.objoid::pg_catalog.regclass)) AS p (policy)
     WHERE l.provider OPERATOR(pg_catalog.=) 'ttl'
       AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       AND l.objsubid OPERATOR(pg_catalog.=) 0;

CREATE VIEW ttl.stats AS
    SELECT l.objoid::pg_catalog.regclass AS relation,
           COALESCE(s.rows_deleted, 0) AS rows_deleted,
           COALESCE(s.batches, 0) AS batches,
           COALESCE(s.passes, 0) AS passes,
           COALESCE(s.sub_passes, 0) AS sub_passes,
           COALESCE(s.partitions_dropped, 0) AS partitions_dropped,
           s.last_pass_at,
           s.last_pass_ms,
           -- NULL if unknown: 0 would mean that all is well.
           CASE WHEN s.lag_is_known THEN
                CASE WHEN s.oldest_expiry OPERATOR(pg_catalog.<) pg_catalog.clock_timestamp()
                     THEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) s.oldest_expiry
                     ELSE '0 seconds'::pg_catalog.interval END END AS lag,
           s.backlog_estimate,
           COALESCE(s.blocked_rows, 0) AS blocked_rows,
           COALESCE(s.time_used_ms, 0) AS time_used_ms,
           COALESCE(s.slow, false) AS slow,
           s.last_error,
           s.last_error_at
      FROM pg_catalog.pg_seclabel AS l
      LEFT JOIN ttl.table_stats() AS s ON s.relid OPERATOR(pg_catalog.=) l.objoid
     WHERE l.provider OPERATOR(pg_catalog.=) 'ttl'
       AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       AND l.objsubid OPERATOR(pg_catalog.=) 0;

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

-- Everybody may use the views, and the functions that a filter or a default calls.
-- ttl.enable, ttl.set_default, ttl.disable, ttl.resume and ttl.purge check that the
-- caller owns the table, so PUBLIC keeps EXECUTE on them. Nobody may create in the schema.
-- Granted by name: a database may have revoked what PUBLIC gets by default.
GRANT USAGE ON SCHEMA ttl TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ttl TO PUBLIC;
GRANT SELECT ON ttl.tables, ttl.stats TO PUBLIC;
REVOKE ALL ON FUNCTION ttl.live_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.row_is_live_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.rule_applies_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.invalidate_plans() FROM PUBLIC;

-- Tables may still have labels from before the extension was dropped.
SELECT ttl.invalidate_plans();
