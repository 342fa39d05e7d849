# shellcheck shell=bash
# pg_partman makes the partitions, ttl_ext drops them.
share=$("$PG_CONFIG" --sharedir)/extension
if [ ! -f "$share/pg_partman.control" ]; then
    command -v apt-get >/dev/null || skip "no apt-get"
    (cd "$TOOL_HOME" && apt-get -qq -o APT::Sandbox::User=root download "postgresql-$PG_VERSION-partman" &&
        dpkg-deb -x ./*.deb root && cp root/usr/share/postgresql/"$PG_VERSION"/extension/pg_partman* "$share/") ||
        skip "no package for PostgreSQL $PG_VERSION"
fi
export PGUSER=postgres
sql -c "CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman"
version_of "pg_partman $(sql -c "SELECT extversion FROM pg_extension WHERE extname = 'pg_partman'")"
sql -f events.sql >/dev/null
expect_ttl events
# Rows of 20 days ago, live, and of 40, expired, are in the default partition, and move with their times.
sql -c "SET ttl.preserve_ts = on" \
    -c "INSERT INTO events SELECT n, 'old', date_trunc('day', now()) - interval '20 days' FROM generate_series(1, 10) n" \
    -c "INSERT INTO events SELECT n, 'older', now() - interval '40 days' FROM generate_series(11, 20) n"
expect "live" "$(sql -c "SELECT count(*), count(*) FILTER (WHERE tableoid = 'events_default'::regclass) FROM events")" "10 10"
sql -f move.sql
expect "moved, as old as before" "$(sql -c "SELECT count(*), count(*) FILTER (WHERE tableoid = 'events_default'::regclass),
    max(_ts) = date_trunc('day', now()) - interval '20 days' FROM events")" "10 0 t"
partition=$(sql -c "SELECT DISTINCT tableoid::regclass FROM events")
sql -c "SELECT ttl.purge('events')"
sql -c "SELECT partman.run_maintenance('public.events')"
expect_ttl events
expect "its partition stays while it has live rows" "$(sql -c "SELECT to_regclass('$partition') IS NOT NULL")" t
