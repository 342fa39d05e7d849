#!/usr/bin/env bash
# prepare.sh VERSION: the server of that version, and what its tests are compiled of, so that
# `make test` finds both. Not the library itself: cargo has one place for that of all
# versions, from which tests that run now may be about to install theirs.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

check_version "${1:-}"
use_postgres "$1"
# Not before all tiers of scripts/test.sh have called cargo: they would wait for its lock, which this one holds
# for as long as tests leave it no processor.
for row in ${TTL_BUILT:+e2e servers package}; do
    until [ -e "$TTL_BUILT/$row" ]; do sleep 1; done
done
cd "$REPO"
cargo_clippy
cargo_tests --no-run
