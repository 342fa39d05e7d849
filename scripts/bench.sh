#!/usr/bin/env bash
# bench.sh VERSION: the benchmarks (the crate bench/) on PostgreSQL VERSION, with a
# release build of the extension in a tree of their own, so that neither tests nor
# benchmarks pull the library from under the other.
#
#   QUICK=1         fewer rows and repetitions, some minutes
#   ONLY=b1,b8      these only; the others' results in the file stay
#   SIZE=tiny       whether everything still works; the figures mean nothing
#
# Results of a full run go to bench/results/VERSION.{json,md} and VERSION-*.svg, those of
# others to target/bench. Where this machine's apt offers pg_cron and pg_partman for the
# server (Debian's own 15), they are put into that tree, not onto the machine.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/apt.sh"

version=${1:-}
check_version "$version"
size=${SIZE:-full}
[ -z "${QUICK:-}" ] || size=quick
name=$version out=$REPO/bench/results
if [ "$size" != full ]; then
    name=$version-$size out=$CARGO_TARGET_DIR/bench
fi
mkdir -p "$out"

# Two at a time would measure each other.
make_cache
exec 9>"$TTL_CACHE/bench.lock"
flock -n 9 || {
    say "waiting for another run of the benchmarks"
    flock 9
}

# A copy of the tests' tree, anew when that has changed. An extension that is in it is
# replaced below.
copy_tree() {
    local from=$TTL_CACHE/pg$version stamp=$tree/.complete want
    want="1 $(cat "$from/.complete")"
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    say "copying PostgreSQL $version to $tree"
    rm -rf "$tree"
    mkdir -p "${tree%/*}"
    cp -R --preserve=mode,timestamps,links "$from" "$tree"
    printf '%s\n' "$want" >"$stamp"
}

# What one would use instead, from the machine's own archive; root is not needed.
add_package() { # NAME CONTROL_FILE
    local package=postgresql-$version-$1 unpacked
    local share=$tree/share/postgresql/$version
    [ ! -f "$share/extension/$2" ] || return 0
    unpacked=$(mktemp -d "$TTL_CACHE/bench/unpack.XXXXXX")
    if (cd "$unpacked" && apt_download "$package" &&
        dpkg-deb -x "$package"_*.deb .) >&2; then
        cp -R "$unpacked/usr/lib/postgresql" "$tree/lib/"
        cp -R "$unpacked/usr/share/postgresql" "$tree/share/"
    else
        say "$package cannot be had from this machine's apt: that baseline will be reported as not available"
    fi
    rm -rf "$unpacked"
}

tree=$TTL_CACHE/bench/pg$version
private=$("$REPO/scripts/postgres.sh" "$version" release | tail -n 1)
[ -n "$private" ] || die "there is no PostgreSQL $version: run 'make deps PG=$version'"
case $private in
    */lib/postgresql/*) # the tests' copy of the system's server, whose packages fit, or of Debian's packages of 19
        copy_tree
        PG_CONFIG=$tree${private#"$TTL_CACHE/pg$version"}
        add_package cron pg_cron.control
        add_package partman pg_partman.control
        ;;
    *) # built for this alone
        PG_CONFIG=$private
        say "there are no packages for this server: pg_cron and pg_partman will be reported as not available"
        ;;
esac
BINDIR=$("$PG_CONFIG" --bindir)
export PG_CONFIG BINDIR

# A list of servers of its own: pgrx builds its bindings anew when it changes.
export PGRX_HOME=$CARGO_TARGET_DIR/pgrx-bench/pg$version
mkdir -p "$PGRX_HOME"
config="[configs]"$'\n'"pg$version = \"$PG_CONFIG\""
[ "$(cat "$PGRX_HOME/config.toml" 2>/dev/null)" = "$config" ] ||
    printf '%s\n' "$config" >"$PGRX_HOME/config.toml"
cd "$REPO"
say "making a release build of the extension; the first time this takes minutes"
"$REPO/scripts/install-extension.sh" --release --pg-config "$PG_CONFIG" \
    --no-default-features --features "pg$version" ||
    die "the extension does not build or install for PostgreSQL $version"
# The harness itself does no work that is measured.
cargo build --package ttl_bench || die "bench/ does not build"

make_workdir
need=$([ "$size" = full ] && echo 12 || echo 3)
free=$(df -BG --output=avail "$WORK" | tail -n 1 | tr -cd 0-9)
[ "$free" -ge "$need" ] || die "$WORK has ${free} GB left, the benchmarks need $need"
to_workdir "$CARGO_TARGET_DIR/debug/ttl_bench" ttl_bench
mkdir "$WORK/out"
# What ONLY leaves out stays as it is.
if [ -n "${ONLY:-}" ] && [ -f "$out/$name.json" ]; then cp "$out/$name.json" "$WORK/out/"; fi
if is_root; then chown -R "$SERVER_USER:" "$WORK/out"; fi
commit=$(git -C "$REPO" describe --always --dirty 2>/dev/null || echo unknown)

cd "$WORK"
status=0
as_server_user env TMPDIR="$WORK" PG_CONFIG="$PG_CONFIG" TTL_BENCH_SIZE="$size" TTL_BENCH_ONLY="${ONLY:-}" \
    TTL_BENCH_OUT="$WORK/out" TTL_BENCH_NAME="$name" TTL_BENCH_COMMIT="$commit" \
    "$WORK/ttl_bench" </dev/null || status=$?
cp "$WORK/out/"* "$out/" || status=1
say "all numbers: $out/$name.json; the table: $out/$name.md; plots: $out/$name-*.svg"
[ "$status" = 0 ] || die "a benchmark failed: see the table"
