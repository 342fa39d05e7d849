#!/bin/bash
# session.sh VERSION PACKAGE NEWER: what a user does with the packages in /packages, in a bare
# Debian that is thrown away after it: never run it elsewhere. A line `ok` or `not ok` for each step;
# the first that fails ends it.

set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
version=$1 first=/packages/$2 newer=/packages/$3
package=postgresql-$version-ttl-ext
. /packages/steps.sh

install() { # PACKAGE
    apt-get -qq -y -o Acquire::Retries=3 --no-install-recommends install "$1"
}
installed() { dpkg-query -W -f '${db:Status-Status} ${Version}' "$package" 2>/dev/null; }
version_of() { dpkg-deb -f "$1" Version; }

apt_installs_it() {
    apt-get -qq -o Acquire::Retries=3 update
    install "$first"
    is "installed $(version_of "$first")" "$(installed)"
    mkdir -p "$settings"
    echo "listen_addresses = ''" >"$settings/test.conf"
    [ -z "$(dpkg -V "$package")" ]
    for file in "/usr/lib/postgresql/$version/lib/ttl_ext.so" \
        "/usr/share/postgresql/$version/extension/ttl_ext.control" \
        "/usr/share/doc/$package/"{copyright,changelog.gz,changelog.Debian.gz,third-party-notices.txt.gz,README.md}; do
        [ -s "$file" ] || {
            echo "$file is missing"
            return 1
        }
    done
    zcat "/usr/share/doc/$package/third-party-notices.txt.gz" >/tmp/notices
    grep -q '^==== pgrx ' /tmp/notices && grep -q '^==== serde ' /tmp/notices
    grep -q 'Permission is hereby granted, free of charge' /tmp/notices
}

it_wants_to_be_preloaded() {
    server start
    fails_with "shared_preload_libraries" sql -c "CREATE EXTENSION ttl_ext"
    echo "shared_preload_libraries = 'ttl_ext'" >"$settings/ttl_ext.conf"
    server restart
    sql -c "CREATE EXTENSION ttl_ext"
    is "$(version_of "$first" | sed -e 's/-[^-]*$//' -e 's/~/-/')" \
        "$(sql -c "SELECT extversion FROM pg_extension WHERE extname = 'ttl_ext'")"
}

documents_lead_somewhere() {
    bash /packages/check-links.sh "/usr/share/doc/$package"
}

# As the package's own documents have it, pasted into psql.
first_session() {
    awk '/^```sql$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
        "/usr/share/doc/$package/docs/first-session.md" >/tmp/session.sql
    [ -s /tmp/session.sql ]
    sql -f /tmp/session.sql | tee /tmp/session.out
    is $'3|root\n3|root' "$(grep -v '^$' /tmp/session.out | head -n 2)"
    grep -F 'Filter: ttl.live(_ts, ttl, 3600)' /tmp/session.out
    # How soon the worker comes depends on the machine.
    for _ in $(seq 120); do
        left=$(sql -c "SET ttl.show_expired = on" -c "SELECT count(*) FROM sessions")
        [ "$left" != 1 ] || return 0
        sleep 1
    done
    echo "$left rows are on disk after two minutes"
    return 1
}

# Hidden, and with the policy that they have been given.
rows_are_as_they_were() {
    is "3|root" "$(sql -c "SELECT id, who FROM sessions")"
    is "sessions|3600" "$(sql -c "SELECT relation, default_ttl FROM ttl.tables WHERE relation = 'sessions'::regclass")"
}

# An expired row stays on disk: without the library it is seen. After a restart no worker is
# there that has yet to read the setting.
leave_an_expired_row() {
    sql -c "ALTER SYSTEM SET ttl.enabled = off"
    server restart
    sql -c "SET ttl.preserve_ts = on" \
        -c "INSERT INTO sessions (id, who, _ts) VALUES (9, 'old', now() - interval '2 hours')"
    rows_are_as_they_were
}

a_newer_one_replaces_it() {
    leave_an_expired_row
    said=$(install "$newer" 2>&1)
    says "restart PostgreSQL $version" "$said"
    is "installed $(version_of "$newer")" "$(installed)"
    rows_are_as_they_were
    server restart
    sql -c "ALTER EXTENSION ttl_ext UPDATE"
    rows_are_as_they_were
}

removed_it_is_missed() {
    said=$(apt-get -qq -y remove "$package" 2>&1)
    says "WARNING: $settings/ttl_ext.conf preloads it" "$said"
    # New sessions do not find the functions that they have to call.
    fails_with 'could not access file "ttl_ext"' sql -c "SELECT id, who FROM sessions"
    server stop
    fails_with "" server start
    says 'could not access file "ttl_ext"' "$(cat "$log")"
    mv "$settings/ttl_ext.conf" /tmp/
    server start
    is $'3|root\n9|old' "$(sql -c "SELECT id, who FROM sessions ORDER BY id")"
    fails_with ttl_ext sql -c "INSERT INTO sessions (id, who) VALUES (4, 'dan')"
    fails_with 'extension "ttl_ext" is not available' sql -c "CREATE DATABASE other" -c '\c other' -c "CREATE EXTENSION ttl_ext"
}

installed_again_it_hides_them() {
    mv /tmp/ttl_ext.conf "$settings/"
    install "$newer"
    server restart
    rows_are_as_they_were
    sql -c "INSERT INTO sessions (id, who) VALUES (9, 'new')"
    is $'3|root\n9|new' "$(sql -c "SELECT id, who FROM sessions ORDER BY id")"
}

purged_nothing_is_left() {
    server stop
    rm "$settings/ttl_ext.conf"
    apt-get -qq -y purge "$package"
    is "" "$(installed || true)"
    # What is among the data is the server's: the workers' statistics.
    left=$(find / -xdev \( -name '*ttl_ext*' -o -name '*ttl-ext*' \) ! -path '/packages/*' ! -path '/etc/apt/*' \
        ! -path '/var/lib/postgresql/*')
    is "" "$left"
    server start
    server stop
}

for name in apt_installs_it documents_lead_somewhere it_wants_to_be_preloaded first_session a_newer_one_replaces_it \
    removed_it_is_missed installed_again_it_hides_them purged_nothing_is_left; do
    step "$name"
done
