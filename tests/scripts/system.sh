#!/usr/bin/env bash
# system.sh: what scripts/deps.sh, scripts/default-version.sh and scripts/install.sh do on machines that are
# not at hand: another package manager or none, Rust missing or too old, servers in other places.
# Silent, and 0, if all is well.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
scripts=$here/../../scripts
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# The programs of this machine, but for those that a machine may lack.
mkdir "$place/common"
for folder in /bin /usr/bin; do
    for program in "$folder"/*; do
        case ${program##*/} in
            apt-get | apt-cache | dnf | apk | cargo | rustup | cc | sudo | pg_config | pg_server_config | rpm | rpmbuild) ;;
            *) ln -sf "$program" "$place/common/" ;;
        esac
    done
done

program() { # PATH, its text on stdin
    mkdir -p "${1%/*}"
    {
        echo '#!/usr/bin/env bash'
        cat
    } >"$1"
    chmod 755 "$1"
}

# A machine with a C compiler and Rust 1.95, and a manager of packages that writes down what it installs.
new_machine() { # PACKAGE_MANAGER
    machine=$place/machine
    rm -rf "$machine" "$place/installed"
    program "$machine/cc" <<<"exit 0"
    program "$machine/cargo" <<<"echo 'cargo 1.95.0 (f2d3ce0bd 2026-03-21)'"
    program "$machine/id" <<<'[ "$*" = -u ] && echo 0 || /usr/bin/id "$@"'
    [ "$1" = none ] || program "$machine/$1" <<END
case "\$*" in
    list* | *' list '* | search*) exit 1 ;;
    *install* | add*) echo "\$*" >>"$place/installed"; [ ! -e "$place/install-this" ] || . "$place/install-this" ;;
esac
END
    rm -f "$place/install-this"
}

server() { # PLACE VERSION [without-headers]
    program "$1/bin/postgres" </dev/null
    program "$1/bin/pg_config" <<END
case \$1 in
    --version) echo "PostgreSQL $2" ;;
    --bindir) echo "$1/bin" ;;
    --includedir-server) echo "$1/include" ;;
esac
END
    mkdir -p "$1/include"
    [ -n "${3:-}" ] || touch "$1/include/postgres.h"
}

# What a script says, its status behind.
said() { # COMMAND...
    local status=0
    env -i PATH="$machine:$place/common" HOME="$place" TTL_CACHE="$place/cache" LIBCLANG_PATH=/nowhere \
        TTL_PG_CONFIGS="${servers:-$place/none}" "$@" 2>&1 || status=$?
    echo "status $status"
}

failed=0
expect() { # WHAT PATTERN GOT
    # shellcheck disable=SC2053 # a pattern
    [[ $3 == $2 ]] && return
    printf 'system.sh: %s: wanted %s, got\n%s\n' "$1" "$2" "$3" >&2
    failed=1
}

new_machine none
expect "all is there, and no package manager" "status 0" "$(said "$scripts/deps.sh")"
program "$machine/cc" <<<"exit 1"
expect "no compiler, no package manager" "*missing here: a C compiler*docs/installing.md*status 1" "$(said "$scripts/deps.sh")"

new_machine none
servers="$place/17/bin/pg_config $place/15/bin/pg_config $place/18/bin/pg_config"
server "$place/15" 15.20
server "$place/17" "17.2 (Fedora)"
server "$place/18" 18beta1 without-headers
expect "the newest with headers" $'17\nstatus 0' "$(said "$scripts/default-version.sh")"
expect "that one is enough" "status 0" "$(said "$scripts/deps.sh" 17)"
program "$machine/cc" <<<'! grep -q pg_locale.h || { echo "unicode/ucol.h: No such file or directory"; exit 1; }'
expect "headers include ICU's, which are not there" "*missing here: ICU's headers, which PostgreSQL 17's include*status 1" \
    "$(said "$scripts/deps.sh" 17)"
expect "the same where it is installed" "*missing here: ICU's headers, which PostgreSQL 17's include*status 1" \
    "$(said "$scripts/install.sh" "$place/17/bin/pg_config")"
program "$machine/cc" <<<"exit 0"
expect "headers are missing" "*missing here: PostgreSQL 18 with its server headers*status 1" "$(said "$scripts/deps.sh" 18)"
expect "no server is named" "*which server?*PG_CONFIG=$place/15/bin/pg_config*PG_CONFIG=$place/18/bin/pg_config*status 2" \
    "$(said "$scripts/install.sh" "")"
servers=$place/18/bin/pg_config
expect "better without headers than none" $'18\nstatus 0' "$(said "$scripts/default-version.sh")"

new_machine dnf
echo "touch $place/18/include/postgres.h" >"$place/install-this"
expect "dnf gets them" "deps.sh: installing postgresql-server *status 0" "$(said "$scripts/deps.sh" 18)"
expect "their names" "-q -y install postgresql-server postgresql-contrib postgresql-server-devel libicu-devel" "$(cat "$place/installed")"

rm "$place/installed"
expect "rpmbuild for a package" "deps.sh: installing rpm-build*status 0" "$(said "$scripts/deps.sh" 18 rpm)"
expect "its name" "-q -y install rpm-build" "$(cat "$place/installed")"
expect "a server that is of no rpm package" "*PostgreSQL 18 is not installed here from an rpm package*status 1" \
    "$(said "$scripts/package.sh" 18)"
expect "a format that there is not" "*FORMAT='tar'*take deb or rpm*status 1" "$(said env FORMAT=tar "$scripts/package.sh" 18)"

new_machine apk
rm "$place/18/include/postgres.h"
expect "apk installs, and they are not there" "*still missing, though postgresql18 postgresql18-contrib postgresql18-dev icu-dev *status 1" \
    "$(said "$scripts/deps.sh" 18)"

new_machine none
program "$machine/cargo" <<<"echo 'cargo 1.63.0'"
expect "a distribution's Rust" "*Rust * or newer is needed, and this is 1.63.0. Type*rustup.rs | sh*status 1" "$(said "$scripts/deps.sh")"
program "$machine/rustup" </dev/null
expect "the same, by rustup" "*Type: rustup toolchain install *status 1" "$(said "$scripts/deps.sh")"
program "$machine/cargo" <<<"echo 'cargo 1.100.1'"
expect "a newer one" "status 0" "$(said "$scripts/deps.sh")"
rm "$machine/cargo" "$machine/rustup"
expect "no Rust" "*Rust * or newer is needed. Type*status 1" "$(said "$scripts/deps.sh")"
program "$place/.cargo/bin/cargo" <<<"echo 'cargo 1.95.0'"
expect "Rust that is newer than the shell" "status 0" "$(said "$scripts/deps.sh")"
rm -r "$place/.cargo"
program "$machine/getent" <<<"echo 'ada:x:1000:1000::$place/ada:/bin/sh'"
program "$machine/sudo" <<<'[ "$1 $2 $3" = "-u ada -H" ] && shift 3 && exec "$@"'
expect "sudo of a user who has no Rust either" "*Rust * or newer is needed*status 1" "$(said env SUDO_USER=ada "$scripts/deps.sh")"
program "$place/ada/.cargo/bin/cargo" <<<"echo 'cargo 1.95.0'"
expect "sudo of a user who has Rust" "status 0" "$(said env SUDO_USER=ada "$scripts/deps.sh")"
program "$machine/cargo" <<<"echo 'cargo 1.95.0'"
expect "both have Rust: who called sudo compiles" $'ada\nstatus 0' \
    "$(said env SUDO_USER=ada bash -c ". '$scripts/lib.sh'; . '$scripts/system.sh'; builder")"
exit "$failed"
