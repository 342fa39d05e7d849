#!/usr/bin/env bash
# package-docs.sh FOLDER deb|rpm: make the links of README.md and docs/ in FOLDER fit the places that files
# have in a package. In Debian's those for monitoring are in examples/, the changelog is changelog.gz, the
# licence copyright. A link to what no package has (CONTRIBUTING.md, bench/results) becomes plain text.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "${1:?the folder with README.md and docs}"
export FORMAT=${2:?deb or rpm}
find README.md docs -name '*.md' | sort | while IFS= read -r document; do
    # The way from the document's folder up to that of README.md.
    up=$(dirname "$document" | sed -e 's/^\.$//' -e 's/[^/][^/]*/../g' -e 's/$/\//' -e 's/^\/$//')
    FOLDER=$(dirname "$document") UP=$up perl -pi -e '
        sub target {
            my ($text, $link) = @_;
            return "[$text]($link)" if $link =~ m{^(\w+:|\#)};
            my ($path, $rest) = $link =~ m{^([^\#]*)(.*)$};
            if ($ENV{FORMAT} eq "deb") {
                if ($path =~ m{^\Q$ENV{UP}\Emonitoring(/.*)?$}) { return "[$text]($ENV{UP}examples" . ($1 // "") . ")" }
                return "[$text]($ENV{UP}changelog.gz)" if $path eq "$ENV{UP}CHANGELOG.md";
                return "[$text]($ENV{UP}copyright)" if $path eq "$ENV{UP}LICENSE";
            }
            return -e "$ENV{FOLDER}/$path" ? "[$text]($link)" : $text;
        }
        BEGIN { $fenced = 0 }
        if (/^\s*```/) { $fenced = !$fenced }
        elsif (!$fenced) { s/\[([^\]\[]*)\]\(([^)\s]+)\)/target($1, $2)/ge }
    ' "$document"
done
