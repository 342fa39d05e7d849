#!/usr/bin/env bash
# demo-svg.sh VERSION: run the demo, and draw what it has printed, docs/demo.svg, and its metrics,
# docs/metrics.svg.
#
# Each second has a bar a table: rows that users see, and on top of them, in
# another colour, rows that have expired and are still on disk.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

picture=$REPO/docs/demo.svg
printed=$(mktemp)
metrics=$printed.metrics
trap 'rm -f "$printed" "$printed.svg" "$metrics" "$metrics.svg"' EXIT
TTL_DEMO_METRICS=$metrics "$REPO/scripts/demo.sh" "${1:-}" | tee "$printed"
awk -f "$REPO/scripts/demo-svg.awk" "$printed" >"$printed.svg" || die "the demo has printed no figures"
awk -f "$REPO/scripts/demo-metrics.awk" "$metrics" >"$metrics.svg" || die "the exporter has shown no metrics"
cat "$printed.svg" >"$picture"
cat "$metrics.svg" >"$REPO/docs/metrics.svg"
say "${picture#"$REPO"/} and docs/metrics.svg show this run"
