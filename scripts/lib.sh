# shellcheck shell=bash
# The part common to all scripts here; sourced, never run. Nothing in it
# changes the machine.
#
# TTL_CACHE holds everything that is expensive to make and does not belong in
# the repository: the private PostgreSQL trees, the sources some of them were
# built from, and pgrx's configuration. It lies where the user that runs the
# servers can read it: under root that is `postgres`, who cannot read /root.

set -euo pipefail
umask 022

# The messages of other programs are parsed.
export LC_ALL=C.UTF-8

# A server that inherits RUST_BACKTRACE prints a backtrace with every error.
unset RUST_BACKTRACE RUST_LIB_BACKTRACE
# Nothing here may reach a server of the user's by way of libpq's variables.
unset PGHOST PGHOSTADDR PGPORT PGUSER PGPASSWORD PGPASSFILE PGDATABASE \
    PGSERVICE PGSERVICEFILE PGOPTIONS PGDATA PGAPPNAME PGTZ PGDATESTYLE PGSSLMODE

# A shell that is older than Rust on this machine does not have it in its PATH.
if ! type -P cargo >/dev/null && [ -x "${CARGO_HOME:-${HOME:-/nowhere}/.cargo}/bin/cargo" ]; then
    export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
fi

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
if [ -z "${TTL_CACHE:-}" ]; then
    if [ "$(id -u)" = 0 ]; then
        TTL_CACHE=/var/cache/ttl_ext
    else
        TTL_CACHE=$HOME/.cache/ttl_ext
    fi
fi
export REPO TTL_CACHE

# The versions the extension has a cargo feature for.
PG_VERSIONS="15 16 17 18 19"

# pgrx 0.19 asks for Rust 1.96, and compiles with 1.95 if cargo is told not to mind.
RUST_NEEDED=1.95
cargo() {
    case $1 in
        build | check | clippy | doc | run | test)
            case $(command cargo --version) in
                "cargo 1.95."*)
                    command cargo "$1" --ignore-rust-version "${@:2}"
                    return
                    ;;
            esac
            ;;
    esac
    command cargo "$@"
}

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

# Run a command as root: as we are, or through sudo.
as_root() {
    if is_root; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root: '$*'. Install sudo, or run it as root yourself"
    fi
}

# Run a command that is silent for long: say what it does, how long that takes on two
# processors, and every so often that it still runs. The one that tells the time has none of
# our files open: whoever reads our output, or waits for a lock, does not wait for it.
patiently() { # WHAT HOW_LONG COMMAND...
    local what=$1 usual=$2 status=0 ticker
    shift 2
    say "$what: $usual"
    (
        exec 3>&- 7>&- 8>&- 9>&- </dev/null >/dev/null
        every=${TTL_TICK:-20} seconds=0
        while sleep "$every" 2>/dev/null && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + every))
            say "$what: $seconds s so far; $usual"
        done
    ) &
    ticker=$!
    "$@" || status=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    return "$status"
}

# A network may time out: try a command three times in all.
retry() {
    local n
    for n in 1 2; do
        "$@" && return 0
        say "failed, trying again ($n of 2): $*"
        sleep $((n * 5))
    done
    "$@"
}

check_version() { # VERSION
    case " $PG_VERSIONS " in
        *" ${1:-none} "*) ;;
        *) die "PG='${1:-}' is not a version this extension supports; take one of: $PG_VERSIONS" ;;
    esac
}

make_cache() {
    mkdir -p "$TTL_CACHE" 2>/dev/null || true
    [ -w "$TTL_CACHE" ] || die "cannot write $TTL_CACHE: set TTL_CACHE to a directory of your own"
}

# Is VERSION installed from a package of Debian's form, with the headers an extension needs?
system_has_server() { # VERSION
    [ -x "/usr/lib/postgresql/$1/bin/postgres" ] &&
        [ -x "/usr/lib/postgresql/$1/bin/pg_config" ] &&
        [ -f "/usr/include/postgresql/$1/server/postgres.h" ]
}

# From here to the end of the script the private tree of VERSION is ours:
# installing into it would pull the library from under another run's server.
# TTL_LOCKED tells the scripts started from here.
lock_server() { # VERSION
    [ "${TTL_LOCKED:-}" = "$1" ] && return
    exec 8>"$TTL_CACHE/pg$1.use.lock"
    flock -n 8 || {
        say "waiting for another run that uses the private PostgreSQL $1"
        flock 8
    }
    export TTL_LOCKED=$1
}

# The version of the extension stands in one place.
crate_version() { # CARGO_TOML
    sed -nE '/^\[package\]/,/^version/s/^version = "(.*)"$/\1/p' "$1"
}

# Where this machine gets the packages of its own release from, as apt says.
debian_archive() { # CODENAME
    # shellcheck disable=SC2016 # apt's placeholder, not the shell's
    apt-get indextargets --format '$(SITE)' "Identifier: Packages" \
        "Codename: $1" "Component: main" | sort -u | head -n 1
}
