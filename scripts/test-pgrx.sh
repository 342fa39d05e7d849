#!/usr/bin/env bash
# test-pgrx.sh VERSION [FILTER]: the tests within the extension's crate: the pure ones
# (#[test]) and those that run inside a server (#[pg_test]).
#
# It is what `cargo pgrx test` does: pgrx-tests learns from the environment what to build,
# by which program, and where its server's data go. As root that server runs as `postgres`,
# to which pgrx-tests changes by sudo.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} filter=${2:-}
check_version "$version"
use_postgres "$version"
make_workdir memory
make_output pgrx

export CARGO_PGRX=$REPO/scripts/install-extension.sh
export CARGO_PGRX_TEST_PGDATA=$WORK PGRX_NO_DEFAULT_FEATURES=true PGRX_FEATURES="pg$version pg_test"
if is_root; then export CARGO_PGRX_TEST_RUNAS=$SERVER_USER; fi
cd "$REPO"
status=0
cargo_tests ${filter:+"$filter"} 2>&1 |
    tee "$OUTPUT/log" || status=$?

count_cargo "$OUTPUT/log"
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally pgrx "$PASSED" "$FAILED" "$SKIPPED"
