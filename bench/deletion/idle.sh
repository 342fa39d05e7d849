# shellcheck shell=bash
# shellcheck disable=SC2154 # sourced by bench/deletion.sh
# CPU of servers in which nothing happens and nothing expires, in percent of one
# core: user and system time of all processes of the server, those that have
# ended meanwhile as well. Each variant has a server of its own, with default
# settings, five rows in each table, and half a minute to come to rest; they are
# measured side by side. Autovacuum looks at every table once a minute, TTL or
# not: so there is a variant with as many tables that have no time to live.

IDLE_VARIANTS='none plain_2000 ttl_1 ttl_2000 ttl_2000_override'

idle_tables() { # VARIANT
    local count=2000 statement
    case $1 in
        none) return ;;
        plain_2000) statement="EXECUTE format('CREATE INDEX ON idle_%s (_ts)', n)" ;;
        *_override) statement="PERFORM ttl.enable(format('idle_%s', n)::regclass, 86400)" ;;
        *) statement="PERFORM ttl.enable(format('idle_%s', n)::regclass, 86400, ttl_column => NULL)" ;;
    esac
    [ "$1" != ttl_1 ] || count=1
    cat <<SQL
SET client_min_messages = warning;
SET synchronous_commit = off;
DO \$\$
BEGIN
    FOR n IN 1..$count LOOP
        EXECUTE format('CREATE TABLE idle_%s (id bigint PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT now())', n);
        $statement;
        EXECUTE format('INSERT INTO idle_%s SELECT generate_series(1, 5)', n);
        COMMIT;
    END LOOP;
END \$\$;
VACUUM ANALYZE;
CHECKPOINT;
SQL
}

# Starts the variant's server in a directory of its own. Its settings are the
# extension's defaults: workers are on.
start_idle_server() { # VARIANT
    local dir=$WORK/$1
    as_server_user mkdir "$dir"
    as_server_user "$BINDIR/initdb" -D "$dir/data" -U postgres -A trust --no-sync --locale=C --encoding=UTF8 >"$dir/initdb.log"
    printf '%s\n' "${REAL_SETTINGS[@]}" "listen_addresses = ''" "unix_socket_directories = '$dir'" \
        "max_locks_per_transaction = 256" >>"$dir/data/postgresql.conf"
    as_server_user "$BINDIR/pg_ctl" -D "$dir/data" -l "$dir/log" -w -s start
    PGHOST=$dir sql -c "CREATE EXTENSION ttl_ext"
    idle_tables "$1" | PGHOST=$dir sql -f -
}

measure_idle() {
    local variant
    local -A before
    IDLE_TIME=$(quick 70 120)
    for variant in $IDLE_VARIANTS; do
        start_idle_server "$variant"
    done
    sleep "$(quick 15 30)"
    for variant in $IDLE_VARIANTS; do
        before[$variant]=$(cpu_seconds "$WORK/$variant/data")
    done
    sleep "$IDLE_TIME"
    for variant in $IDLE_VARIANTS; do
        record "idle/$variant" "$(since "${before[$variant]}" "$(cpu_seconds "$WORK/$variant/data")")"
    done
    for variant in $IDLE_VARIANTS; do
        as_server_user "$BINDIR/pg_ctl" -D "$WORK/$variant/data" -w -m fast -s stop
    done
}

show_idle() {
    local variant
    printf '\nCPU of an idle server over %d s\n' "$IDLE_TIME"
    printf '%-24s %10s %14s\n' '' seconds '% of a core'
    for variant in $IDLE_VARIANTS; do
        printf '%-24s %10s %14s\n' "$variant" "$(median "idle/$variant")" \
            "$(calc "100 * $(median "idle/$variant") / $IDLE_TIME" %.3f)"
    done
}
