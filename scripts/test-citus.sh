#!/usr/bin/env bash
# test-citus.sh VERSION [FILTER]: the crate tests/citus, on clusters of three servers with Citus.
# With CITUS=/path/to/source, Citus is built of that, once, for the private server of VERSION
# (scripts/citus.sh). With PG_CONFIG set, on the server which that belongs to, whatever VERSION says.
#
# No registry that these scripts know has Citus: it is tested where somebody has its source, or has
# installed it, 13.1 or newer. Nothing is written into that server: its programs, libraries and
# extensions are copied to a place that is removed at the end, and ttl_ext is installed there. Without
# Citus all tests are counted as skipped.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} filter=${2:-} theirs=${PG_CONFIG:-}
oldest=13.1
manifest=$REPO/tests/citus/Cargo.toml
if [ -n "${CITUS:-}" ]; then
    [ -z "$theirs" ] || die "take either CITUS, a source, or PG_CONFIG, a server that has it"
    theirs=$("$REPO/scripts/citus.sh" "$version" "$CITUS" | tail -n 1)
    [ -n "$theirs" ] || exit 1
fi
if [ -n "$theirs" ]; then
    theirs=$(realpath "$(command -v "$theirs")") || die "PG_CONFIG='${PG_CONFIG:-}' is not a program that can be run"
    version=$("$theirs" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
    check_version "$version"
    make_cache
    lock_server "$version" # logs and results have one place
    # pgrx builds anew when its list of servers changes: one of its own for each version.
    export PGRX_HOME=$CARGO_TARGET_DIR/pgrx-citus/pg$version
    mkdir -p "$PGRX_HOME"
    servers="[configs]"$'\n'"pg$version = \"$theirs\""
    [ "$(cat "$PGRX_HOME/config.toml" 2>/dev/null)" = "$servers" ] ||
        printf '%s\n' "$servers" >"$PGRX_HOME/config.toml"
else
    check_version "$version"
    use_postgres "$version"
    theirs=$PG_CONFIG
fi
make_output citus

cd "$REPO"
cargo test --manifest-path "$manifest" --no-run --message-format=json-render-diagnostics >"$OUTPUT/build.json" ||
    die "tests/citus does not build"
mapfile -t binaries < <(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$OUTPUT/build.json" | sort -u)
[ ${#binaries[@]} -gt 0 ] || die "tests/citus has no test binary"

skip_all() { # REASON
    local count=0 binary n
    for binary in "${binaries[@]}"; do
        n=$("$binary" --list --format terse ${filter:+"$filter"} | grep -c ': test$' || true)
        count=$((count + n))
    done
    [ "$count" -gt 0 ] || die "tests/citus has no test${filter:+ with '$filter' in its name}"
    echo "SKIPPED: $count tests on Citus: $1"
    [ -z "${TTL_TALLY:-}" ] || echo "citus 0 0 $count" >>"$TTL_TALLY"
    printf 'citus: '
    count_line 0 0 "$count"
    exit 0
}

# Of the server itself, which cannot be asked before it is copied.
library=$("$theirs" --pkglibdir)/citus.so
control=$("$theirs" --sharedir)/extension/citus.control
[ -f "$library" ] && [ -f "$control" ] ||
    skip_all "PostgreSQL $version in $("$theirs" --bindir) has none; make test-citus CITUS=/path/to/source builds it, PG_CONFIG=… takes another server"
citus=$(sed -nE "s/^default_version *= *'([0-9]+\.[0-9]+).*/\1/p" "$control")
[ "$(printf '%s\n' "$oldest" "$citus" | sort -V | head -n 1)" = "$oldest" ] ||
    skip_all "Citus $citus is older than $oldest, which sends security labels of tables to all nodes"

make_workdir
# Programs find the other directories by their place among them, so those are kept below a new root.
root=$WORK/server
for directory in bindir pkglibdir sharedir; do
    path=$("$theirs" --$directory)
    mkdir -p "$root$path"
    cp -R --preserve=mode,timestamps,links "$path/." "$root$path/"
done
PG_CONFIG=$root$("$theirs" --bindir)/pg_config
export PG_CONFIG
[ "$("$PG_CONFIG" --pkglibdir)" = "$root$("$theirs" --pkglibdir)" ] ||
    die "the server in $("$theirs" --bindir) cannot be copied: its programs do not go by where they are"

FEATURES=(--no-default-features --features "pg$version")
PG_VERSION=$version
install_extension
say "Citus $citus on PostgreSQL $version, in a copy of $("$theirs" --bindir)"

status=0
cd "$WORK"
for binary in "${binaries[@]}"; do
    name=${binary##*/}
    to_workdir "$binary" "$name"
    say "$name: started"
    as_server_user env TMPDIR="$WORK" PG_CONFIG="$PG_CONFIG" TTL_PG="$version" \
        "$WORK/$name" --show-output ${filter:+"$filter"} </dev/null >"$OUTPUT/$name.log" 2>&1 || status=1
    grep -qE '^test result: ok' "$OUTPUT/$name.log" || cat "$OUTPUT/$name.log"
    say "$name: $(grep -E '^test result' "$OUTPUT/$name.log" || echo "no result")"
    cat "$OUTPUT/$name.log" >>"$OUTPUT/log"
done
grep -h '^SKIPPED' "$OUTPUT/log" || true

count_cargo "$OUTPUT/log"
# Tests that have found what they need missing.
left_out=$(grep -c '^SKIPPED test:' "$OUTPUT/log" || true)
PASSED=$((PASSED - left_out)) SKIPPED=$((SKIPPED + left_out))
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally citus "$PASSED" "$FAILED" "$SKIPPED"
