#!/usr/bin/env bash
# notices.sh VERSION: the crates whose code is in the library for PostgreSQL VERSION, each with the
# licences that it brings. They ask for that where binaries are passed on.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:-}
check_version "$version"
cd "$REPO"

texts() { # CRATE VERSION
    local folder text
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2"; do
        [ -d "$folder" ] || continue
        find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copy*' -o -iname 'notice*' \
            -o -iname 'unlicense*' \) | sort | while read -r text; do
            printf '\n-- %s --\n\n' "${text##*/}"
            cat "$text"
        done
        return
    done
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
# Neither what runs only while it is compiled, nor ttl_ext itself.
cargo tree --package ttl_ext --no-default-features --features "pg$version" --edges normal,no-proc-macro \
    --prefix none --no-dedupe --format '{p}|{l}' | sort -u >"$list"
while IFS='|' read -r crate licence; do
    read -r name number _ <<<"$crate"
    [ "$name" != ttl_ext ] || continue
    printf '==== %s %s: %s ====\n' "$name" "${number#v}" "$licence"
    texts "$name" "${number#v}"
    printf '\n'
done <"$list"
