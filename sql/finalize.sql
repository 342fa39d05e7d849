-- Everybody may use the views, and the functions that a filter or a default calls.
-- ttl.enable, ttl.set_default, ttl.disable, ttl.resume and ttl.purge check that the
-- caller owns the table, so PUBLIC keeps EXECUTE on them. Nobody may create in the schema.
-- Granted by name: a database may have revoked what PUBLIC gets by default.
GRANT USAGE ON SCHEMA ttl TO PUBLIC;
GRANT USAGE ON TYPE ttl.seconds TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ttl TO PUBLIC;
GRANT SELECT ON ttl.tables, ttl.stats, ttl.progress, ttl.placements TO PUBLIC;
REVOKE ALL ON FUNCTION ttl.live_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.row_is_live_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.row_is_kept_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.rule_applies_support(pg_catalog.internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.invalidate_plans() FROM PUBLIC;
REVOKE ALL ON FUNCTION ttl.check_library() FROM PUBLIC;
-- As PostgreSQL's own functions that reset statistics.
REVOKE ALL ON FUNCTION ttl.reset_stats(pg_catalog.regclass) FROM PUBLIC;

-- Tables may still have labels from before the extension was dropped.
SELECT ttl.invalidate_plans();
