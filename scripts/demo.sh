#!/usr/bin/env bash
# demo.sh VERSION: ttl_ext at work, to be looked at. A throw-away server, three
# tables (demo/setup.sql), clients that use them (demo/traffic.sql), and second
# by second what users see against what is on disk, with the background worker
# off for a few seconds. Half a minute; leaves nothing behind.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/demo-metrics.sh"

version=${1:-}
check_version "$version"
seconds=20

use_postgres "$version"
say "building the extension; the first time this takes a minute or two"
install_extension
make_workdir
start_server "shared_preload_libraries = 'ttl_ext'" "ttl.change_delay = 0"

sql() { "$BINDIR/psql" -X -q -At -F ' ' -v ON_ERROR_STOP=1 "$@"; }

counts="SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM orders), (SELECT count(*) FROM log)"
seen() { sql -U app -c "$counts"; }
stored() { sql -c "SET ttl.show_expired = on" -c "$counts"; }

new_log_lines() {
    local i
    for i in $(seq 25); do printf 'info\trequest %d\n' "$i"; done |
        sql -U app -c "COPY log (level, message) FROM STDIN"
}

# `seen` of `stored` rows as a bar: live rows full, expired ones shaded.
cell() { # SEEN STORED SCALE
    local width=13 live dead bar='' i
    live=$((($1 * width + $3 - 1) / $3)) dead=$((($2 * width + $3 - 1) / $3))
    [ "$live" -le "$width" ] || live=$width
    [ "$dead" -le "$width" ] || dead=$width
    for ((i = 0; i < width; i++)); do
        if [ "$i" -lt "$live" ]; then
            bar+='█'
        elif [ "$i" -lt "$dead" ]; then
            bar+='░'
        else
            bar+=' '
        fi
    done
    printf '%4d %4d %s' "$1" "$2" "$bar"
}

show() { # SECOND
    local s o l S O L
    read -r s o l < <(seen)
    read -r S O L < <(stored)
    printf '%3ds  %s  %s  %s\n' "$1" "$(cell "$s" "$S" 280)" "$(cell "$o" "$O" 120)" "$(cell "$l" "$L" 280)"
}

event() { printf '  >>  %s\n' "$*"; }

switch() { # on|off
    sql -c "ALTER SYSTEM SET ttl.enabled = $1" -c "SELECT pg_reload_conf()" >/dev/null
}

sql -f "$REPO/demo/setup.sql" >/dev/null
"$BINDIR/pgbench" -n -c 1 -R 5 -T 60 -U app -f "$REPO/demo/traffic.sql" postgres >/dev/null 2>&1 &
BACKGROUND=$!

cat <<END

ttl_ext on PostgreSQL $version. Rows that users see (full bar), and rows on disk
(full and shaded). What is shaded has expired: it is there, but no query finds it.

  sessions   end 8 s after the last click; 20 guests a second come and go
  orders     stay; 30 baskets have a ttl of their own of 5 s, 30 others of 14 s
  log        keeps 6 s; 25 lines a second by COPY

Nobody calls anything: a background worker deletes what has expired, so the
shade follows the bar within a second or two. From second 9 to second 13 the
worker is switched off: rows are hidden all the same, and stay on disk.

time    seen disk sessions      seen disk orders        seen disk log
END

[ -z "${TTL_DEMO_METRICS:-}" ] || start_exporter
start=$SECONDS
for ((second = 1; second <= seconds; second++)); do
    new_log_lines
    while [ $((SECONDS - start)) -lt "$second" ]; do sleep 0.05; done
    show "$second"
    [ -z "${TTL_DEMO_METRICS:-}" ] || metrics "$TTL_DEMO_METRICS" "$second"
    case $second in
        9)
            switch off
            event "ttl.enabled = off -- the worker leaves; what expires is hidden, and stays on disk"
            ;;
        13)
            switch on
            event "ttl.enabled = on -- the worker comes back and deletes what has been left"
            ;;
        15)
            sql -c "SELECT ttl.set_default('log', 2)" >/dev/null
            event "SELECT ttl.set_default('log', 2) -- older lines are gone at once; no row was written"
            ;;
    esac
done

[ -z "${TTL_DEMO_METRICS:-}" ] || stop_exporter
kill "$BACKGROUND" 2>/dev/null || true
wait "$BACKGROUND" 2>/dev/null || true
BACKGROUND=
regulars=$(sql -U app -c "SELECT count(*) FROM sessions WHERE id <= 20")
echo
echo "$regulars of the 20 users who kept clicking still have their session, after ${seconds} s with a ttl of 8 s."
echo
echo "What the worker says it has done (lag: for how long the oldest expired row has been on disk):"
"$BINDIR/psql" -X -q -P footer=off -c "SELECT relation, rows_deleted, batches, passes,
    to_char(last_pass_at, 'HH24:MI:SS') AS last_pass, to_char(lag, 'SS.MS') AS lag_s, backlog_estimate AS backlog,
    blocked_rows AS blocked FROM ttl.stats ORDER BY relation"
stop_server
echo "The server is stopped and removed."
