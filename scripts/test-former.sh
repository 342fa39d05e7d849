#!/usr/bin/env bash
# test-former.sh VERSION: the library of the former release with the objects of this one, as when a
# server was not restarted, or the former library was put back (decision 0054, docs/operations.md,
# "Upgrading the extension"). Builds the former one of its commit: minutes, so not part of make test.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/server.sh"
. "$REPO/scripts/tally.sh"

version=${1:-} former=8af30b4 # 0.1.0
check_version "$version"
git -C "$REPO" cat-file -e "$former^{commit}" || die "this needs a clone by git that has the commit $former"
use_postgres "$version"
install_extension
make_workdir memory
make_output former

built=$CARGO_TARGET_DIR/former
rm -rf "$built/source"
mkdir -p "$built/source"
git -C "$REPO" archive "$former" | tar -xm -C "$built/source"
say "building the library of $former"
(cd "$built/source" && CARGO_TARGET_DIR=$built cargo build --lib --package ttl_ext "${FEATURES[@]}") ||
    die "the library of $former does not build"

# A copy of the server, with a library that is changed about.
tree=$TTL_CACHE/pg$version
cp -R "$tree" "$WORK/server"
PG_CONFIG=$WORK/server${PG_CONFIG#"$tree"} BINDIR=$WORK/server${BINDIR#"$tree"}
library=$("$PG_CONFIG" --pkglibdir)/ttl_ext.so
[ "${library#"$WORK"}" != "$library" ] || die "the copy of the server looks for libraries outside of it: $library"
cp "$library" "$WORK/new.so"

PASSED=0 FAILED=0
expect() { # WHAT TEXT SQL: its result or its message has the text
    local said
    said=$("$BINDIR/psql" -XqAt -v VERBOSITY=verbose -d app -c "$3" 2>&1) || true
    if [[ $said == *"$2"* ]]; then
        PASSED=$((PASSED + 1))
        echo "ok: $1"
    else
        FAILED=$((FAILED + 1))
        printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$said"
    fi
}
run() { "$BINDIR/psql" -XqAt -v ON_ERROR_STOP=1 -d app -c "$1" >/dev/null; }
restart_with() { # LIBRARY
    stop_server
    install -m 755 "$1" "$library"
    as_server_user "$BINDIR/pg_ctl" -D "$SERVER" -l "$WORK/server.log" -w -t 60 -s start
}

old=$built/debug/libttl_ext.so
install -m 755 "$old" "$library"
start_server "shared_preload_libraries = 'ttl_ext'" "ttl.enabled = off"
"$BINDIR/createdb" app

# The new files are there, and the server still has the old library.
expect "CREATE EXTENSION is refused" "could not find function" "CREATE EXTENSION ttl_ext"
run "CREATE EXTENSION ttl_ext VERSION '0.1.0'"
run "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)"
run "SET ttl.preserve_ts = on; INSERT INTO t (id, _ts) VALUES (1, now()), (2, now() - interval '1 day')"
expect "UPDATE is refused" "could not find function" "ALTER EXTENSION ttl_ext UPDATE"
expect "and changes nothing" "0.1.0 1" \
    "SELECT extversion || ' ' || (SELECT string_agg(id::text, ' ') FROM t) FROM pg_extension WHERE extname = 'ttl_ext'"

# The new library, and back before UPDATE.
restart_with "$WORK/new.so"
expect "the new library hides rows of old objects" 1 "SELECT string_agg(id::text, ' ') FROM t"
run "SELECT ttl.set_default('t', 1800)"
restart_with "$old"
expect "the way back is open" "1 1800" "SELECT t.id || ' ' || default_ttl FROM t, ttl.tables"

# After UPDATE there is none: what fails, fails with an error.
restart_with "$WORK/new.so"
run "ALTER EXTENSION ttl_ext UPDATE"
run "CREATE TABLE u (id integer); SELECT ttl.enable('u', 3600)"
restart_with "$old"
expect "calls fail" "could not find function" "SELECT ttl.set_default('t', 60)"
expect "INSERT into a table of the new library fails" "could not find function" "INSERT INTO u (id) VALUES (1)"
expect "rows are still hidden" 1 "SELECT string_agg(id::text, ' ') FROM t"
restart_with "$WORK/new.so"
run "INSERT INTO u (id) VALUES (1)"
expect "with the new library all is well" "1 1" "SELECT t.id || ' ' || u.id FROM t, u"

stop_server
tally former "$PASSED" "$FAILED" 0
