#!/usr/bin/env bash
# package.sh VERSION [dev]: a Debian package of the extension, for the PostgreSQL VERSION that is
# installed here from a package; with `dev` of the dev profile instead of release, for tests.
#
#   REVISION=2               Debian's revision, for another package of the same release; 1
#   DEBFULLNAME, DEBEMAIL    who maintains it, as for Debian's own tools
#
# The last line of stdout is its path: postgresql-NN-ttl-ext_X.Y.Z-REVISION_ARCH.deb in
# $CARGO_TARGET_DIR/package. What debhelper makes it of is in packaging/debian.

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
exec 3>&1 1>&2

# The package depends on the server's, and its files go where that one's are. A server that was
# built from source, as those of the tests, has none (decision 0058). deps.sh gets what apt has.
system_has_server "$version" || { command -v apt-get >/dev/null && apt_has "postgresql-$version"; } ||
    die "PostgreSQL $version is not installed here from a package: install postgresql-$version and" \
        "postgresql-server-dev-$version from an archive that has them. Without a package:" \
        "make install PG_CONFIG=/path/to/pg_config"
"$REPO/scripts/deps.sh" "$version" package
use_postgres "$version"

release=$(crate_version "$REPO/Cargo.toml")
package=postgresql-$version-ttl-ext
output=$CARGO_TARGET_DIR/package
build=$output/$package
maintainer="${DEBFULLNAME:-ttl_ext developers} <${DEBEMAIL:-nobody@ttl-ext.invalid}>"

# The release, and those before it, in the order of CHANGELOG.md.
changelog() {
    local before day
    changelog_entry "$release" "${REVISION:-1}" "$(releases | sed -n "s/^$release //p")"
    while read -r before day; do
        [ "$before" = "$release" ] || changelog_entry "$before" 1 "$day"
    done < <(releases)
}

releases() { sed -nE 's/^## \[([0-9][^]]*)\] - (.*)$/\1 \2/p' "$REPO/CHANGELOG.md"; }

# A version without a date is of today. Debian sorts 1.0~rc1 before 1.0.
changelog_entry() { # RELEASE REVISION DAY
    local date
    date=$(date -R -u -d "${3:-now}" 2>/dev/null) || date=$(date -R -u)
    printf 'ttl-ext (%s-%s) unstable; urgency=medium\n\n  * Release %s: see changelog.gz.\n\n -- %s  %s\n\n' \
        "$(tr - '~' <<<"$1")" "$2" "$1" "$maintainer" "$date"
}

copyright() {
    local holder
    holder=$(sed -n 's/^Copyright (c) //p' "$REPO/LICENSE")
    sed "s/@COPYRIGHT@/$holder/" "$REPO/packaging/debian/copyright"
    sed -n '/^Permission/,$p' "$REPO/LICENSE" | sed -e 's/^$/./' -e 's/^/ /'
}

rm -rf "$build"
mkdir -p "$build"
cd "$REPO"
say "building the extension, profile $profile"
"$REPO/scripts/install-extension.sh" --pg-config "$PG_CONFIG" "${FEATURES[@]}" "${options[@]}" --destdir "$build/stage" ||
    die "the extension does not build for PostgreSQL $version; see cargo's messages above"

# Built for the private copy of the server, whose place is another one.
install -m 644 -D -t "$build/files/usr/lib/postgresql/$version/lib" \
    "$build/stage$("$PG_CONFIG" --pkglibdir)/ttl_ext.so"
install -m 644 -D -t "$build/files/usr/share/postgresql/$version/extension" \
    "$build/stage$("$PG_CONFIG" --sharedir)/extension/"*
rm -rf "$build/stage"

cp -R packaging/debian README.md CHANGELOG.md docs monitoring "$build/"
scripts/package-docs.sh "$build"
scripts/notices.sh "$version" >"$build/third-party-notices.txt"
copyright >"$build/debian/copyright"
changelog >"$build/debian/changelog"
find "$build/debian" -type f -exec sed -i -e "s/@PG@/$version/g" -e "s|@MAINTAINER@|$maintainer|g" {} +

say "building the package"
unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that may be running us
(cd "$build" && dpkg-buildpackage --build=binary --no-sign >"$build.log" 2>&1) || {
    cat "$build.log"
    die "the package does not build; see dpkg-buildpackage's messages above"
}
deb=$(sed -nE "s/^(${package}_[^ ]*\.deb) .*/\1/p" "$build/debian/files")
[ -f "$output/$deb" ] || die "dpkg-buildpackage made no package: $build.log"
printf '%s\n' "$output/$deb" >&3
