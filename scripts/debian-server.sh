#!/usr/bin/env bash
# debian-server.sh VERSION TREE SUITE...: unpack PostgreSQL VERSION into TREE, from the newest of
# the binary packages that these releases of Debian have.
#
# They are made for a newer C library than this machine's. So TREE/runtime gets that, and whatever
# else the server's programs are linked to, and the programs are told to look there. Nothing is
# installed. An extension that is built here, for the older C library, loads into such a server.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/apt.sh"

[ $# -ge 3 ] || die "usage: debian-server.sh VERSION TREE SUITE..."
version=$1 tree=$2
shift 2
exec 1>&2
command -v patchelf >/dev/null || die "patchelf is missing: run 'make deps PG=$version'"

work=$(mktemp -d "$TTL_CACHE/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
# libpq as new as the server; all else from the release that comes first.
mkdir -p "$work/debs" "$work/libraries" "$work/state"
printf 'Package: libpq* postgresql*\nPin: version %s*\nPin-Priority: 900\n' "$version" >"$work/preferences"
own_apt "$work/state" deb "$@"
# In its eyes nothing is installed, so that it fetches all that is needed.
: >"$work/status"
cat >>"$work/state/apt.conf" <<END
Dir::State::status "$work/status";
Dir::State::extended_states "$work/extended";
Dir::Etc::Preferences "$work/preferences";
Dir::Etc::PreferencesParts "$work/state/parts";
APT::Install-Recommends "false";
END
theirs() { "$1" -c "$work/state/apt.conf" -qq "${@:2}"; }

# What this machine's dpkg-deb cannot read, or apt has not got, is said there.
(cd "$work/debs" && retry theirs apt-get download "postgresql-$version" "postgresql-client-$version" \
    "postgresql-server-dev-$version" libpq5 libpq-dev) ||
    die "PostgreSQL $version cannot be had from Debian $*"
mapfile -t libraries < <(theirs apt-cache depends "postgresql-$version" "postgresql-client-$version" |
    sed -nE 's/^ *\|?Depends: ((lib|zlib)[^ ]*)$/\1/p' | sort -u)
retry theirs apt-get -y --download-only install "${libraries[@]}" >/dev/null ||
    die "what PostgreSQL $version needs cannot be had from Debian $*"

rm -rf "$tree"
mkdir -p "$tree/runtime"
for package in "$work"/debs/postgresql*.deb "$work"/debs/libpq-dev*.deb; do
    dpkg-deb -x "$package" "$tree"
done
for package in "$work"/state/cache/archives/*.deb "$work"/debs/libpq5*.deb; do
    case ${package##*/} in *_all.deb | *gconv*) ;; *) dpkg-deb -x "$package" "$work/libraries" ;; esac
done
find "$work/libraries/usr/lib" -path '*-linux-gnu/*.so*' -prune -exec cp -a -t "$tree/runtime" {} +
loader=$(find "$tree/runtime" -name 'ld-linux*' | head -n 1)
[ -n "$loader" ] || die "the C library of Debian $* has no loader"
chmod 755 "$loader"
# RPATH, unlike RUNPATH, holds for what libraries need in turn.
find "$tree/usr/lib/postgresql/$version" -type f -print0 | while IFS= read -r -d '' program; do
    if readelf -l "$program" 2>/dev/null | grep -q INTERP; then
        patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$tree/runtime" "$program"
    fi
done
say "PostgreSQL $version is $("$tree/usr/lib/postgresql/$version/bin/postgres" --version)"
