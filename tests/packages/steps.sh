# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # of and for the scripts that source this
# What session.sh and rpm.sh have in common; sourced, with VERSION in `version`.

[ "$$" = 1 ] || {
    echo "not ok this is not a machine of its own"
    exit 1
}
cd /

# The server is started here, and nobody else's port is taken.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
settings=/etc/postgresql/$version/main/conf.d
log=/var/log/postgresql/postgresql-$version-main.log

server() { pg_ctlcluster "$version" main "$@"; }
sql() { runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1 "$@"; }

# It fails, and says this.
fails_with() { # TEXT COMMAND…
    local text=$1 said
    shift
    said=$("$@" 2>&1) && {
        echo "it went well: $*"
        return 1
    }
    says "$text" "$said"
}
says() { # TEXT MESSAGES
    case $2 in *"$1"*) ;; *)
        printf 'not said: %s\nbut: %s\n' "$1" "$2"
        return 1
        ;;
    esac
}
is() { # EXPECTED ACTUAL
    [ "$1" = "$2" ] || {
        printf 'expected: %s\nthere is: %s\n' "$1" "$2"
        return 1
    }
}

step() { # FUNCTION
    local status
    set +e
    (
        set -e
        "$1"
    )
    status=$?
    set -e
    if [ "$status" = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        tail -n 20 "$log" 2>/dev/null || true
        exit 1
    fi
}
