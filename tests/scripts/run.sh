#!/usr/bin/env bash
# run.sh: tests of what scripts/lib.sh and scripts/apt.sh do on machines that are not at hand,
# with an apt-get that only pretends. Silent, and 0, if all is well.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/../../scripts/lib.sh"
. "$here/../../scripts/apt.sh"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin" "$place/lists"
export TTL_APT_LISTS=$place/lists PATH=$place/bin:$PATH place

# `update` takes up the archive's state; `install` succeeds if the lists name what it has.
cat >"$place/bin/apt-get" <<'END'
#!/usr/bin/env bash
for word in "$@"; do
    case $word in
        update)
            echo update >>"$place/calls"
            [ ! -e "$place/offline" ] || exit 100
            touch "$place/fits"
            exit 0
            ;;
        install | download)
            echo "$word" >>"$place/calls"
            [ -e "$place/fits" ] && exit 0 || exit 100
            ;;
    esac
done
exit 2
END
cat >"$place/bin/sudo" <<'END'
#!/usr/bin/env bash
exec "$@"
END
printf '#!/bin/sh\n' >"$place/bin/sleep" # nobody waits here
chmod +x "$place/bin/"*

failed=0
expect() { # WHAT WANTED GOT
    [ "$2" = "$3" ] && return
    say "$1: wanted '$2', got '$3'"
    failed=1
}

# Sets up a machine, runs a command there, and says what apt-get was asked for.
calls() { # LISTS FITS COMMAND...
    rm -f "$place/lists/"* "$place/fits" "$place/calls"
    [ "$1" = none ] || touch "$place/lists/archive_main_binary-amd64_Packages"
    [ "$2" = no ] || touch "$place/fits"
    shift 2
    local status=0
    "$@" >/dev/null 2>&1 || status=$?
    echo "$(tr '\n' ' ' <"$place/calls")$status"
}

expect "lists of today that fit" "install 0" "$(calls new yes apt_install p)"
expect "lists of today that do not fit" "install update install 0" "$(calls new no apt_install p)"
expect "lists of yesterday" "update install 0" "$(TTL_APT_DAY=0 calls new no apt_install p)"
expect "no lists" "update install 0" "$(calls none no apt_install p)"
expect "no lists, and only a download" "update download 0" "$(calls none no apt_download p)"
touch "$place/offline"
expect "no network, but lists that fit" "update update update install 0" "$(calls none yes apt_install p)"
expect "no network at all" "update update update install install install 100" "$(calls none no apt_install p)"
rm "$place/offline" "$place/bin/sleep"

# What runs long says so, gives back its status, and whoever reads the output need not wait.
slow() { sleep 2.5 && return "$1"; }
said=$(TTL_TICK=1 patiently "working" "for a moment" slow 0 2>&1) || failed=1
expect "progress" 2 "$(grep -c 'working: [12] s so far; for a moment' <<<"$said")"
status=0
TTL_TICK=1 patiently "working" "for a moment" slow 3 2>/dev/null || status=$?
expect "the status of what failed" 3 "$status"
start=$SECONDS
TTL_TICK=60 patiently "working" "for a moment" true 2>&1 | cat >/dev/null
expect "nothing is left that holds the output" yes "$([ $((SECONDS - start)) -lt 30 ] && echo yes)"
"$here/system.sh" || failed=1
exit "$failed"
