#!/usr/bin/env bash
# deps.sh [VERSION [drivers|package|test-package]]: install what is missing to build the
# extension and, with a PostgreSQL VERSION, to test it on that version; with `drivers`, by
# other languages' drivers and with Prometheus, too; with `package` to make a package of it,
# with `test-package` to test that. Rust itself must be there.
#
# Silent and quick when nothing is missing. Packages come by apt-get.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/apt.sh"

version=${1:-}
exec 1>&2

# libclang reads the server's headers; pgrx-tests changes users by sudo.
packages=(build-essential pkg-config libclang-dev sudo)
case $version in
    '') ;;
    15) system_has_server 15 || packages+=(postgresql-15 postgresql-server-dev-15) ;;
    16) system_has_server 16 || python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) ;;
    17 | 18) packages+=(dpkg-dev bison flex perl zlib1g-dev bzip2 xz-utils debian-archive-keyring) ;;
    19) packages+=(patchelf binutils debian-archive-keyring) ;;
    *) check_version "$version" ;;
esac

if [ "${2:-}" = drivers ]; then
    packages+=(libpostgresql-jdbc-java)
    # Whatever JDK there is will do.
    command -v javac >/dev/null || packages+=(default-jdk-headless)
fi

case ${2:-} in
    package) packages+=(debhelper) ;;
    test-package) packages+=(debhelper lintian debootstrap unzip) ;;
esac

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Debian creates and starts a server with the package postgresql-NN. We only
# want the programs, so this is switched off while we install.
no_cluster=/etc/postgresql-common/createcluster.d/ttl_ext.conf
allow_cluster() { as_root rm -f "$no_cluster"; }
forbid_cluster() {
    trap allow_cluster EXIT
    as_root mkdir -p "${no_cluster%/*}"
    echo "create_main_cluster = false" | as_root tee "$no_cluster" >/dev/null
}

missing=()
for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || die "no apt-get here: install what stands for ${missing[*]}"
    case " ${missing[*]} " in *" postgresql-15 "*) forbid_cluster ;; esac
    apt_install "${missing[@]}" || die "cannot install ${missing[*]}; see apt-get's message above"
fi

command -v cargo >/dev/null || die "cargo is missing: install Rust 1.96 with rustup and run this again"

# Tests by Prometheus are left out, and counted as such, where it cannot be had.
if [ "${2:-}" = drivers ]; then
    "$REPO/scripts/monitoring.sh" || say "no Prometheus here: its tests will be skipped"
fi
