# shellcheck shell=bash
# shellcheck disable=SC2154 # WORK: server.sh
# The demo's metrics, as Prometheus would read them; sourced by demo.sh, which calls
# `metrics FILE SECOND` every second. A line of FILE: the second, the metric, the table, the value.

port=39187

start_exporter() {
    local programs=$TTL_CACHE/prometheus
    "$REPO/scripts/monitoring.sh" || die "no exporter here"
    # It ends with this shell, however that ends.
    DATA_SOURCE_NAME="host=$PGHOST port=$PGPORT user=app dbname=postgres sslmode=disable" \
        setpriv --pdeathsig KILL "$programs/prometheus-postgres-exporter" \
        --extend.query-path="$REPO/monitoring/postgres-exporter.yml" \
        --disable-default-metrics --disable-settings-metrics --no-collector.database --no-collector.bgwriter \
        --web.listen-address="127.0.0.1:$port" >"$WORK/exporter.log" 2>&1 &
    EXPORTER=$!
    local n
    for n in $(seq 50); do
        (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        sleep 0.1
    done
    die "the exporter does not listen: $(tail -n 3 "$WORK/exporter.log")"
}

stop_exporter() {
    kill "$EXPORTER" 2>/dev/null || true
    wait "$EXPORTER" 2>/dev/null || true
}

metrics() { # FILE SECOND
    {
        printf 'GET /metrics HTTP/1.0\r\n\r\n' >&9
        sed -nE "s/^ttl_([a-z_]+)\{.*relname=\"([^\"]*)\".*\} (.*)$/$2 ttl_\1 \2 \3/p" <&9 >>"$1"
    } 9<>"/dev/tcp/127.0.0.1/$port"
}
