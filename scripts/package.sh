#!/usr/bin/env bash
# package.sh VERSION [dev]: a package of the extension, for the PostgreSQL VERSION that is
# installed here from a package; with `dev` of the dev profile instead of release, for tests.
#
#   FORMAT=rpm               for rpm; without it for Debian, or for rpm where there is no apt but dnf
#   REVISION=2               the package's revision, for another one of the same release; 1
#   DEBFULLNAME, DEBEMAIL    who maintains it, as for Debian's own tools
#
# The last line of stdout is its path, in $CARGO_TARGET_DIR/package. What differs between the
# formats is in package-deb.sh and package-rpm.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/system.sh"

version=${1:-} profile=${2:-release}
check_version "$version"
case $profile in
    release) options=(--release) ;;
    dev) options=() ;;
    *) die "'$profile': nothing or 'dev'" ;;
esac
format=${FORMAT:-$([ "$(package_manager)" = dnf ] && echo rpm || echo deb)}
case $format in
    deb | rpm) ;;
    *) die "FORMAT='$format' is not a format of packages that this makes; take deb or rpm" ;;
esac
exec 3>&1 1>&2
release=$(crate_version "$REPO/Cargo.toml")
revision=${REVISION:-1}
output=$CARGO_TARGET_DIR/package
maintainer="${DEBFULLNAME:-ttl_ext developers} <${DEBEMAIL:-nobody@ttl-ext.invalid}>"
. "$REPO/scripts/package-$format.sh"

# The package depends on the server's, and its files go where that one's are. A server that was
# built from source, as those of the tests, has none (decision 0058).
find_server
"$REPO/scripts/deps.sh" "$version" "$format"
name_package # sets package, library_folder, extension_folder
use_postgres "$version"
build=$output/$package
rm -rf "$build"
mkdir -p "$build"
cd "$REPO"
say "building the extension, profile $profile"
"$REPO/scripts/install-extension.sh" --pg-config "$PG_CONFIG" "${FEATURES[@]}" "${options[@]}" --destdir "$build/stage" ||
    die "the extension does not build for PostgreSQL $version; see cargo's messages above"

# Built for the private copy of the server, whose place is another one.
install -m 755 -D -t "$build/files$library_folder" "$build/stage$("$PG_CONFIG" --pkglibdir)/ttl_ext.so"
install -m 644 -D -t "$build/files$extension_folder" "$build/stage$("$PG_CONFIG" --sharedir)/extension/"*
rm -rf "$build/stage"

cp -R README.md CHANGELOG.md LICENSE docs monitoring "$build/"
scripts/package-docs.sh "$build" "$format"
scripts/notices.sh "$version" >"$build/third-party-notices.txt"

say "building the package"
unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that may be running us
make_package # sets made
[ -f "$made" ] || die "no package was made: $build.log"
printf '%s\n' "$made" >&3
