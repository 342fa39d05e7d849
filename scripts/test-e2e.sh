#!/usr/bin/env bash
# test-e2e.sh VERSION [FILTER]: the crate tests/e2e, whose tests start servers
# of their own and look at them from outside.
#
# It is built here and run as the user that can run PostgreSQL, so under root
# the binaries are copied to where `postgres` can execute them. They get
# PG_CONFIG (the private tree, with the extension installed) and TMPDIR, short
# and removed at the end with every server still running in it.

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
make_workdir
make_output e2e

cd "$REPO"
cargo test --manifest-path "$manifest" --no-run --message-format=json-render-diagnostics >"$OUTPUT/build.json" ||
    die "tests/e2e does not build"
mapfile -t binaries < <(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$OUTPUT/build.json" | sort -u)
[ ${#binaries[@]} -gt 0 ] || die "tests/e2e has no test binary"
for binary in "${binaries[@]}"; do
    to_workdir "$binary" "${binary##*/}"
done

cd "$WORK"
status=0
for binary in "${binaries[@]}"; do
    say "${binary##*/}"
    as_server_user env TMPDIR="$WORK" PG_CONFIG="$PG_CONFIG" TTL_PG="$version" \
        "$WORK/${binary##*/}" ${filter:+"$filter"} </dev/null 2>&1 | tee -a "$OUTPUT/log" || status=$?
done

count_cargo "$OUTPUT/log"
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally e2e "$PASSED" "$FAILED" "$SKIPPED"
