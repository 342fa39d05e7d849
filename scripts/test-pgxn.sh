#!/usr/bin/env bash
# test-pgxn.sh: the archive for PGXN by PGXN's client, in a bare Debian 12: as a user who has Rust and may use sudo,
# and as root. tests/packages/pgxn.sh. The library is compiled quickly, not well.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/tally.sh"
. "$REPO/scripts/system.sh"

check_rust
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}
version=15
make_output pgxn
. "$REPO/scripts/bare.sh"
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}
why_not_inside bookworm >"$OUTPUT/why-not"
if [ -s "$OUTPUT/why-not" ]; then
    say "SKIPPED: PGXN's client: $(cat "$OUTPUT/why-not")"
    tally pgxn 0 0 1
fi
archive=$("$REPO/scripts/dist.sh" | grep 'zip$')
as_root cp "$archive" "$REPO/scripts/check-links.sh" "$REPO"/tests/packages/{steps,pgxn}.sh "$root/packages/"
# The user's own Rust, and what cargo has fetched before.
as_root mkdir -p "$root/home/ada/.cargo/registry"
as_root cp -R "$cargo_home/bin" "$root/home/ada/.cargo/"
for folder in index cache; do
    [ ! -d "$cargo_home/registry/$folder" ] ||
        as_root cp -R "$cargo_home/registry/$folder" "$root/home/ada/.cargo/registry/"
done
mkdir -p "$CARGO_TARGET_DIR/docker" # test-docker.sh's, too
BOUND=("$cargo_home" "$rustup_home" "$CARGO_TARGET_DIR/docker")
status=0
inside env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin RUSTUP_AUTO_INSTALL=0 ROOTS_CARGO="$cargo_home" \
    RUSTUP_HOME="$rustup_home" ROOTS_TARGET="$CARGO_TARGET_DIR/docker" \
    bash /packages/pgxn.sh "$version" "${archive##*/}" >"$OUTPUT/pgxn.log" 2>&1 || status=$?
[ "$status" = 0 ] || tail -n 40 "$OUTPUT/pgxn.log" >&2
grep -E '^(not )?ok ' "$OUTPUT/pgxn.log" || true
passed=$(grep -c '^ok ' "$OUTPUT/pgxn.log" || true)
failed=$(grep -c '^not ok ' "$OUTPUT/pgxn.log" || true)
[ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
tally pgxn "$passed" "$failed" 0
