#!/usr/bin/env bash
# install.sh PG_CONFIG [only-build]: a release build of the extension into the server that PG_CONFIG
# belongs to; by sudo where its directories are not ours to write.
#
# It does not change the server's configuration and does not restart it: what
# there is left to do is printed at the end. Called by sudo itself (`sudo make install`, PGXN's client), it
# compiles as the user who has called sudo, if they have Rust, and copies as root.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/system.sh"

which_server() {
    local version found
    say "which server? PG_CONFIG is the path of its pg_config"
    for version in $PG_VERSIONS; do
        ! found=$(system_pg_config "$version" without-headers) || say "    make install PG_CONFIG=$found"
    done
    exit 2
}

[ -n "${1:-}" ] || which_server
pg_config=$(command -v "$1") || die "PG_CONFIG='$1' is not a program that can be run"
pg_config=$(realpath "$pg_config")
version=$("$pg_config" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
check_version "$version"
"$REPO/scripts/deps.sh"
headers=$("$pg_config" --includedir-server)
needs=
if [ ! -f "$headers/postgres.h" ]; then needs=server; elif ! has_icu "$pg_config"; then needs=icu; fi
TTL_PG_CONFIGS=$pg_config install_needs "$version" "$needs" >&2
[ -f "$headers/postgres.h" ] || die "$headers/postgres.h is missing: install the headers of that server"

builder=$(builder)
as_whoever_builds() {
    if [ -z "$builder" ]; then "$@"; else as_builder "$builder" "$@"; fi
}

# pgrx wants a list of servers: this one only. The file stays, since pgrx builds
# its bindings anew when it is gone or has changed.
target=${CARGO_TARGET_DIR:-$REPO/target}
pgrx_home=$target/pgrx-install/pg$version
as_whoever_builds mkdir -p "$pgrx_home"
config="[configs]"$'\n'"pg$version = \"$pg_config\""
[ "$(cat "$pgrx_home/config.toml" 2>/dev/null)" = "$config" ] ||
    printf '%s\n' "$config" | as_whoever_builds tee "$pgrx_home/config.toml" >/dev/null

build() { # OPTION...
    as_whoever_builds env CARGO_TARGET_DIR="$target" PGRX_HOME="$pgrx_home" "$REPO/scripts/install-extension.sh" \
        --release --pg-config "$pg_config" --no-default-features --features "pg$version" "$@" ||
        die "the extension was not installed; see the messages above"
}

say "making a release build of the extension; the first time this takes minutes"
if [ "${2:-}" = only-build ]; then
    build --destdir "$target/only-build"
    exit
elif [ -n "$builder" ]; then
    stage=$target/only-build
    build --destdir "$stage"
    for folder in "$("$pg_config" --pkglibdir)" "$("$pg_config" --sharedir)/extension"; do
        install -m 755 -d "$folder"
    done
    install -m 755 -t "$("$pg_config" --pkglibdir)" "$stage$("$pg_config" --pkglibdir)/ttl_ext.so"
    install -m 644 -t "$("$pg_config" --sharedir)/extension" "$stage$("$pg_config" --sharedir)"/extension/ttl_ext*
elif ! is_root && ! { [ -w "$("$pg_config" --pkglibdir)" ] && [ -w "$("$pg_config" --sharedir)/extension" ]; }; then
    build --sudo
else
    build
fi

cat <<END

ttl_ext is installed in PostgreSQL $version ($pg_config). To use it:

  1. Add ttl_ext to shared_preload_libraries in that server's postgresql.conf
     (SHOW config_file says where it is):
         shared_preload_libraries = 'ttl_ext'
  2. Restart the server.
  3. In each database that is to use it, as superuser:
         CREATE EXTENSION ttl_ext;

Was another version installed before? Then restart, and in each database that has it:
         ALTER EXTENSION ttl_ext UPDATE;
END
