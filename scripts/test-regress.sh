#!/usr/bin/env bash
# test-regress.sh VERSION regress|isolation: the extension's own tests in SQL.
#
#   regress     tests/pg_regress/sql/*.sql      by pg_regress
#   isolation   tests/isolation/specs/*.spec    by pg_isolation_regress
#
# Each runs in a new server that preloads ttl_ext, in a database in which
# CREATE EXTENSION has been run. The order is that of a file `schedule` beside
# the folder `expected`, if there is one, else the alphabet, one at a time;
# `setup` comes first. A file `postgresql.conf` there is added to the server's
# configuration. Every test must have its expected/NAME.out, and be in the
# schedule: pg_regress does not miss what nobody told it about.
#
# A test that begins with `-- needs: EXTENSION …` is skipped, and counted as such, on a
# server that lacks one of them.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} kind=${2:-regress}
check_version "$version"
case $kind in
    regress) folder=tests/pg_regress inputs=sql suffix=sql program=regress/pg_regress ;;
    isolation) folder=tests/isolation inputs=specs suffix=spec program=isolation/pg_isolation_regress ;;
    *) die "usage: test-regress.sh VERSION regress|isolation" ;;
esac

list_tests() {
    find "$REPO/$folder/$inputs" -maxdepth 1 -name "*.$suffix" -printf '%f\n' 2>/dev/null |
        sed "s/\.$suffix\$//" | sort | awk '$0 == "setup" { print; next } { rest = rest $0 "\n" }
                                            END { printf "%s", rest }'
}
mapfile -t tests < <(list_tests)
[ ${#tests[@]} -gt 0 ] || {
    say "there are no tests in $folder/$inputs"
    tally "$kind" 0 0 0
}

use_postgres "$version"
lacking() { # TEST
    local extension
    for extension in $(sed -n '1s/^-- needs: //p' "$REPO/$folder/$inputs/$1.$suffix"); do
        [ -f "$("$PG_CONFIG" --sharedir)/extension/$extension.control" ] || echo "$extension"
    done
}
left_out=0 rest=()
for name in "${tests[@]}"; do
    missing=$(lacking "$name")
    if [ -n "$missing" ]; then
        say "SKIPPED: $name: this server has no" $missing
        left_out=$((left_out + 1))
    else
        rest+=("$name")
    fi
done
tests=("${rest[@]}")
program=$PGXS_TEST/$program
[ -x "$program" ] || die "$program is missing from this PostgreSQL"
install_extension
make_workdir memory
make_output "$kind"
to_workdir "$REPO/$folder" input
mkdir -p "$WORK/input/expected" "$WORK/output"
unscheduled=0 schedule=$WORK/input/schedule
for name in "${tests[@]}"; do
    # Nothing expected is a difference like any other, with a result to keep.
    compgen -G "$WORK/input/expected/${name}*.out" >/dev/null || {
        say "$folder/expected/$name.out is missing"
        : >"$WORK/input/expected/$name.out"
    }
    if [ -f "$schedule" ] && ! grep -qE "^test:(.*[[:space:]])?$name([[:space:]]|\$)" "$schedule"; then
        say "$name is not in $folder/schedule: it does not run"
        unscheduled=$((unscheduled + 1))
    fi
done
if is_root; then chown -R "$SERVER_USER:" "$WORK/input" "$WORK/output"; fi

options=()
if [ -f "$schedule" ]; then options=(--schedule="$schedule"); else options=("${tests[@]}"); fi
config=("shared_preload_libraries = 'ttl_ext'")
[ -f "$WORK/input/postgresql.conf" ] && config+=("include '$WORK/input/postgresql.conf'")

start_server "${config[@]}"
status=0
as_server_user "$program" --bindir="$BINDIR" --host="$WORK" --port="$PGPORT" --user="$PGUSER" \
    --dbname="ttl_$kind" --load-extension=ttl_ext --inputdir="$WORK/input" --outputdir="$WORK/output" \
    "${options[@]}" 2>&1 | tee "$OUTPUT/log" || status=$?
stop_server || status=1

cp -R "$WORK/output/." "$OUTPUT/" 2>/dev/null || true
if [ -s "$WORK/output/regression.diffs" ]; then
    cat "$WORK/output/regression.diffs"
    say "the results are in $OUTPUT/results; a correct one becomes $folder/expected/NAME.out"
fi
count_regress "$OUTPUT/log"
FAILED=$((FAILED + unscheduled))
[ "$status" = 0 ] || [ "$FAILED" -gt 0 ] || FAILED=1
tally "$kind" "$PASSED" "$FAILED" "$((SKIPPED + left_out))"
