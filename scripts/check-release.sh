#!/usr/bin/env bash
# check-release.sh [--final]: what must hold of the files of a release, without building
# anything (docs/releasing.md). With --final also what holds only on the day of a release: the
# changelog has its date, all is committed, and the tag is not there yet. Each fault is one line.
# RELEASE_ROOT is another folder to check, for scripts/check-release-test.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "${RELEASE_ROOT:-$REPO}" || exit
final=
[ "${1:-}" != --final ] || final=yes

faults=0
fault() {
    say "$*"
    faults=$((faults + 1))
}

version=$(sed -nE '/^\[package\]/,/^\[/ s/^version = "(.*)"$/\1/p' Cargo.toml)
number='[0-9]+\.[0-9]+\.[0-9]+'
[[ $version =~ ^$number$ ]] || fault "Cargo.toml: the version \"$version\" is not three numbers"

# The same version everywhere.
[ "$(awk '$0 == "name = \"ttl_ext\"" { getline; print }' Cargo.lock)" = "version = \"$version\"" ] ||
    fault "Cargo.lock: ttl_ext is not of $version; cargo update --workspace --offline"
grep -qxE "default_version = '(@CARGO_VERSION@|${version//./\\.})'" ttl_ext.control ||
    fault "ttl_ext.control: default_version is neither @CARGO_VERSION@ nor $version"
if [ -f META.json ]; then
    # The distribution's version and that of the extension it provides.
    mapfile -t provided < <(sed -E '/"meta-spec"/,/}/d' META.json |
        sed -nE "s/^.*\"version\": *\"($number)\".*\$/\1/p")
    [ "${#provided[@]}" -ge 2 ] || fault "META.json: it has not two versions, its own and the extension's"
    for found in "${provided[@]}"; do
        [ "$found" = "$version" ] || fault "META.json: it has version $found, not $version"
    done
fi

# The changelog: this version first, the published ones below it with their dates.
mapfile -t headings < <(grep -E '^## \[' CHANGELOG.md)
[[ ${headings[0]:-} == "## [$version] - "* ]] || fault "CHANGELOG.md: its first section is not [$version]"
date='[0-9]{4}-[0-9]{2}-[0-9]{2}'
for heading in "${headings[@]}"; do
    [[ $heading =~ ^##\ \[($number)\]\ -\ ($date|unreleased)$ ]] || {
        fault "CHANGELOG.md: \"$heading\" is not \"## [x.y.z] - date\""
        continue
    }
    [ "${BASH_REMATCH[2]}" != unreleased ] ||
        { [ "${BASH_REMATCH[1]}" = "$version" ] && [ -z "$final" ]; } ||
        fault "CHANGELOG.md: ${BASH_REMATCH[1]} has no date"
done

# What was published has a tag or a section of the changelog.
tags=()
if [ -e .git ]; then
    mapfile -t tags < <(git tag --list 'v[0-9]*' | grep -xE "v$number")
    [ -z "$final" ] || [ -z "$(git tag --list "v$version")" ] || fault "the tag v$version is there already"
    [ -z "$final" ] || [ -z "$(git status --porcelain)" ] || fault "there are changes that are not committed"
fi

# Each version has an upgrade path to this one, by the versions between. Those before this one
# have their installation scripts, frozen.
mapfile -t versions < <(
    {
        printf '%s\n' "${headings[@]}" | sed -nE "s/^## \[($number)\].*/\1/p"
        printf '%s\n' "${tags[@]#v}" "$version"
    } | grep . | sort -Vu
)
previous=
for each in "${versions[@]}"; do
    if [ "$each" != "$version" ] && [ ! -f "sql/ttl_ext--$each.sql" ]; then
        fault "sql/ttl_ext--$each.sql is missing: the objects of $each, frozen"
    fi
    if [ -n "$previous" ] && [ ! -f "sql/ttl_ext--$previous--$each.sql" ]; then
        fault "sql/ttl_ext--$previous--$each.sql is missing: from $previous to $each"
    fi
    previous=$each
done
[ "$previous" = "$version" ] || fault "$previous is newer than $version of Cargo.toml"
[ ! -f "sql/ttl_ext--$version.sql" ] ||
    fault "sql/ttl_ext--$version.sql: the present version's script is made of sql/, and frozen by the next one"

# Scripts of versions that have a tag are as they were: databases have run them.
for tag in "${tags[@]}"; do
    while IFS= read -r script; do
        git diff --quiet "$tag" -- "$script" || fault "$script: it has changed since $tag"
    done < <(git ls-tree --name-only "$tag" sql/ | grep -E '^sql/ttl_ext--.*\.sql$')
    # After its first line, a comment, a frozen script has the files of sql/.
    frozen=sql/ttl_ext--${tag#v}.sql
    [ ! -f "$frozen" ] ||
        git show "$tag":sql/{bootstrap,types,functions,views,finalize}.sql | diff -q - <(tail -n +2 "$frozen") >/dev/null ||
        fault "$frozen: it is not what $tag has in sql/"
done

[ "$faults" = 0 ] || die "$faults faults in the files of release $version"
say "the files of release $version agree"
