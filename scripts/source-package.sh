#!/usr/bin/env bash
# source-package.sh NAME SUITE DIRECTORY: download the newest source package
# NAME of the Debian release SUITE into DIRECTORY, signatures verified.
#
# The archive is the one this machine gets its own packages from, as apt says.
# apt keeps the lists it needs for this in a state of their own in the cache:
# the machine's own sources are not touched, and root is not needed.
#
# A copy of the archive can list a version before it has its files (404). Then the
# minor version before that is taken, which stays in the archive for a while: not in
# the lists, so that it is verified by its own signature, a Debian developer's.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/apt.sh"

[ $# = 3 ] || die "usage: source-package.sh NAME SUITE DIRECTORY"
name=$1 suite=$2 directory=$3
state=$TTL_CACHE/apt-$suite
exec 1>&2

command -v apt-get >/dev/null || die "apt-get is missing: this works on Debian only"
make_cache

# Where this machine's own release has its main archive.
codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
site=$(debian_archive "$codename")
[ -n "$site" ] ||
    die "apt knows no archive of Debian $codename main: check /etc/apt, and run 'apt-get update' as root"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || die "$keyring is missing: apt-get install debian-archive-keyring"

mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/parts" "$directory"
printf 'deb-src [signed-by=%s] %s %s main\n' "$keyring" "$site" "$suite" >"$state/sources.list"

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

say "reading the list of Debian $suite's source packages"
retry apt-get -c "$state/apt.conf" -qq update ||
    die "the lists of Debian $suite cannot be read or verified, see apt's message above." \
        "A missing key: upgrade debian-archive-keyring. An expired list: this machine's archive is" \
        "a frozen copy, and apt has to be told that this is meant (Acquire::Check-Valid-Until)"
cd "$directory"

# Prints the listed version's .dsc, as the archive names it.
listed() {
    apt-get -c "$state/apt.conf" -qq --print-uris --only-source source "$name" |
        sed -n "s/^'\(.*\.dsc\)'.*/\1/p" | head -n 1
}

fetch() { # URI FILE
    /usr/lib/apt/apt-helper -c "$state/apt.conf" -qq download-file "$1" "$2"
}

# The files of an earlier minor version, by its .dsc.
earlier() { # MINORS_BACK
    local uri base major minor keyring=/usr/share/keyrings/debian-keyring.gpg
    uri=$(listed)
    [[ $uri =~ ^(.*/)([^/]*_)([0-9]+)\.([0-9]+)(-[^/]*\.dsc)$ ]] || return
    base=${BASH_REMATCH[1]} major=${BASH_REMATCH[3]} minor=$((BASH_REMATCH[4] - $1))
    uri=$base${BASH_REMATCH[2]}$major.$minor${BASH_REMATCH[5]}
    [ "$minor" -ge 0 ] && fetch "$uri" signed.dsc || return
    if [ ! -r "$keyring" ]; then
        apt_install debian-keyring || return
    fi
    gpgv --quiet --keyring "$keyring" --output package.dsc signed.dsc ||
        die "the signature of $uri is not a Debian developer's"
    sed -n '/^Checksums-Sha256:/,/^[^ ]/s/^ \([0-9a-f]*\) [0-9]* \(.*\.orig\.tar\.[a-z0-9]*\)$/\1  \2/p' \
        package.dsc >sums
    [ -s sums ] || die "$uri names no archive"
    while read -r _ file; do
        fetch "$base$file" "$file" || return
    done <sums
    sha256sum --quiet --check sums || die "the archive of $uri is not what its signature says"
    say "$name $major.$minor is taken, as the archive does not have the version that it lists"
    rm -f signed.dsc package.dsc sums
}

retry apt-get -c "$state/apt.conf" -qq --download-only --only-source source "$name" ||
    earlier 1 || earlier 2 ||
    die "the source package $name cannot be downloaded from Debian $suite"
rm -rf "$state" # it is large, and stale the next time
