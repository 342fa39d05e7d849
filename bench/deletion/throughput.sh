# shellcheck shell=bash
# shellcheck disable=SC2154 # sourced by bench/deletion.sh
# How fast expired rows go when nothing is throttled (ttl.min_effort = 100).
#
# A worker's time is from the moment when `ttl.enabled` is set on and reloaded
# until ttl.stats has counted all rows, asked every 20 ms: the launcher's waking
# up and the worker's start are in it. "until sure" is the worker's own time for
# the pass (ttl.stats.last_pass_ms), which ends when it has made sure that nothing
# is left. The time of the DELETE is the statement's and its commit's. Before each measurement the table is made anew, with VACUUM,
# ANALYZE and CHECKPOINT. The table of the DELETE has the same columns and
# indexes. Times are whole seconds, as the extension writes them, 1,000 rows each.
# Half of the rows are expired: `scattered` (neither heap nor index order tells
# which), or the older half of a table that is `appended` to.
#
# Waves: several times, two seconds apart, 100,000 rows expire at once, as they do
# that were written by one statement; a snapshot held open keeps every dead index
# entry. Compared with as many DELETEs that each name the range of keys.

LIFETIME=86400
WAVE_GAP=2

# Rows with numbers from 1 on; `key` runs from 1 to the number of rows.
make_sources() { # ROWS
    sql -c "CREATE TABLE source_appended AS
                SELECT i AS id, repeat(md5(i::text), 2) AS data, i AS key FROM generate_series(1::bigint, $1) AS i" \
        -c "CREATE TABLE source_scattered AS
                SELECT i AS id, repeat(md5(i::text), 2) AS data, row_number() OVER (ORDER BY md5(i::text)) AS key
                  FROM generate_series(1::bigint, $1) AS i ORDER BY i" \
        -c "VACUUM ANALYZE source_appended, source_scattered"
}

# A table like `source_ORDER`; `ts` is an expression of `key`.
make_victim() { # ORDER ttl|plain TS
    sql -c "SET max_parallel_workers_per_gather = 0" -c "SET synchronize_seqscans = off" \
        -c "DROP TABLE IF EXISTS victim" \
        -c "CREATE TABLE victim (id bigint, data text, _ts timestamptz NOT NULL, ttl integer)" \
        -c "INSERT INTO victim SELECT id, data, $3, NULL FROM source_$1" \
        -c "ALTER TABLE victim ADD PRIMARY KEY (id)" 2>&1 | grep -v NOTICE || true
    if [ "$2" = ttl ]; then
        sql -c "SET client_min_messages = warning" -c "SELECT ttl.enable('victim', $LIFETIME)" >/dev/null
    else
        sql -c "ALTER TABLE victim ADD CHECK (ttl > 0 OR ttl = -1)" \
            -c "CREATE INDEX ON victim (_ts) WHERE ttl IS NULL" \
            -c "CREATE INDEX ON victim (ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0"
    fi
}

settle_victim() { sql -c "VACUUM ANALYZE victim" -c "CHECKPOINT"; }

on_disk() { sql -c "SET ttl.show_expired = on" -c "SELECT count(*) FROM victim"; }

# Waits until a condition holds in `victim`'s row of ttl.stats.
await_stats() { # CONDITION POLL_MS
    local wait
    wait=$(calc "$2 / 1000" %.3f)
    while true; do
        ask "SELECT $1 FROM ttl.stats WHERE relation = 'victim'::regclass"
        [ "$ANSWER" = t ] && break
        sleep "$wait"
    done
}

timed_delete() { # CONDITION
    sql -c "\\timing on" -c "DELETE FROM victim WHERE $1" | sed -nE 's/^Time: ([0-9.]+) ms.*/\1/p'
}

# One measurement; the older half of the keys is expired.
delete_half() { # ORDER ttl|plain SNAPSHOT TRIGGER
    local half=$((ROWS / 2)) key start took cpu
    key=throughput/$1${3:+/snapshot}${4:+/trigger}/$2
    make_victim "$1" "$2" "now() - CASE WHEN key <= $half THEN interval '3 days' ELSE interval '1 hour' END + key / 1000 * interval '1 s'"
    [ -z "$4" ] || sql -c "CREATE TRIGGER nothing AFTER DELETE ON victim FOR EACH ROW EXECUTE FUNCTION nothing()"
    settle_victim
    [ -z "$3" ] || hold_snapshot victim
    cpu=$(cpu_seconds "$SERVER")
    if [ "$2" = ttl ]; then
        start=$EPOCHREALTIME
        worker_on
        await_stats "rows_deleted >= $half" 20
        took=$(since "$start")
        await_stats "passes > 0" 50
        record "$key/pass" "$(sql -c "SELECT round(last_pass_ms) / 1000 FROM ttl.stats WHERE relation = 'victim'::regclass")"
    else
        took=$(calc "$(timed_delete "ttl IS NULL AND _ts < now() - interval '$LIFETIME s'") / 1000" %.3f)
    fi
    record "$key" "$took"
    worker_off
    record "$key/cpu" "$(since "$cpu" "$(cpu_seconds "$SERVER")")"
    [ -z "$3" ] || release_snapshot
    [ "$(on_disk)" = "$half" ] || die "$key: $(on_disk) rows are on disk, not $half"
}

# Ten waves. Records how long after its expiry each wave was gone (with DELETE:
# how long that took), and the server's CPU seconds for all of them.
delete_waves() { # ORDER ttl|plain SNAPSHOT
    local wave=$((ROWS / 2 / WAVES)) key zero n from to cpu expired
    key=throughput/waves/$1${3:+/snapshot}/$2
    # `zero` is when the first wave expires: after all has been set up. The other
    # half of the rows lives.
    zero=$((${EPOCHREALTIME%.*} + SETUP_TIME))
    make_victim "$1" "$2" "to_timestamp($zero) - interval '$LIFETIME s' + CASE WHEN key <= $((ROWS / 2))
        THEN (key - 1) / $wave * interval '$WAVE_GAP s' ELSE interval '1 hour' END"
    settle_victim
    [ -z "$3" ] || hold_snapshot victim
    [ "$2" = plain ] || worker_on
    awk -v a="$EPOCHREALTIME" -v b="$zero" 'BEGIN { exit !(a < b) }' || die "$key: set-up took too long, raise SETUP_TIME"
    cpu=$(cpu_seconds "$SERVER")
    for ((n = 0; n < WAVES; n++)); do
        expired=$((zero + n * WAVE_GAP))
        if [ "$2" = ttl ]; then
            await_stats "rows_deleted >= $(((n + 1) * wave))" 50
            record "$key/wave$((n + 1))" "$(since "$expired")"
        else
            from=$(calc "$zero - $LIFETIME + ($n - 0.5) * $WAVE_GAP" %.6f)
            to=$(calc "$zero - $LIFETIME + ($n + 0.5) * $WAVE_GAP" %.6f)
            record "$key/wave$((n + 1))" "$(calc "$(timed_delete "ttl IS NULL AND _ts > to_timestamp($from) AND _ts <= to_timestamp($to)") / 1000" %.3f)"
        fi
    done
    sleep 1
    record "$key/cpu" "$(since "$cpu" "$(cpu_seconds "$SERVER")")"
    worker_off
    [ -z "$3" ] || release_snapshot
    [ "$(on_disk)" = $((ROWS / 2)) ] || die "$key: $(on_disk) rows are on disk, not $((ROWS / 2))"
}

measure_throughput() {
    local order snapshot kind start
    ROWS=$(quick 600000 2000000)
    WAVES=$(quick 3 10)
    make_sources "$ROWS"
    sql -c "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    set_setting ttl.min_effort 100
    start=$SECONDS
    for _ in 1 2 3; do
        for order in scattered appended; do
            for snapshot in '' yes; do
                for kind in plain ttl; do
                    delete_half "$order" "$kind" "$snapshot" ''
                done
            done
        done
        for kind in plain ttl; do
            delete_half appended "$kind" '' yes
        done
        # Twice what one of the ten has taken: setting up ends before the first wave.
        SETUP_TIME=$(((SECONDS - start) / 5 + 3))
        for snapshot in '' yes; do
            [ "$snapshot" = yes ] || [ -z "$QUICK" ] || continue
            delete_waves appended plain "$snapshot"
            delete_waves appended ttl "$snapshot"
        done
        start=$SECONDS
    done
    set_setting ttl.min_effort DEFAULT
    sql -c "DROP TABLE victim, source_appended, source_scattered"
}

show_throughput() {
    local case key n=$((ROWS / 2)) plain ttl
    printf '\nDeletion of %d of %d rows, without throttle: seconds, and 1000 rows a second\n' "$n" "$ROWS"
    printf '%-24s %8s %8s %10s %6s %10s %10s %8s %8s\n' '' DELETE worker 'until sure' ratio DELETE/s worker/s 'CPU s' 'CPU s'
    for case in scattered scattered/snapshot appended appended/snapshot appended/trigger; do
        key=throughput/$case
        plain=$(median "$key/plain") ttl=$(median "$key/ttl")
        printf '%-24s %8s %8s %10s %6s %10s %10s %8s %8s\n' "$case" "$plain" "$ttl" "$(median "$key/ttl/pass")" "$(calc "$ttl / $plain")" \
            "$(calc "$n / $plain / 1000" %.0f)" "$(calc "$n / $ttl / 1000" %.0f)" \
            "$(median "$key/plain/cpu")" "$(median "$key/ttl/cpu")"
    done
    printf '\n%d waves of %d rows, %d s apart: seconds from expiry (worker), of the statement (DELETE)\n' \
        "$WAVES" "$((n / WAVES))" "$WAVE_GAP"
    printf '%-24s %10s %10s %10s %10s\n' '' 'first' 'middle' 'last' 'CPU s'
    for case in appended appended/snapshot; do
        for kind in plain ttl; do
            key=throughput/waves/$case/$kind
            grep -q "^$key/cpu " "$RAW" || continue
            printf '%-24s %10s %10s %10s %10s\n' "$case $kind" "$(median "$key/wave1")" "$(median "$key/wave$((WAVES / 2))")" \
                "$(median "$key/wave$WAVES")" "$(median "$key/cpu")"
        done
    done
}
