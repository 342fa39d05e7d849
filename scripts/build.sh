#!/usr/bin/env bash
# build.sh VERSION: build the extension for PostgreSQL VERSION in the dev
# profile, without installing it anywhere.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"

check_version "${1:-}"
use_postgres "$1"
cd "$REPO"
cargo build --package ttl_ext "${FEATURES[@]}"
