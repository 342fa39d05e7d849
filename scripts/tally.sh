# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
# Counting tests; sourced after lib.sh by the scripts of the tiers.
#
# Each tier ends with `tally`, which prints the tier's line `N passed, N failed`
# and, under scripts/test.sh, adds it to the file $TTL_TALLY. A tier in which
# not a single test was found has failed: then something did not run.

count_line() { # PASSED FAILED SKIPPED
    printf '%d passed, %d failed' "$1" "$2"
    [ "$3" = 0 ] || printf ', %d skipped' "$3"
    printf '\n'
}

tally() { # TIER PASSED FAILED SKIPPED
    local passed=$2 failed=$3
    if [ $((passed + failed)) = 0 ]; then
        say "no tests found in the output of this tier"
        failed=1
    fi
    [ -z "${TTL_TALLY:-}" ] || echo "$1 $passed $failed $4" >>"$TTL_TALLY"
    printf '%s: ' "$1"
    count_line "$passed" "$failed" "$4"
    [ "$failed" = 0 ]
}

# All that is built for tests is built with the same features of its dependencies, by this
# package (tests/together/Cargo.toml).
export TTL_TOGETHER=1
TOGETHER=(--package ttl_together)

# With the features of PG_VERSION.
cargo_clippy() {
    cargo clippy --workspace --no-default-features --all-targets \
        --features "ttl_ext/pg$PG_VERSION,ttl_ext/pg_test,ttl_together/pg$PG_VERSION" -- -D warnings
}

cargo_tests() { # ARGUMENTS...
    cargo test --package ttl_ext "${TOGETHER[@]}" --no-default-features --features "pg$PG_VERSION pg_test" "$@"
}

# What cargo test printed: one `test result:` line for each test binary.
# Sets PASSED, FAILED, SKIPPED.
count_cargo() { # LOG
    read -r PASSED FAILED SKIPPED < <(
        awk '/^test result: / {
                 for (i = 2; i <= NF; i++) {
                     if ($i ~ /^passed/) p += $(i - 1)
                     if ($i ~ /^failed/) f += $(i - 1)
                     if ($i ~ /^ignored/) s += $(i - 1)
                 }
             }
             END { print p + 0, f + 0, s + 0 }' "$1"
    )
}

# What pg_regress printed: `ok 1 - name` from 16 on, `test name ... ok` before.
count_regress() { # LOG
    PASSED=$(grep -cE '^ok +[0-9]|^(test|  ) .*\.\.\. ok ' "$1" || true)
    FAILED=$(grep -cE '^not ok +[0-9]|^(test|  ) .*\.\.\. (FAILED|failed)' "$1" || true)
    SKIPPED=0
}

# A place for logs and results that outlives the tier.
make_output() { # TIER
    OUTPUT=${CARGO_TARGET_DIR:-$REPO/target}/tests/pg$version/$1
    rm -rf "$OUTPUT"
    mkdir -p "$OUTPUT"
}
