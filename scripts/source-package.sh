#!/usr/bin/env bash
# source-package.sh NAME SUITE DIRECTORY: download the newest source package
# NAME of the Debian release SUITE into DIRECTORY, signatures verified.
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

make_cache
mkdir -p "$directory"
say "reading the list of Debian $suite's source packages"
own_apt "$state" deb-src "$suite"
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
