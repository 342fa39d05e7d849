-- The clock ---------------------------------------------------------------

CREATE FUNCTION ttl.now() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_now';
COMMENT ON FUNCTION ttl.now() IS
    'the time against which rows expire: the start of the statement in which the query began, or the transaction''s start in REPEATABLE READ and SERIALIZABLE';

CREATE FUNCTION ttl.current_ts() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_current_ts';
COMMENT ON FUNCTION ttl.current_ts() IS
    'the time with which rows are stamped: the statement''s start, or the current time in a statement that has run for a second, cut to whole seconds';

-- The rule ----------------------------------------------------------------

CREATE FUNCTION ttl.expires_at(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expires_at';
COMMENT ON FUNCTION ttl.expires_at(pg_catalog.timestamptz, integer, integer) IS
    'when a row expires: ts plus its ttl, or plus default_ttl where ttl is NULL; infinity = never (-1, or no ttl at all)';

CREATE FUNCTION ttl.expiry_key(ts pg_catalog.timestamptz, ttl integer) RETURNS bigint
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expiry_key';
COMMENT ON FUNCTION ttl.expiry_key(pg_catalog.timestamptz, integer) IS
    'what the index for deletion orders rows by: from 0 up, by ts, those that inherit; below 0, by their expiry, those that override it; NULL = never expires';

CREATE FUNCTION ttl.is_override(ttl integer) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_is_override';
COMMENT ON FUNCTION ttl.is_override(integer) IS
    'whether a row may have this override: -1 (never expires) or a positive number of seconds; the constraint of override columns';

CREATE FUNCTION ttl.document_ttl(document pg_catalog.jsonb) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_document_ttl';
COMMENT ON FUNCTION ttl.document_ttl(pg_catalog.jsonb) IS
    'the override in the property "ttl" at the document''s root; NULL (inherit) unless it is -1 or a whole number from 1 to 2147483647';

CREATE FUNCTION ttl_internal.live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_live_support';
COMMENT ON FUNCTION ttl_internal.live_support(pg_catalog.internal) IS 'planner support function of ttl.live';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_override';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer, integer) IS
    'whether a row with this ts and ttl is not expired; the filter on tables with an override column';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_default';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer) IS
    'whether a row with this ts is not expired; the filter on tables without an override column';

-- One for each kind of date; a timestamp is read as UTC, a date as its midnight in UTC. In another
-- time zone, ttl.in_time_zone() comes before.

CREATE FUNCTION ttl.in_time_zone(date pg_catalog.timestamptz, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone';
COMMENT ON FUNCTION ttl.in_time_zone(pg_catalog.timestamptz, pg_catalog.text) IS
    'the instant at which clocks in the time zone show what clocks in UTC show at this one; for what ttl.earliest() makes of an array';

CREATE FUNCTION ttl.in_time_zone(date timestamp, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone';
COMMENT ON FUNCTION ttl.in_time_zone(timestamp, pg_catalog.text) IS
    'the instant at which clocks in the time zone show this time, the later one if there are two; NULL if the server has no such time zone';

CREATE FUNCTION ttl.in_time_zone(date pg_catalog.date, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone_date';
COMMENT ON FUNCTION ttl.in_time_zone(pg_catalog.date, pg_catalog.text) IS
    'the instant at which this day begins in the time zone; NULL if the server has no such time zone';

CREATE FUNCTION ttl.local_time(instant pg_catalog.timestamptz, time_zone pg_catalog.text) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_local_time';
COMMENT ON FUNCTION ttl.local_time(pg_catalog.timestamptz, pg_catalog.text) IS
    'what clocks in the time zone show at this instant; NULL if the server has no such time zone';


CREATE FUNCTION ttl.live_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.timestamptz, integer) IS
    'whether a row with this date in the column of a TTL index of so many seconds is not expired; the filter on tables with TTL indexes';

CREATE FUNCTION ttl.live_at(date timestamp, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(timestamp, integer) IS
    'whether a row with this date, in UTC, in the column of a TTL index of so many seconds is not expired';

CREATE FUNCTION ttl.live_at(date pg_catalog.date, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at_date';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.date, integer) IS
    'whether a row with this date (its midnight in UTC) in the column of a TTL index of so many seconds is not expired';

-- Instants of what tables have, for TTL indexes on expressions. None raises an error: what is no instant is NULL.

CREATE FUNCTION ttl.add_seconds(date pg_catalog.timestamptz, seconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.timestamptz, bigint) IS
    'a date plus so many seconds; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.timestamptz, seconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.timestamptz, double precision) IS
    'a date plus so many seconds; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_interval(date pg_catalog.timestamptz, by interval) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval';
COMMENT ON FUNCTION ttl.add_interval(pg_catalog.timestamptz, interval) IS
    'a date plus an interval of days of 24 hours, hours and less; NULL if the interval has months, the date is infinite, or the sum out of range';

CREATE FUNCTION ttl.add_seconds(date timestamp, seconds bigint) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds';
COMMENT ON FUNCTION ttl.add_seconds(timestamp, bigint) IS
    'a date plus so many seconds in local time; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_seconds(date timestamp, seconds double precision) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double';
COMMENT ON FUNCTION ttl.add_seconds(timestamp, double precision) IS
    'a date plus so many seconds in local time; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_interval(date timestamp, by interval) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval';
COMMENT ON FUNCTION ttl.add_interval(timestamp, interval) IS
    'a date plus an interval of days of 24 hours, hours and less in local time; NULL if the interval has months, the date is infinite, or the sum out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.date, seconds bigint) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_date';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.date, bigint) IS
    'a date plus so many seconds, from its midnight, in local time; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.date, seconds double precision) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double_date';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.date, double precision) IS
    'a date plus so many seconds, from its midnight, in local time; NULL if it is infinite or the sum out of range';

CREATE FUNCTION ttl.add_interval(date pg_catalog.date, by interval) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval_date';
COMMENT ON FUNCTION ttl.add_interval(pg_catalog.date, interval) IS
    'a date plus an interval of days of 24 hours, hours and less, from its midnight, in local time; NULL if the interval has months, the date is infinite, or the sum out of range';

CREATE FUNCTION ttl.from_epoch(seconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch';
COMMENT ON FUNCTION ttl.from_epoch(bigint) IS
    'the instant so many seconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_epoch(seconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_double';
COMMENT ON FUNCTION ttl.from_epoch(double precision) IS
    'the instant so many seconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_epoch_ms(milliseconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_ms';
COMMENT ON FUNCTION ttl.from_epoch_ms(bigint) IS
    'the instant so many milliseconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_epoch_ms(milliseconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_ms_double';
COMMENT ON FUNCTION ttl.from_epoch_ms(double precision) IS
    'the instant so many milliseconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_epoch_us(microseconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_us';
COMMENT ON FUNCTION ttl.from_epoch_us(bigint) IS
    'the instant so many microseconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_epoch_us(microseconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_us_double';
COMMENT ON FUNCTION ttl.from_epoch_us(double precision) IS
    'the instant so many microseconds after 1970-01-01 00:00 UTC; NULL if it is out of range';

CREATE FUNCTION ttl.from_iso8601(value pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_iso8601';
COMMENT ON FUNCTION ttl.from_iso8601(pg_catalog.text) IS
    'the instant in a text of ISO 8601 with date, time and offset, such as 2026-11-25T10:00:00Z; NULL for any other text';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.timestamptz, integer) IS
    'when a row with this date expires by a TTL index of so many seconds; infinity = never (NULL, an infinite date, a sum past the end)';

CREATE FUNCTION ttl.index_expires_at(date timestamp, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(timestamp, integer) IS
    'when a row with this date, in UTC, expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.date, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at_date';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.date, integer) IS
    'when a row with this date (its midnight in UTC) expires by a TTL index of so many seconds; infinity = never';

CREATE FUNCTION ttl.earliest(dates pg_catalog.timestamptz[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.timestamptz[]) IS
    'the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates timestamp[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(timestamp[]) IS
    'the earliest date of an array, in UTC, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates pg_catalog.date[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest_date';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.date[]) IS
    'midnight in UTC of the earliest date of an array, by which its row expires; NULLs do not count; NULL if there is none';

CREATE FUNCTION ttl.evaluate_first(condition boolean) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_evaluate_first';
COMMENT ON FUNCTION ttl.evaluate_first(boolean) IS
    'its argument; the planner takes the whole for free, so that it stands before all other conditions; in the filter on tables with partial TTL indexes';

CREATE FUNCTION ttl.locked_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_locked_here';
COMMENT ON FUNCTION ttl.locked_here(pg_catalog.oid, pg_catalog.tid) IS
    'whether the present transaction has locked the row at this place; in the filter, in sessions that lock rows of the table';

CREATE FUNCTION ttl.cutoff(default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_cutoff';
COMMENT ON FUNCTION ttl.cutoff(integer) IS
    'the newest ts that is expired under this default; used in the filter on tables partitioned by ts';

CREATE FUNCTION ttl.reads_physically(relation pg_catalog.oid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_reads_physically';
COMMENT ON FUNCTION ttl.reads_physically(pg_catalog.oid) IS
    'whether every row of the table on disk is read: row_security is off, and the user its owner or a superuser';

CREATE FUNCTION ttl.refreshed_ts(ts pg_catalog.timestamptz, ttl integer, granularity integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_refreshed_ts';
COMMENT ON FUNCTION ttl.refreshed_ts(pg_catalog.timestamptz, integer, integer) IS
    'what an UPDATE writes as ts: the row''s own if it is no older than so many seconds, nor than half of its override, else the current one; in UPDATEs of tables with a ts_granularity';

-- Turning it on and off ---------------------------------------------------

-- Functions that may delete set no search_path, so that triggers find what they always
-- find; the rest of their work has a safe one.

CREATE FUNCTION ttl.enable(
        rel pg_catalog.regclass, default_ttl ttl.seconds DEFAULT NULL, ts_column pg_catalog.name DEFAULT '',
        ttl_column pg_catalog.name DEFAULT '', document_column pg_catalog.name DEFAULT '', index pg_catalog.text DEFAULT NULL,
        drop_partitions boolean DEFAULT NULL, hidden boolean DEFAULT NULL, ts_granularity ttl.seconds DEFAULT NULL,
        confirm boolean DEFAULT false, concurrently boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'enable_wrapper';
COMMENT ON FUNCTION ttl.enable(pg_catalog.regclass, ttl.seconds, pg_catalog.name, pg_catalog.name, pg_catalog.name, pg_catalog.text, boolean, boolean, ttl.seconds, boolean, boolean) IS
    'turn on a table''s time to live: default_ttl in seconds, -1 for none; adds missing columns and indexes; what is not given stays as it is, on a table without a time to live it is -1, _ts, ttl, no document column, btree; with drop_partitions, partitions that are expired as a whole are dropped; with hidden => false, expired rows are seen until they are deleted; with ts_granularity, UPDATEs leave a ts that is no older than so many seconds, and stay heap-only; confirm: also if most rows expire with it; concurrently: indexes are built in the background, and deletion waits for them';

CREATE FUNCTION ttl.set_default(
        rel pg_catalog.regclass, default_ttl ttl.seconds, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_default_wrapper';
COMMENT ON FUNCTION ttl.set_default(pg_catalog.regclass, ttl.seconds, boolean, boolean) IS
    'change a table''s default time to live in seconds; -1 = none, NULL = turn TTL off; rows that are expired and would live again are deleted first, unless with revive_expired; confirm: also if most rows expire with it';

CREATE FUNCTION ttl.set_option(
        rel pg_catalog.regclass, option pg_catalog.text, value pg_catalog.text, revive_expired boolean DEFAULT false,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_option_wrapper';
COMMENT ON FUNCTION ttl.set_option(pg_catalog.regclass, pg_catalog.text, pg_catalog.text, boolean, boolean) IS
    'set an option of a table''s time to live by name, such as default or hidden; NULL = as if it were not set; rows that are expired and would live again are deleted first, unless with revive_expired; confirm: also if most rows expire with it';

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
    'let background deletion begin on a table that was restored from a dump, or labelled by hand, or go on where it was paused';
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

-- TTL indexes --------------------------------------------------------------

CREATE FUNCTION ttl.expire_index(
        index pg_catalog.regclass, expire_after_seconds ttl.seconds, drop_partitions boolean DEFAULT NULL,
        hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false,
        time_zone pg_catalog.text DEFAULT NULL)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_index_wrapper';
COMMENT ON FUNCTION ttl.expire_index(pg_catalog.regclass, ttl.seconds, boolean, boolean, boolean, boolean, pg_catalog.text) IS
    'make an index a TTL index: rows expire so many seconds after the date in its column, which for a timestamp or date is local time in time_zone (default: the session''s); NULL makes it an ordinary one again, after deleting what is expired by it, which lives again with revive_expired';

CREATE FUNCTION ttl.expire_after(
        rel pg_catalog.regclass, column_name pg_catalog.name, after ttl.seconds, unit pg_catalog.text DEFAULT NULL,
        time_zone pg_catalog.text DEFAULT NULL, hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.regclass
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_after_wrapper';
COMMENT ON FUNCTION ttl.expire_after(pg_catalog.regclass, pg_catalog.name, ttl.seconds, pg_catalog.text, pg_catalog.text, boolean, boolean, boolean) IS
    'let rows expire so many seconds after the time in a column: a timestamptz, a timestamp or date in time_zone (default: the session''s), or a number since 1970 in unit (seconds, milliseconds or microseconds); makes a TTL index of an index that is there, or creates one; returns it';

CREATE FUNCTION ttl.create_index(
        rel pg_catalog.regclass, keys pg_catalog.jsonb, options pg_catalog.jsonb DEFAULT '{}', hidden boolean DEFAULT NULL,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_index_wrapper';
COMMENT ON FUNCTION ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean, boolean) IS
    'create a TTL index as MongoDB does: keys {"column": 1}, options expireAfterSeconds, name, partialFilterExpression (an SQL predicate); {"_ts": 1} sets the table''s default; with hidden => false, expired rows of the table are seen until they are deleted';

CREATE FUNCTION ttl.coll_mod(rel pg_catalog.regclass, command pg_catalog.jsonb, confirm boolean DEFAULT false) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'coll_mod_wrapper';
COMMENT ON FUNCTION ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb, boolean) IS
    'change a TTL index''s seconds, or make an index a TTL index, as MongoDB''s collMod does: {"index": {"keyPattern": {"column": 1}, "expireAfterSeconds": 100}}';

CREATE FUNCTION ttl_internal.rules(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'rules_wrapper';
COMMENT ON FUNCTION ttl_internal.rules(pg_catalog.regclass) IS
    'the table''s TTL indexes, as MongoDB''s listIndexes shows them: name, key, expireAfterSeconds, partialFilterExpression';

-- Looking and deleting ----------------------------------------------------

-- Sets no search_path, so that triggers find what they always find; its query qualifies
-- all names.

CREATE FUNCTION ttl.purge(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_wrapper';
COMMENT ON FUNCTION ttl.purge(pg_catalog.regclass) IS
    'delete the table''s expired rows now, in this transaction; returns how many';

CREATE FUNCTION ttl_internal.purge_strictly(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_strictly_wrapper';
COMMENT ON FUNCTION ttl_internal.purge_strictly(pg_catalog.regclass) IS
    'as ttl.purge, but fails if an expired row stays; called on shards of Citus before a change that would revive it';

CREATE FUNCTION ttl_internal.node_reports(OUT nodename pg_catalog.text, OUT nodeport integer, OUT success boolean, OUT report pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 10
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'node_reports_wrapper';
COMMENT ON FUNCTION ttl_internal.node_reports() IS
    'for the view ttl.placements: what each node of Citus says of its tables with a time to live';

CREATE FUNCTION ttl.expired(rel pg_catalog.anyelement) RETURNS SETOF pg_catalog.anyelement
    LANGUAGE c VOLATILE ROWS 1000 AS 'MODULE_PATHNAME', 'ttl_expired';
COMMENT ON FUNCTION ttl.expired(pg_catalog.anyelement) IS
    'the rows of a table that have expired and are still on disk, to its owner: SELECT * FROM ttl.expired(NULL::sessions)';

CREATE FUNCTION ttl.revive(rel pg_catalog.regclass, condition pg_catalog.text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'revive_wrapper';
COMMENT ON FUNCTION ttl.revive(pg_catalog.regclass, pg_catalog.text) IS
    'bring back the table''s expired rows for which the condition holds, or all, by an UPDATE that stamps them anew; returns how many';

CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, default_ttl ttl.seconds DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, ttl.seconds) IS
    'what a default of so many seconds (NULL: the current one) would expire at once: rows on disk, those expired, the oldest expiry';

CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, column_name pg_catalog.name, after ttl.seconds, unit pg_catalog.text DEFAULT NULL,
        time_zone pg_catalog.text DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_after_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, pg_catalog.name, ttl.seconds, pg_catalog.text, pg_catalog.text) IS
    'what ttl.expire_after() with these arguments would expire at once: rows on disk, those expired, the oldest expiry';

CREATE FUNCTION ttl.remaining(rec pg_catalog.record) RETURNS interval
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_remaining';
COMMENT ON FUNCTION ttl.remaining(pg_catalog.record) IS
    'how long a row has to live: SELECT ttl.remaining(s) FROM sessions AS s; NULL if it never expires, not positive if it has expired';

CREATE FUNCTION ttl_internal.is_live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_is_live_support';
COMMENT ON FUNCTION ttl_internal.is_live_support(pg_catalog.internal) IS 'planner support function of ttl.is_live';

-- Called for NULL, too: the same answer as the conditions that the planner puts in its place.
CREATE FUNCTION ttl.is_live(rec pg_catalog.record) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.is_live_support AS 'MODULE_PATHNAME', 'ttl_is_live';
COMMENT ON FUNCTION ttl.is_live(pg_catalog.record) IS
    'whether a row is not expired: SELECT * FROM sessions AS s WHERE ttl.is_live(s); by the table''s time to live and the time of the statement';

CREATE FUNCTION ttl.create_live_view(
        rel pg_catalog.regclass, view_name pg_catalog.text, drop_with_policy boolean DEFAULT false)
    RETURNS pg_catalog.regclass
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_live_view_wrapper';
COMMENT ON FUNCTION ttl.create_live_view(pg_catalog.regclass, pg_catalog.text, boolean) IS
    'create a view of a table''s live rows, for tables and readers that see expired ones; with drop_with_policy it goes with ttl.disable(drop_columns => true)';

CREATE FUNCTION ttl_internal.policy(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'policy_wrapper';
COMMENT ON FUNCTION ttl_internal.policy(pg_catalog.regclass) IS
    'the table''s label; NULL if there is none that can be read; behind the view ttl.tables';

-- STABLE, so that ttl.tables evaluates it only for queries that show its columns.
CREATE FUNCTION ttl_internal.standing(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c STABLE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'standing_wrapper';
COMMENT ON FUNCTION ttl_internal.standing(pg_catalog.regclass) IS
    'how deletion stands in a table: next expiry, backlog, worker; behind the view ttl.tables';

CREATE FUNCTION ttl.problems(rel pg_catalog.regclass) RETURNS pg_catalog.text[]
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'problems_wrapper';
COMMENT ON FUNCTION ttl.problems(pg_catalog.regclass) IS
    'what keeps a table''s time to live from working as it should; empty if nothing does';

CREATE FUNCTION ttl.check(OUT relation pg_catalog.regclass, OUT problem pg_catalog.text, OUT to_do pg_catalog.text)
    RETURNS SETOF pg_catalog.record
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'check_wrapper';
COMMENT ON FUNCTION ttl.check() IS
    'all problems of this database, each with the statement to run; relation is NULL for what concerns all tables. No row if all is well';

CREATE FUNCTION ttl_internal.table_stats(
        OUT relid pg_catalog.oid, OUT rows_deleted bigint, OUT batches bigint, OUT passes bigint, OUT sub_passes bigint,
        OUT partitions_dropped bigint, OUT last_pass_at pg_catalog.timestamptz, OUT last_pass_ms double precision,
        OUT oldest_expiry pg_catalog.timestamptz, OUT lag_is_known boolean, OUT backlog_estimate bigint, OUT blocked_rows bigint,
        OUT time_used_ms double precision, OUT slow boolean,
        OUT last_error pg_catalog.text, OUT last_error_at pg_catalog.timestamptz,
        OUT stats_reset pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1000
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'table_stats_wrapper';
COMMENT ON FUNCTION ttl_internal.table_stats() IS
    'what background deletion has done in this database; behind the view ttl.stats';

CREATE FUNCTION ttl_internal.worker_progress(
        OUT pid integer, OUT datid pg_catalog.oid, OUT relid pg_catalog.oid, OUT phase pg_catalog.text, OUT rows_deleted bigint,
        OUT batch_size integer, OUT heap_blocks_total bigint, OUT heap_blocks_swept bigint, OUT effort double precision,
        OUT waits_for pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 5
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'worker_progress_wrapper';
COMMENT ON FUNCTION ttl_internal.worker_progress() IS
    'what each worker of background deletion is at; behind the view ttl.progress';

CREATE FUNCTION ttl.reset_stats(rel pg_catalog.regclass DEFAULT NULL) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'reset_stats_wrapper';
COMMENT ON FUNCTION ttl.reset_stats(pg_catalog.regclass) IS
    'set the counters in ttl.stats to zero, of one table or of all in this database; for superusers, unless granted';

-- Keys -----------------------------------------------------------------------

CREATE FUNCTION ttl.free_expired_keys() RETURNS pg_catalog.trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'ttl_free_expired_keys';
COMMENT ON FUNCTION ttl.free_expired_keys() IS
    'trigger on tables with a time to live and a unique or exclusion constraint: removes the expired row that holds a new row''s key';

-- By its cost it is evaluated after all other conditions.
CREATE FUNCTION ttl.live_or_unneeded(relation pg_catalog.oid, place pg_catalog.tid, live boolean) RETURNS boolean
    LANGUAGE c VOLATILE COST 100 AS 'MODULE_PATHNAME', 'ttl_live_or_unneeded';
COMMENT ON FUNCTION ttl.live_or_unneeded(pg_catalog.oid, pg_catalog.tid, boolean) IS
    'raises an error if a row is expired and the present transaction has made others refer to it; in cascades and the extension''s own deletions';

CREATE FUNCTION ttl.written_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 100 AS 'MODULE_PATHNAME', 'ttl_written_here';
COMMENT ON FUNCTION ttl.written_here(pg_catalog.oid, pg_catalog.tid) IS
    'whether the row at this place was written by the present transaction; such rows keep an expired row from being deleted that they have been made refer to';

-- The extension's own queries ----------------------------------------------------

CREATE FUNCTION ttl_internal.row_is_live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_live_support';
COMMENT ON FUNCTION ttl_internal.row_is_live_support(pg_catalog.internal) IS 'planner support function of ttl_internal.row_is_live';

CREATE FUNCTION ttl_internal.rule_applies_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_rule_applies_support';
COMMENT ON FUNCTION ttl_internal.rule_applies_support(pg_catalog.internal) IS 'planner support function of ttl_internal.rule_applies';

CREATE FUNCTION ttl_internal.row_is_live(relation pg_catalog.oid, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl_internal.row_is_live_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.row_is_live(pg_catalog.oid, integer) IS
    'stands for the filter in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl_internal.row_is_kept_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_kept_support';
COMMENT ON FUNCTION ttl_internal.row_is_kept_support(pg_catalog.internal) IS 'planner support function of ttl_internal.row_is_kept';

CREATE FUNCTION ttl_internal.row_is_kept(relation pg_catalog.oid, seconds integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl_internal.row_is_kept_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.row_is_kept(pg_catalog.oid, integer) IS
    'stands for the condition that a row is live, or has expired less than so many seconds ago, in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl_internal.rule_applies(relation pg_catalog.oid, index pg_catalog.text) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_applies_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_applies(pg_catalog.oid, pg_catalog.text) IS
    'stands for the predicate of a TTL index in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl_internal.rule_key_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_rule_key_support';
COMMENT ON FUNCTION ttl_internal.rule_key_support(pg_catalog.internal) IS
    'planner support function of ttl_internal.rule_timestamptz, ttl_internal.rule_timestamp and ttl_internal.rule_date';

CREATE FUNCTION ttl_internal.rule_timestamptz(relation pg_catalog.oid, index pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_timestamptz(pg_catalog.oid, pg_catalog.text) IS
    'stands for the expression of a TTL index in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl_internal.rule_timestamp(relation pg_catalog.oid, index pg_catalog.text) RETURNS timestamp
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_timestamp(pg_catalog.oid, pg_catalog.text) IS
    'stands for the expression of a TTL index in the extension''s own queries; raises an error in others';

CREATE FUNCTION ttl_internal.rule_date(relation pg_catalog.oid, index pg_catalog.text) RETURNS pg_catalog.date
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_date(pg_catalog.oid, pg_catalog.text) IS
    'stands for the expression of a TTL index in the extension''s own queries; raises an error in others';

-- Internal ------------------------------------------------------------------

CREATE FUNCTION ttl_internal.invalidate_plans() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'invalidate_plans_wrapper';
COMMENT ON FUNCTION ttl_internal.invalidate_plans() IS
    'make all sessions replan statements on tables with a label; for CREATE EXTENSION where labels are there already';
