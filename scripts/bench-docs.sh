#!/usr/bin/env bash
# bench-docs.sh VERSION: put the table of the last full run on PostgreSQL VERSION into
# docs/benchmarks.md, between its two comments.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:-}
check_version "$version"
results=$REPO/bench/results/$version.md document=$REPO/docs/benchmarks.md
[ -f "$results" ] || die "there is no ${results#"$REPO"/}: run 'make bench PG=$version'"
for mark in '<!-- bench:begin -->' '<!-- bench:end -->'; do
    [ "$(grep -cxF -e "$mark" "$document")" = 1 ] || die "${document#"$REPO"/} must have one line '$mark'"
done

new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk -v results="$results" '
    $0 == "<!-- bench:begin -->" {
        print
        print ""
        while ((getline line < results) > 0) {
            if (line == "<!-- table -->") { inside = 1; continue }
            if (line == "<!-- /table -->") break
            if (inside) print line
        }
        print ""
        skipping = 1
    }
    $0 == "<!-- bench:end -->" { skipping = 0 }
    !skipping' "$document" >"$new"
cat "$new" >"$document"
say "${document#"$REPO"/} has the table of ${results#"$REPO"/}"
