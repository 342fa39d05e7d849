# shellcheck shell=bash
# What this machine has, and what its package manager calls what it lacks; sourced after lib.sh.
#
#   system_pg_config VERSION    the pg_config of a server that is installed, with its headers
#   lacking [VERSION]           the needs that are not met: compiler libclang server icu
#   install_needs NEED...       by apt, dnf or apk; fails where there is none of them
#   check_rust                  end with one line to type if there is no Rust, or too old a one
#
# Tried: Debian 12 and 13. What is said of others is by their lists of packages.

. "$REPO/scripts/apt.sh"

# Debian, Ubuntu and PGDG's packages for them; PGDG's for Fedora and its family; Alpine; Homebrew;
# what the PATH has. Fedora's own server calls it pg_server_config.
pg_configs() {
    if [ -n "${TTL_PG_CONFIGS:-}" ]; then # the tests' own
        printf '%s\n' $TTL_PG_CONFIGS
        return
    fi
    printf '%s\n' /usr/lib/postgresql/*/bin/pg_config /usr/pgsql-*/bin/pg_config \
        /usr/libexec/postgresql*/pg_config {/opt/homebrew,/usr/local}/opt/postgresql@*/bin/pg_config
    command -v pg_server_config pg_config || true
}

is_version() { # VERSION PG_CONFIG
    [ -x "$2" ] || return
    case $("$2" --version 2>/dev/null) in
        "PostgreSQL $1" | "PostgreSQL $1".* | "PostgreSQL $1"[a-z]*) [ -x "$("$2" --bindir)/postgres" ] ;;
        *) return 1 ;;
    esac
}

system_pg_config() { # VERSION [without-headers]
    local candidate
    while IFS= read -r candidate; do
        is_version "$1" "$candidate" || continue
        [ "${2:-}" = without-headers ] || [ -f "$("$candidate" --includedir-server)/postgres.h" ] || continue
        printf '%s\n' "$candidate"
        return
    done < <(pg_configs)
    return 1
}

package_manager() {
    local manager
    for manager in apt-get dnf apk; do
        ! command -v "$manager" >/dev/null || {
            echo "$manager"
            return
        }
    done
}

has_compiler() { cc -x c -c -o /dev/null - <<<'#include <stdlib.h>' 2>/dev/null; }

# The library, and the headers that belong to the compiler, by which it reads those of the server.
has_libclang() {
    if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm*/lib/libclang*.so*' >/dev/null &&
        ! compgen -G '/usr/lib*/libclang*.so*' >/dev/null && ! compgen -G '/usr/lib/*/libclang*.so*' >/dev/null; then
        return 1
    fi
    compgen -G '/usr/lib*/clang/*/include/stddef.h' >/dev/null ||
        compgen -G '/usr/lib/llvm*/lib/clang/*/include/stddef.h' >/dev/null || [ -n "${LIBCLANG_PATH:-}" ]
}

# A server's headers include ICU's, if it was built with ICU. No package of them says so: on Debian 12 they come with
# LLVM's, on 13 they do not.
has_icu() { # PG_CONFIG
    has_compiler || return # it will have to be asked
    case $(cc -fsyntax-only -I "$("$1" --includedir-server)" -x c - 2>&1 <<<'#include "postgres.h"
#include "utils/pg_locale.h"') in *unicode/*) return 1 ;; esac
}

lacking() { # [VERSION]
    local pg_config
    has_compiler || echo compiler
    has_libclang || echo libclang
    [ -n "${1:-}" ] || return 0
    if ! pg_config=$(system_pg_config "$1"); then
        echo server
    else
        has_icu "$pg_config" || echo icu
    fi
}

# A need in words, for those who must install it by themselves.
in_words() { # NEED [VERSION]
    case $1 in
        compiler) echo "a C compiler with the C library's headers (cc)" ;;
        libclang) echo "libclang with its headers" ;;
        server) echo "PostgreSQL $2 with its server headers" ;;
        icu) echo "ICU's headers, which PostgreSQL $2's include" ;;
        rpmbuild) echo "rpmbuild" ;;
    esac
}

# What the package manager calls it, with what is there already left out by itself.
package_names() { # MANAGER NEED [VERSION]
    case $1-$2 in
        apt-get-compiler) echo build-essential ;;
        apt-get-libclang) echo libclang-dev ;;
        apt-get-rpmbuild) echo rpm ;;
        dnf-rpmbuild) echo rpm-build ;;
        apt-get-server) echo "postgresql-$3 postgresql-server-dev-$3 libicu-dev" ;;
        apt-get-icu) echo libicu-dev ;;
        dnf-compiler) echo gcc ;;
        dnf-libclang) echo clang-devel ;;
        dnf-server)
            if [ -d "/usr/pgsql-$3" ] || dnf -q list "postgresql$3-devel" >/dev/null 2>&1; then
                echo "postgresql$3-server postgresql$3-contrib postgresql$3-devel libicu-devel" # PGDG's
            else
                echo postgresql-server postgresql-contrib postgresql-server-devel libicu-devel
            fi
            ;;
        dnf-icu) echo libicu-devel ;;
        apk-compiler) echo build-base ;;
        apk-libclang) echo clang-dev clang-libclang ;;
        apk-server) echo "postgresql$3 postgresql$3-contrib postgresql$3-dev icu-dev" ;;
        apk-icu) echo icu-dev ;;
    esac
}

install_packages() { # PACKAGE...
    case $(package_manager) in
        apt-get) apt_install "$@" ;;
        dnf) patiently "installing $*" "a minute or two" as_root dnf -q -y install "$@" ;;
        apk) patiently "installing $*" "a minute or two" as_root apk add --quiet "$@" ;;
        *) return 1 ;;
    esac
}

# Does apt know a version of the package? Without lists it knows none: then they are read first.
apt_has() { # PACKAGE
    apt_candidate "$1" && return
    ! lists_are_new || return
    apt_update
    apt_candidate "$1"
}
apt_candidate() {
    case $(apt-cache policy "$1" 2>/dev/null) in *'Candidate: '[0-9]*) ;; *) return 1 ;; esac
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

# NEED may be `server`, of VERSION. Packages that are named beside are installed with them.
install_needs() { # VERSION NEEDS PACKAGE...
    local version=$1 needs=$2 manager need packages=() words=''
    shift 2
    packages=("$@")
    manager=$(package_manager)
    for need in $needs; do
        # shellcheck disable=SC2207 # names of packages have no blanks
        packages+=($(package_names "${manager:-none}" "$need" "$version"))
        words+="${words:+; }$(in_words "$need" "$version")"
    done
    [ ${#packages[@]} -gt 0 ] || [ -n "$needs" ] || return 0
    [ -n "$manager" ] ||
        die "missing here: $words. These scripts know the package managers apt, dnf and apk;" \
            "docs/installing.md has the packages' names on other systems"
    case " ${packages[*]} " in *" postgresql-"[0-9]*) [ "$manager" != apt-get ] || forbid_cluster ;; esac
    install_packages "${packages[@]}" ||
        die "cannot install ${packages[*]}; see the message of ${manager%-get} above"
    for need in $needs; do
        case " $(lacking "$version" | tr '\n' ' ') " in *" $need "*)
            die "$(in_words "$need" "$version") is still missing, though ${packages[*]} are installed"
            ;;
        esac
    done
}

at_least() { # VERSION NEEDED
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# Under sudo, the user who has called it, if they have Rust: that user compiles, so that they own what is built in
# their folder, whether root has Rust or not.
builder() {
    local home
    is_root && [ -n "${SUDO_USER:-}" ] || return 0
    home=$(getent passwd "$SUDO_USER" | cut -d : -f 6)
    [ ! -x "$home/.cargo/bin/cargo" ] || printf '%s\n' "$SUDO_USER"
}
as_builder() { # USER COMMAND...
    local user=$1 home
    shift
    home=$(getent passwd "$user" | cut -d : -f 6)
    sudo -u "$user" -H env PATH="$home/.cargo/bin:$PATH" "$@"
}

check_rust() {
    local needed has user cargo=(cargo)
    needed=$RUST_NEEDED
    user=$(builder)
    [ -z "$user" ] || cargo=(as_builder "$user" cargo)
    has=$("${cargo[@]}" --version 2>/dev/null | sed -nE 's/^cargo ([0-9.]+).*$/\1/p') || true
    [ -z "$has" ] || ! at_least "$has" "$needed" || return 0
    if command -v rustup >/dev/null; then
        die "Rust ${has:-} is here, and $needed or newer is needed. Type:" \
            "rustup toolchain install $needed && rustup default $needed"
    fi
    die "Rust $needed or newer is needed${has:+, and this is $has}. Type, as the user who builds:" \
        "curl -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain $needed"
}
