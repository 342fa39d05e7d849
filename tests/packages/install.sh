#!/usr/bin/env bash
# install.sh: what scripts/test-install.sh runs in a bare Debian, with the source in /root/ttl_ext, as a stranger
# would: without Rust in the PATH at first, then with it. One line "ok" or "not ok" for each step, with its seconds.

set -u
cd /root/ttl_ext || exit
rust=$CARGO_HOME
unset CARGO_HOME
start=$SECONDS

step() { # NAME COMMAND...
    local name=$1 status=0 began=$SECONDS
    shift
    ("$@") || status=$?
    [ "$status" = 0 ] && echo "ok $name: $((SECONDS - began)) s" || echo "not ok $name"
    return "$status"
}

get_make() {
    apt-get -qq -o Acquire::Retries=3 update && apt-get -qq -y install --no-install-recommends make
}
rust_is_asked_for() {
    said=$(HOME=/nowhere make demo 2>&1) && return 1
    echo "$said"
    case $said in *"Rust "*"Type, as the user who builds: curl "*) ;; *) return 1 ;; esac
}
demo() {
    make demo | tee /tmp/demo.out
    grep -q 'of the 20 users who kept clicking still have their session' /tmp/demo.out
}
install_it() {
    said=$(make install 2>&1) && return 1
    echo "$said"
    config=$(sed -n 's/^.*make install PG_CONFIG=//p' <<<"$said" | tail -n 1)
    make install PG_CONFIG="$config" && echo "$config" >/tmp/config
}
sql() { psql -X -q -At -F ' | ' -v ON_ERROR_STOP=1 -h /tmp -U postgres "$@"; }
first_lines() {
    bin=$(dirname "$(cat /tmp/config)")
    as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/tmp "$@"; }
    as_postgres "$bin/initdb" -D /tmp/data -U postgres -A trust >/dev/null
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '/tmp'" "shared_preload_libraries = 'ttl_ext'" >>/tmp/data/postgresql.conf
    as_postgres "$bin/pg_ctl" -D /tmp/data -l /tmp/server.log -w -s start || return
    sql -c "CREATE EXTENSION ttl_ext"
    awk '/^```sql$/ { inside = 1; next } /^```$/ { exit } inside' README.md >/tmp/readme.sql
    sql -f /tmp/readme.sql | grep -v '^$' | tee /tmp/readme.out
    sed -n 's/^.*--> //p' /tmp/readme.sql | diff - /tmp/readme.out
    status=$?
    as_postgres "$bin/pg_ctl" -D /tmp/data -w -s -m fast stop
    return "$status"
}

step "make, by apt" get_make &&
    step "Rust is asked for, with one line to type" rust_is_asked_for &&
    export CARGO_HOME=$rust PATH=$rust/bin:$PATH &&
    step "make demo" demo &&
    step "make install" install_it &&
    step "the README's first lines" first_lines
status=$?
echo "$((SECONDS - start)) s in all"
exit "$status"
