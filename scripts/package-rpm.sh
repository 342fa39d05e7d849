# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # of and for package.sh
# An rpm package; sourced by package.sh. Its files go where the server's pg_config says, and it is named after
# the server's own package: ttl_ext_17 for PGDG's, postgresql-ttl_ext for Fedora's. packaging/rpm has the spec.

# The name of the server's package, its library's folder and that for extensions.
# TTL_RPM_SERVER is the tests' own: a server that is on another machine.
find_server() {
    local pg_config owner
    if [ -z "${TTL_RPM_SERVER:-}" ]; then
        command -v rpm >/dev/null && pg_config=$(system_pg_config "$version" without-headers) &&
            owner=$(rpm -q --qf '%{NAME}\n' -f "$(realpath "$("$pg_config" --bindir)/postgres")") ||
            die "PostgreSQL $version is not installed here from an rpm package: install its server and development" \
                "packages, of the distribution or of the PostgreSQL project's archive for yum. Without a package:" \
                "make install PG_CONFIG=/path/to/pg_config"
        TTL_RPM_SERVER="$owner $("$pg_config" --pkglibdir) $("$pg_config" --sharedir)/extension"
    fi
    read -r server_package library_folder extension_folder <<<"$TTL_RPM_SERVER"
}

name_package() {
    case $library_folder in
        /usr/pgsql-*) package=ttl_ext_$version ;;
        *) package=${server_package%-server}-ttl_ext ;;
    esac
}

make_package() {
    local macro macros=()
    command -v rpmbuild >/dev/null || die "rpmbuild is missing: install the package that has it (rpm-build, rpm)"
    # rpm sorts 1.0~rc1 before 1.0, as Debian does.
    for macro in "package $package" "release_version $(tr - '~' <<<"$release")" "revision $revision" "pg $version" \
        "next_pg $((version + 1))" "server $server_package" "library_folder $library_folder" \
        "extension_folder $extension_folder" "maintainer $maintainer" "content $build" "_topdir $build.rpmbuild" "_rpmdir $output"; do
        macros+=(--define "$macro")
    done
    rpmbuild -bb "${macros[@]}" "$REPO/packaging/rpm/ttl_ext.spec" >"$build.log" 2>&1 || {
        cat "$build.log" >&2
        die "the package does not build; see rpmbuild's messages above"
    }
    made=$(sed -n 's/^Wrote: //p' "$build.log")
}
