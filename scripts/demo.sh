#!/usr/bin/env bash
# demo.sh VERSION: ttl_ext at work, to be looked at. A throw-away server, three
# tables (demo/setup.sql), clients that use them (demo/traffic.sql), and second
# by second what users see against what is on disk. Half a minute; leaves
# nothing behind.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"

version=${1:-}
check_version "$version"
seconds=20

use_postgres "$version"
say "building the extension; the first time this takes a few minutes"
install_extension
make_workdir
start_server "shared_preload_libraries = 'ttl_ext'"

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
    printf '%3ds  %s  %s  %s\n' "$1" "$(cell "$s" "$S" 360)" "$(cell "$o" "$O" 120)" "$(cell "$l" "$L" 480)"
}

event() { printf '  >>  %s\n' "$*"; }

sql -f "$REPO/demo/setup.sql" >/dev/null
"$BINDIR/pgbench" -n -c 1 -R 5 -T 60 -U app -f "$REPO/demo/traffic.sql" postgres >/dev/null 2>&1 &
BACKGROUND=$!

cat <<END

ttl_ext on PostgreSQL $version. Rows that users see (full bar), and rows on disk
(full and shaded). What is shaded has expired: it is there, but no query finds it.

  sessions   end 8 s after the last click; 20 guests a second come and go
  orders     stay; 30 baskets have a ttl of their own of 5 s, 30 others of 14 s
  log        keeps 6 s; 25 lines a second by COPY

This version hides rows the moment they expire. It does not delete them in the
background yet: disk only shrinks when ttl.purge() is called, as shown below.

time    seen disk sessions      seen disk orders        seen disk log
END

start=$SECONDS
for ((second = 1; second <= seconds; second++)); do
    new_log_lines
    while [ $((SECONDS - start)) -lt "$second" ]; do sleep 0.05; done
    show "$second"
    case $second in
        11)
            event "SELECT ttl.purge('sessions') -- no background deletion in this version: called by hand"
            event "deleted $(sql -c "SELECT ttl.purge('sessions')") expired sessions; nobody sees a difference"
            ;;
        15)
            sql -c "SELECT ttl.set_default('log', 2)" >/dev/null
            event "SELECT ttl.set_default('log', 2) -- older lines are gone at once; no row was written"
            ;;
        18)
            event "SELECT ttl.purge(...) for all three tables, by hand again"
            sql -c "SELECT ttl.purge('sessions'), ttl.purge('orders'), ttl.purge('log')" >/dev/null
            ;;
    esac
done

kill "$BACKGROUND" 2>/dev/null || true
wait "$BACKGROUND" 2>/dev/null || true
BACKGROUND=
regulars=$(sql -U app -c "SELECT count(*) FROM sessions WHERE id <= 20")
echo
echo "$regulars of the 20 users who kept clicking still have their session, after ${seconds} s with a ttl of 8 s."
stop_server
echo "The server is stopped and removed."
