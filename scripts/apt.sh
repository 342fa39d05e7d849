# shellcheck shell=bash
# Packages by apt-get, on machines whose lists are new, old or missing; sourced after lib.sh.
#
#   apt_install PACKAGE...    install what is not installed yet
#   apt_download PACKAGE...   only fetch, into the current directory
#   own_apt STATE KIND SUITE...   lists of other releases, in a directory of their own
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
    apt_update
    retry "$@"
}

apt_update() {
    # apt-get takes it for a success when it keeps an old list, unless told otherwise.
    retry as_root apt-get -qq -o Acquire::Retries=2 -o APT::Update::Error-Mode=any update ||
        say "apt-get update failed: trying with the lists that are here"
}

# By when apt wrote them: the time of their last modification is that of the archive's file.
lists_are_new() {
    local lists=${TTL_APT_LISTS:-/var/lib/apt/lists} # this, and minutes, are the tests' own
    [ -n "$(find "$lists" -maxdepth 1 -name '*_Packages*' -cmin "-${TTL_APT_DAY:-1440}" -print -quit 2>/dev/null)" ]
}

# apt with lists of its own: packages of other releases of Debian, by `apt-get -c STATE/apt.conf`.
# The archive is the one this machine gets its own packages from, as apt says. The machine's own
# sources are not touched, and root is not needed.
own_apt() { # STATE deb|deb-src SUITE...
    local state=$1 kind=$2 suite codename site keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    shift 2
    command -v apt-get >/dev/null || die "apt-get is missing: this works on Debian only"
    # Where this machine's own release has its main archive.
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    site=$(debian_archive "$codename")
    [ -n "$site" ] ||
        die "apt knows no archive of Debian $codename main: check /etc/apt, and run 'apt-get update' as root"
    [ -r "$keyring" ] || die "$keyring is missing: apt-get install debian-archive-keyring"

    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/parts"
    for suite in "$@"; do
        printf '%s [signed-by=%s] %s %s main\n' "$kind" "$keyring" "$site" "$suite"
    done >"$state/sources.list"

    # Read after the machine's own configuration. Its hooks are for its own lists.
    cat >"$state/apt.conf" <<END
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "$state/parts";
Dir::State::Lists "$state/lists";
Dir::Cache "$state/cache";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::AllowInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
    # As root, apt would download as the user _apt, who cannot write there.
    is_root && echo 'APT::Sandbox::User "root";' >>"$state/apt.conf"
    retry apt-get -c "$state/apt.conf" -qq update ||
        die "the lists of Debian $* cannot be read or verified, see apt's message above." \
            "A missing key: upgrade debian-archive-keyring. An expired list: this machine's archive is" \
            "a frozen copy, and apt has to be told that this is meant (Acquire::Check-Valid-Until)"
}
