#!/usr/bin/env bash
# check-release-test.sh: scripts/check-release.sh finds what is wrong, in copies of the files of
# which one is spoiled.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RELEASE_ROOT=$work/tree
# Not this repository's tags.
export GIT_CEILING_DIRECTORIES=$work
version=$(sed -nE '/^\[package\]/,/^\[/ s/^version = "(.*)"$/\1/p' "$REPO/Cargo.toml")

fresh() {
    rm -rf "$RELEASE_ROOT"
    mkdir "$RELEASE_ROOT"
    cp -R "$REPO"/{Cargo.toml,Cargo.lock,ttl_ext.control,CHANGELOG.md,sql} "$RELEASE_ROOT/"
    [ ! -f "$REPO/META.json" ] || cp "$REPO/META.json" "$RELEASE_ROOT/"
}

failed=0
# The check fails, and says so.
finds() { # TEXT COMMAND...
    local text=$1 said
    shift
    fresh
    (cd "$RELEASE_ROOT" && "$@")
    if said=$("$REPO/scripts/check-release.sh" ${final:-} 2>&1); then
        say "not found: $text"
    elif [[ $said != *"$text"* ]]; then
        say "found something else than \"$text\": $said"
    else
        return 0
    fi
    failed=1
}

fresh
"$REPO/scripts/check-release.sh" || die "the files of the repository have faults themselves"

finds "three numbers" sed -i "s/^version = \"$version\"/version = \"1.0\"/" Cargo.toml
finds "Cargo.lock" sed -i "/^name = \"ttl_ext\"$/{n;s/$version/9.9.9/}" Cargo.lock
finds "default_version" sed -i "s/@CARGO_VERSION@/9.9.9/" ttl_ext.control
finds "first section" sed -i "s/^## \[$version\]/## [9.9.9]/" CHANGELOG.md
finds "0.1.0 has no date" sed -i -E "s/^(## \[0.1.0\]) - .*/\1 - unreleased/" CHANGELOG.md
finds "is not \"## [x.y.z] - date\"" sed -i -E "s/^(## \[0.1.0\]) - .*/\1/" CHANGELOG.md
finds "sql/ttl_ext--0.1.0.sql is missing" rm sql/ttl_ext--0.1.0.sql
finds "from 0.1.0 to 0.2.0" rm sql/ttl_ext--0.1.0--0.2.0.sql
finds "a frozen script has changed" sed -i '1s/^/-- changed\n/' sql/ttl_ext--0.1.0.sql
finds "is not in it" sed -i d sql/SHA256SUMS
finds "SHA256SUMS is missing" rm sql/SHA256SUMS
finds "is made of sql/" touch "sql/ttl_ext--$version.sql"
final=--final
finds "$version has no date" sed -i -E "1,/^## \[/s/^(## \[$version\]) - .*/\1 - unreleased/" CHANGELOG.md

[ "$failed" = 0 ] || die "scripts/check-release.sh does not find all"
say "each fault is found"
