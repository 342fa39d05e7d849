#!/usr/bin/env bash
# instructions-writes.sh VERSION [ROWS]: instructions of a prepared statement by key, by EXECUTE: on a bare table, on one with
# columns and an index on _ts by hand, and with TTL; then of statements as they are typed, on the bare table, on a server with
# the library and without. `postgres --single` under callgrind, a release build; 200 statements after 20, each a transaction,
# with keys at random. A machine's load does not change the figures.
#
# Needs valgrind. Writes two tables in Markdown.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
. "$REPO/scripts/server.sh"

version=${1:-} rows=${2:-20000}
check_version "$version"
command -v valgrind >/dev/null || die "valgrind is missing"
use_postgres "$version"
"$REPO/scripts/install-extension.sh" --pg-config "$PG_CONFIG" --release "${FEATURES[@]}" ||
    die "the extension does not build or install for PostgreSQL $version"
make_workdir memory
start_server "shared_preload_libraries = 'ttl_ext'" "ttl.enabled = off" "ttl.change_delay = 0" "jit = off" \
    "full_page_writes = off" "synchronous_commit = off" "autovacuum = off"
data=$WORK/data
run() { as_server_user "$BINDIR/psql" -X -q -v ON_ERROR_STOP=1 -h "$WORK" -U postgres -d postgres -c "$1" >/dev/null; }

tables=(bare by_hand ttl ttl_btree)
run "CREATE EXTENSION ttl_ext"
for table in "${tables[@]}"; do
    run "CREATE TABLE $table (id bigint PRIMARY KEY, data text) WITH (fillfactor = 80)"
    case $table in
        by_hand) run "ALTER TABLE by_hand ADD _ts timestamptz NOT NULL DEFAULT now(), ADD ttl integer; CREATE INDEX ON by_hand (_ts)" ;;
        ttl) run "SELECT ttl.enable('ttl', 86400)" ;;
        ttl_btree) run "SELECT ttl.enable('ttl_btree', 86400, index => 'btree')" ;;
    esac
    run "INSERT INTO $table (id, data) SELECT i * 100, md5(i::text) FROM generate_series(1, $rows) AS i"
done
run "VACUUM (FREEZE, ANALYZE)"
stop_server
as_server_user cp -R "$data" "$WORK/base"

# Instructions of a session that runs what is prepared, if anything is, and so many statements, with a key for each @.
session() { # PREPARED STATEMENT OFFSET COUNT [LIBRARIES]
    as_server_user rm -rf "$data"
    as_server_user cp -R "$WORK/base" "$data"
    {
        [ -z "$1" ] || echo "$1"
        seq 1 "$4" | awk -v statement="$2" -v offset="$3" -v rows="$rows" \
            '{ line = statement; gsub(/@/, ($1 * 7919 % rows + 1) * 100 + offset, line); print line }'
    } | as_server_user valgrind --tool=callgrind --callgrind-out-file=/dev/null "$BINDIR/postgres" --single -D "$data" \
        -c shared_preload_libraries="${5-ttl_ext}" postgres 2>"$WORK/valgrind.log" >"$WORK/single.log"
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$WORK/valgrind.log"
}
difference() { # PREPARED STATEMENT OFFSET [LIBRARIES]
    local few many
    few=$(session "$1" "$2" "$3" 20 "${@:4}")
    many=$(session "$1" "$2" "$3" 220 "${@:4}")
    echo $(((many - few) / 200))
}
count() { # PREPARED OFFSET
    difference "$1" "EXECUTE s(@)" "$2"
}

echo "| | ${tables[*]} |" | sed 's/ \([a-z]\)/ | \1/2g; s/_/ /g'
echo "|---|---|---|---|---|"
row() { # NAME OFFSET PREPARED, with @ for the table
    local table
    printf '| %s |' "$1"
    for table in "${tables[@]}"; do printf ' %s |' "$(count "${3//@/$table}" "$2")"; done
    echo
}
row "SELECT" 0 "PREPARE s(bigint) AS SELECT data FROM @ WHERE id = \$1"
row "INSERT" 7 "PREPARE s(bigint) AS INSERT INTO @ (id, data) VALUES (\$1, 'abcdefgh')"
row "UPDATE" 0 "PREPARE s(bigint) AS UPDATE @ SET data = 'changed' WHERE id = \$1"
printf '| UPDATE that sets _ts | | %s | | |\n' "$(count "PREPARE s(bigint) AS UPDATE by_hand SET data = 'changed', _ts = now() WHERE id = \$1" 0)"

echo
echo "| a bare table | with the library | without |"
echo "|---|---|---|"
plain() { # NAME STATEMENT OFFSET
    printf '| %s | %s | %s |\n' "$1" "$(difference "" "$2" "$3")" "$(difference "" "$2" "$3" "")"
}
plain "SELECT" "SELECT data FROM bare WHERE id = @" 0
plain "INSERT" "INSERT INTO bare (id, data) VALUES (@, 'abcdefgh')" 7
plain "UPDATE" "UPDATE bare SET data = 'changed' WHERE id = @" 0
plain "BEGIN and COMMIT" 'BEGIN\nCOMMIT' 0
