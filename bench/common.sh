# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
# What the benchmarks have in common; sourced after scripts/server.sh.
#
#   read_arguments ARGUMENT...  [PG] [--quick] [--only=PARTS] into version, QUICK, only
#   quick VALUE FULL            the one or the other, by --quick
#   install_release             a release build into the private tree
#   sql ARGUMENT...             psql, tuples only
#   ask QUERY                   through one open session, which is quick; into $ANSWER
#   record KEY VALUE            a number, into the file $RAW
#   median KEY                  of all numbers recorded under KEY
#   cpu_seconds DATADIR         of all processes of that server, so far, but for
#                               the session of `ask`
#   worker_on, worker_off       the switch ttl.enabled, by reload
#   hold_snapshot, release_snapshot   a transaction in another session

REAL_SETTINGS=("shared_preload_libraries = 'ttl_ext'" "fsync = on" "full_page_writes = on"
    "shared_buffers = 256MB" "max_wal_size = 4GB" "autovacuum = on" "max_connections = 50")

read_arguments() {
    version=15 QUICK=''
    local argument
    for argument; do
        case $argument in
            --quick) QUICK=1 ;;
            --only=*) only=${argument#*=} ;;
            *) version=$argument ;;
        esac
    done
    check_version "$version"
}

quick() { if [ -n "$QUICK" ]; then echo "$1"; else echo "$2"; fi; }

install_release() {
    (cd "$REPO" && cargo pgrx install --release --pg-config "$PG_CONFIG" "${FEATURES[@]}") >&2 ||
        die "the extension does not build or install for PostgreSQL $PG_VERSION"
}

sql() { "$BINDIR/psql" -X -q -At -F ' ' -v ON_ERROR_STOP=1 "$@"; }

# The query must give one row, which is then in ANSWER. No transaction stays open
# between two of them.
ask() { # QUERY
    if [ -z "${SESSION_PID:-}" ]; then
        coproc SESSION { sql 2>&1; }
        echo "SELECT pg_backend_pid();" >&"${SESSION[1]}"
        read -r ASKED_PID <&"${SESSION[0]}"
    fi
    echo "$1;" >&"${SESSION[1]}"
    read -r ANSWER <&"${SESSION[0]}"
}

# since START [END]: seconds.
since() { awk -v a="$1" -v b="${2:-$EPOCHREALTIME}" 'BEGIN { printf "%.3f\n", b - a }'; }

calc() { awk "BEGIN { printf \"${2:-%.2f}\\n\", $1 }"; }

record() { printf '%s %s\n' "$1" "$2" >>"$RAW"; }

median() { # KEY
    awk -v key="$1" '$1 == key { print $2 }' "$RAW" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# What a reader of the figures has to know.
describe() {
    {
        echo "# $(sql -c 'SELECT version()')"
        echo "# assertions $(sql -c 'SHOW debug_assertions'), $(nproc) processors, $(uname -sr), load $(cut -d' ' -f1-3 /proc/loadavg)"
        echo "# ttl_ext at $(git -C "$REPO" describe --always --dirty 2>/dev/null), release build${QUICK:+, --quick}"
        sql -c "SELECT '# ' || string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
                  FROM pg_settings
                 WHERE name IN ('shared_buffers', 'max_wal_size', 'fsync', 'full_page_writes', 'autovacuum',
                                'synchronous_commit', 'wal_level', 'checkpoint_timeout', 'autovacuum_naptime')"
        sql -c "SELECT '# ' || string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
                  FROM pg_settings WHERE name LIKE 'ttl.%'"
    } | tee -a "$RAW"
}

set_setting() { # NAME VALUE
    sql -c "ALTER SYSTEM SET $1 = $2" -c "SELECT pg_reload_conf()" >/dev/null
}

worker_on() { set_setting ttl.enabled on; }

worker_off() {
    set_setting ttl.enabled off
    until [ "$(sql -c "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'")" = 0 ]; do
        sleep 0.1
    done
}

# A session idle in a transaction whose snapshot sees what is there now.
hold_snapshot() { # TABLE
    mkfifo "$WORK/holder"
    sql <"$WORK/holder" >/dev/null &
    HOLDER=$!
    exec 7>"$WORK/holder"
    rm "$WORK/holder"
    echo "SET application_name = 'holder'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM $1 LIMIT 1;" >&7
    until [ "$(sql -c "SELECT count(*) FROM pg_stat_activity
                        WHERE application_name = 'holder' AND backend_xmin IS NOT NULL AND state LIKE 'idle in%'")" = 1 ]; do
        sleep 0.1
    done
}

release_snapshot() {
    exec 7>&-
    wait "$HOLDER"
}

# User and system time of the postmaster, its children that have ended, and those
# that live. Read again if a child has ended in between.
cpu_seconds() { # DATADIR
    local pid before after ticks
    pid=$(head -n 1 "$1/postmaster.pid")
    while true; do
        before=$(cut -d' ' -f16,17 "/proc/$pid/stat")
        ticks=$(cat "/proc/$pid/stat" "/proc/$pid/task/$pid/children" 2>/dev/null | awk -v pm="$pid" -v but="${ASKED_PID:-0}" '
            $1 == pm { sum += $14 + $15 + $16 + $17; next }
            { for (i = 1; i <= NF; i++) {
                  if ($i == but) continue
                  file = "/proc/" $i "/stat"
                  if ((getline line < file) > 0) {
                      sub(/.*\) /, "", line); split(line, f, " ")
                      sum += f[12] + f[13] + f[14] + f[15]
                  }
                  close(file)
              } }
            END { print sum }')
        after=$(cut -d' ' -f16,17 "/proc/$pid/stat")
        [ "$before" = "$after" ] && break
    done
    awk -v t="$ticks" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f\n", t / hz }'
}

# run_parts NAME SETTING...: measures and shows each part of $only, on a server with these
# settings beside the usual ones (all in $settings); numbers go to results/NAME-PG.txt.
run_parts() {
    local name=$1 part
    shift
    use_postgres "$version"
    say "making a release build of the extension; the first time this takes minutes"
    install_release
    make_workdir
    RAW=$REPO/bench/results/$name-$version.txt
    mkdir -p "${RAW%/*}"
    : >"$RAW"
    settings=("${REAL_SETTINGS[@]}" "ttl.enabled = off" "$@")
    start_server "${settings[@]}"
    describe
    sql -c "CREATE EXTENSION ttl_ext"
    for part in $only; do
        say "$part"
        "measure_$part"
        "show_$part"
    done
    stop_server
    say "raw numbers: $RAW"
}
