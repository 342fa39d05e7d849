#!/usr/bin/env bash
# monitoring.sh: the programs that tests/e2e/tests/monitoring needs, from Debian's packages
# prometheus, prometheus-sql-exporter and prometheus-postgres-exporter, into
# TTL_CACHE/prometheus. Unpacked, not installed: as packages they would run services
# from the next boot on.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/apt.sh"

packages=(prometheus prometheus-sql-exporter prometheus-postgres-exporter)
programs=(prometheus promtool prometheus-sql-exporter prometheus-postgres-exporter)
to=$TTL_CACHE/prometheus

[ ! -d "$to" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get here"
make_cache
exec 7>"$TTL_CACHE/prometheus.lock"
flock 7
[ ! -d "$to" ] || exit 0
new=$(mktemp -d "$TTL_CACHE/prometheus.XXXXXX")
trap 'rm -rf "$new"' EXIT
cd "$new"
apt_download "${packages[@]}" >&2 || die "cannot download ${packages[*]}; see apt-get's message above"
mkdir bin tree
for package in *.deb; do dpkg-deb -x "$package" tree; done
for program in "${programs[@]}"; do mv "tree/usr/bin/$program" bin/; done
mv bin "$to"
