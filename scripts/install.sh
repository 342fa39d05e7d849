#!/usr/bin/env bash
# install.sh PG_CONFIG: a release build of the extension into the server that
# PG_CONFIG belongs to; by sudo where its directories are not ours to write.
#
# It does not change the server's configuration and does not restart it: what
# there is left to do is printed at the end.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pg_config=$(command -v "${1:-}") || die "PG_CONFIG='${1:-}' is not a program that can be run"
pg_config=$(realpath "$pg_config")
version=$("$pg_config" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
check_version "$version"
headers=$("$pg_config" --includedir-server)
[ -f "$headers/postgres.h" ] ||
    die "$headers/postgres.h is missing: install the server's headers (Debian: postgresql-server-dev-$version)"

# pgrx wants a list of servers: this one only. The file stays, since pgrx builds
# its bindings anew when it is gone or has changed.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}
export PGRX_HOME=$CARGO_TARGET_DIR/pgrx-install/pg$version
mkdir -p "$PGRX_HOME"
config="[configs]"$'\n'"pg$version = \"$pg_config\""
[ "$(cat "$PGRX_HOME/config.toml" 2>/dev/null)" = "$config" ] ||
    printf '%s\n' "$config" >"$PGRX_HOME/config.toml"

options=()
if ! is_root && ! { [ -w "$("$pg_config" --pkglibdir)" ] && [ -w "$("$pg_config" --sharedir)/extension" ]; }; then
    options+=(--sudo)
fi
say "making a release build of the extension; the first time this takes minutes"
"$REPO/scripts/install-extension.sh" --release --pg-config "$pg_config" \
    --no-default-features --features "pg$version" "${options[@]}" || die "the extension was not installed; see the messages above"

cat <<END

ttl_ext is installed in PostgreSQL $version ($pg_config). To use it:

  1. Add ttl_ext to shared_preload_libraries in that server's postgresql.conf:
         shared_preload_libraries = 'ttl_ext'
  2. Restart the server.
  3. In each database that is to use it, as superuser:
         CREATE EXTENSION ttl_ext;

Was another version installed before? Then restart, and in each database that has it:
         ALTER EXTENSION ttl_ext UPDATE;
END
