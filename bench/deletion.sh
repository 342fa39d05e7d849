#!/usr/bin/env bash
# deletion.sh [PG] [--quick] [--only=PART]: what background deletion costs, in
# figures. A release build on a throw-away server with settings as in production;
# about 20 minutes, with --quick about 5 and fewer rows.
#
#   throughput  rows a second without throttle, against one DELETE of the same rows
#   delay       from a row's expiry until it is off the disk, on an idle server
#   idle        CPU of servers with TTL tables in which nothing expires
#   foreground  pgbench with and without a backlog being deleted
#
# The tables that it prints are medians; every single number goes to
# bench/results/deletion-PG.txt. What is measured how is said in bench/deletion/*.
# Figures from a server with assertions (17 and 18 as scripts/postgres.sh builds
# them) compare with each other only.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/bench/common.sh"
for part in throughput delay idle foreground; do
    # shellcheck source=/dev/null
    . "$REPO/bench/deletion/$part.sh"
done

only='throughput delay idle foreground'
read_arguments "$@"

run_parts deletion
