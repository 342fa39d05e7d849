#!/usr/bin/env bash
# test-unit.sh VERSION [FILTER]: only the pure tests, without a server: seconds
# instead of minutes while one works on them. test-pgrx.sh runs them, too, so
# they are not counted a second time in `make test`.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} filter=${2:-}
check_version "$version"
use_postgres "$version"
make_output unit
cd "$REPO"
status=0
# Those that need a server have names that pgrx begins with pg_.
cargo_tests -- ${filter:+"$filter"} --skip ::pg_ 2>&1 |
    tee "$OUTPUT/log" || status=$?

count_cargo "$OUTPUT/log"
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally unit "$PASSED" "$FAILED" "$SKIPPED"
