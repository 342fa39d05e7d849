#!/bin/bash
# pgxn.sh VERSION ARCHIVE: what scripts/test-pgxn.sh runs in a bare Debian: the archive in /packages by PGXN's
# client, as docs/installing.md has it.

set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
version=$1 archive=/packages/$2
. /packages/steps.sh
config=/usr/lib/postgresql/$version/bin/pg_config

the_client_is_there() {
    apt-get -qq -o Acquire::Retries=3 update
    apt-get -qq -y install --no-install-recommends pgxnclient make sudo unzip "postgresql-$version" "postgresql-server-dev-$version"
    useradd --shell /bin/bash ada
    echo "ada ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/ada
    # The machine's toolchain, which the user may read.
    chmod 755 "${RUSTUP_HOME%/*}"
    ln -s "$RUSTUP_HOME" /home/ada/.rustup
    printf '%s\n' '[profile.release]' 'lto = false' 'opt-level = 0' 'codegen-units = 16' >/home/ada/.cargo/config.toml
    chown -R ada: /home/ada
}

documents_of_the_archive_lead_somewhere() {
    unzip -q "$archive" -d /tmp/unpacked
    bash /packages/check-links.sh /tmp/unpacked
    test -s /tmp/unpacked/*/META.json
}

it_loads() {
    [ -f "/usr/lib/postgresql/$version/lib/ttl_ext.so" ]
    mkdir -p "$settings"
    printf '%s\n' "listen_addresses = ''" "shared_preload_libraries = 'ttl_ext'" >"$settings/ttl_ext.conf"
    server start
    sql -c "DROP EXTENSION IF EXISTS ttl_ext" -c "CREATE EXTENSION ttl_ext" \
        -c "SELECT count(*) FROM ttl.tables" | grep -x 0
    server stop
    rm -f "/usr/lib/postgresql/$version/lib/ttl_ext.so" "/usr/share/postgresql/$version/extension/"ttl_ext*
}

a_user_installs_it() {
    runuser -u ada -- env -i HOME=/home/ada PATH=/home/ada/.cargo/bin:/usr/bin:/bin RUSTUP_AUTO_INSTALL=0 \
        sh -c "cd && pgxn install --sudo --pg_config $config $archive"
    it_loads
}

root_installs_it() {
    env HOME=/root PATH="$ROOTS_CARGO/bin:$PATH" CARGO_HOME="$ROOTS_CARGO" \
        CARGO_TARGET_DIR="$ROOTS_TARGET" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 pgxn install --pg_config "$config" "$archive"
    it_loads
}

for name in the_client_is_there documents_of_the_archive_lead_somewhere a_user_installs_it root_installs_it; do
    step "$name"
done
