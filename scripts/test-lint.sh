#!/usr/bin/env bash
# test-lint.sh VERSION: what can be said without running anything: rustfmt,
# clippy and rustdoc, warnings being errors, the layers of src/, and the files of
# a release. Counts as seven tests.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
use_postgres "$version"
cd "$REPO"

PASSED=0 FAILED=0
check() { # NAME COMMAND...
    local name=$1
    shift
    say "$name"
    if "$@" >&2; then
        PASSED=$((PASSED + 1))
    else
        say "$name failed: $*"
        FAILED=$((FAILED + 1))
    fi
}

members=(--workspace --no-default-features)
check "layers' own tests" cargo test -q -p ttl_layers
check "layers" cargo run -q -p ttl_layers
check "rustfmt" cargo fmt --all --check
check "clippy" cargo clippy "${members[@]}" --features "ttl_ext/pg$version,ttl_ext/pg_test" \
    --all-targets -- -D warnings
export RUSTDOCFLAGS="-D warnings"
check "rustdoc" cargo doc "${members[@]}" --features "ttl_ext/pg$version" --no-deps

check "files of a release" "$REPO/scripts/check-release.sh"
check "what finds faults in them" "$REPO/scripts/check-release-test.sh"

tally lint "$PASSED" "$FAILED" 0
