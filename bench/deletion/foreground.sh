# shellcheck shell=bash
# shellcheck disable=SC2154 # sourced by bench/deletion.sh
# What pgbench (TPC-B-like, 2 clients, prepared) notices of a backlog of expired
# rows in another table that is being removed, with the extension's defaults:
#
#   off      the backlog is there, the worker is not
#   recent   its rows have expired within the last minute
#   overdue  they expired a day ago, longer than ttl.max_lag: the worker hurries
#
# The runs alternate; before each the backlog is made anew (not for the first
# after `off`), then VACUUM, ANALYZE and CHECKPOINT. The worker is switched on a
# second after pgbench has begun. Counted are the transactions that ended from then
# on, until the backlog was gone or pgbench's time was over.

make_backlog() { # ROWS AGE
    sql -c "SET client_min_messages = warning" -c "DROP TABLE IF EXISTS backlog" \
        -c "CREATE TABLE backlog (id bigint, data text, _ts timestamptz NOT NULL, ttl integer)" \
        -c "INSERT INTO backlog SELECT i, md5(i::text), date_trunc('second', now()) - interval '1 day' - interval '$2' + i / 200000 * interval '1 s', NULL
              FROM generate_series(1, $1) AS i" \
        -c "SELECT ttl.enable('backlog', 86400)" -c "VACUUM ANALYZE backlog" >/dev/null
}

# Runs it; what has happened in its first second does not count.
run_pgbench() { # SECONDS
    rm -f "$WORK"/transactions.*
    BEGAN=$(calc "$EPOCHREALTIME + 1" %.6f)
    "$BINDIR/pgbench" -n -c 2 -j 1 -M prepared -T "$1" -l --log-prefix="$WORK/transactions" postgres \
        >"$WORK/pgbench.out" 2>&1 || die "pgbench failed: $(tail -n 3 "$WORK/pgbench.out")"
    ENDED=$EPOCHREALTIME
}

# The log's third field is the latency, the fifth and sixth are the time, all in
# microseconds but for the fifth.
count_transactions() { # KEY FROM TO
    awk -v from="$2" -v to="$3" '{ t = $5 + $6 / 1000000 } t >= from && t < to { print $3 }' "$WORK"/transactions.* |
        sort -n | awk -v key="$1" -v seconds="$(since "$2" "$3")" '
            { v[NR] = $1 }
            END { printf "%s/tps %.1f\n%s/p50 %.3f\n%s/p99 %.3f\n%s/max %.3f\n", key, NR / seconds,
                      key, v[int(NR * .5 + .5)] / 1000, key, v[int(NR * .99 + .5)] / 1000, key, v[NR] / 1000 }' >>"$RAW"
}

measure_foreground() {
    local run case deleted gone
    PGBENCH_TIME=$(quick 15 60) OVERDUE_TIME=$(quick 10 20)
    BACKLOG=$(quick 1000000 5000000)
    "$BINDIR/pgbench" -i -q -s 20 postgres >"$WORK/pgbench.out" 2>&1 || die "pgbench -i failed"
    for run in 1 2 3; do
        for case in off recent overdue; do
            say "foreground $run, $case"
            case $case in
                off) make_backlog "$BACKLOG" '30 s' ;;
                overdue) make_backlog "$BACKLOG" '1 day' ;;
            esac
            "$BINDIR/vacuumdb" -q -t pgbench_tellers -t pgbench_branches postgres
            sql -c "TRUNCATE pgbench_history" -c "CHECKPOINT"
            if [ "$case" = off ]; then
                run_pgbench "$PGBENCH_TIME"
                count_transactions foreground/off "$BEGAN" "$ENDED"
                continue
            fi
            (sleep 1 && worker_on) &
            run_pgbench "$([ "$case" = recent ] && echo "$PGBENCH_TIME" || echo "$OVERDUE_TIME")"
            wait $!
            read -r deleted gone < <(sql -c "SELECT rows_deleted, CASE WHEN rows_deleted = $BACKLOG AND passes > 0
                THEN least(extract(epoch FROM last_pass_at), $ENDED) ELSE $ENDED END
                FROM ttl.stats WHERE relation = 'backlog'::regclass")
            worker_off
            record "foreground/$case/deleted" "$deleted"
            record "foreground/$case/deleting" "$(since "$BEGAN" "$gone")"
            count_transactions "foreground/$case" "$BEGAN" "$gone"
        done
    done
    sql -c "DROP TABLE backlog"
}

show_foreground() {
    local case deleted seconds
    printf '\npgbench, scale 20, 2 clients, %d s, while up to %d expired rows are removed from another table\n' \
        "$PGBENCH_TIME" "$BACKLOG"
    printf '%-24s %10s %10s %10s %10s %10s %10s %10s\n' '' tps 'p50 ms' 'p99 ms' 'max ms' deleted 'in s' rows/s
    for case in off recent overdue; do
        deleted=0 seconds=1
        if [ "$case" != off ]; then
            deleted=$(median "foreground/$case/deleted") seconds=$(median "foreground/$case/deleting")
        fi
        printf '%-24s %10s %10s %10s %10s %10d %10.1f %10s\n' "$case" "$(calc "$(median "foreground/$case/tps")" %.0f)" \
            "$(median "foreground/$case/p50")" "$(median "foreground/$case/p99")" "$(median "foreground/$case/max")" \
            "$deleted" "$seconds" "$(calc "$deleted / $seconds" %.0f)"
    done
}
