#!/usr/bin/env bash
# postgres.sh VERSION [release]: make sure there is a private PostgreSQL server of
# that version outside the repository; print the path of its pg_config.
#
# The tests install the extension into a server. They must not write into the
# system's, so each version has a tree of its own under $TTL_CACHE/pgNN:
#
# - installed on the system (Debian's own 15): a copy; PostgreSQL finds its
#   files relative to its binaries, so a moved tree works. It is copied anew
#   when the system's version changes.
# - 16: unpacked from the PyPI package pgserver, which has a server with headers and
#   pg_regress, but neither contrib modules nor assertions. Debian 12 and what came
#   after it never had 16.
# - 17, 18: built with assertions from the source packages of later Debian
#   releases, whose binaries would need a newer C library. About three minutes
#   each on two cores, once; to take a newer minor version, remove the tree.
#   The source stays in $TTL_CACHE/pgNN-src, with PostgreSQL's own regression
#   suite built in it. With `release` another tree, $TTL_CACHE/pgNN-release, as it
#   is built for production: for benchmarks.
#
# - 19: unpacked from the newest binary packages of Debian's unstable and experimental, with
#   the C library that they need (scripts/debian-server.sh): their source cannot be had, so it
#   has no assertions. Half a minute; to take a newer one, remove the tree.
#
# All messages go to stderr; the last line of stdout is the path.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/system.sh"

version=${1:-} kind=${2:-}
check_version "$version"
case $kind in
    '' | release) ;;
    *) die "'$kind': nothing or 'release'" ;;
esac
make_cache
exec 3>&1 1>&2

tree=$TTL_CACHE/pg$version
source_tree=$TTL_CACHE/pg$version-src
stamp=$tree/.complete
recipe=1 # raise it when a change here asks for building anew

copy_system_server() {
    local lib=/usr/lib/postgresql/$version share=/usr/share/postgresql/$version want
    pg_config=$tree/lib/postgresql/$version/bin/pg_config
    want="$recipe $("$lib/bin/pg_config" --version) $(
        stat -L -c '%s %Y' "$lib/bin/postgres" "$lib/bin/pg_config" | tr '\n' ' ')"
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    say "copying the system's PostgreSQL $version to $tree"
    lock_server "$version" # nobody is running tests in it
    rm -rf "$tree"
    mkdir -p "$tree/lib/postgresql" "$tree/share/postgresql"
    cp -R --preserve=mode,timestamps,links "$lib" "$tree/lib/postgresql/"
    cp -R --preserve=mode,timestamps,links "$share" "$tree/share/postgresql/"
    ln -s /usr/include "$tree/include"
    printf '%s\n' "$want" >"$stamp"
}

# A server of another layout than Debian's: its programs, library and share below their common folder,
# at the same places below ours. Of a folder that has the programs of the whole system, only its own.
copy_other_server() { # PG_CONFIG
    local theirs=$1 bin lib share include prefix program want
    bin=$(realpath "$("$theirs" --bindir)") lib=$(realpath "$("$theirs" --pkglibdir)")
    share=$(realpath "$("$theirs" --sharedir)") include=$(realpath "$("$theirs" --includedir)")
    prefix=$bin
    while case $lib/ in "$prefix"/*) case $share/ in "$prefix"/*) false ;; esac ;; esac; do prefix=${prefix%/*}; done
    pg_config=$tree${bin#"$prefix"}/pg_config
    want="$recipe $theirs $("$theirs" --version) $(stat -L -c '%s %Y' "$bin/postgres" "$theirs" | tr '\n' ' ')"
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    say "copying the system's PostgreSQL $version to $tree"
    lock_server "$version" # nobody is running tests in it
    rm -rf "$tree"
    for folder in "$lib" "$share"; do
        mkdir -p "$tree${folder#"$prefix"}"
        cp -R --preserve=mode,timestamps,links "$folder/." "$tree${folder#"$prefix"}/"
    done
    mkdir -p "${pg_config%/*}"
    for program in postgres initdb psql pgbench clusterdb createdb createuser dropdb dropuser reindexdb vacuumdb \
        pg_{amcheck,basebackup,checksums,controldata,ctl,dump,dumpall,isready,receivewal,recvlogical,resetwal,restore} \
        pg_{rewind,upgrade,verifybackup,waldump}; do
        [ ! -e "$bin/$program" ] || cp --preserve=mode,timestamps "$bin/$program" "${pg_config%/*}/"
    done
    cp --preserve=mode,timestamps "$theirs" "$pg_config"
    mkdir -p "$tree${include#"$prefix"}"
    rmdir "$tree${include#"$prefix"}"
    ln -s "$include" "$tree${include#"$prefix"}"
    printf '%s\n' "$want" >"$stamp"
}

build_server() { # SUITE
    local archive build
    if [ "$kind" = release ]; then
        tree=$TTL_CACHE/pg$version-release
        stamp=$tree/.complete
    fi
    build=$tree-build
    pg_config=$tree/bin/pg_config
    [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ] && return
    [ "$kind" = release ] || lock_server "$version"
    rm -rf "$tree" "$build"
    "$REPO/scripts/source-package.sh" "postgresql-$version" "$1" "$TTL_CACHE/download"
    archive=$(find "$TTL_CACHE/download" -name "postgresql-${version}_*.orig.tar.*" \
        ! -name '*.asc' | sort -V | tail -n 1)
    say "${archive##*/} is unpacked and built; log: $build.log"
    mkdir -p "$build"
    tar -xf "$archive" -C "$build" --strip-components=1 --no-same-owner
    if ! patiently "building PostgreSQL $version" "three to five minutes, once" \
        compile_server "$build" "${TTL_JOBS:-$(nproc)}"; then
        tail -n 30 "$build.log"
        die "PostgreSQL $version did not build; the whole log: $build.log"
    fi
    if [ "$kind" = release ]; then
        rm -rf "$build"
    else
        # What was compiled goes, but for the regression suite.
        find "$build" -type f \( -name '*.o' -o -name '*.a' -o -name '*.so*' \) \
            ! -path "$build/src/test/regress/*" -delete
        rm -f "$build/src/backend/postgres"
        rm -rf "$source_tree"
        mv "$build" "$source_tree"
    fi
    printf '%s\n' "$recipe" >"$stamp"
    say "PostgreSQL $version is ready in $tree"
}

# Its output goes to a log. ICU, OpenSSL and readline are not needed here.
# (Chained: `set -e` does not hold inside a condition.)
compile_server() ( # DIRECTORY JOBS
    exec >"$1.log" 2>&1
    unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that may be running us
    local checks=(--enable-cassert --enable-debug)
    [ "$kind" != release ] || checks=()
    cd "$1" &&
        ./configure --prefix="$tree" "${checks[@]}" \
            --without-icu --without-readline CFLAGS=-O2 &&
        make -s -j "$2" &&
        make -s -C contrib -j "$2" &&
        make -s -C src/test/regress -j "$2" all &&
        make -s install &&
        make -s -C contrib install
)

# The tree is the package as it is: its programs find their libraries by their place in it.
unpack_server() { # VERSION_OF_THE_PACKAGE
    local unpacked pgxs=$tree/pgserver/pginstall/lib/postgresql/pgxs
    pg_config=$tree/pgserver/pginstall/bin/pg_config
    [ "$(cat "$stamp" 2>/dev/null)" = "$recipe $1" ] && return
    say "unpacking PostgreSQL $version from the package pgserver $1"
    lock_server "$version"
    unpacked=$(mktemp -d "$TTL_CACHE/unpack.XXXXXX")
    # Which Python the package is for does not matter: only the server in it is used.
    patiently "fetching pgserver $1" "some seconds" retry python3 -m pip --quiet --disable-pip-version-check --no-input download --no-deps \
        --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
        --dest "$unpacked" "pgserver==$1" || die "the package pgserver $1 cannot be had"
    rm -rf "$tree"
    python3 -m zipfile -e "$unpacked"/pgserver-*.whl "$tree" || die "the package pgserver $1 cannot be unpacked"
    rm -rf "$unpacked"
    # That forgets which files can be executed.
    chmod 755 "${pg_config%/*}/"* "$pgxs/config/"* "$pgxs/src/test/regress/pg_regress" \
        "$pgxs/src/test/isolation/pg_isolation_regress" "$pgxs/src/test/isolation/isolationtester"
    printf '%s\n' "$recipe $1" >"$stamp"
}

unpack_debian() { # SUITE...
    pg_config=$tree/usr/lib/postgresql/$version/bin/pg_config
    [ "$(cat "$stamp" 2>/dev/null)" = "$recipe $*" ] && return
    lock_server "$version"
    patiently "fetching and unpacking PostgreSQL $version" "half a minute, once" \
        "$REPO/scripts/debian-server.sh" "$version" "$tree" "$@" || die "there is no PostgreSQL $version here"
    printf '%s\n' "$recipe $*" >"$stamp"
}

# Two runs at the same time: the second waits for the first.
exec 9>"$TTL_CACHE/pg$version.lock"
flock -n 9 || {
    say "waiting for another run that prepares PostgreSQL $version"
    flock 9
}

if system_has_server "$version"; then
    copy_system_server
elif [ "$kind" != release ] && other=$(system_pg_config "$version"); then
    copy_other_server "$other"
else
    case $version in
        15) die "PostgreSQL 15 is not installed: run 'make deps PG=15'" ;;
        16) unpack_server 0.1.4 ;;
        17) build_server trixie ;;
        18) build_server sid ;;
        19) unpack_debian sid experimental ;;
        *)
            die "PostgreSQL $version is not provided here. Install it under" \
                "/usr/lib/postgresql/$version with its server headers, or take PG=15, 17, 18 or 19"
            ;;
    esac
fi

[ -x "$pg_config" ] || die "$pg_config is missing: remove $tree and run this again"
printf '%s\n' "$pg_config" >&3
