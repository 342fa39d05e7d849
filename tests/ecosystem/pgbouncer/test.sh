# shellcheck shell=bash
# PgBouncer in transaction mode: whom a SET reaches, and what keeps it in its place.
if [ ! -x "$TOOL_HOME/root/usr/sbin/pgbouncer" ]; then
    command -v apt-get >/dev/null || skip "no apt-get"
    (cd "$TOOL_HOME" && apt-get -qq -o APT::Sandbox::User=root download pgbouncer libevent-2.1-7 libc-ares2 &&
        for package in ./*.deb; do dpkg-deb -x "$package" root; done) || skip "apt-get download does not get it"
fi
# Its library path is not for others.
program=$TOOL_HOME/root/usr/sbin/pgbouncer
libraries=$(dirname "$(find "$TOOL_HOME/root" -name 'libevent-2.1.so*' | head -n 1)")
version_of "$(LD_LIBRARY_PATH=$libraries "$program" --version | head -n 1)"
pool=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -i "s/SERVER_PORT/$PGPORT/; s/POOL_PORT/$pool/" pgbouncer.ini
printf '"%s" ""\n' app importer >users.txt
grep -v '^server_reset_query' pgbouncer.ini >leaking.ini
chmod 644 ./*.ini users.txt

PGUSER=postgres sql -f role.sql
sql -c "CREATE TABLE cart (id integer PRIMARY KEY); SELECT ttl.enable('cart', '30 days'); GRANT ALL ON cart TO importer" >/dev/null

with_pool() { # INI COMMAND...
    local user=()
    ! is_root || user=(-u "$SERVER_USER")
    LD_LIBRARY_PATH=$libraries "$program" -q "${user[@]}" "$1" >pgbouncer.log 2>&1 8>&- &
    local pid=$!
    # shellcheck disable=SC2064 # this one
    trap "kill $pid 2>/dev/null || true" EXIT
    for _ in $(seq 100); do
        PGPORT=$pool PGDATABASE=pooled sql -c "SELECT 1" >/dev/null 2>&1 && break
        sleep 0.1
    done
    shift
    PGPORT=$pool PGDATABASE=pooled "$@"
    kill "$pid"
    wait "$pid" || true
}
# Another client's session shares the only connection.
set_by_one_shown_to_other() {
    sql -c "SET ttl.preserve_ts = on"
    expect "$1: another client's ttl.preserve_ts" "$(sql -c "SHOW ttl.preserve_ts")" "$2"
}
with_pool leaking.ini set_by_one_shown_to_other "SET, no reset" on
with_pool pgbouncer.ini set_by_one_shown_to_other "SET, reset" off
one_transaction() {
    sql -f import.sql
    expect "SET LOCAL: another client's ttl.preserve_ts" "$(sql -c "SHOW ttl.preserve_ts")" off
    expect "and it has acted" "$(sql -c "SELECT _ts > now() + interval '1 year' FROM cart")" t
}
with_pool leaking.ini one_transaction
of_a_role() {
    expect "a role's own setting" "$(PGUSER=importer sql -c "SHOW ttl.preserve_ts")" on
    expect "which others have not" "$(sql -c "SHOW ttl.preserve_ts")" off
}
with_pool leaking.ini of_a_role
