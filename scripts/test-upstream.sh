#!/usr/bin/env bash
# test-upstream.sh VERSION: PostgreSQL's own regression suite, with ttl_ext
# preloaded and created in the database it runs in. The extension must not be
# noticed by anyone who does not use it.
#
# Nearly: a few tests list what is in the server, and must now list more. How
# such a test has to differ is in scripts/upstream/NAME.diff; it passes if it
# differs in that way exactly, order and OIDs aside, and fails otherwise.
#
# Only where the suite is at hand, which is where the server was built from
# source (17, 18); elsewhere this says so, and counts nothing.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
use_postgres "$version"
suite=$TTL_CACHE/pg$version-src/src/test/regress
if [ ! -d "$suite" ]; then
    echo "upstream: NOT RUN on PostgreSQL $version: its regression suite is not part of Debian's package." \
        "It runs with PG=17 and PG=18; nothing is counted here."
    exit 0
fi

install_extension
make_workdir memory
make_output upstream
mkdir -p "$WORK/output"
if is_root; then chown "$SERVER_USER:" "$WORK/output"; fi

start_server "shared_preload_libraries = 'ttl_ext'" "ttl.change_delay = 0" "max_connections = 60"
status=0
as_server_user "$PGXS_TEST/regress/pg_regress" --bindir="$BINDIR" --dlpath="$suite" \
    --host="$WORK" --port="$PGPORT" --user="$PGUSER" --load-extension=ttl_ext \
    --inputdir="$suite" --outputdir="$WORK/output" --max-concurrent-tests=20 \
    --schedule="$suite/parallel_schedule" 2>&1 | tee "$OUTPUT/log" || status=$?
stop_server || status=3

cp -R "$WORK/output/." "$OUTPUT/" 2>/dev/null || true
diffs=$OUTPUT/diffs
mkdir "$diffs"

# What a test changed in its expected output, one file a test.
split_differences() {
    [ -f "$OUTPUT/regression.diffs" ] || return 0
    awk -v folder="$diffs" '
        /^diff / { name = $NF; sub(".*/", "", name); sub(/\.out$/, "", name); header = 2; next }
        header > 0 { header--; next }
        /^[-+]/ { print >(folder "/" name ".diff") }' "$OUTPUT/regression.diffs"
}

normalize() { # FILE
    grep -v '^#' "$1" | sed -E 's/[0-9]{5,}/N/g; s/ +/ /g; s/-{3,}/---/g' | sort
}

split_differences
count_regress "$OUTPUT/log"
while read -r name; do
    known=$REPO/scripts/upstream/$name.diff
    if [ -f "$known" ] && [ -f "$diffs/$name.diff" ] &&
        cmp -s <(normalize "$known") <(normalize "$diffs/$name.diff"); then
        say "$name differs as it must: $(sed -n '1s/^# //p' "$known")"
        PASSED=$((PASSED + 1)) FAILED=$((FAILED - 1))
        [ "$status" != 1 ] || status=0 # pg_regress said no more than that
    else
        [ ! -f "$diffs/$name.diff" ] || head -n 100 "$diffs/$name.diff"
        say "$name failed. All differences: $OUTPUT/regression.diffs; if they are right," \
            "$diffs/$name.diff becomes scripts/upstream/$name.diff, with its reason above it"
    fi
done < <(awk '/^not ok/ { print $5 }' "$OUTPUT/log")
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally upstream "$PASSED" "$FAILED" "$SKIPPED"
