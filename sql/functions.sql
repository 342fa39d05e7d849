-- The clock ---------------------------------------------------------------

CREATE FUNCTION ttl.now() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_now';
COMMENT ON FUNCTION ttl.now() IS
    'the time against which rows expire: the statement''s start, or the transaction''s start in REPEATABLE READ and SERIALIZABLE';

CREATE FUNCTION ttl.current_ts() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_current_ts';
COMMENT ON FUNCTION ttl.current_ts() IS
    'the time with which rows are stamped: the statement''s start, or the current time in a statement that has run for a second, cut to whole seconds';

-- The rule ----------------------------------------------------------------

CREATE FUNCTION ttl.expires_at(ts timestamptz, ttl integer, default_ttl integer) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expires_at';
COMMENT ON FUNCTION ttl.expires_at(timestamptz, integer, integer) IS
    'when a row expires: ts plus its ttl, or plus default_ttl where ttl is NULL; infinity = never (-1, or no ttl at all)';

CREATE FUNCTION ttl.is_override(ttl integer) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_is_override';
COMMENT ON FUNCTION ttl.is_override(integer) IS
    'whether a row may have this override: -1 (never expires) or a positive number of seconds; the constraint of override columns';

CREATE FUNCTION ttl.document_ttl(document jsonb) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_document_ttl';
COMMENT ON FUNCTION ttl.document_ttl(jsonb) IS
    'the override in the property "ttl" at the document''s root; NULL (inherit) unless it is -1 or a whole number from 1 to 2147483647';

CREATE FUNCTION ttl.live_support(internal) RETURNS internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_live_support';
COMMENT ON FUNCTION ttl.live_support(internal) IS 'planner support function of ttl.live';

CREATE FUNCTION ttl.live(ts timestamptz, ttl integer, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_override';
COMMENT ON FUNCTION ttl.live(timestamptz, integer, integer) IS
    'whether a row with this ts and ttl is not expired; the filter on tables with an override column';

CREATE FUNCTION ttl.live(ts timestamptz, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_default';
COMMENT ON FUNCTION ttl.live(timestamptz, integer) IS
    'whether a row with this ts is not expired; the filter on tables without an override column';

-- One for each kind of date; a timestamp is read as UTC, a date as its midnight in UTC.

CREATE FUNCTION ttl.live_at(date timestamptz, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(timestamptz, integer) IS
    'whether a row with this date in the column of a TTL index of so many seconds is not expired; the filter on tables with TTL indexes';

CREATE FUNCTION ttl.live_at(date timestamp, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(timestamp, integer) IS
    'whether a row with this date, in UTC, in the column of a TTL index of so many seconds is not expired';

CREATE FUNCTION ttl.live_at(date date, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_live_at_date';
COMMENT ON FUNCTION ttl.live_at(date, integer) IS
    'whether a row with this date (its midnight in UTC) in the column of a TTL index of so many seconds is not expired';

CREATE FUNCTION ttl.index_expires_at(date timestamptz, expire_after_seconds integer) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(timestamptz, integer) IS
    'when a row with this date expires by a TTL index of so many seconds; infinity = never (NULL, an infinite date, a sum past the end)';

CREATE FUNCTION ttl.index_expires_at(date timestamp, expire_after_seconds integer) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(timestamp, integer) IS
    'when a row with this date, in UTC, expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.index_expires_at(date date, expire_after_seconds integer) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_index_expires_at_date';
COMMENT ON FUNCTION ttl.index_expires_at(date, integer) IS
    'when a row with this date (its midnight in UTC) expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.earliest(dates timestamptz[]) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(timestamptz[]) IS
    'the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates timestamp[]) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(timestamp[]) IS
    'the earliest date of an array, in UTC, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates date[]) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_earliest_date';
COMMENT ON FUNCTION ttl.earliest(date[]) IS
    'midnight in UTC of the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.evaluate_first(condition boolean) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_evaluate_first';
COMMENT ON FUNCTION ttl.evaluate_first(boolean) IS
    'its argument; the planner takes the whole for free, so that it stands before all other conditions; in the filter on tables with partial TTL indexes';

CREATE FUNCTION ttl.cutoff(default_ttl integer) RETURNS timestamptz
    LANGUAGE c STABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'ttl_cutoff';
COMMENT ON FUNCTION ttl.cutoff(integer) IS
    'the newest ts that is expired under this default; used in the filter on tables partitioned by ts';

CREATE FUNCTION ttl.reads_physically() RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE LEAKPROOF SUPPORT ttl.live_support AS 'MODULE_PATHNAME', 'ttl_reads_physically';
COMMENT ON FUNCTION ttl.reads_physically() IS
    'whether row_security is off, by which a table''s owner and superusers read every row on disk';

-- Turning it on and off ---------------------------------------------------

-- Those that may delete are without a search_path of their own, so that triggers
-- find what they always find; what else they run has a safe one.

CREATE FUNCTION ttl.enable(
        rel regclass, default_ttl integer DEFAULT -1, ts_column name DEFAULT '_ts',
        ttl_column name DEFAULT 'ttl', document_column name DEFAULT NULL, index text DEFAULT 'btree',
        drop_partitions boolean DEFAULT false, hidden boolean DEFAULT NULL)
    RETURNS void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'enable_wrapper';
COMMENT ON FUNCTION ttl.enable(regclass, integer, name, name, name, text, boolean, boolean) IS
    'turn on a table''s time to live: default_ttl in seconds, -1 for none; adds missing columns and indexes; with drop_partitions, partitions that are expired as a whole are dropped; with hidden => false, expired rows are seen until they are deleted';

CREATE FUNCTION ttl.set_default(rel regclass, default_ttl integer, revive_expired boolean DEFAULT false)
    RETURNS void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_default_wrapper';
COMMENT ON FUNCTION ttl.set_default(regclass, integer, boolean) IS
    'change a table''s default time to live in seconds; -1 = none, NULL = turn TTL off; rows that are expired and would live again are deleted first, unless with revive_expired';

CREATE FUNCTION ttl.disable(
        rel regclass, drop_columns boolean DEFAULT false, revive_expired boolean DEFAULT false)
    RETURNS void
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'disable_wrapper';
COMMENT ON FUNCTION ttl.disable(regclass, boolean, boolean) IS
    'turn off a table''s time to live, after deleting its expired rows, which live again with revive_expired; with drop_columns also remove its columns and indexes';

CREATE FUNCTION ttl.resume(rel regclass) RETURNS void
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'resume_wrapper';
COMMENT ON FUNCTION ttl.resume(regclass) IS
    'let background deletion begin on a table that was restored from a dump, or labelled by hand';

-- TTL indexes --------------------------------------------------------------

CREATE FUNCTION ttl.expire_index(
        index regclass, expire_after_seconds integer, drop_partitions boolean DEFAULT NULL,
        hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false)
    RETURNS void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_index_wrapper';
COMMENT ON FUNCTION ttl.expire_index(regclass, integer, boolean, boolean, boolean) IS
    'make an index a TTL index: rows expire so many seconds after the date in its column; NULL makes it an ordinary one again, after deleting what is expired by it, which lives again with revive_expired';

CREATE FUNCTION ttl.create_index(rel regclass, keys jsonb, options jsonb) RETURNS jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_index_wrapper';
COMMENT ON FUNCTION ttl.create_index(regclass, jsonb, jsonb) IS
    'create a TTL index as MongoDB does: keys {"column": 1}, options expireAfterSeconds, name, partialFilterExpression (an SQL predicate); {"_ts": 1} sets the table''s default';

CREATE FUNCTION ttl.coll_mod(rel regclass, command jsonb) RETURNS jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'coll_mod_wrapper';
COMMENT ON FUNCTION ttl.coll_mod(regclass, jsonb) IS
    'change a TTL index''s seconds, or make an index a TTL index, as MongoDB''s collMod does: {"index": {"keyPattern": {"column": 1}, "expireAfterSeconds": 100}}';

CREATE FUNCTION ttl.rules(rel regclass) RETURNS jsonb
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'rules_wrapper';
COMMENT ON FUNCTION ttl.rules(regclass) IS
    'the table''s TTL indexes, as MongoDB''s listIndexes shows them: name, key, expireAfterSeconds, partialFilterExpression';

-- Looking and deleting ----------------------------------------------------

-- Without a search_path of its own, so that triggers find what they always find;
-- its query names everything with its schema.

CREATE FUNCTION ttl.purge(rel regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_wrapper';
COMMENT ON FUNCTION ttl.purge(regclass) IS
    'delete the table''s expired rows now, in this transaction; returns how many';

CREATE FUNCTION ttl.preview(
        rel regclass, default_ttl integer DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry timestamptz)
    RETURNS SETOF record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION ttl.preview(regclass, integer) IS
    'what a default of so many seconds (NULL: the current one) would expire at once: rows on disk, those expired, the oldest expiry';

CREATE FUNCTION ttl.problems(rel regclass) RETURNS text[]
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'problems_wrapper';
COMMENT ON FUNCTION ttl.problems(regclass) IS
    'what keeps a table''s time to live from working as it should; empty if nothing does';

CREATE FUNCTION ttl.table_stats(
        OUT relid oid, OUT rows_deleted bigint, OUT batches bigint, OUT passes bigint, OUT sub_passes bigint,
        OUT partitions_dropped bigint, OUT last_pass_at timestamptz, OUT last_pass_ms double precision,
        OUT oldest_expiry timestamptz, OUT backlog_estimate bigint, OUT blocked_rows bigint,
        OUT last_error text, OUT last_error_at timestamptz)
    RETURNS SETOF record ROWS 10
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'table_stats_wrapper';
COMMENT ON FUNCTION ttl.table_stats() IS
    'what background deletion has done in this database since the server started; behind the view ttl.stats';

-- Keys -----------------------------------------------------------------------

CREATE FUNCTION ttl.free_expired_keys() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'ttl_free_expired_keys';
COMMENT ON FUNCTION ttl.free_expired_keys() IS
    'trigger on tables with a time to live and a unique or exclusion constraint: removes the expired row that holds a new row''s key';

-- Its cost has it evaluated after every other condition.
CREATE FUNCTION ttl.live_or_removed(relation oid, place tid, live boolean) RETURNS boolean
    LANGUAGE c VOLATILE COST 100 AS 'MODULE_PATHNAME', 'ttl_live_or_removed';
COMMENT ON FUNCTION ttl.live_or_removed(oid, tid, boolean) IS
    'whether a row is not expired; removes one that is; in the statements of foreign keys on the referencing side';

CREATE FUNCTION ttl.inserted_here(relation oid, place tid) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 100 AS 'MODULE_PATHNAME', 'ttl_inserted_here';
COMMENT ON FUNCTION ttl.inserted_here(oid, tid) IS
    'whether the row at this place was inserted by the present transaction; such rows keep an expired row from being replaced that they refer to';

-- The extension's own queries ----------------------------------------------------

CREATE FUNCTION ttl.row_is_live_support(internal) RETURNS internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_live_support';
COMMENT ON FUNCTION ttl.row_is_live_support(internal) IS 'planner support function of ttl.row_is_live';

CREATE FUNCTION ttl.rule_applies_support(internal) RETURNS internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_rule_applies_support';
COMMENT ON FUNCTION ttl.rule_applies_support(internal) IS 'planner support function of ttl.rule_applies';

CREATE FUNCTION ttl.row_is_live(relation oid, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl.row_is_live_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl.row_is_live(oid, integer) IS
    'stands for the filter in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl.rule_applies(relation oid, index text) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl.rule_applies_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl.rule_applies(oid, text) IS
    'stands for the predicate of a TTL index in the extension''s own queries; raises an error in others';

-- Internal ------------------------------------------------------------------

CREATE FUNCTION ttl.invalidate_plans() RETURNS void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'invalidate_plans_wrapper';
COMMENT ON FUNCTION ttl.invalidate_plans() IS
    'make all sessions replan statements on tables with a label; for CREATE EXTENSION where labels are there already';
