#!/usr/bin/env bash
# test-package.sh VERSION [release]: the release archive and the packages, as users meet them.
#
# The archive must hold what is committed. lintian must find no error in the Debian package. A bare Debian
# installs it by apt, runs the first session of the documents, takes a newer one, and removes it:
# tests/packages/session.sh. Then it does so with the rpm package: tests/packages/rpm.sh.
#
# Of the dev profile, and of the files that are here: they are compiled already when all tests run.
# With `release` the package is built of the unpacked archive. Neither has git to call.
#
# Only for the PostgreSQL of this Debian, of which there is a package; for the others this says
# so, and counts nothing. What needs root or a tool that is missing is skipped, and counted.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/tally.sh"
. "$REPO/scripts/system.sh"
. "$REPO/scripts/bare.sh"

version=${1:-} profile=${2:-dev}
check_version "$version"
if ! system_has_server "$version" && ! { command -v apt-get >/dev/null && apt_has "postgresql-$version"; }; then
    echo "package: NOT RUN on PostgreSQL $version: this system has no package of it to depend on." \
        "It runs with the version that it has one of; nothing is counted here."
    exit 0
fi
"$REPO/scripts/deps.sh" "$version" test-package
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}
make_output package
PASSED=0 FAILED=0 SKIPPED=0

skip() { # NAME WHY
    say "SKIPPED: $1: $2"
    SKIPPED=$((SKIPPED + 1))
}

# In a shell of its own, so that the first command that fails ends it; not within a condition,
# where bash forgets that. CHECKED is its status.
check() { # NAME FUNCTION
    local status
    say "$1"
    set +e
    (
        set -e
        "$2"
    ) >"$OUTPUT/$2.log" 2>&1
    status=$?
    set -e
    if [ "$status" = 0 ]; then
        PASSED=$((PASSED + 1))
    else
        cat "$OUTPUT/$2.log" >&2
        say "$1: failed; $OUTPUT/$2.log"
        FAILED=$((FAILED + 1))
    fi
    CHECKED=$status
}

source=$REPO
archive_is_complete() {
    "$REPO/scripts/dist.sh" >"$OUTPUT/archives"
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    # With the present time: cargo takes older files for those that it has compiled before.
    tar -xmzf "$(grep 'tar.gz$' "$OUTPUT/archives")" -C "$unpacked" --strip-components=1
    (git -C "$REPO" ls-tree -r --name-only HEAD && echo META.json) | sort >"$OUTPUT/committed"
    (cd "$unpacked" && find . ! -type d) | sed 's/^\.\///' | sort | diff -u "$OUTPUT/committed" -
    unzip -Z1 "$(grep 'zip$' "$OUTPUT/archives")" | sed -e 's/^[^/]*\///' -e '/\/$/d' -e '/^$/d' | sort |
        diff -u "$OUTPUT/committed" -
    "$REPO/scripts/check-links.sh" "$unpacked"
    grep -F "\"version\": \"$(crate_version "$unpacked/Cargo.toml")\"" "$unpacked/META.json"
}
if [ -e "$REPO/.git" ]; then
    unpacked=$CARGO_TARGET_DIR/dist/unpacked
    check "the archives of a release" archive_is_complete
    [ "$CHECKED$profile" != 0release ] || source=$unpacked
else
    skip "the archives of a release" "this is no clone by git"
fi

# Two revisions: the second is what a user takes for a newer one.
build_packages() {
    mkdir "$OUTPUT/bin" "$OUTPUT/packages"
    printf '#!/bin/sh\necho "git $*" >>"%s"\nexit 127\n' "$OUTPUT/git-was-called" >"$OUTPUT/bin/git"
    chmod 755 "$OUTPUT/bin/git"
    for revision in 1 2; do
        for format in deb rpm; do
            PATH=$OUTPUT/bin:$PATH FORMAT=$format REVISION=$revision \
                TTL_RPM_SERVER="postgresql$version-server /usr/pgsql-$version/lib /usr/pgsql-$version/share/extension" \
                "$source/scripts/package.sh" "$version" "$profile" >"$OUTPUT/path"
            cp "$(cat "$OUTPUT/path")" "$OUTPUT/packages/"
        done
    done
    [ ! -e "$OUTPUT/git-was-called" ] || {
        cat "$OUTPUT/git-was-called"
        return 1
    }
}
check "the packages, built without git" build_packages
[ -z "${TTL_BUILT:-}" ] || : >"$TTL_BUILT/package" # for test.sh
[ "$CHECKED" = 0 ] || tally package "$PASSED" "$FAILED" "$SKIPPED" # which ends it
mapfile -t packages < <(find "$OUTPUT/packages" -name '*.deb' | sort -V)
mapfile -t rpms < <(find "$OUTPUT/packages" -name '*.rpm' | sort -V)

lint_package() {
    # A test's package has no maintainer; Debian has no bug that it closes.
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "${packages[0]}"
}
if command -v lintian >/dev/null; then
    check "lintian" lint_package
else
    skip "lintian" "it is not installed"
fi

session_inside() { # NAME SCRIPT PACKAGE...
    local log=$OUTPUT/${2%.sh}.log passed failed
    status=0
    say "$1"
    inside /bin/bash "/packages/$2" "$version" "${@:3}" >"$log" 2>&1 || status=$?
    [ "$status" = 0 ] || cat "$log" >&2
    grep -E '^(not )?ok ' "$log" || true
    passed=$(grep -c '^ok ' "$log" || true)
    failed=$(grep -c '^not ok ' "$log" || true)
    [ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed))
}
codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
why_not_inside "$codename" >"$OUTPUT/why-not"
if [ -s "$OUTPUT/why-not" ]; then
    skip "session in a bare Debian" "$(cat "$OUTPUT/why-not")"
else
    as_root cp "${packages[@]}" "${rpms[@]}" "$REPO/scripts/check-links.sh" \
        "$REPO"/tests/packages/{steps,session,rpm}.sh "$root/packages/"
    session_inside "a session in a bare Debian" session.sh "${packages[@]##*/}"
    [ "$status" != 0 ] || session_inside "the same by rpm" rpm.sh "${rpms[@]##*/}"
fi
tally package "$PASSED" "$FAILED" "$SKIPPED"
