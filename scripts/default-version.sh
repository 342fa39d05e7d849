#!/usr/bin/env bash
# default-version.sh: the version of PostgreSQL that make takes without PG=. The newest that is
# installed with its headers; or without, since those can be had; or the newest of which this system has
# a package; or 15.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/system.sh"

newest_first=$(tr ' ' '\n' <<<"$PG_VERSIONS" | sort -rn)
for how in '' without-headers; do
    for version in $newest_first; do
        ! system_pg_config "$version" $how >/dev/null || {
            echo "$version"
            exit
        }
    done
done
for version in $newest_first; do
    case $(package_manager) in
        apt-get) ! apt_candidate "postgresql-$version" ;;
        apk) [ -z "$(apk search --quiet --exact "postgresql$version" 2>/dev/null)" ] ;;
        dnf) ! dnf -q list "postgresql$version-server" >/dev/null 2>&1 ;;
        *) true ;;
    esac || {
        echo "$version"
        exit
    }
done
# apt has no lists yet.
case $(. /etc/os-release 2>/dev/null && printf '%s' "${VERSION_CODENAME:-}") in
    trixie) echo 17 ;;
    noble) echo 16 ;;
    *) echo 15 ;;
esac
