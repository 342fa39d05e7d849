#!/usr/bin/env bash
# test-lint.sh VERSION: what can be said without running anything: rustfmt,
# clippy and rustdoc, warnings being errors, and the layers of src/; the scripts'
# own tests, the files of a release, and the installation script.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-}
check_version "$version"
use_postgres "$version"
cd "$REPO"

PASSED=0 FAILED=0 SKIPPED=0
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

check "layers' own tests" cargo test -q -p ttl_layers
check "layers" cargo run -q -p ttl_layers
check "rustfmt" cargo fmt --all --check
check "clippy" cargo_clippy
export RUSTDOCFLAGS="-D warnings"
check "rustdoc" cargo doc --workspace --no-default-features --no-deps \
    --features "ttl_ext/pg$version,ttl_together/pg$version"
check "scripts' own tests" tests/scripts/run.sh

check "files of a release" "$REPO/scripts/check-release.sh"
check "what finds faults in them" "$REPO/scripts/check-release-test.sh"

# What tools/schema writes is what cargo-pgrx writes, where there is one.
same_script() {
    local stage ours status=0
    stage=$(mktemp -d)
    ours=$stage$("$PG_CONFIG" --sharedir)/extension
    scripts/install-extension.sh --pg-config "$PG_CONFIG" "${FEATURES[@]}" --destdir "$stage" &&
        cargo pgrx schema "pg$version" "${FEATURES[@]}" --skip-build --out "$stage/theirs.sql" &&
        diff -u "$stage/theirs.sql" "$ours/ttl_ext--$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1).sql" || status=1
    rm -rf "$stage"
    return "$status"
}
pgrx=$(sed -n 's/^pgrx = "=\(.*\)"$/\1/p' Cargo.toml)
if [ "$(cargo pgrx --version 2>/dev/null)" = "cargo-pgrx $pgrx" ]; then
    check "installation script" same_script
else
    say "SKIPPED: installation script: there is no cargo-pgrx $pgrx to compare with"
    SKIPPED=1
fi

tally lint "$PASSED" "$FAILED" "$SKIPPED"
