#!/usr/bin/env bash
# check-release-test.sh: scripts/check-release.sh finds what is wrong, in copies of the files of
# which one is spoiled.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RELEASE_ROOT=$work/tree
version=$(sed -nE '/^\[package\]/,/^\[/ s/^version = "(.*)"$/\1/p' "$REPO/Cargo.toml")

# As if nothing had been published yet.
fresh() {
    rm -rf "$RELEASE_ROOT"
    mkdir "$RELEASE_ROOT"
    cp -R "$REPO"/{Cargo.toml,Cargo.lock,ttl_ext.control,sql} "$RELEASE_ROOT/"
    rm -f "$RELEASE_ROOT"/sql/ttl_ext--*.sql
    awk '/^## \[/ && n++ { exit } { print }' "$REPO/CHANGELOG.md" >"$RELEASE_ROOT/CHANGELOG.md"
    [ ! -f "$REPO/META.json" ] || cp "$REPO/META.json" "$RELEASE_ROOT/"
}

commit_as() { # TAG
    git add -A
    git -c user.name=test -c user.email=test commit -q -m "$1"
    git tag "$1"
}
# The same, where 0.9.0 has been published: it has a tag, and what the next version must have of it.
published() {
    fresh
    (
        cd "$RELEASE_ROOT"
        git init -q
        commit_as v0.9.0
        { echo "-- frozen" && cat sql/{bootstrap,types,functions,views,finalize}.sql; } >sql/ttl_ext--0.9.0.sql
        touch "sql/ttl_ext--0.9.0--$version.sql"
    )
}

failed=0
# The check fails, and says so, after this command in the files that `prepare` makes.
prepare=fresh
finds() { # TEXT COMMAND...
    local text=$1 said
    shift
    "$prepare"
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
# Another section of the changelog.
section() { printf '\n## [%s]%s\n' "$@" >>CHANGELOG.md; }
append_to() { echo "-- changed" >>"$1"; }
release_and_append_to() { commit_as "v$version" && append_to "$1"; }

fresh
"$REPO/scripts/check-release.sh" || die "the files of a first version have faults"
published
"$REPO/scripts/check-release.sh" || die "the files of a version after the first have faults"

finds "three numbers" sed -i "s/^version = \"$version\"/version = \"1.0\"/" Cargo.toml
finds "Cargo.lock" sed -i "/^name = \"ttl_ext\"$/{n;s/$version/9.9.9/}" Cargo.lock
finds "default_version" sed -i "s/@CARGO_VERSION@/9.9.9/" ttl_ext.control
finds "first section" sed -i "s/^## \[$version\]/## [9.9.9]/" CHANGELOG.md
finds "0.9.0 has no date" section 0.9.0 " - unreleased"
finds "is not \"## [x.y.z] - date\"" section 0.9.0 ""
finds "from 0.9.0 to $version" section 0.9.0 " - 2000-01-01"
finds "9.9.9 is newer" section 9.9.9 " - 2000-01-01"
finds "is made of sql/" touch "sql/ttl_ext--$version.sql"
final=--final
finds "$version has no date" sed -i -E "1,/^## \[/s/^(## \[$version\]) - .*/\1 - unreleased/" CHANGELOG.md
final='' prepare=published
finds "from 0.9.0 to $version" rm "sql/ttl_ext--0.9.0--$version.sql"
finds "sql/ttl_ext--0.9.0.sql is missing" rm sql/ttl_ext--0.9.0.sql
finds "is not what v0.9.0 has" append_to sql/ttl_ext--0.9.0.sql
finds "has changed since v$version" release_and_append_to "sql/ttl_ext--0.9.0--$version.sql"

[ "$failed" = 0 ] || die "scripts/check-release.sh does not find all"
say "each fault is found"
