# shellcheck shell=bash
# Logical replication: both sides hide, one deletes. More in tests/e2e/tests/replication/logical.rs.
export PGUSER=postgres
sql -c "CREATE DATABASE logical_copy"
sql -d logical_copy -c "CREATE EXTENSION ttl_ext"
sql -f publisher.sql >/dev/null
sql -d logical_copy -f subscriber.sql >/dev/null
sql -c "INSERT INTO cart SELECT n, 'early' FROM generate_series(1, 10) n"
expire cart "id <= 3"
sql -c "SELECT pg_create_logical_replication_slot('carts', 'pgoutput')" >/dev/null
sql -d logical_copy -c "CREATE SUBSCRIPTION carts CONNECTION 'host=127.0.0.1 port=$PGPORT dbname=logical user=postgres'
    PUBLICATION carts WITH (create_slot = false, slot_name = 'carts')"
copied() { # QUERY WANTED: in time
    for _ in $(seq 300); do
        [ "$(sql -d logical_copy -c "$1")" = "$2" ] && break
        sleep 0.1
    done
    expect "subscriber: $1" "$(sql -d logical_copy -c "$1")" "$2"
}
copied "SELECT count(*) FROM cart" 7
sql -c "INSERT INTO cart SELECT n, 'late' FROM generate_series(1, 3) n"
expire cart "id = 10"
copied "SELECT count(*) FILTER (WHERE owner = 'late'), count(*) FROM cart" "3 9"
stored() { PGOPTIONS='-c ttl.show_expired=on' sql -d logical_copy -c "SELECT count(*) FROM cart"; }
expect "expired, and on the subscriber's disk" "$(stored)" 10
sql -c "SELECT ttl.purge('cart')" >/dev/null
for _ in $(seq 300); do
    [ "$(stored)" = 9 ] && break
    sleep 0.1
done
expect "the publisher's deletion has arrived" "$(stored)" 9
sql -d logical_copy -c "DROP SUBSCRIPTION carts"
