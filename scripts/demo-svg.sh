#!/usr/bin/env bash
# demo-svg.sh VERSION: run the demo, and draw what it has printed: docs/demo.svg.
#
# Each second has a bar a table: rows that users see, and on top of them, in
# another colour, rows that have expired and are still on disk.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

picture=$REPO/docs/demo.svg
printed=$(mktemp)
trap 'rm -f "$printed" "$printed.svg"' EXIT
"$REPO/scripts/demo.sh" "${1:-}" | tee "$printed"
awk -f "$REPO/scripts/demo-svg.awk" "$printed" >"$printed.svg" || die "the demo has printed no figures"
cat "$printed.svg" >"$picture"
say "${picture#"$REPO"/} shows this run"
