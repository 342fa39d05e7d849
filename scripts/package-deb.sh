# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # of and for package.sh
# A Debian package, postgresql-NN-ttl-ext_X.Y.Z-REVISION_ARCH.deb; sourced by package.sh. What debhelper makes
# it of is in packaging/debian.

# deps.sh gets what apt has.
find_server() {
    system_has_server "$version" || { command -v apt-get >/dev/null && apt_has "postgresql-$version"; } ||
        die "PostgreSQL $version is not installed here from a package: install postgresql-$version and" \
            "postgresql-server-dev-$version from an archive that has them. Without a package:" \
            "make install PG_CONFIG=/path/to/pg_config"
}

name_package() {
    package=postgresql-$version-ttl-ext
    library_folder=/usr/lib/postgresql/$version/lib
    extension_folder=/usr/share/postgresql/$version/extension
}

# The release, and those before it, in the order of CHANGELOG.md.
changelog() {
    local before day
    changelog_entry "$release" "$revision" "$(releases | sed -n "s/^$release //p")"
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

make_package() {
    cp -R "$REPO/packaging/debian" "$build/"
    copyright >"$build/debian/copyright"
    changelog >"$build/debian/changelog"
    chmod 644 "$build/files$library_folder/ttl_ext.so" # as Debian has its libraries
    find "$build/debian" -type f -exec sed -i -e "s/@PG@/$version/g" -e "s|@MAINTAINER@|$maintainer|g" {} +
    (cd "$build" && dpkg-buildpackage --build=binary --no-sign >"$build.log" 2>&1) || {
        cat "$build.log" >&2
        die "the package does not build; see dpkg-buildpackage's messages above"
    }
    made=$output/$(sed -nE "s/^(${package}_[^ ]*\.deb) .*/\1/p" "$build/debian/files")
}
