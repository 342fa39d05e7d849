#!/bin/bash
# rpm.sh VERSION PACKAGE NEWER: the rpm packages in /packages, by rpm, in the bare Debian in which session.sh was: its
# server is there, and a table with TTL. A package in the name of PGDG's server stands for that: it has the
# server's folders at PGDG's places, and provides what else is asked for, as rpm knows nothing of Debian's packages.

set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
version=$1 first=/packages/$2 newer=/packages/$3
package=ttl_ext_$version
documents=/usr/share/doc/$package
. /packages/steps.sh

manager() { rpm --force-debian "$@"; }

# Its requirements but for the server's own.
others() { rpm -qp --requires "$first" | grep -v -e '^rpmlib(' -e "^postgresql$version-server " | sort -u; }

stand_in() { # VERSION, of the server: prints the package's path
    local spec=/tmp/server.spec
    cat >"$spec" <<END
Name: postgresql$version-server
Version: $1
Release: 1
Summary: Stands for the server
License: PostgreSQL
BuildArch: noarch
AutoReqProv: no
$(others | sed 's/^/Provides: /')
%description
Stands for the server.
%install
mkdir -p %{buildroot}/usr/pgsql-$version
ln -s /usr/lib/postgresql/$version/lib /usr/share/postgresql/$version %{buildroot}/usr/pgsql-$version/
mv %{buildroot}/usr/pgsql-$version/$version %{buildroot}/usr/pgsql-$version/share
%files
/usr/pgsql-$version
END
    rpmbuild -bb --define "_topdir /tmp/rpmbuild" "$spec" >/tmp/rpmbuild.log 2>&1 || {
        cat /tmp/rpmbuild.log >&2
        return 1
    }
    sed -n 's/^Wrote: //p' /tmp/rpmbuild.log
}

rpm_wants_the_server() {
    apt-get -qq -y -o Acquire::Retries=3 --no-install-recommends install rpm
    fails_with "postgresql$version-server >= $version~ is needed" manager -i "$first"
    # One of another major version, whatever its name.
    said=$(stand_in $((version + 1)))
    manager -i "$said"
    fails_with "postgresql$version-server < $((version + 1))~ is needed" manager -i "$first"
    manager -e "postgresql$version-server"
}

rpm_installs_it() {
    said=$(stand_in "$version.1")
    manager -i "$said"
    manager -i "$first"
    is "" "$(manager -V "$package")"
    is "$(manager -qp --qf '%{VERSION}-%{RELEASE}' "$first")" "$(manager -q --qf '%{VERSION}-%{RELEASE}' "$package")"
    for file in "/usr/lib/postgresql/$version/lib/ttl_ext.so" \
        "/usr/share/postgresql/$version/extension/ttl_ext.control" "$documents/CHANGELOG.md" \
        "/usr/share/licenses/$package/"{LICENSE,third-party-notices.txt}; do
        [ -s "$file" ] || {
            echo "$file is missing"
            return 1
        }
    done
    is "x86_64 PostgreSQL" "$(manager -q --qf '%{ARCH} %{LICENSE}' "$package" | sed 's/^aarch64/x86_64/')"
}

rpms_documents_lead_somewhere() {
    bash /packages/check-links.sh "$documents"
}

# The table that is there has its policy again, and a new database the README's first lines.
rpms_first_lines() {
    echo "shared_preload_libraries = 'ttl_ext'" >"$settings/ttl_ext.conf"
    server start
    sql -c "ALTER SYSTEM RESET ttl.enabled" -c "SELECT pg_reload_conf()"
    sql -c "DELETE FROM sessions WHERE id = 9"
    is "3|root" "$(sql -c "SELECT id, who FROM sessions")"
    sql -c "CREATE DATABASE by_rpm"
    awk '/^```sql$/ { inside = 1; next } /^```$/ { exit } inside' "$documents/README.md" >/tmp/readme.sql
    sql -d by_rpm -F ' | ' -c "CREATE EXTENSION ttl_ext" -f /tmp/readme.sql | grep -v '^$' | tee /tmp/readme.out
    sed -n 's/^.*--> //p' /tmp/readme.sql | diff - /tmp/readme.out
}

a_newer_rpm_replaces_it() {
    said=$(manager -U "$newer" 2>&1)
    says "restart PostgreSQL $version" "$said"
    is 1 "$(manager -q "$package" | wc -l)"
    is "" "$(manager -V "$package")"
    server restart
    sql -d by_rpm -c "ALTER EXTENSION ttl_ext UPDATE"
    is "3|root" "$(sql -d by_rpm -c "SELECT id, who FROM sessions WHERE id = 3")"
}

removed_by_rpm_nothing_is_left() {
    mkdir -p "/var/lib/pgsql/$version/data"
    cp "$settings/ttl_ext.conf" "/var/lib/pgsql/$version/data/postgresql.conf"
    said=$(manager -e "$package" 2>&1)
    says "WARNING: /var/lib/pgsql/$version/data/postgresql.conf preloads it" "$said"
    rm -r /var/lib/pgsql "$settings/ttl_ext.conf"
    left=$(find / -xdev \( -name '*ttl_ext*' -o -name '*ttl-ext*' \) ! -path '/packages/*' ! -path '/etc/apt/*' \
        ! -path '/var/lib/postgresql/*')
    is "" "$left"
    server restart
    server stop
}

for name in rpm_wants_the_server rpm_installs_it rpms_documents_lead_somewhere rpms_first_lines \
    a_newer_rpm_replaces_it removed_by_rpm_nothing_is_left; do
    step "$name"
done
