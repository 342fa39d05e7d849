-- What every role may do; docs/security.md says why of each function. No other role than the
-- extension's owner may create in the schemas. Granted and revoked by name: a database may have changed
-- what PUBLIC gets by default.
GRANT USAGE ON SCHEMA ttl, ttl_internal TO PUBLIC;
GRANT USAGE ON TYPE ttl.seconds TO PUBLIC;
GRANT SELECT ON ttl.tables, ttl.stats, ttl.progress, ttl.placements TO PUBLIC;

-- A function that is not named below is for the extension's owner only, as PostgreSQL checks no
-- privilege where it calls one itself: planner support, input and output of types, what the support
-- functions of row_is_live and its like replace. ttl.reset_stats: as PostgreSQL's own functions that
-- reset statistics.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ttl, ttl_internal FROM PUBLIC;

-- In plans, PostgreSQL checks the privilege of the user who runs the query, or of the table's owner.
GRANT EXECUTE ON FUNCTION
    ttl.live(pg_catalog.timestamptz, integer, integer), ttl.live(pg_catalog.timestamptz, integer),
    ttl.live_at(pg_catalog.timestamptz, integer), ttl.live_at(timestamp, integer), ttl.live_at(pg_catalog.date, integer),
    ttl.earliest(pg_catalog.timestamptz[]), ttl.earliest(timestamp[]), ttl.earliest(pg_catalog.date[]),
    ttl.in_time_zone(pg_catalog.timestamptz, pg_catalog.text), ttl.in_time_zone(timestamp, pg_catalog.text),
    ttl.in_time_zone(pg_catalog.date, pg_catalog.text), ttl.local_time(pg_catalog.timestamptz, pg_catalog.text),
    ttl.add_seconds(pg_catalog.timestamptz, bigint), ttl.add_seconds(pg_catalog.timestamptz, double precision),
    ttl.add_interval(pg_catalog.timestamptz, interval), ttl.add_seconds(timestamp, bigint),
    ttl.add_seconds(timestamp, double precision), ttl.add_interval(timestamp, interval),
    ttl.add_seconds(pg_catalog.date, bigint), ttl.add_seconds(pg_catalog.date, double precision),
    ttl.add_interval(pg_catalog.date, interval), ttl.from_epoch(bigint), ttl.from_epoch(double precision),
    ttl.from_epoch_ms(bigint), ttl.from_epoch_ms(double precision), ttl.from_epoch_us(bigint),
    ttl.from_epoch_us(double precision), ttl.from_iso8601(pg_catalog.text),
    ttl_internal.evaluate_first, ttl_internal.locked_here, ttl.cutoff, ttl.reads_physically,
    ttl.current_ts, ttl.refreshed_ts, ttl.is_override, ttl.document_ttl, ttl.expiry_key, ttl.expires_at,
    ttl.index_expires_at(pg_catalog.timestamptz, integer), ttl.index_expires_at(timestamp, integer),
    ttl.index_expires_at(pg_catalog.date, integer),
    ttl_internal.live_or_unneeded, ttl_internal.written_here
    TO PUBLIC;

-- Of the session, or of a row that the caller has read.
GRANT EXECUTE ON FUNCTION ttl.now, ttl.deleting, ttl.remaining, ttl.is_live TO PUBLIC;

-- These check that the caller owns the table (ttl.preview: may SELECT from it).
GRANT EXECUTE ON FUNCTION
    ttl.enable, ttl.set_default, ttl.set_option, ttl.disable, ttl.resume, ttl.resume_restored, ttl.pause, ttl.archive_to,
    ttl.expire_index, ttl.expire_after, ttl.create_index, ttl.coll_mod, ttl.purge, ttl_internal.purge_strictly, ttl.expired, ttl.revive,
    ttl.preview(pg_catalog.regclass, ttl.seconds),
    ttl.preview(pg_catalog.regclass, pg_catalog.name, ttl.seconds, pg_catalog.text, pg_catalog.text), ttl.create_live_view
    TO PUBLIC;

-- Behind the views. They show of each table what the caller may know.
GRANT EXECUTE ON FUNCTION
    ttl_internal.policy, ttl_internal.rules, ttl.problems, ttl.check, ttl_internal.standing, ttl_internal.table_stats, ttl_internal.worker_progress, ttl_internal.node_reports
    TO PUBLIC;

-- CREATE TRIGGER checks the privilege of the table's owner, in a restore, too.
GRANT EXECUTE ON FUNCTION ttl.free_expired_keys TO PUBLIC;

-- Tables may still have labels from before the extension was dropped.
SELECT ttl_internal.invalidate_plans();
