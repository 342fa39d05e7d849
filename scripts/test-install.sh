#!/usr/bin/env bash
# test-install.sh [CODENAME...]: a stranger's first minutes, from the source, in a bare Debian 12 and 13:
# `make demo`, `make install`, preload, the README's first lines. tests/packages/install.sh, with this machine's Rust.
# The transcript, with seconds, is $OUTPUT/CODENAME.log. Some ten minutes each, as a release build is made.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/tally.sh"
. "$REPO/scripts/system.sh"

check_rust
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}
version=any
make_output install
. "$REPO/scripts/bare.sh"
[ $# -gt 0 ] || set -- bookworm trixie
PASSED=0 FAILED=0 SKIPPED=0
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

for codename in "$@"; do
    clean_up_root
    root=
    why_not_inside "$codename" >"$OUTPUT/why-not"
    if [ -s "$OUTPUT/why-not" ]; then
        say "SKIPPED: a bare Debian $codename: $(cat "$OUTPUT/why-not")"
        SKIPPED=$((SKIPPED + 1))
        continue
    fi
    say "first minutes in a bare Debian $codename: some ten minutes"
    # What is committed, and what is changed here; not what was built.
    as_root mkdir -p "$root/root/ttl_ext"
    (cd "$REPO" && git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T - 2>/dev/null) |
        as_root tar -xf - -C "$root/root/ttl_ext"
    as_root cp "$REPO/tests/packages/install.sh" "$root/packages/"
    BOUND=("$cargo_home" "$rustup_home")
    status=0
    inside env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CARGO_HOME="$cargo_home" RUSTUP_HOME="$rustup_home" \
        RUSTUP_AUTO_INSTALL=0 bash /packages/install.sh >"$OUTPUT/$codename.log" 2>&1 || status=$?
    [ "$status" = 0 ] || tail -n 40 "$OUTPUT/$codename.log" >&2
    grep -E '^(not )?ok ' "$OUTPUT/$codename.log" | sed "s/$/ ($codename)/" || true
    passed=$(grep -c '^ok ' "$OUTPUT/$codename.log" || true)
    failed=$(grep -c '^not ok ' "$OUTPUT/$codename.log" || true)
    [ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed))
done
tally install "$PASSED" "$FAILED" "$SKIPPED"
