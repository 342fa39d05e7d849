# shellcheck shell=bash
# What the tests of tools have in common; sourced before TOOL/test.sh, in a copy of its folder.
#
# The environment leads to the tool's database: PG…, DATABASE_URL. TOOL_HOME is for what
# is installed, and stays. A test ends with its first command that fails.

set -euo pipefail

skip() {
    printf '\nSKIPPED test: %s: %s\n' "$TOOL" "$*"
    exit 77
}

# A table that tells what was tried: `VERSION name number`.
version_of() { echo "VERSION $*"; }

sql() { psql -XqAt -F ' ' -v ON_ERROR_STOP=1 "$@"; }

# What is on disk, expired or not.
on_disk() { # TABLE
    PGUSER=postgres PGOPTIONS='-c ttl.show_expired=on' sql -c "SELECT count(*) FROM $1"
}

# Expired long ago, whatever the default.
expire() { # TABLE CONDITION
    sql -c "SET ttl.preserve_ts = on" -c "UPDATE $1 SET _ts = '2001-01-01' WHERE $2"
}

expect() { # WHAT GOT WANTED
    [ "$2" = "$3" ] || {
        printf 'FAILED: %s\n  got:    %s\n  wanted: %s\n' "$1" "$2" "$3"
        exit 1
    }
    echo "ok: $1"
}

# The policy is in force, and nothing keeps it from working but that deletion is off here.
expect_ttl() { # TABLE
    expect "TTL of $1" \
        "$(sql -c "SELECT hidden, problems FROM ttl.tables WHERE relation = '$1'::regclass")" \
        't {"deletion is off: ttl.enabled"}'
}

# Installed once, and again when the list changes.
install_once() { # LIST COMMAND...
    local list=$1
    shift
    cmp -s "$list" "$TOOL_HOME/installed" && return
    timeout 400 "$@" || timeout 400 "$@" || skip "cannot be installed: $*"
    cp "$list" "$TOOL_HOME/installed"
}

use_pip() { # requirements.txt
    [ -x "$TOOL_HOME/venv/bin/python" ] || python3 -m venv "$TOOL_HOME/venv" || skip "no python3-venv"
    install_once requirements.txt "$TOOL_HOME/venv/bin/pip" install -q --disable-pip-version-check -r requirements.txt
    PATH=$TOOL_HOME/venv/bin:$PATH
    pip list --disable-pip-version-check --format freeze | sed -n 's/==/ /p' | while read -r package number; do
        grep -qi "^$package[^a-z-]" requirements.txt && version_of "$package $number"
    done || true
}

use_npm() { # package.json
    command -v npm >/dev/null || skip "no npm"
    cp package.json "$TOOL_HOME/"
    install_once package.json npm install --prefix "$TOOL_HOME" --no-audit --no-fund --loglevel=error
    ln -s "$TOOL_HOME/node_modules" node_modules
    PATH=$PWD/node_modules/.bin:$PATH
    node -e '
        const wanted = require("./package.json").dependencies;
        for (const name of Object.keys(wanted))
            console.log("VERSION", name, JSON.parse(require("fs").readFileSync(`node_modules/${name}/package.json`)).version);'
}
