#!/usr/bin/env bash
# test-pgrx.sh VERSION [FILTER]: the tests within the extension's crate, by
# cargo pgrx test: the pure ones (#[test]) and those that run inside a server
# (#[pg_test]).
#
# As root the server runs as `postgres`, to which cargo-pgrx changes by sudo.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} filter=${2:-}
check_version "$version"
use_postgres "$version"
make_workdir
make_output pgrx

options=(--pgdata "$WORK")
is_root && options+=(--runas "$SERVER_USER")
cd "$REPO"
status=0
cargo pgrx test "${options[@]}" "${FEATURES[@]}" "pg$version" ${filter:+"$filter"} 2>&1 |
    tee "$OUTPUT/log" || status=$?

count_cargo "$OUTPUT/log"
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally pgrx "$PASSED" "$FAILED" "$SKIPPED"
