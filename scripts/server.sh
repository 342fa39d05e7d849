# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153 # set here for the scripts that source this
# Throw-away servers for the tests and the demo; sourced after lib.sh.
#
#   use_postgres VERSION      the private tree: PG_CONFIG, BINDIR, PGRX_HOME, features
#   install_extension         a dev build of the extension into it
#   make_workdir [memory]     WORK, a new directory under /tmp, or with `memory` under /dev/shm
#                             if there is room; removed at the end
#   start_server LINE...      a server in there, with these lines of configuration
#   stop_server               stop it; fails if it does not stop or had crashed
#   as_server_user COMMAND    run a command as the user that owns the server
#
# Everything is under $WORK, whose path is short since the socket lies in it.
# As root, PostgreSQL does not run: then the user is `postgres`, and what that
# user needs is copied into $WORK, for the repository may be out of its reach.

if is_root; then SERVER_USER=postgres; else SERVER_USER=$(id -un); fi
export USER=${USER:-$(id -un)} # pgrx-tests asks for it
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}

use_postgres() { # VERSION
    PG_CONFIG=$("$REPO/scripts/postgres.sh" "$1" | tail -n 1)
    [ -n "$PG_CONFIG" ] || die "there is no PostgreSQL $1: run 'make deps PG=$1'"
    PG_VERSION=$1
    BINDIR=$("$PG_CONFIG" --bindir)
    PGXS_TEST=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
    FEATURES=(--no-default-features --features "pg$1")
    export PG_CONFIG PG_VERSION BINDIR
    write_pgrx_home
    lock_server "$1"
}

# pgrx looks the server up in here instead of in the user's ~/.pgrx. It builds its bindings
# anew when the file changes, so it is written only if it does, and each version has its own.
write_pgrx_home() {
    export PGRX_HOME=$TTL_CACHE/pgrx/pg$PG_VERSION
    mkdir -p "$PGRX_HOME"
    printf '[configs]\npg%s = "%s"\n' "$PG_VERSION" "$PG_CONFIG" >"$PGRX_HOME/config.toml.$$"
    if cmp -s "$PGRX_HOME/config.toml.$$" "$PGRX_HOME/config.toml"; then
        rm "$PGRX_HOME/config.toml.$$"
    else
        mv "$PGRX_HOME/config.toml.$$" "$PGRX_HOME/config.toml"
    fi
}

install_extension() {
    [ "${TTL_INSTALLED:-}" != "$PG_VERSION" ] || return 0 # by test.sh, for all tiers
    "$REPO/scripts/install-extension.sh" --pg-config "$PG_CONFIG" "${FEATURES[@]}" ||
        die "the extension does not build or install for PostgreSQL $PG_VERSION"
}

# Root gives up its rights by setpriv, not su or sudo: the command keeps our
# environment and our process group, and gets our signals.
as_server_user() {
    if is_root; then
        setpriv --reuid="$SERVER_USER" --regid="$SERVER_USER" --init-groups \
            --inh-caps=-all env HOME="$WORK" USER="$SERVER_USER" LOGNAME="$SERVER_USER" "$@" 8>&- 9>&-
    else
        "$@" 8>&- 9>&-
    fi
}

# Where a test's servers are made, which are many and small: initdb takes 0.4 s of a processor
# instead of 0.9, and nothing waits for a disk.
memory_has_room() {
    awk '$2 == "/dev/shm" && $3 == "tmpfs" && $4 ~ /(^|,)rw/ && $4 !~ /noexec/ { found = 1 }
         END { exit !found }' /proc/mounts 2>/dev/null &&
        [ "$(df -k --output=avail /dev/shm | tail -n 1)" -ge 8000000 ] &&
        awk '$1 == "MemAvailable:" { exit !($2 >= 10000000) }' /proc/meminfo
}

make_workdir() { # [memory]
    local base=/tmp
    if [ "${1:-}" = memory ] && memory_has_room; then base=/dev/shm; fi
    if is_root; then
        id "$SERVER_USER" >/dev/null 2>&1 ||
            as_root useradd --system --no-create-home --shell /bin/sh "$SERVER_USER"
    fi
    WORK=$(mktemp -d "$base/ttl_ext.XXXXXX")
    chmod 755 "$WORK"
    is_root && chown "$SERVER_USER:" "$WORK"
    export WORK
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# Copy files into $WORK and give them to the server's user.
to_workdir() { # SOURCE NAME
    cp -R "$1" "$WORK/$2"
    if is_root; then chown -R "$SERVER_USER:" "$WORK/$2"; fi
}

start_server() { # LINE...
    local line
    SERVER=$WORK/data
    cd "$WORK" || return # the server's user can be here
    as_server_user "$BINDIR/initdb" -D "$SERVER" -U postgres -A trust --no-sync \
        --locale=C --encoding=UTF8 >"$WORK/initdb.log" 2>&1 || {
        cat "$WORK/initdb.log" >&2
        die "initdb failed"
    }
    for line in "listen_addresses = ''" "unix_socket_directories = '$WORK'" \
        "fsync = off" "full_page_writes = off" "max_prepared_transactions = 2" \
        "log_line_prefix = '%m [%p] %b %q%d '" "$@"; do
        printf '%s\n' "$line"
    done >>"$SERVER/postgresql.conf"
    export PGHOST=$WORK PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    as_server_user "$BINDIR/pg_ctl" -D "$SERVER" -l "$WORK/server.log" -w -t 60 -s start || {
        tail -n 20 "$WORK/server.log" >&2
        die "the server does not start; its log is above"
    }
}

stop_server() {
    as_server_user "$BINDIR/pg_ctl" -D "$SERVER" -w -t 60 -m fast -s stop || {
        say "the server did not stop within a minute"
        return 1
    }
    if grep -E 'PANIC:|TRAP:|terminated by signal|terminating any other active' "$WORK/server.log" >&2; then
        say "the server crashed, see the lines above"
        return 1
    fi
}

# Whatever happens: no server stays behind, and its log is kept on failure.
clean_up() {
    local status=$? pidfile pid n
    trap - EXIT INT TERM HUP
    [ -n "${BACKGROUND:-}" ] && kill "$BACKGROUND" 2>/dev/null
    while IFS= read -r pidfile; do
        pid=$(head -n 1 "$pidfile" 2>/dev/null) || continue
        kill -INT "$pid" 2>/dev/null || continue
        for n in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            [ "$n" = 50 ] && kill -QUIT "$pid" 2>/dev/null
            sleep 0.1
        done
    done < <(find "$WORK" -name postmaster.pid 2>/dev/null)
    if [ "$status" != 0 ] && [ -n "${OUTPUT:-}" ] && [ -f "$WORK/server.log" ]; then
        cp "$WORK/server.log" "$OUTPUT/" && say "the server's log: $OUTPUT/server.log"
    fi
    cd / || true
    rm -rf "$WORK"
    exit "$status"
}
