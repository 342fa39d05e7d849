-- The clock ---------------------------------------------------------------

CREATE FUNCTION ttl.now() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_now';
COMMENT ON FUNCTION ttl.now() IS
    'time at which the current query judges whether rows are expired: start of the statement, or start of the transaction in REPEATABLE READ and SERIALIZABLE';

CREATE FUNCTION ttl.current_ts() RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_current_ts';
COMMENT ON FUNCTION ttl.current_ts() IS
    'time of last modification for rows that are written now: start of the statement, or the current time in whole seconds if the statement has run for more than one second';

-- The rule ----------------------------------------------------------------

CREATE FUNCTION ttl.expires_at(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expires_at';
COMMENT ON FUNCTION ttl.expires_at(pg_catalog.timestamptz, integer, integer) IS
    'time at which a row expires: ts plus ttl seconds, or plus default_ttl seconds if ttl is NULL; infinity if it never expires';

CREATE FUNCTION ttl.expiry_key(ts pg_catalog.timestamptz, ttl integer) RETURNS bigint
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_expiry_key';
COMMENT ON FUNCTION ttl.expiry_key(pg_catalog.timestamptz, integer) IS
    'sort key of the index for deletion: not negative and ordered by ts for rows with the default, negative and ordered by expiry for rows with an override; NULL if the row never expires';

CREATE FUNCTION ttl.is_override(ttl integer) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_is_override';
COMMENT ON FUNCTION ttl.is_override(integer) IS
    'check constraint of override columns: is the value -1 (never expires) or a positive number of seconds?';

CREATE FUNCTION ttl.document_ttl(document pg_catalog.jsonb) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_document_ttl';
COMMENT ON FUNCTION ttl.document_ttl(pg_catalog.jsonb) IS
    'override of a row from the property "ttl" at the root of its document; NULL (use the default) unless the property is -1 or an integer from 1 to 2147483647';

CREATE FUNCTION ttl_internal.live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_live_support';
COMMENT ON FUNCTION ttl_internal.live_support(pg_catalog.internal) IS 'planner support function of ttl.live';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, ttl integer, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_override';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer, integer) IS
    'filter on tables with an override column: is a row with these values not expired?';

CREATE FUNCTION ttl.live(ts pg_catalog.timestamptz, default_ttl integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_default';
COMMENT ON FUNCTION ttl.live(pg_catalog.timestamptz, integer) IS
    'filter on tables without an override column: is a row with this value not expired?';

-- One for each kind of date; a timestamp is read as UTC, a date as its midnight in UTC. In another
-- time zone, ttl.in_time_zone() comes before.

CREATE FUNCTION ttl.in_time_zone(date pg_catalog.timestamptz, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone';
COMMENT ON FUNCTION ttl.in_time_zone(pg_catalog.timestamptz, pg_catalog.text) IS
    'interpret the UTC time of a result of ttl.earliest() as local time in the time zone';

CREATE FUNCTION ttl.in_time_zone(date timestamp, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone';
COMMENT ON FUNCTION ttl.in_time_zone(timestamp, pg_catalog.text) IS
    'convert local time in the time zone to timestamp with time zone; the later one if the local time occurs twice; NULL if the time zone does not exist';

CREATE FUNCTION ttl.in_time_zone(date pg_catalog.date, time_zone pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_in_time_zone_date';
COMMENT ON FUNCTION ttl.in_time_zone(pg_catalog.date, pg_catalog.text) IS
    'time at which the day begins in the time zone; NULL if the time zone does not exist';

CREATE FUNCTION ttl.local_time(instant pg_catalog.timestamptz, time_zone pg_catalog.text) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_local_time';
COMMENT ON FUNCTION ttl.local_time(pg_catalog.timestamptz, pg_catalog.text) IS
    'convert to local time in the time zone; NULL if the time zone does not exist';


CREATE FUNCTION ttl.live_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.timestamptz, integer) IS
    'filter on tables with TTL indexes: is a row with this date not expired?';

CREATE FUNCTION ttl.live_at(date timestamp, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at';
COMMENT ON FUNCTION ttl.live_at(timestamp, integer) IS
    'filter on tables with TTL indexes: is a row with this date, in UTC, not expired?';

CREATE FUNCTION ttl.live_at(date pg_catalog.date, expire_after_seconds integer) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_live_at_date';
COMMENT ON FUNCTION ttl.live_at(pg_catalog.date, integer) IS
    'filter on tables with TTL indexes: is a row with this date, at midnight UTC, not expired?';

-- Instants of what tables have, for TTL indexes on expressions. None raises an error: what is no instant is NULL.

CREATE FUNCTION ttl.add_seconds(date pg_catalog.timestamptz, seconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.timestamptz, bigint) IS
    'add seconds; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.timestamptz, seconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.timestamptz, double precision) IS
    'add seconds; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_interval(date pg_catalog.timestamptz, by interval) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval';
COMMENT ON FUNCTION ttl.add_interval(pg_catalog.timestamptz, interval) IS
    'add an interval, with days of 24 hours; NULL if the interval contains months, the argument is infinite, or the result is out of range';

CREATE FUNCTION ttl.add_seconds(date timestamp, seconds bigint) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds';
COMMENT ON FUNCTION ttl.add_seconds(timestamp, bigint) IS
    'add seconds, in local time; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_seconds(date timestamp, seconds double precision) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double';
COMMENT ON FUNCTION ttl.add_seconds(timestamp, double precision) IS
    'add seconds, in local time; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_interval(date timestamp, by interval) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval';
COMMENT ON FUNCTION ttl.add_interval(timestamp, interval) IS
    'add an interval, with days of 24 hours, in local time; NULL if the interval contains months, the argument is infinite, or the result is out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.date, seconds bigint) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_date';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.date, bigint) IS
    'add seconds to midnight of the date, in local time; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_seconds(date pg_catalog.date, seconds double precision) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_seconds_double_date';
COMMENT ON FUNCTION ttl.add_seconds(pg_catalog.date, double precision) IS
    'add seconds to midnight of the date, in local time; NULL if the argument is infinite or the result is out of range';

CREATE FUNCTION ttl.add_interval(date pg_catalog.date, by interval) RETURNS timestamp
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_add_interval_date';
COMMENT ON FUNCTION ttl.add_interval(pg_catalog.date, interval) IS
    'add an interval, with days of 24 hours, to midnight of the date, in local time; NULL if the interval contains months, the argument is infinite, or the result is out of range';

CREATE FUNCTION ttl.from_epoch(seconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch';
COMMENT ON FUNCTION ttl.from_epoch(bigint) IS
    'convert seconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_epoch(seconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_double';
COMMENT ON FUNCTION ttl.from_epoch(double precision) IS
    'convert seconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_epoch_ms(milliseconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_ms';
COMMENT ON FUNCTION ttl.from_epoch_ms(bigint) IS
    'convert milliseconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_epoch_ms(milliseconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_ms_double';
COMMENT ON FUNCTION ttl.from_epoch_ms(double precision) IS
    'convert milliseconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_epoch_us(microseconds bigint) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_us';
COMMENT ON FUNCTION ttl.from_epoch_us(bigint) IS
    'convert microseconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_epoch_us(microseconds double precision) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_epoch_us_double';
COMMENT ON FUNCTION ttl.from_epoch_us(double precision) IS
    'convert microseconds since 1970-01-01 00:00 UTC; NULL if the result is out of range';

CREATE FUNCTION ttl.from_iso8601(value pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_from_iso8601';
COMMENT ON FUNCTION ttl.from_iso8601(pg_catalog.text) IS
    'convert ISO 8601 text with date, time, and offset, such as 2026-11-25T10:00:00Z; NULL for any other text';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.timestamptz, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.timestamptz, integer) IS
    'time at which a row with this date expires by a TTL index; infinity if never (date NULL, infinite, or result out of range)';

CREATE FUNCTION ttl.index_expires_at(date timestamp, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at';
COMMENT ON FUNCTION ttl.index_expires_at(timestamp, integer) IS
    'time at which a row with this date, in UTC, expires by a TTL index; infinity if never';

CREATE FUNCTION ttl.index_expires_at(date pg_catalog.date, expire_after_seconds integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_index_expires_at_date';
COMMENT ON FUNCTION ttl.index_expires_at(pg_catalog.date, integer) IS
    'time at which a row with this date, at midnight UTC, expires by a TTL index; infinity if never';

CREATE FUNCTION ttl.earliest(dates pg_catalog.timestamptz[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.timestamptz[]) IS
    'earliest element of an array, ignoring NULLs; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates timestamp[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest';
COMMENT ON FUNCTION ttl.earliest(timestamp[]) IS
    'earliest element of an array, in UTC, ignoring NULLs; NULL if there is none';

CREATE FUNCTION ttl.earliest(dates pg_catalog.date[]) RETURNS pg_catalog.timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_earliest_date';
COMMENT ON FUNCTION ttl.earliest(pg_catalog.date[]) IS
    'midnight UTC of the earliest element of an array, ignoring NULLs; NULL if there is none';

CREATE FUNCTION ttl_internal.evaluate_first(condition boolean) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_evaluate_first';
COMMENT ON FUNCTION ttl_internal.evaluate_first(boolean) IS
    'return the argument; in the filter on tables with partial TTL indexes, where the planner assigns it a cost of zero, so that it is evaluated first';

CREATE FUNCTION ttl_internal.locked_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_locked_here';
COMMENT ON FUNCTION ttl_internal.locked_here(pg_catalog.oid, pg_catalog.tid) IS
    'in the filter of a session that locks rows: has the current transaction locked the row?';

CREATE FUNCTION ttl.cutoff(default_ttl integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_cutoff';
COMMENT ON FUNCTION ttl.cutoff(integer) IS
    'latest ts that is expired under this default; in the filter on tables that are partitioned by ts, for partition pruning';

CREATE FUNCTION ttl.reads_physically(relation pg_catalog.oid) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE SUPPORT ttl_internal.live_support AS 'MODULE_PATHNAME', 'ttl_reads_physically';
COMMENT ON FUNCTION ttl.reads_physically(pg_catalog.oid) IS
    'does the current user read expired rows, too (row_security is off, and the user is a superuser or the table''s owner)?';

CREATE FUNCTION ttl.refreshed_ts(ts pg_catalog.timestamptz, ttl integer, granularity integer) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_refreshed_ts';
COMMENT ON FUNCTION ttl.refreshed_ts(pg_catalog.timestamptz, integer, integer) IS
    'value of ts that an UPDATE writes on tables with a ts_granularity: the old value if it is not older than the granularity, or half of the row''s override, else the current time';

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
    'enable time to live on a table and add missing columns and indexes; default_ttl in seconds, -1 for none; arguments that are not given keep their value; drop_partitions: drop partitions whose rows have all expired; hidden => false: expired rows are visible until they are removed; ts_granularity: an UPDATE keeps a ts that is not older than that many seconds; confirm: also if most rows expire; concurrently: build indexes in the background';

CREATE FUNCTION ttl.set_default(
        rel pg_catalog.regclass, default_ttl ttl.seconds, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_default_wrapper';
COMMENT ON FUNCTION ttl.set_default(pg_catalog.regclass, ttl.seconds, boolean, boolean) IS
    'change the default time to live of a table, in seconds; -1 for none, NULL to disable time to live; expired rows that would become live are deleted first unless revive_expired is true; confirm: also if most rows expire';

CREATE FUNCTION ttl.set_option(
        rel pg_catalog.regclass, option pg_catalog.text, value pg_catalog.text, revive_expired boolean DEFAULT false,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'set_option_wrapper';
COMMENT ON FUNCTION ttl.set_option(pg_catalog.regclass, pg_catalog.text, pg_catalog.text, boolean, boolean) IS
    'set an option of a table''s time to live, such as default_ttl or hidden; NULL resets it; expired rows that would become live are deleted first unless revive_expired is true; confirm: also if most rows expire';

CREATE FUNCTION ttl.disable(
        rel pg_catalog.regclass, drop_columns boolean DEFAULT false, revive_expired boolean DEFAULT false,
        drop_adopted_columns boolean DEFAULT false)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'disable_wrapper';
COMMENT ON FUNCTION ttl.disable(pg_catalog.regclass, boolean, boolean, boolean) IS
    'disable time to live on a table after deleting its expired rows, or, with revive_expired, making them live; drop_columns: also drop the policy and the columns that ttl.enable added; drop_adopted_columns: drop all its columns';

CREATE FUNCTION ttl.resume(rel pg_catalog.regclass) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'resume_wrapper';
COMMENT ON FUNCTION ttl.resume(pg_catalog.regclass) IS
    'start background deletion on a table that was restored from a dump, copied with its database, or given its policy by SECURITY LABEL; end a pause';
CREATE FUNCTION ttl.resume_restored() RETURNS SETOF pg_catalog.regclass
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'resume_restored_wrapper';
COMMENT ON FUNCTION ttl.resume_restored() IS
    'start background deletion on all tables of the caller that were restored from a dump, copied with their database, or given their policy by SECURITY LABEL; return them; does not end pauses';

CREATE FUNCTION ttl.pause(rel pg_catalog.regclass, until pg_catalog.timestamptz DEFAULT 'infinity') RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'ttl_pause';
COMMENT ON FUNCTION ttl.pause(pg_catalog.regclass, pg_catalog.timestamptz) IS
    'pause background deletion on a table until a time, or until ttl.resume() is called; rows that expire are still hidden';

CREATE FUNCTION ttl.archive_to(rel pg_catalog.regclass, target pg_catalog.regclass) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'archive_to_wrapper';
COMMENT ON FUNCTION ttl.archive_to(pg_catalog.regclass, pg_catalog.regclass) IS
    'archive expired rows: insert them into another table in the transaction that deletes them; NULL ends archiving';

CREATE FUNCTION ttl.deleting() RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'deleting_wrapper';
COMMENT ON FUNCTION ttl.deleting() IS
    'in a trigger: is the row deleted because it has expired?';

-- TTL indexes --------------------------------------------------------------

CREATE FUNCTION ttl.expire_index(
        index pg_catalog.regclass, expire_after_seconds ttl.seconds, drop_partitions boolean DEFAULT NULL,
        hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false, confirm boolean DEFAULT false,
        time_zone pg_catalog.text DEFAULT NULL)
    RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_index_wrapper';
COMMENT ON FUNCTION ttl.expire_index(pg_catalog.regclass, ttl.seconds, boolean, boolean, boolean, boolean, pg_catalog.text) IS
    'make an index a TTL index: rows expire that many seconds after the date in its first column, or, with NULL, make it an ordinary index; time_zone is that of a timestamp or date (default: the session''s); with revive_expired, expired rows that become live are not deleted first';

CREATE FUNCTION ttl.expire_after(
        rel pg_catalog.regclass, column_name pg_catalog.name, after ttl.seconds, unit pg_catalog.text DEFAULT NULL,
        time_zone pg_catalog.text DEFAULT NULL, hidden boolean DEFAULT NULL, revive_expired boolean DEFAULT false,
        confirm boolean DEFAULT false, concurrently boolean DEFAULT false)
    RETURNS pg_catalog.regclass
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'expire_after_wrapper';
COMMENT ON FUNCTION ttl.expire_after(pg_catalog.regclass, pg_catalog.name, ttl.seconds, pg_catalog.text, pg_catalog.text, boolean, boolean, boolean, boolean) IS
    'let rows expire that many seconds after the time in a column, and return the TTL index, which is created if there is none; time_zone is that of a timestamp or date (default: the session''s); unit is that of a number since 1970: seconds, milliseconds, or microseconds; concurrently: raise an error with the statement that creates the index if there is none';

CREATE FUNCTION ttl.create_index(
        rel pg_catalog.regclass, keys pg_catalog.jsonb, options pg_catalog.jsonb DEFAULT '{}', hidden boolean DEFAULT NULL,
        confirm boolean DEFAULT false)
    RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_index_wrapper';
COMMENT ON FUNCTION ttl.create_index(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, boolean, boolean) IS
    'create a TTL index like createIndex of MongoDB: keys is {"column": 1}, options are expireAfterSeconds, name, and partialFilterExpression (an SQL predicate); {"_ts": 1} sets the default of the table; with hidden => false, expired rows are visible until they are removed';

CREATE FUNCTION ttl.coll_mod(rel pg_catalog.regclass, command pg_catalog.jsonb, confirm boolean DEFAULT false) RETURNS pg_catalog.jsonb
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'coll_mod_wrapper';
COMMENT ON FUNCTION ttl.coll_mod(pg_catalog.regclass, pg_catalog.jsonb, boolean) IS
    'change the seconds of a TTL index, or make an index a TTL index, like MongoDB''s collMod: {"index": {"keyPattern": {"column": 1}, "expireAfterSeconds": 100}}';

CREATE FUNCTION ttl_internal.rules(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c STABLE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'rules_wrapper';
COMMENT ON FUNCTION ttl_internal.rules(pg_catalog.regclass) IS
    'TTL indexes of a table in the format of MongoDB''s listIndexes: name, key, expireAfterSeconds, partialFilterExpression';

-- Looking and deleting ----------------------------------------------------

-- Sets no search_path, so that triggers find what they always find; its query qualifies
-- all names.

CREATE FUNCTION ttl.purge(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'purge_wrapper';
COMMENT ON FUNCTION ttl.purge(pg_catalog.regclass) IS
    'delete the expired rows of a table now, in the current transaction; return their number';

CREATE FUNCTION ttl_internal.purge_strictly(rel pg_catalog.regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'purge_strictly_wrapper';
COMMENT ON FUNCTION ttl_internal.purge_strictly(pg_catalog.regclass) IS
    'delete the expired rows of a shard of Citus; raise an error if one remains';

CREATE FUNCTION ttl_internal.node_reports(OUT nodename pg_catalog.text, OUT nodeport integer, OUT success boolean, OUT report pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 10
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'node_reports_wrapper';
COMMENT ON FUNCTION ttl_internal.node_reports() IS
    'state of tables with a time to live on each node of Citus; for the view ttl.placements';

CREATE FUNCTION ttl.expired(rel pg_catalog.anyelement) RETURNS SETOF pg_catalog.anyelement
    LANGUAGE c VOLATILE ROWS 1000 AS 'MODULE_PATHNAME', 'ttl_expired';
COMMENT ON FUNCTION ttl.expired(pg_catalog.anyelement) IS
    'expired rows of a table that have not been removed yet, for its owner: SELECT * FROM ttl.expired(NULL::sessions)';

CREATE FUNCTION ttl.revive(rel pg_catalog.regclass, condition pg_catalog.text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'revive_wrapper';
COMMENT ON FUNCTION ttl.revive(pg_catalog.regclass, pg_catalog.text) IS
    'make expired rows of a table live again by an UPDATE of their time of last modification: those that meet the condition, or all; return their number';

CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, default_ttl ttl.seconds DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, ttl.seconds) IS
    'effect of a default of that many seconds (NULL: the current one): number of rows, number of expired rows, earliest expiry';

CREATE FUNCTION ttl.preview(
        rel pg_catalog.regclass, column_name pg_catalog.name, after ttl.seconds, unit pg_catalog.text DEFAULT NULL,
        time_zone pg_catalog.text DEFAULT NULL,
        OUT total bigint, OUT expired bigint, OUT oldest_expiry pg_catalog.timestamptz)
    RETURNS SETOF pg_catalog.record ROWS 1
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'preview_after_wrapper';
COMMENT ON FUNCTION ttl.preview(pg_catalog.regclass, pg_catalog.name, ttl.seconds, pg_catalog.text, pg_catalog.text) IS
    'effect of ttl.expire_after() with these arguments: number of rows, number of expired rows, earliest expiry';

CREATE FUNCTION ttl.remaining(rec pg_catalog.record) RETURNS interval
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_remaining';
COMMENT ON FUNCTION ttl.remaining(pg_catalog.record) IS
    'time until a row expires: SELECT ttl.remaining(s) FROM sessions AS s; NULL if it never expires, zero or negative if it is expired';

CREATE FUNCTION ttl_internal.is_live_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_is_live_support';
COMMENT ON FUNCTION ttl_internal.is_live_support(pg_catalog.internal) IS 'planner support function of ttl.is_live';

-- Called for NULL, too: the same answer as the conditions that the planner puts in its place.
CREATE FUNCTION ttl.is_live(rec pg_catalog.record) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE SUPPORT ttl_internal.is_live_support AS 'MODULE_PATHNAME', 'ttl_is_live';
COMMENT ON FUNCTION ttl.is_live(pg_catalog.record) IS
    'is a row not expired? SELECT * FROM sessions AS s WHERE ttl.is_live(s)';

CREATE FUNCTION ttl.create_live_view(
        rel pg_catalog.regclass, view_name pg_catalog.text, drop_with_policy boolean DEFAULT false)
    RETURNS pg_catalog.regclass
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'create_live_view_wrapper';
COMMENT ON FUNCTION ttl.create_live_view(pg_catalog.regclass, pg_catalog.text, boolean) IS
    'create a view of the live rows of a table, for tables with hidden => false; with drop_with_policy, ttl.disable(drop_columns => true) drops it';

-- These are STABLE, so that ttl.tables evaluates them only for queries that show what they return.
CREATE FUNCTION ttl_internal.policy(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'policy_wrapper';
COMMENT ON FUNCTION ttl_internal.policy(pg_catalog.regclass) IS
    'policy of a table; NULL if it has no readable label; for the view ttl.tables';

CREATE FUNCTION ttl_internal.standing(rel pg_catalog.regclass) RETURNS pg_catalog.jsonb
    LANGUAGE c STABLE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'standing_wrapper';
COMMENT ON FUNCTION ttl_internal.standing(pg_catalog.regclass) IS
    'state of deletion in a table: next expiry, backlog, worker; for the view ttl.tables';

CREATE FUNCTION ttl.problems(rel pg_catalog.regclass) RETURNS pg_catalog.text[]
    LANGUAGE c STABLE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'problems_wrapper';
COMMENT ON FUNCTION ttl.problems(pg_catalog.regclass) IS
    'problems of a table''s time to live; empty if there are none';

CREATE FUNCTION ttl.check(OUT relation pg_catalog.regclass, OUT problem pg_catalog.text, OUT to_do pg_catalog.text)
    RETURNS SETOF pg_catalog.record
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'check_wrapper';
COMMENT ON FUNCTION ttl.check() IS
    'problems of all tables of this database, each with the statement that solves it; relation is NULL for a problem of all tables; no rows if there are none';

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
    'counters of background deletion in this database; for the view ttl.stats';

CREATE FUNCTION ttl_internal.worker_progress(
        OUT pid integer, OUT datid pg_catalog.oid, OUT relid pg_catalog.oid, OUT phase pg_catalog.text, OUT rows_deleted bigint,
        OUT batch_size integer, OUT heap_blocks_total bigint, OUT heap_blocks_swept bigint, OUT effort double precision,
        OUT waits_for pg_catalog.text)
    RETURNS SETOF pg_catalog.record ROWS 5
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'worker_progress_wrapper';
COMMENT ON FUNCTION ttl_internal.worker_progress() IS
    'current activity of each worker; for the view ttl.progress';

CREATE FUNCTION ttl.reset_stats(rel pg_catalog.regclass DEFAULT NULL) RETURNS pg_catalog.void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'reset_stats_wrapper';
COMMENT ON FUNCTION ttl.reset_stats(pg_catalog.regclass) IS
    'reset the counters in ttl.stats of a table, or of all tables in this database; superusers only, unless EXECUTE is granted';

-- Keys -----------------------------------------------------------------------

CREATE FUNCTION ttl.free_expired_keys() RETURNS pg_catalog.trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'ttl_free_expired_keys';
COMMENT ON FUNCTION ttl.free_expired_keys() IS
    'trigger function on tables with unique or exclusion constraints: delete the expired row that has the key of a new row';

-- By its cost it is evaluated after all other conditions.
CREATE FUNCTION ttl_internal.live_or_unneeded(relation pg_catalog.oid, place pg_catalog.tid, live boolean) RETURNS boolean
    LANGUAGE c VOLATILE COST 100 AS 'MODULE_PATHNAME', 'ttl_live_or_unneeded';
COMMENT ON FUNCTION ttl_internal.live_or_unneeded(pg_catalog.oid, pg_catalog.tid, boolean) IS
    'in queries of cascades and of the extension: raise an error if the row is expired and the current transaction has inserted rows that refer to it';

CREATE FUNCTION ttl_internal.written_here(relation pg_catalog.oid, place pg_catalog.tid) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 100 AS 'MODULE_PATHNAME', 'ttl_written_here';
COMMENT ON FUNCTION ttl_internal.written_here(pg_catalog.oid, pg_catalog.tid) IS
    'in queries of the extension: was the row written by the current transaction?';

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
    'placeholder for the filter in queries of the extension; raises an error elsewhere';

CREATE FUNCTION ttl_internal.row_is_kept_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_row_is_kept_support';
COMMENT ON FUNCTION ttl_internal.row_is_kept_support(pg_catalog.internal) IS 'planner support function of ttl_internal.row_is_kept';

CREATE FUNCTION ttl_internal.row_is_kept(relation pg_catalog.oid, seconds integer) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl_internal.row_is_kept_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.row_is_kept(pg_catalog.oid, integer) IS
    'placeholder for the condition that a row is live or has been expired for less than that many seconds, in queries of the extension; raises an error elsewhere';

CREATE FUNCTION ttl_internal.rule_applies(relation pg_catalog.oid, index pg_catalog.text) RETURNS boolean
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_applies_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_applies(pg_catalog.oid, pg_catalog.text) IS
    'placeholder for the predicate of a TTL index in queries of the extension; raises an error elsewhere';

CREATE FUNCTION ttl_internal.rule_key_support(pg_catalog.internal) RETURNS pg_catalog.internal
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_rule_key_support';
COMMENT ON FUNCTION ttl_internal.rule_key_support(pg_catalog.internal) IS
    'planner support function of ttl_internal.rule_timestamptz, ttl_internal.rule_timestamp and ttl_internal.rule_date';

CREATE FUNCTION ttl_internal.rule_timestamptz(relation pg_catalog.oid, index pg_catalog.text) RETURNS pg_catalog.timestamptz
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_timestamptz(pg_catalog.oid, pg_catalog.text) IS
    'placeholder for the expression of a TTL index in queries of the extension; raises an error elsewhere';

CREATE FUNCTION ttl_internal.rule_timestamp(relation pg_catalog.oid, index pg_catalog.text) RETURNS timestamp
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_timestamp(pg_catalog.oid, pg_catalog.text) IS
    'placeholder for the expression of a TTL index in queries of the extension; raises an error elsewhere';

CREATE FUNCTION ttl_internal.rule_date(relation pg_catalog.oid, index pg_catalog.text) RETURNS pg_catalog.date
    LANGUAGE c STABLE SUPPORT ttl_internal.rule_key_support AS 'MODULE_PATHNAME', 'ttl_own_query_only';
COMMENT ON FUNCTION ttl_internal.rule_date(pg_catalog.oid, pg_catalog.text) IS
    'placeholder for the expression of a TTL index in queries of the extension; raises an error elsewhere';

-- Internal ------------------------------------------------------------------

CREATE FUNCTION ttl_internal.invalidate_plans() RETURNS pg_catalog.void
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'invalidate_plans_wrapper';
COMMENT ON FUNCTION ttl_internal.invalidate_plans() IS
    'invalidate cached plans of all tables that have a policy; for CREATE EXTENSION';
