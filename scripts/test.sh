#!/usr/bin/env bash
# test.sh VERSION: every tier of tests, on one version of PostgreSQL. The last line counts
# all: `N passed, N failed`, with `, N skipped` if any were.
#
# What compiles comes first, one tier after the other. Then the end-to-end tests run, which
# wait more than they work, beside them the other tiers with servers of their own, one
# after the other, and the packages. In each row the first tier that fails ends it.
#
#   TTL_NEXT=16    meanwhile what make test on that version begins with is built, with the
#                  processor's time that is left over (scripts/prepare.sh)

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
exec </dev/null # nothing here asks anyone
use_postgres "$version" # for all tiers
logs=$CARGO_TARGET_DIR/tests/pg$version
mkdir -p "$logs"
TTL_TALLY=$(mktemp)
export TTL_TALLY
# Minutes for a program of end-to-end tests: one that hangs is a failure, not the end of the run.
export TTL_LIMIT=${TTL_LIMIT-20}
beside='' ahead=''
# The rows of tiers that will not call cargo any more.
built=$(mktemp -d)
export TTL_BUILT=$built
tidy_up() {
    local group
    for group in $beside $ahead; do kill -TERM -- "-$group" 2>/dev/null || true; done
    rm -rf "$TTL_TALLY" "$TTL_TALLY.seconds" "$built"
}
trap tidy_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

run_tier() { # TIER
    local start=$SECONDS status=0
    echo "=== PostgreSQL $version: $1 ==="
    case $1 in
        regress | isolation) "$REPO/scripts/test-regress.sh" "$version" "$1" ;;
        citus) PG_CONFIG='' "$REPO/scripts/test-citus.sh" "$version" ;;
        ecosystem) "$REPO/scripts/test-ecosystem.sh" "$version" quick ;;
        *) "$REPO/scripts/test-$1.sh" "$version" ;;
    esac || status=$?
    echo "$1 $((SECONDS - start))" >>"$TTL_TALLY.seconds"
    [ "$status" != 0 ] || return 0
    # One that did not come as far as counting has failed, too.
    grep -qE "^$1 [0-9]+ [1-9]" "$TTL_TALLY" || echo "$1 0 1 0" >>"$TTL_TALLY"
    say "PostgreSQL $version: $1 failed, what comes after it was not run"
    return 1
}

first() {
    run_tier lint && run_tier pgrx || return
    # Once for all that follow: who installs takes the library from under a server that starts.
    (install_extension) || {
        echo "regress 0 1 0" >>"$TTL_TALLY"
        return 1
    }
    export TTL_INSTALLED=$version
}

# What a tier says is shown when it has ended. Only the first of a row calls cargo.
row() { # NAME TIER...
    local name=$1 tier status
    shift
    for tier in "$@"; do
        status=0
        run_tier "$tier" >"$logs/$tier.out" 2>&1 || status=$?
        cat "$logs/$tier.out"
        : >"$built/$name"
        [ "$status" = 0 ] || return "$status"
    done
}

status=0
first || status=1
if [ "$status" = 0 ]; then
    set -m # process groups of their own, to be ended as one
    row servers citus regress isolation ecosystem upstream &
    beside=$!
    row package package &
    beside+=" $!"
    if [ -n "${TTL_NEXT:-}" ]; then
        nice -n 19 "$REPO/scripts/prepare.sh" "$TTL_NEXT" >"$logs/prepare.out" 2>&1 &
        ahead=$!
    fi
    set +m
    run_tier e2e || status=1
    : >"$built/e2e"
    for group in $beside; do wait "$group" || status=1; done
    beside=
    # What is wrong with it, the tests of that version will say.
    if [ -n "$ahead" ]; then
        say "waiting for what PostgreSQL $TTL_NEXT needs: minutes, if its server is built; $logs/prepare.out"
        wait "$ahead" || say "scripts/prepare.sh $TTL_NEXT failed: $logs/prepare.out"
    fi
    ahead=
fi

echo "=== PostgreSQL $version ==="
for tier in lint pgrx e2e regress isolation citus ecosystem upstream package; do
    awk -v tier="$tier" '$1 == tier && NF == 2 { seconds = $2 } $1 == tier && NF == 4 {
        printf "%-10s %5d passed %5d failed %5d skipped %5d s\n", $1, $2, $3, $4, seconds }' \
        "$TTL_TALLY.seconds" "$TTL_TALLY"
done
echo "$SECONDS s in all; from e2e on, tiers run at the same time"
read -r passed failed skipped < <(awk '{ p += $2; f += $3; s += $4 } END { print p + 0, f + 0, s + 0 }' "$TTL_TALLY")
count_line "$passed" "$failed" "$skipped"
exit "$status"
