#!/usr/bin/env bash
# test.sh VERSION: every tier of tests in order, on one version of PostgreSQL.
# Stops at the first tier that fails. The last line counts all:
# `N passed, N failed`, with `, N skipped` if any were.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
exec </dev/null # nothing here asks anyone
TTL_TALLY=$(mktemp)
export TTL_TALLY
trap 'rm -f "$TTL_TALLY"' EXIT

run_tier() { # TIER
    echo "=== PostgreSQL $version: $1 ==="
    case $1 in
        regress | isolation) "$REPO/scripts/test-regress.sh" "$version" "$1" ;;
        citus) PG_CONFIG='' "$REPO/scripts/test-citus.sh" "$version" ;;
        ecosystem) "$REPO/scripts/test-ecosystem.sh" "$version" quick ;;
        *) "$REPO/scripts/test-$1.sh" "$version" ;;
    esac
}

status=0
for tier in lint pgrx regress isolation e2e citus package ecosystem upstream; do
    run_tier "$tier" || {
        # One that did not come as far as counting has failed, too.
        grep -qE "^$tier [0-9]+ [1-9]" "$TTL_TALLY" || echo "$tier 0 1 0" >>"$TTL_TALLY"
        say "PostgreSQL $version: $tier failed, what comes after it was not run"
        status=1
        break
    }
done

echo "=== PostgreSQL $version ==="
awk '{ printf "%-10s %5d passed %5d failed %5d skipped\n", $1, $2, $3, $4 }' "$TTL_TALLY"
read -r passed failed skipped < <(awk '{ p += $2; f += $3; s += $4 } END { print p + 0, f + 0, s + 0 }' "$TTL_TALLY")
count_line "$passed" "$failed" "$skipped"
exit "$status"
