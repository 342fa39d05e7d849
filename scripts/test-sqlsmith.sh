#!/usr/bin/env bash
# test-sqlsmith.sh VERSION [MINUTES]: random statements by sqlsmith against tables of all
# kinds with a time to live, while rows expire, are written and are deleted. Nothing must
# crash, and there must be no internal error that the same statements' kind does not raise
# on a plain server.
#
# The first fifth of the time is for a server without the library: the internal errors of
# that run, and those of scripts/sqlsmith/known, are PostgreSQL's own. sqlsmith rolls back
# all it does; the rows that stay are of scripts/sqlsmith/traffic.sql. It is no superuser:
# as one it would stop the server by the functions that do.
#
# Best on 17 or 18, which are built with assertions. Not part of `make test`.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"
. "$REPO/scripts/apt.sh"

version=${1:-} minutes=${2:-30}
check_version "$version"
[[ $minutes =~ ^[0-9]+$ ]] && [ "$minutes" -gt 0 ] || die "MINUTES='$minutes' is not a number of minutes"
use_postgres "$version"
command -v sqlsmith >/dev/null || apt_install sqlsmith >&2 ||
    die "cannot install the package sqlsmith"
install_extension
make_workdir
make_output sqlsmith
sql=$REPO/scripts/sqlsmith

client() { # USER FILE
    as_server_user "$BINDIR/psql" -X -q -v ON_ERROR_STOP=1 -U "$1" -d smith -o /dev/null -f "$2"
}

prepare() { # with or without
    as_server_user "$BINDIR/psql" -X -q -d postgres \
        -c "CREATE ROLE smith LOGIN" -c "CREATE ROLE writer LOGIN" -c "CREATE DATABASE smith OWNER smith"
    as_server_user "$BINDIR/psql" -X -q -d smith -c "GRANT ALL ON SCHEMA public TO smith"
    [ "$1" = without ] || as_server_user "$BINDIR/psql" -X -q -d smith -c "CREATE EXTENSION ttl_ext"
    local file
    for file in tables $([ "$1" = without ] || echo ttl); do
        to_workdir "$sql/$file.sql" "$file.sql"
        client smith "$WORK/$file.sql" || die "$file.sql fails"
    done
    to_workdir "$sql/traffic.sql" traffic.sql
}

# Writes until the file `stop` appears, and nothing once the server is away.
traffic() {
    until [ -e "$WORK/stop" ]; do
        client writer "$WORK/traffic.sql" >>"$WORK/traffic.log" 2>&1 || sleep 0.2
    done
}

# sqlsmith may end by itself, when its connection does.
smith() { # SECONDS
    local end=$(($(date +%s) + $1)) left
    rm -f "$WORK/stop"
    traffic &
    BACKGROUND=$!
    while left=$((end - $(date +%s))) && [ "$left" -gt 0 ]; do
        as_server_user timeout -k 5 "$left" sqlsmith \
            --target="host=$WORK port=$PGPORT dbname=smith user=smith" >>"$WORK/sqlsmith.out" 2>&1 || true
        as_server_user "$BINDIR/pg_isready" -q || break
        sleep 0.5
    done
    touch "$WORK/stop"
    wait "$BACKGROUND" || true
    BACKGROUND=
}

# The messages of internal errors, without what differs from one to the next.
internal() { # LOG
    { grep -E ' XX[0-9A-Z]{3} .*(ERROR|FATAL|PANIC):|panicked at' "$1" || true; } |
        sed -E 's/^.*(ERROR|FATAL|PANIC): +//; s/"[^"]*"/"…"/g; s/[0-9]+/N/g' | sort | uniq -c | sort -rn
}

settings=("log_line_prefix = '%m [%p] %b %e %q%d '" "log_statement = none" "max_connections = 30"
    "statement_timeout = 5s" "log_min_error_statement = error")

PASSED=0 FAILED=0
fail() {
    say "$*"
    FAILED=$((FAILED + 1))
}

say "without the library"
start_server "${settings[@]}"
prepare without
smith $((minutes * 60 / 5))
stop_server || fail "a server without the library was harmed: see $OUTPUT/plain.log"
cp "$WORK/server.log" "$OUTPUT/plain.log"
internal "$OUTPUT/plain.log" | sed -E 's/^ *[0-9]+ //' >"$OUTPUT/plain.internal"
rm -rf "$WORK/data" "$WORK/server.log"

say "with it"
start_server "${settings[@]}" "shared_preload_libraries = 'ttl_ext'" "ttl.naptime = 1s" "ttl.change_delay = 0"
prepare with
smith $((minutes * 60 * 4 / 5))
ask() { as_server_user "$BINDIR/psql" -X -At -d smith -c "$1" 2>&1 || true; }
count=$(ask "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'smith'")
deleted=$(ask "SELECT sum(rows_deleted) FROM ttl.stats")
ask "SELECT * FROM ttl.stats" >"$OUTPUT/stats"
stop_server && PASSED=$((PASSED + 1)) || fail "the server was harmed"
cp "$WORK/server.log" "$OUTPUT/server.log"
cp "$WORK/traffic.log" "$WORK/sqlsmith.out" "$OUTPUT/" 2>/dev/null || true

internal "$OUTPUT/server.log" >"$OUTPUT/internal"
grep -vE '^(#|$)' "$sql/known" >"$WORK/known"
# What is new, and whatever names the extension.
sed -E 's/^ *[0-9]+ //' "$OUTPUT/internal" | grep -vxFf "$OUTPUT/plain.internal" | grep -vEf "$WORK/known" \
    >"$OUTPUT/new" || true
grep -iE '\bttl|panicked' "$OUTPUT/internal" >>"$OUTPUT/new" || true
if [ -s "$OUTPUT/new" ]; then
    head -n 50 "$OUTPUT/new" >&2
    fail "internal errors that PostgreSQL does not raise by itself; the statements are in $OUTPUT/server.log"
else
    PASSED=$((PASSED + 1))
fi
# Nothing is shown by a run in which nothing happens.
if [[ $count =~ ^[0-9]+$ ]] && [ "$count" -gt 100 ] && [[ $deleted =~ ^[0-9]+$ ]] && [ "$deleted" -gt 0 ]; then
    PASSED=$((PASSED + 1))
else
    fail "only '$count' transactions, and '$deleted' rows deleted"
fi
say "$count transactions, $deleted rows deleted, errors by SQLSTATE:" \
    "$(sed -nE 's/.* ([0-9A-Z]{5}) .*ERROR: .*/\1/p' "$OUTPUT/server.log" | sort | uniq -c | sort -rn | awk '{ printf "%s %s, ", $2, $1 }')"
tally sqlsmith "$PASSED" "$FAILED" 0
