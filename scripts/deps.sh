#!/usr/bin/env bash
# deps.sh [VERSION [drivers|deb|rpm|test-package]]: install what is missing to build the
# extension and, with a PostgreSQL VERSION, to test it on that version; with `drivers`, by
# other languages' drivers and with Prometheus, too; with `deb` or `rpm` to make a package of it,
# with `test-package` to test that. Rust itself must be there.
#
# Silent and quick when nothing is missing. Packages come by apt, dnf or apk; elsewhere what is
# missing is named, and what is there is enough.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/system.sh"

version=${1:-} for=${2:-}
[ -z "$version" ] || check_version "$version"
exec 1>&2

check_rust
needs=$(lacking | tr '\n' ' ')
packages=()

# pgrx-tests changes users by sudo.
if [ -n "$version" ] && is_root; then command -v sudo >/dev/null || packages+=(sudo); fi

# A server that is installed, or that the system has a package of. Else scripts/postgres.sh makes one:
# 16 of a package of PyPI, others of Debian's source.
if [ -n "$version" ] && pg_config=$(system_pg_config "$version"); then
    has_icu "$pg_config" || needs+=" icu"
elif [ -n "$version" ]; then
    if [ "$(package_manager)" != apt-get ] || apt_has "postgresql-$version"; then
        needs+=" server"
    else
        case $version in
            15) die "PostgreSQL 15 is not installed, and apt has no postgresql-15 here: take another PG=, or" \
                "add the PostgreSQL project's archive for apt" ;;
            16) python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) ;;
            19) packages+=(patchelf binutils debian-archive-keyring) ;;
            *) packages+=(dpkg-dev pkg-config bison flex perl zlib1g-dev bzip2 xz-utils debian-archive-keyring) ;;
        esac
    fi
fi

case $for in
    drivers)
        packages+=(libpostgresql-jdbc-java)
        # Whatever JDK there is will do.
        command -v javac >/dev/null || packages+=(default-jdk-headless)
        ;;
    deb) packages+=(debhelper) ;;
    rpm) command -v rpmbuild >/dev/null || needs+=" rpmbuild" ;;
    test-package) packages+=(debhelper lintian debootstrap unzip rpm) ;;
esac

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ] && [ "$(package_manager)" != apt-get ]; then
    # These are Debian's names. Only sudo is needed for sure, and is called so everywhere.
    case " ${missing[*]} " in *" sudo "*) only=(sudo) ;; *) only=() ;; esac
    say "not installed here, what needs it will be skipped: ${missing[*]}"
    missing=("${only[@]}")
fi
install_needs "$version" "$needs" "${missing[@]}"

# Tests by Prometheus are left out, and counted as such, where it cannot be had.
if [ "$for" = drivers ]; then
    "$REPO/scripts/monitoring.sh" || say "no Prometheus here: its tests will be skipped"
fi
