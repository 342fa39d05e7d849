#!/usr/bin/env bash
# test-e2e.sh VERSION [FILTER]: the crate tests/e2e, whose tests start servers
# of their own and look at them from outside.
#
# It is built here and run as the user that can run PostgreSQL: if that is `postgres`, who
# cannot reach this folder, the binaries are copied. They get PG_CONFIG (the private tree, with
# the extension installed), TTL_TEMPLATE (what initdb has made) and TMPDIR, short and removed at
# the end with every server still running in it.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} filter=${2:-}
check_version "$version"
manifest=$REPO/tests/e2e/Cargo.toml
[ -f "$manifest" ] || {
    say "there is no crate tests/e2e"
    tally e2e 0 0 0
}

use_postgres "$version"
install_extension
make_workdir memory
make_output e2e

cd "$REPO"
cargo test --package ttl_ext_e2e "${TOGETHER[@]}" "${FEATURES[@]}" --no-run --message-format=json-render-diagnostics >"$OUTPUT/build.json" ||
    die "tests/e2e does not build"
# The clock that tests set: a library for the server, not one that the tests link to.
cargo build --package ttl_clock || die "tests/clock does not build"
[ -z "${TTL_BUILT:-}" ] || : >"$TTL_BUILT/e2e" # for test.sh
# Those that take longest first, so that none of them is left over at the end.
mapfile -t binaries < <(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$OUTPUT/build.json" | sort -u |
    awk -F/ 'BEGIN { n = split("security deletion matrix differential storm identity monitoring workers restore", long, " ")
                     for (i = 1; i <= n; i++) rank[long[i]] = i }
             { name = $NF; sub(/-[0-9a-f]+$/, "", name); print (name in rank ? rank[name] : n + 1), $0 }' |
    sort -s -n -k 1,1 | cut -d " " -f 2-)
[ ${#binaries[@]} -gt 0 ] || die "tests/e2e has no test binary"
# Where they are, if the user can run them there.
programs=${binaries[0]%/*}
as_server_user test -x "${binaries[0]}" || {
    programs=$WORK
    for binary in "${binaries[@]}"; do
        to_workdir "$binary" "${binary##*/}"
    done
}

to_workdir "$CARGO_TARGET_DIR/debug/libttl_clock.so" libttl_clock.so

# All servers are copies of one.
template=$WORK/template
as_server_user "$BINDIR/initdb" -D "$template" -U postgres -A trust --no-sync \
    --locale=C --encoding=UTF8 >"$OUTPUT/initdb.log" 2>&1 || die "initdb failed: $OUTPUT/initdb.log"

# Tests wait more than they work: several binaries at a time, each with its log, and in each more tests
# than there are processors. What they say counts also when all is well: seeds, sizes, times.
cd "$WORK"
prometheus=$TTL_CACHE/prometheus
[ -d "$prometheus" ] || prometheus=
export filter
run_binary() { # BINARY
    local name=${1##*/} status=0
    say "$name: started"
    as_server_user env TMPDIR="$WORK" PG_CONFIG="$PG_CONFIG" TTL_PG="$PG_VERSION" \
        TTL_PROMETHEUS="$prometheus" TTL_TEMPLATE="$template" \
        TTL_CLOCK_LIBRARY="$WORK/libttl_clock.so" RUST_TEST_THREADS="${RUST_TEST_THREADS:-6}" \
        "$programs/$name" --show-output ${filter:+"$filter"} </dev/null >"$OUTPUT/$name.log" 2>&1 || status=$?
    say "$name: $(grep -E '^test result' "$OUTPUT/$name.log" || echo "no result")"
    return "$status"
}
status=0 running=0
for binary in "${binaries[@]}"; do
    if [ "$running" -ge 3 ]; then
        wait -n || status=1
        running=$((running - 1))
    fi
    run_binary "$binary" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
done
for binary in "${binaries[@]}"; do
    cat "$OUTPUT/${binary##*/}.log"
done >"$OUTPUT/log"
# What did not go well in full; what was left out, with its reason.
for binary in "${binaries[@]}"; do
    grep -qE '^test result: ok' "$OUTPUT/${binary##*/}.log" || cat "$OUTPUT/${binary##*/}.log"
done
grep -h '^SKIPPED' "$OUTPUT/log" || true

count_cargo "$OUTPUT/log"
# Tests that have found what they need missing.
left_out=$(grep -c '^SKIPPED test:' "$OUTPUT/log" || true)
PASSED=$((PASSED - left_out)) SKIPPED=$((SKIPPED + left_out))
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally e2e "$PASSED" "$FAILED" "$SKIPPED"
