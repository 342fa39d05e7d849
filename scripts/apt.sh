# shellcheck shell=bash
# Packages by apt-get, on machines whose lists are new, old or missing; sourced after lib.sh.
#
#   apt_install PACKAGE...    install what is not installed yet
#   apt_download PACKAGE...   only fetch, into the current directory
#
# Old lists name versions that the archive no longer has (404), and missing ones name
# nothing. So lists are read anew before, if they are older than a day, and whenever a
# package cannot be had by them.

apt_install() { # PACKAGE...
    patiently "installing $*" "a minute or two" with_lists as_root \
        env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=2 \
        -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@"
}

apt_download() { # PACKAGE...
    patiently "fetching $*" "some seconds" with_lists \
        apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=2 download "$@"
}

with_lists() { # COMMAND...
    if lists_are_new; then
        "$@" && return
        say "that failed with the lists of packages that are here: reading new ones"
    fi
    # apt-get takes it for a success when it keeps an old list, unless told otherwise.
    retry as_root apt-get -qq -o Acquire::Retries=2 -o APT::Update::Error-Mode=any update ||
        say "apt-get update failed: trying with the lists that are here"
    retry "$@"
}

# By when apt wrote them: the time of their last modification is that of the archive's file.
lists_are_new() {
    local lists=${TTL_APT_LISTS:-/var/lib/apt/lists} # this, and minutes, are the tests' own
    [ -n "$(find "$lists" -maxdepth 1 -name '*_Packages*' -cmin "-${TTL_APT_DAY:-1440}" -print -quit 2>/dev/null)" ]
}
