# shellcheck shell=bash
# How soon after its expiry a row is off the disk, on an otherwise idle server,
# with default settings. 1,000 rows expire one after the other, evenly over a
# minute, in two ways: written at once beforehand, with times that are no whole
# seconds (ttl.preserve_ts), so that each row expires at an instant of its own; or
# each by an INSERT of its own and a default of 5 s, so that all rows of one second
# expire together. A session looks every 50 ms which rows are on disk;
# the delay is up to the first look that does not find the row any more, and so
# 25 ms too long on average.

DELAY_ROWS=1000

# Looks, until nothing is on disk any more.
look_at_delayed() {
    local looks=$((($1 + 30) * 20)) n
    for ((n = 0; n < looks; n++)); do
        echo "SELECT extract(epoch FROM clock_timestamp()), string_agg(id::text, ' ') FROM delayed;"
        sleep 0.05
        [ -e "$WORK/delay.done" ] && break
    done | sql -c "SET ttl.show_expired = on" -f - >"$WORK/delay.looks"
}

# delays SPAN: of each row, in milliseconds, from the looks and `delay.expiries`.
delays() {
    awk 'NR == FNR { expiry[$1] = $2; next }
         { time[++looks] = $1; for (i = 2; i <= NF; i++) last[$i] = looks }
         END { for (id in expiry) {
                   if (!(id in last) || last[id] == looks) { print "row " id " was never there, or stays" >"/dev/stderr"; exit 1 }
                   printf "%.0f\n", (time[last[id] + 1] - expiry[id]) * 1000
               } }' "$WORK/delay.expiries" "$WORK/delay.looks"
}

measure_one_delay() { # at_once|inserted SPAN
    local step looker n
    step=$(calc "$2 * 1000000 / $DELAY_ROWS" %d)
    rm -f "$WORK/delay.done"
    sql -c "DROP TABLE IF EXISTS delayed" -c "CREATE TABLE delayed (id bigint)" \
        -c "SELECT ttl.enable('delayed', 5)" >/dev/null 2>&1
    worker_on
    sleep 3
    if [ "$1" = at_once ]; then
        sql -c "SET ttl.preserve_ts = on" \
            -c "INSERT INTO delayed (id, _ts) SELECT i, clock_timestamp() + i * interval '$step us' FROM generate_series(1, $DELAY_ROWS) AS i"
    fi
    look_at_delayed "$2" &
    looker=$!
    if [ "$1" = inserted ]; then
        # From the first row on, the looks see when it is there.
        for ((n = 1; n <= DELAY_ROWS; n++)); do
            echo "INSERT INTO delayed (id) VALUES ($n) RETURNING id, extract(epoch FROM _ts) + 5;"
            sleep "$(calc "($step - 2500) / 1000000" %.4f)"
        done | sql -f - >"$WORK/delay.expiries"
    else
        sql -c "SET ttl.show_expired = on" -c "SELECT id, extract(epoch FROM _ts) + 5 FROM delayed" >"$WORK/delay.expiries"
    fi
    until [ "$(sql -c "SELECT count(*) FROM delayed")" = 0 ]; do sleep 1; done
    sleep 3
    touch "$WORK/delay.done"
    wait "$looker"
    delays | while read -r ms; do record "delay/$1" "$ms"; done
    worker_off
}

measure_delay() {
    SPAN=$(quick 20 60)
    measure_one_delay at_once "$SPAN"
    measure_one_delay inserted "$SPAN"
    sql -c "DROP TABLE delayed"
}

show_delay() {
    local way
    printf '\nFrom expiry to deletion, %d rows over %d s on an idle server: milliseconds\n' "$DELAY_ROWS" "$SPAN"
    printf '%-24s %10s %10s %10s %10s\n' '' p50 p90 p99 max
    for way in at_once inserted; do
        awk -v key="delay/$way" '$1 == key { print $2 }' "$RAW" | sort -g | awk -v way="$way" '
            { v[NR] = $1 }
            END { printf "%-24s %10d %10d %10d %10d\n", way, v[int(NR * .5 + .5)], v[int(NR * .9 + .5)], v[int(NR * .99 + .5)], v[NR] }'
    done
}
