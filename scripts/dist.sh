#!/usr/bin/env bash
# dist.sh: the archives of a release, ttl_ext-X.Y.Z.tar.gz and, for PGXN, .zip: what is committed,
# and META.json. They build without git. The last lines of stdout are their paths, in
# $CARGO_TARGET_DIR/dist.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$REPO"
# Not a clone of something that this tree lies in.
{ [ -e .git ] && git rev-parse --verify --quiet HEAD >/dev/null; } ||
    die "this is no clone by git: an archive is made of a commit"
[ -z "$(git status --porcelain)" ] || say "what is not committed is left out"

release=$(git show HEAD:Cargo.toml | crate_version /dev/stdin)
name=ttl_ext-$release
output=${CARGO_TARGET_DIR:-$REPO/target}/dist
mkdir -p "$output"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
git show HEAD:META.json.in | sed "s/@CARGO_VERSION@/$release/g" >"$stage/META.json"
for kind in tar.gz zip; do
    git archive --format="$kind" --output="$output/$name.$kind" \
        --prefix="$name/" --add-file="$stage/META.json" HEAD
    printf '%s\n' "$output/$name.$kind"
done
