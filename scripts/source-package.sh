#!/usr/bin/env bash
# source-package.sh NAME SUITE DIRECTORY: download the newest source package
# NAME of the Debian release SUITE into DIRECTORY, signatures verified.
#
# The archive is the one this machine gets its own packages from, as apt says.
# apt keeps the lists it needs for this in a state of their own in the cache:
# the machine's own sources are not touched, and root is not needed.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

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
retry apt-get -c "$state/apt.conf" -qq --download-only --only-source source "$name" ||
    die "the source package $name cannot be downloaded from Debian $suite"
rm -rf "$state" # it is large, and stale the next time
