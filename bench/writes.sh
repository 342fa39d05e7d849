#!/usr/bin/env bash
# writes.sh [PG] [--quick] [--only=PART]: what time to live costs those who write, in
# figures. A release build on a throw-away server with settings as in production, no
# background deletion; about 30 minutes, with --quick about 4 and fewer rows.
#
#   clients   pgbench: INSERT, upsert, UPDATE of single rows
#   bulk      COPY and INSERT … SELECT of many
#
# Each is measured in turn on
#
#   plain     a table with the same columns and indexes; its statements know nothing of _ts
#   by hand   the same table, the statements do what the extension does: they set _ts,
#             and where a key may be an expired row's they overwrite that row
#   untouched a TTL table without the trigger that frees keys: the other costs of a TTL table
#   ttl       a TTL table
#
# The tables that it prints are medians; every single number goes to
# bench/results/writes-PG.txt. Figures from a server with assertions (17 and 18 as
# scripts/postgres.sh builds them) compare with each other only.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/bench/common.sh"
for part in clients bulk; do
    # shellcheck source=/dev/null
    . "$REPO/bench/writes/$part.sh"
done

only='clients bulk'
read_arguments "$@"

LIFETIME=86400
TRIGGER='"~ttl_free_expired_keys"'
# As the extension stamps rows.
NOW="date_trunc('second', statement_timestamp())"

# A table without rows, `target`. Autovacuum leaves it alone: it would strike one kind
# and not the other.
make_target() { # KIND [PRIMARY KEY]
    sql -c "SET client_min_messages = warning" -c "DROP TABLE IF EXISTS target" \
        -c "CREATE TABLE target (id bigint ${2-PRIMARY KEY}, data text) WITH (autovacuum_enabled = off)"
    case $1 in
        ttl | untouched)
            sql -c "SET client_min_messages = warning" -c "SELECT ttl.enable('target', $LIFETIME)" >/dev/null
            # Refused to all but the scripts of dumps.
            [ "$1" = ttl ] || sql -c "SET row_security = off" -c "DROP TRIGGER $TRIGGER ON target"
            ;;
        *)
            sql -c "ALTER TABLE target ADD _ts timestamptz NOT NULL DEFAULT $NOW, ADD ttl integer CHECK (ttl > 0 OR ttl = -1)" \
                -c "CREATE INDEX ON target (_ts) WHERE ttl IS NULL" \
                -c "CREATE INDEX ON target (ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0"
            ;;
    esac
}

# Rows with the numbers FROM to TO, last written AGE ago, whole seconds of 1,000 rows.
fill_target() { # FROM TO AGE
    sql -c "SET ttl.preserve_ts = on" -c "SET ttl.show_expired = on" -c "SET session_replication_role = replica" \
        -c "INSERT INTO target (id, data, _ts)
            SELECT i, md5(i::text), $NOW - interval '$3' - i / 1000 * interval '1 s' FROM generate_series($1::bigint, $2) AS i"
}

settle_target() { sql -c "VACUUM ANALYZE target" -c "CHECKPOINT"; }

# What is measured is the work of a statement, not the disk's time for a commit.
run_parts writes "synchronous_commit = off"
