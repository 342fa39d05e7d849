#!/usr/bin/env bash
# instructions.sh VERSION [ROWS]: instructions that a row of count(*) needs in each form of expiry (expiry-forms.txt), with the
# filter of ttl_ext, and with the same condition by hand: `postgres --single` under callgrind, a release build, one process
# without JIT, that reads the table (by hand, an index on a plain column would do alone). Less what the same count of a table
# without rows needs. A machine's load does not change the figures.
#
# Needs valgrind. Writes a table in Markdown.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
. "$REPO/scripts/server.sh"

version=${1:-} rows=${2:-20000}
check_version "$version"
command -v valgrind >/dev/null || die "valgrind is missing"
use_postgres "$version"
"$REPO/scripts/install-extension.sh" --pg-config "$PG_CONFIG" --release "${FEATURES[@]}" ||
    die "the extension does not build or install for PostgreSQL $version"
make_workdir memory
start_server "shared_preload_libraries = 'ttl_ext'" "ttl.enabled = off" "ttl.guard_fraction = 1" "ttl.change_delay = 0" \
    "timezone = 'UTC'" "max_parallel_workers_per_gather = 0" "jit = off" "full_page_writes = off"
data=$WORK/data socket=$WORK
run() { as_server_user "$BINDIR/psql" -X -q -v ON_ERROR_STOP=1 -h "$socket" -U postgres -d postgres -c "$1" >/dev/null; }

run "CREATE EXTENSION ttl_ext"
forms=()
n=0
while IFS= read -r line; do
    [[ $line == \#* ]] && continue
    forms+=("$line")
    mapfile -t part < <(awk -F ' *;; *' '{ for (i = 1; i <= NF; i++) print $i }' <<<"$line")
    zone=
    [ -z "${part[5]}" ] || zone=", time_zone => '${part[5]}'"
    for side in ours plain; do
        run "CREATE TABLE $side$n (id bigint, ${part[1]})"
        run "INSERT INTO $side$n SELECT i, ${part[2]} FROM generate_series(1, $rows) AS i, LATERAL
             (SELECT date_trunc('second', now()) - CASE WHEN i % 10 = 3 THEN interval '10 days' ELSE interval '10 s' END AS at) AS s"
        run "CREATE INDEX $side${n}_key ON $side$n (${part[3]})"
        run "CREATE TABLE empty_$side$n (LIKE $side$n INCLUDING INDEXES)"
    done
    run "SELECT ttl.expire_index('ours${n}_key', ${part[4]}$zone)"
    run "CREATE INDEX empty_key$n ON empty_ours$n (${part[3]})"
    run "SELECT ttl.expire_index('empty_key$n', ${part[4]}$zone)"
    n=$((n + 1))
done <"$REPO/bench/expiry-forms.txt"
run "VACUUM (FREEZE, ANALYZE)"
stop_server

# Instructions of a session that runs one statement three times.
instructions() { # SQL
    printf '%s\n%s\n%s\n' "$1" "$1" "$1" | as_server_user valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$BINDIR/postgres" --single -D "$data" -c enable_indexscan=off -c enable_indexonlyscan=off -c enable_bitmapscan=off \
        postgres 2>"$WORK/valgrind.log" >"$WORK/single.log"
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$WORK/valgrind.log"
}

echo "| form | ttl_ext | by hand | ratio |"
echo "|---|---|---|---|"
for n in "${!forms[@]}"; do
    mapfile -t part < <(awk -F ' *;; *' '{ for (i = 1; i <= NF; i++) print $i }' <<<"${forms[n]}")
    ours=$(($(instructions "SELECT count(*) FROM ours$n") - $(instructions "SELECT count(*) FROM empty_ours$n")))
    hand=$(($(instructions "SELECT count(*) FROM plain$n WHERE ${part[6]}") -
        $(instructions "SELECT count(*) FROM empty_plain$n WHERE ${part[6]}")))
    awk -v name="${part[0]}" -v ours="$ours" -v hand="$hand" -v rows="$rows" \
        'BEGIN { printf "| %s | %d | %d | %.2f |\n", name, ours / rows / 3, hand / rows / 3, ours / hand }'
done
