#!/usr/bin/env bash
# citus.sh VERSION SOURCE: a copy of the private PostgreSQL of that version with Citus, built from the
# source in the folder SOURCE, which stays as it is; prints the path of its pg_config.
#
# It is in $TTL_CACHE/pgNN-citus until the source or the server changes. Needs what PostgreSQL itself needs
# to be built: a C compiler and make. Leaves out what Citus asks other libraries for (curl, lz4, zstd).

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:-} source=${2:-}
check_version "$version"
needs="a folder with Citus's source (its 'configure'), 13.1 or newer, that knows PostgreSQL $version; a C compiler and make"
[ -x "$source/configure" ] && [ -d "$source/src/backend/distributed" ] ||
    die "CITUS='$source' is no source of Citus. It takes $needs"
source=$(realpath "$source")
say "Citus is built of $source; needs $needs"
make_cache
exec 3>&1 1>&2

theirs=$("$REPO/scripts/postgres.sh" "$version" | tail -n 1)
[ -n "$theirs" ] || die "there is no PostgreSQL $version: run 'make deps PG=$version'"
# The private tree, in which the programs find the rest by their place.
original=$TTL_CACHE/pg$version
tree=$TTL_CACHE/pg$version-citus
pg_config=$tree${theirs#"$original"}
stamp=$tree/.complete

# What it is made of: the server, and every file of the source with its size and time.
made_of() {
    stat -L -c '%s %Y' "$original/.complete" "$theirs"
    find "$source" -type f -not -path '*/.git/*' -printf '%P %s %T@\n' | LC_ALL=C sort
}

compile_citus() (
    exec >"$tree.log" 2>&1
    unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that may be running us
    cd "$tree.build" &&
        "$source/configure" "PG_CONFIG=$pg_config" --without-libcurl --without-lz4 --without-zstd &&
        make -s -j "${TTL_JOBS:-$(nproc)}" extension &&
        make -s install-extension
)

exec 9>"$tree.lock"
flock -n 9 || {
    say "waiting for another run that builds Citus for PostgreSQL $version"
    flock 9
}
want=$(made_of | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    rm -rf "$tree" "$tree.build"
    cp -R --preserve=mode,timestamps,links "$original" "$tree"
    rm -f "$stamp"
    mkdir "$tree.build"
    patiently "building Citus for PostgreSQL $version" "five minutes, once" compile_citus || {
        tail -n 30 "$tree.log"
        die "Citus did not build with PostgreSQL $version; the whole log: $tree.log"
    }
    rm -rf "$tree.build"
    printf '%s\n' "$want" >"$stamp"
fi
[ -x "$pg_config" ] || die "$pg_config is missing: remove $tree and run this again"
printf '%s\n' "$pg_config" >&3
