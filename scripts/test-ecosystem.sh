#!/usr/bin/env bash
# test-ecosystem.sh VERSION [TOOL...]: other people's software with tables that have TTL.
# One folder of tests/ecosystem for each; `quick` stands for those that make test runs.
#
# A tool is installed by its own registry into TTL_CACHE/ecosystem/TOOL, once. What cannot
# be had is counted as skipped. Each gets a copy of its folder to work in, and a database
# of its own name, whose owner `app` is no superuser. Nothing is deleted in the background. Django makes all its
# tables in one transaction, which takes many locks.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
shift
tests=$REPO/tests/ecosystem
quick=(django sqlalchemy python)
mapfile -t tools < <(cd "$tests" && printf '%s\n' */test.sh | cut -d / -f 1)
case "$*" in
    '') ;;
    quick) tools=("${quick[@]}") ;;
    *)
        tools=("$@")
        for tool in "${tools[@]}"; do
            [ -f "$tests/$tool/test.sh" ] || die "there is no tests/ecosystem/$tool/test.sh"
        done
        ;;
esac

none_here() {
    printf 'ecosystem: '
    count_line 0 0 "$1"
    [ -z "${TTL_TALLY:-}" ] || echo "ecosystem 0 0 $1" >>"$TTL_TALLY"
    exit 0
}
command -v python3 >/dev/null || {
    echo "SKIPPED test: ecosystem: no python3"
    none_here ${#tools[@]}
}

use_postgres "$version"
install_extension
make_workdir memory
make_output ecosystem

# Most drivers know no Unix sockets.
free_port='import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
port=$(python3 -c "$free_port")
start_server "shared_preload_libraries = 'ttl_ext'" "listen_addresses = '127.0.0.1'" "port = $port" \
    "wal_level = logical" "max_locks_per_transaction = 1000" "ttl.enabled = off" "ttl.guard_fraction = 1"
export PGHOST=127.0.0.1 PGPORT=$port PATH=$BINDIR:$PATH
psql -Xq -c "CREATE ROLE app LOGIN"

PASSED=0 FAILED=0 SKIPPED=0
for tool in "${tools[@]}"; do
    export TOOL_HOME=$TTL_CACHE/ecosystem/$tool
    mkdir -p "$TOOL_HOME"
    cp -R "$tests/$tool" "$WORK/$tool"
    psql -Xq -c "CREATE DATABASE \"$tool\" OWNER app"
    psql -Xq -d "$tool" -c "CREATE EXTENSION ttl_ext; GRANT CREATE ON SCHEMA public TO app"
    start=$SECONDS
    set +e # or it would not hold within
    (
        set -e
        cd "$WORK/$tool"
        export PGUSER=app PGDATABASE=$tool
        export DATABASE_URL=postgresql://app@127.0.0.1:$port/$tool
        export TOOL=$tool TTL_ECOSYSTEM=$tests
        . "$tests/lib.sh"
        . ./test.sh
    ) >"$OUTPUT/$tool.log" 2>&1 </dev/null
    status=$?
    set -e
    case $status in
        0) PASSED=$((PASSED + 1)) word=passed ;;
        77) SKIPPED=$((SKIPPED + 1)) word=skipped ;;
        *) FAILED=$((FAILED + 1)) word=failed ;;
    esac
    grep -hE '^(VERSION|SKIPPED)' "$OUTPUT/$tool.log" || true
    [ "$word" != failed ] || tail -n 40 "$OUTPUT/$tool.log"
    say "$tool: $word, $((SECONDS - start)) s"
done

stop_server
[ $((PASSED + FAILED)) -gt 0 ] || none_here "$SKIPPED"
tally ecosystem "$PASSED" "$FAILED" "$SKIPPED"
