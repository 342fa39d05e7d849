#!/usr/bin/env bash
# install-extension.sh --pg-config PG_CONFIG [OPTION…]: build the extension, and put its
# library, control file and SQL scripts into the server that PG_CONFIG belongs to.
#
#   --features LIST, --no-default-features    as for cargo build
#   --release        the release profile instead of dev
#   --destdir DIR    below DIR, at the server's paths: for packages
#   --sudo           copy as root, where the server's directories are not ours to write
#
# It stands for `cargo pgrx install`, and needs nothing of cargo-pgrx (decision 0057).
# pgrx-tests runs the program that CARGO_PGRX names, with the words `pgrx install --test`
# before the options: those are passed over.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pg_config='' destdir='' profile=debug sudo=() build=(--lib --package ttl_ext)
# What writes the script needs no optimizing.
schema=(--bin ttl_schema --package ttl_schema)
while [ $# -gt 0 ]; do
    case $1 in
        pgrx | install | --test) ;;
        --release) profile=release build+=(--release) ;;
        --sudo) sudo=(as_root) ;;
        --no-default-features) build+=("$1") ;;
        --features | --pg-config | --destdir)
            [ $# -gt 1 ] || die "$1 needs a value"
            case $1 in
                --features) build+=(--features "$2") ;;
                --pg-config) pg_config=$2 ;;
                --destdir) destdir=$(realpath -m "$2") ;;
            esac
            shift
            ;;
        *) die "'$1' is not an option of this script" ;;
    esac
    shift
done
[ -n "$pg_config" ] || die "which server? --pg-config /path/to/pg_config"
library_folder=$destdir$("$pg_config" --pkglibdir)
extension_folder=$destdir$("$pg_config" --sharedir)/extension
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}

cd "$REPO"
exec 1>&2 # only messages come from here
if [ "$profile" = debug ]; then
    # At once: what both depend on is built only once.
    build+=("${schema[@]}")
    [ -z "${TTL_TOGETHER:-}" ] || build+=(--package ttl_together)
    cargo build "${build[@]}"
else
    cargo build "${build[@]}"
    cargo build "${schema[@]}"
fi

# The version of the crate is that of the extension: …/ttl_ext#1.0.0, or …/clone#ttl_ext@1.0.0
version=$(cargo pkgid --package ttl_ext | sed -E 's/^.*[#@]//')
fill_in() { sed "s/@CARGO_VERSION@/$version/g" "$1"; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
ln -s "$(realpath "$CARGO_TARGET_DIR")/$profile/libttl_ext.so" "$stage/ttl_ext.so"
fill_in ttl_ext.control >"$stage/ttl_ext.control"
# Those of published versions, and those that lead from one to the next; before the second
# version there are none.
for script in sql/ttl_ext--*.sql; do
    [ ! -f "$script" ] || fill_in "$script" >"$stage/${script##*/}"
done
"$CARGO_TARGET_DIR/debug/ttl_schema" "$stage/ttl_ext.so" "$stage/ttl_ext.control" \
    >"$stage/ttl_ext--$version.sql"

# install removes a file before it writes one of that name: a server goes on with the library
# that it has mapped.
"${sudo[@]}" install -m 755 -D -t "$library_folder" "$stage/ttl_ext.so"
"${sudo[@]}" install -m 644 -D -t "$extension_folder" "$stage"/ttl_ext.control "$stage"/*.sql
say "ttl_ext $version is in $library_folder and $extension_folder"
