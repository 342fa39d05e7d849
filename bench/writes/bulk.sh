# shellcheck shell=bash
# shellcheck disable=SC2154 # sourced by bench/writes.sh
# Many rows by one statement, into a table without rows or with expired ones (`+`), whose
# keys are not those of the new rows, or are (`over expired`): seconds.
#
#   COPY                  from a file on the server, 2 million rows of 45 bytes
#   COPY, no key          into a table without a primary key
#   COPY with _ts         the file gives _ts and ttl as well: rows may be expired when they come
#   INSERT SELECT         1 million rows

BULK_CASES=('COPY, no key' 'COPY' 'COPY +' 'COPY over expired' 'COPY with _ts'
    'INSERT SELECT, no key' 'INSERT SELECT' 'INSERT SELECT +' 'INSERT SELECT over expired')

measure_statement() { # CASE KIND
    local case=$1 kind=$2 statement rows=$BULK_ROWS took
    case $case in
        *'with _ts') statement="COPY target (id, data, _ts, ttl) FROM '$WORK/rows_ts.txt'" ;;
        COPY*) statement="COPY target (id, data) FROM '$WORK/rows.txt'" ;;
        *) rows=$((BULK_ROWS / 2)) statement="INSERT INTO target (id, data) SELECT id, data FROM source LIMIT $((BULK_ROWS / 2))" ;;
    esac
    case $case in
        *'no key') make_target "$kind" '' ;;
        *) make_target "$kind" ;;
    esac
    case $case in
        *+) fill_target -100000 -1 '2 days' ;;
        *'over expired')
            # Without time to live, the rows are deleted first.
            fill_target 1 "$rows" '2 days'
            [ "$kind" = ttl ] || statement="DELETE FROM target WHERE _ts < $NOW - interval '$LIFETIME s'; $statement"
            ;;
    esac
    settle_target
    took=$(sql -c "\\timing on" -c "$statement" | sed -nE 's/^Time: ([0-9.]+) ms.*/\1/p')
    record "bulk/${case// /_}/${kind// /_}" "$(calc "$took / 1000" %.3f)"
    [ "$(sql -c "SELECT count(*) FROM target WHERE id > 0")" = "$rows" ] || die "$case/$kind: not $rows rows"
}

# `untouched` has a trigger to switch off only with a key, and could not insert over
# expired rows.
bulk_kinds() { # CASE
    case $1 in
        *'no key' | *'over expired') printf '%s\n' plain ttl ;;
        *) printf '%s\n' plain untouched ttl ;;
    esac
}

measure_bulk() {
    local run case kind kinds
    BULK_ROWS=$(quick 200000 2000000)
    sql -c "CREATE TABLE source AS SELECT i AS id, md5(i::text) AS data FROM generate_series(1::bigint, $BULK_ROWS) AS i" \
        -c "VACUUM ANALYZE source" -c "COPY source TO '$WORK/rows.txt'" \
        -c "COPY (SELECT id, data, $NOW, NULL FROM source) TO '$WORK/rows_ts.txt'"
    for run in $(seq "$(quick 1 3)"); do
        for case in "${BULK_CASES[@]}"; do
            say "bulk $run, $case"
            mapfile -t kinds < <(bulk_kinds "$case")
            for kind in "${kinds[@]}"; do measure_statement "$case" "$kind"; done
        done
    done
    sql -c "DROP TABLE target, source"
}

show_bulk() {
    local case kind key value
    printf '\nCOPY of %d rows, INSERT … SELECT of %d: seconds\n' "$BULK_ROWS" "$((BULK_ROWS / 2))"
    printf '%-30s %9s %9s %9s %11s\n' '' plain untouched ttl 'ttl/plain'
    for case in "${BULK_CASES[@]}"; do
        local -A v=()
        printf '%-30s' "$case"
        for kind in plain untouched ttl; do
            key=bulk/${case// /_}/$kind value='-'
            if grep -qF "$key " "$RAW"; then value=$(median "$key") v[$kind]=$value; fi
            printf ' %9s' "$value"
        done
        printf ' %11s\n' "$(calc "${v[ttl]} / ${v[plain]}")"
    done
}
