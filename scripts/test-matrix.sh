#!/usr/bin/env bash
# test-matrix.sh VERSION: the whole matrix of hostile owners (tests/e2e/tests/matrix.rs),
# of which `make test` runs a sample. TTL_MATRIX=n runs so many cases of it, TTL_CASE those
# with that in their name.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:-}
check_version "$version"
export TTL_MATRIX=${TTL_MATRIX:-all}
status=0
"$REPO/scripts/test-e2e.sh" "$version" nobody_gains_by_it || status=$?
# What it says when all is well, too.
grep -hE '^[0-9]+ left out|^ +[a-z_]+: |cases: in ' \
    "${CARGO_TARGET_DIR:-$REPO/target}/tests/pg$version/e2e/log" | sort -u || true
exit "$status"
