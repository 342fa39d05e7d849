# shellcheck shell=bash
# Hypertables: chunks hide, stamp, free keys and are emptied like any child; a columnstore is refused.
# TimescaleDB is in no registry that is asked here: it is tried where the server has it. It must be
# preloaded, so there is a server of its own.
[ -f "$("$PG_CONFIG" --sharedir)/extension/timescaledb.control" ] || skip "the server has no TimescaleDB"
here=$PWD
WORK=$WORK/hyper
mkdir "$WORK"
if is_root; then chown "$SERVER_USER:" "$WORK"; fi
trap 'stop_server || exit 1' EXIT
start_server "shared_preload_libraries = 'timescaledb, ttl_ext'" "timescaledb.telemetry_level = off" \
    "max_worker_processes = 24" "ttl.enabled = off" "ttl.guard_fraction = 1" "ttl.change_delay = 0"
sql -c "CREATE EXTENSION timescaledb" -c "CREATE EXTENSION ttl_ext" 2>/dev/null
version_of "timescaledb $(sql -c "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'")"
[ "$(sql -c "SHOW timescaledb.license")" = timescale ] || skip "this build of TimescaleDB has no columnstore"
sql -f "$here/readings.sql" >/dev/null
disk() { PGOPTIONS='-c ttl.show_expired=on' sql -c "SELECT count(*) FROM $1"; }
on_disk_where() { disk "readings WHERE $1"; }

# A twin without chunks must give the same answers. One row in three has expired.
sql -c "CREATE TABLE twin (LIKE readings INCLUDING ALL)" -c "SELECT ttl.enable('twin', '30 days')" >/dev/null
copy_to_twin() {
    sql -c "SET ttl.preserve_ts = on" -c "SET ttl.show_expired = on" -c "DELETE FROM twin" \
        -c "INSERT INTO twin SELECT * FROM readings"
}
sql -c "SET ttl.preserve_ts = on" -c "INSERT INTO readings (device, at, value, _ts)
    SELECT n % 5, '2030-01-10'::timestamptz - n * interval '1 hour', n, CASE n % 3 WHEN 0 THEN '2001-01-01' ELSE now() END
      FROM generate_series(0, 239) AS n"
copy_to_twin
expect "chunks" "$(sql -c "SELECT count(*) > 9 FROM show_chunks('readings')")" t
same() { # QUERY, in which tbl is the table
    local got wanted
    got=$(sql -c "${1//tbl/readings}")
    wanted=$(sql -c "${1//tbl/twin}")
    expect "$1" "$got" "$wanted"
}
expect "live" "$(sql -c "SELECT count(*) FROM readings")" 160
both() {
    same "SELECT count(*), sum(value), min(at), max(at), min(value) FROM tbl"
    same "SELECT * FROM tbl ORDER BY at LIMIT 3"
    same "SELECT value FROM tbl ORDER BY at DESC LIMIT 3"
    same "SELECT value FROM tbl WHERE device = 1 AND at > '2030-01-08' ORDER BY at"
    same "SELECT time_bucket('1 day', at) AS day, count(*), first(value, at), last(value, at) FROM tbl GROUP BY day ORDER BY day"
    same "SELECT DISTINCT ON (device) device, value FROM tbl ORDER BY device, at DESC"
    same "SELECT count(*) FROM tbl AS a JOIN tbl AS b USING (device, at)"
}
both
expect "one chunk" "$(sql -c "SELECT count(*) FROM $(sql -c "SELECT show_chunks('readings') LIMIT 1") WHERE value::int % 3 = 0")" 0

# Keys of expired rows are free, those of live rows are not; writes stamp.
at="'2030-01-10'::timestamptz"
sql -c "INSERT INTO readings VALUES (0, $at, -1)" \
    -c "INSERT INTO readings VALUES (3, $at - interval '3 hours', -2) ON CONFLICT (device, at) DO UPDATE SET value = 0" \
    -c "INSERT INTO readings VALUES (1, $at - interval '6 hours', -3) ON CONFLICT DO NOTHING" \
    -c "INSERT INTO readings VALUES (1, $at - interval '1 hour', 0) ON CONFLICT (device, at) DO UPDATE SET value = -4"
printf '4\t2030-01-09 15:00:00\t-5\n' >"$WORK/rows"
sql -c "COPY readings (device, at, value) FROM '$WORK/rows'"
expect "new rows on expired keys" "$(sql -c "SELECT string_agg(value::text, ' ' ORDER BY value DESC) FROM readings WHERE value < 0")" "-1 -2 -3 -4 -5"
expect "a live key" "$(sql -c "INSERT INTO readings VALUES (2, $at - interval '2 hours', 0)" 2>&1 | grep -c 'duplicate key')" 1
expect "no expired row is updated" "$(sql -c "WITH u AS (UPDATE readings SET value = value WHERE value IN (12, 15) RETURNING 1) SELECT count(*) FROM u")" 0
sql -c "SET ttl.preserve_ts = on" -c "INSERT INTO readings VALUES (9, '2031-01-01', 7, '2001-01-01'), (8, '2031-01-01', 8, now())"
expect "in a new chunk" "$(sql -c "SELECT device FROM readings WHERE at = '2031-01-01'")" 8
expect "no problem by new chunks" "$(sql -c "SELECT problems FROM ttl.tables WHERE relation = 'readings'::regclass")" '{"deletion is off: ttl.enabled"}'

# Aggregates have what was live at their refresh.
sql -c "CREATE MATERIALIZED VIEW daily WITH (timescaledb.continuous) AS
    SELECT time_bucket('1 day', at) AS day, count(*) AS n FROM readings GROUP BY day WITH NO DATA" 2>/dev/null
sql -c "CALL refresh_continuous_aggregate('daily', NULL, NULL)" 2>/dev/null
expect "continuous aggregate" "$(sql -c "SELECT sum(n) = (SELECT count(*) FROM readings) FROM daily")" t

# Nor do expiry and deletion change them.
sql -c "SET ttl.preserve_ts = on" -c "INSERT INTO readings VALUES (6, '2030-01-05', 1, now() - interval '30 days' + interval '1 minute')"
sql -c "CALL refresh_continuous_aggregate('daily', NULL, NULL)" 2>/dev/null
figures=$(sql -c "SELECT sum(n) FROM daily")
sql -c "SELECT ttl.set_default('readings', '29 days')" -c "SELECT ttl.purge('readings')" >/dev/null 2>&1
sql -c "CALL refresh_continuous_aggregate('daily', NULL, NULL)" 2>/dev/null
expect "the aggregate keeps its figures" "$(sql -c "SELECT sum(n) FROM daily")" "$figures"
expect "the row is gone" "$(on_disk_where "device = 6")" 0
sql -c "SET ttl.preserve_ts = on" -c "INSERT INTO readings VALUES (7, '2030-01-05', 1, '2001-01-01')"

# Deletion, by the worker; a chunk that is dropped beside it.
before=$(disk readings)
sql -c "SELECT drop_chunks('readings', older_than => '2030-01-02'::timestamptz)" >/dev/null
live=$(sql -c "SELECT count(*) FROM readings")
sql -c "ALTER SYSTEM SET ttl.enabled = on" -c "SELECT pg_reload_conf()" >/dev/null
for _ in $(seq 300); do
    [ "$(disk readings)" = "$live" ] && break
    sleep 0.1
done
expect "deleted, of $before" "$(disk readings)" "$live"
sql -c "ALTER SYSTEM RESET ttl.enabled" -c "SELECT pg_reload_conf()" >/dev/null

expect "not concurrently" "$(sql -c "SELECT ttl.enable('readings', '29 days', concurrently => true)" 2>&1 | grep -c 'cannot build indexes')" 1

# A columnstore is refused before, and shown after.
refused() { sql -c "$1" 2>&1 | grep -c 'which has a columnstore' || true; }
sql -c "CREATE TABLE columns (at timestamptz NOT NULL, _ts timestamptz NOT NULL DEFAULT now(), ttl integer)
    WITH (tsdb.hypertable, tsdb.partition_column = 'at')" 2>/dev/null
expect "refused" "$(refused "SELECT ttl.enable('columns', 60)")" 1
sql -c "SET ttl.preserve_ts = on" -c "UPDATE readings SET _ts = '2001-01-01' WHERE device = 2"
copy_to_twin
sql -c "ALTER TABLE readings SET (timescaledb.enable_columnstore, timescaledb.segmentby = 'device')" 2>/dev/null
sql -c "SELECT compress_chunk(c) FROM show_chunks('readings') AS c" >/dev/null
expect "shown" "$(sql -c "SELECT problems[1] LIKE 'expired rows in the columnstore%' FROM ttl.tables WHERE relation = 'readings'::regclass")" t
both
expect "refused" "$(refused "SELECT ttl.set_default('readings', '60 days')")" 1
expect "refused" "$(refused "SELECT ttl.disable('readings')")" 1
live=$(sql -c "SELECT count(*) FROM readings")
sql -c "SELECT decompress_chunk(c) FROM show_chunks('readings') AS c" >/dev/null
sql -c "ALTER TABLE readings SET (timescaledb.enable_columnstore = false)"
sql -c "SELECT ttl.disable('readings')" >/dev/null
expect "nothing has come back" "$(sql -c "SELECT count(*) FROM readings")" "$live"
