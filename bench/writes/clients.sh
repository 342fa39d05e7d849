# shellcheck shell=bash
# shellcheck disable=SC2154 # sourced by bench/writes.sh
# Single rows by pgbench, 2 clients, prepared statements unless it says `simple`:
# transactions a second. Half of the table's keys are in use.
#
#   insert           of a new key
#   upsert new       INSERT … ON CONFLICT DO UPDATE of a new key
#   upsert live      of the key of a live row, at random
#   upsert expired   of the key of an expired row, each once. `plain` has no row in the way
#   update           of a live row by its key, at random; the key stays
#   update key       to a new one
#
# `+` after it: the table has expired rows, with keys that nobody writes to. Without, it
# has none, and the trigger has nothing to look for.

CASES=('insert' 'insert simple' 'insert +' 'upsert new' 'upsert new +' 'upsert live' 'upsert live +'
    'upsert expired' 'update' 'update simple' 'update +' 'update key' 'update key +')
EXPIRED=100000

# The statement of one CASE for one KIND.
script() { # CASE KIND
    local stamp='' whole=''
    [ "$2" != 'by hand' ] || stamp=", _ts = $NOW" whole=', ttl = NULL'
    case $1 in
        insert*) echo "INSERT INTO target (id, data) VALUES (nextval('ids'), md5('new'));" ;;
        'upsert live'*)
            echo "\\set id random(1, $ROWS)"
            echo "INSERT INTO target (id, data) VALUES (:id, md5('new')) ON CONFLICT (id) DO UPDATE SET data = excluded.data$stamp;"
            ;;
        upsert*)
            echo "INSERT INTO target (id, data) VALUES (nextval('ids'), md5('new')) ON CONFLICT (id) DO UPDATE SET data = excluded.data$stamp$whole;"
            ;;
        'update key'*) echo "UPDATE target SET id = id + $((4 * ROWS))$stamp WHERE id = (SELECT nextval('ids'));" ;;
        update*)
            echo "\\set id random(1, $ROWS)"
            echo "UPDATE target SET data = md5('new')$stamp WHERE id = :id;"
            ;;
    esac
}

measure_client() { # CASE KIND
    local case=$1 kind=$2 mode=prepared first=$((2 * ROWS)) last=''
    case $case in *simple) mode=simple ;; esac
    make_target "$kind"
    case $case in
        'upsert expired')
            first=1 last=$ROWS
            [ "$kind" = plain ] || fill_target 1 "$ROWS" '2 days'
            ;;
        'update key'*)
            first=1 last=$ROWS
            fill_target 1 "$ROWS" '0 s'
            ;;
        *) fill_target 1 "$ROWS" '0 s' ;;
    esac
    case $case in *+) fill_target $((-EXPIRED)) -1 '2 days' ;; esac
    sql -c "SET client_min_messages = warning" -c "DROP SEQUENCE IF EXISTS ids" -c "CREATE SEQUENCE ids START $first CACHE 100"
    settle_target
    script "$case" "$kind" >"$WORK/script.sql"
    "$BINDIR/pgbench" -n -c 2 -j 1 -M "$mode" -T "$CLIENT_TIME" -f "$WORK/script.sql" postgres \
        >"$WORK/pgbench.out" 2>&1 || die "pgbench failed: $(tail -n 3 "$WORK/pgbench.out")"
    grep -q 'number of failed transactions: 0' "$WORK/pgbench.out" || die "$case/$kind: $(cat "$WORK/pgbench.out")"
    [ -z "$last" ] || [ "$(sql -c "SELECT last_value <= $last FROM ids")" = t ] ||
        die "$case/$kind: more than the $ROWS rows of the table were used"
    record "clients/${case// /_}/${kind// /_}" "$(sed -nE 's/^tps = ([0-9.]+) .*/\1/p' "$WORK/pgbench.out")"
}

# Inserting is the same for both tables without time to live.
kinds_of() { # CASE
    case $1 in
        insert* | 'upsert new'*) printf '%s\n' plain untouched ttl ;;
        'upsert expired') printf '%s\n' plain 'by hand' ttl ;;
        *) printf '%s\n' plain 'by hand' untouched ttl ;;
    esac
}

measure_clients() {
    local run case kind kinds
    [ -z "$QUICK" ] || CASES=('insert' 'upsert live' 'upsert expired' 'update' 'update key')
    ROWS=$(quick 300000 1000000)
    CLIENT_TIME=$(quick 3 10)
    for run in $(seq 3); do
        for case in "${CASES[@]}"; do
            say "clients $run, $case"
            mapfile -t kinds < <(kinds_of "$case")
            for kind in "${kinds[@]}"; do measure_client "$case" "$kind"; done
        done
    done
    sql -c "DROP TABLE target" -c "DROP SEQUENCE ids"
}

show_clients() {
    local case kind key value
    printf '\nSingle rows in a table of %d, pgbench with 2 clients: transactions a second\n' "$ROWS"
    printf '%-18s %9s %9s %9s %9s %11s %13s\n' '' plain 'by hand' untouched ttl 'ttl/plain' 'ttl/by hand'
    for case in "${CASES[@]}"; do
        local -A v=()
        printf '%-18s' "$case"
        for kind in plain 'by hand' untouched ttl; do
            key=clients/${case// /_}/${kind// /_} value='-'
            if grep -qF "$key " "$RAW"; then value=$(calc "$(median "$key")" %.0f) v[$kind]=$value; fi
            printf ' %9s' "$value"
        done
        value='-'
        if [ -n "${v[by hand]:-}" ]; then value=$(calc "${v[ttl]} / ${v[by hand]}"); fi
        printf ' %11s %13s\n' "$(calc "${v[ttl]} / ${v[plain]}")" "$value"
    done
}
