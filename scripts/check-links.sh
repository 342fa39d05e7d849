#!/usr/bin/env bash
# check-links.sh FOLDER: each link of the .md files below FOLDER leads to a file there. Prints those that do
# not; the last line is how many there are. src/tests/documents_test.rs does the same in the repository, and
# looks for anchors, too.

set -euo pipefail
cd "${1:?a folder}"
found=0 dead=0
while IFS=: read -r document link; do
    found=$((found + 1))
    path=${link%%#*}
    [ -z "$path" ] || [ -e "$(dirname "$document")/$path" ] || {
        dead=$((dead + 1))
        echo "dead: $document: $link"
    }
done < <(find . -name '*.md' | sort | while IFS= read -r document; do
    awk '/^[ \t]*```/ { fenced = !fenced; next } !fenced' "$document" |
        grep -oE '\]\([^)]*\)' | sed -e 's/^](//' -e 's/)$//' -e '/^[a-z]*:/d' -e "s|^|$document:|" || true
done)
echo "$found links, $dead dead"
[ "$found" -gt 0 ] && [ "$dead" = 0 ]
