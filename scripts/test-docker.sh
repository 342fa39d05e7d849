#!/usr/bin/env bash
# test-docker.sh: the instructions of packaging/docker/Dockerfile, where no registry of images can be had.
#
# Each image is a bare Debian 12, in which the official image's server is Debian's PostgreSQL 15, its sample of
# postgresql.conf at the image's place; the image of Rust is this machine's. Then the entrypoint's steps are
# taken: initdb, the server, the files of /docker-entrypoint-initdb.d, and the README's first lines. The library is
# compiled quickly, not well.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$REPO/scripts/tally.sh"
. "$REPO/scripts/system.sh"

check_rust
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$REPO/target}
version=15
make_output docker
. "$REPO/scripts/bare.sh"
PASSED=0 FAILED=0
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}
why_not_inside bookworm >"$OUTPUT/why-not"
if [ -s "$OUTPUT/why-not" ]; then
    say "SKIPPED: the Dockerfile's instructions: $(cat "$OUTPUT/why-not")"
    tally docker 0 0 1
fi
mkdir -p "$CARGO_TARGET_DIR/docker"
BOUND=("$cargo_home" "$rustup_home" "$CARGO_TARGET_DIR/docker")
no_more=(HOME=/root PATH=/usr/local/cargo/bin:/usr/sbin:/usr/bin:/sbin:/bin RUSTUP_AUTO_INSTALL=0
    CARGO_TARGET_DIR="$CARGO_TARGET_DIR/docker" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16)
variables=("${no_more[@]}")
image_root=$TTL_CACHE/bare.docker
clean_up() {
    root=$build_root
    clean_up_root
    as_root rm -rf --one-file-system "$image_root"
}

step() { # NAME COMMAND...
    local name=$1 status=0 began=$SECONDS
    shift
    "$@" >>"$OUTPUT/docker.log" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        echo "ok $name: $((SECONDS - began)) s"
        PASSED=$((PASSED + 1))
    else
        tail -n 40 "$OUTPUT/docker.log" >&2
        echo "not ok $name"
        FAILED=$((FAILED + 1))
        tally docker "$PASSED" "$FAILED" 0
    fi
}

# As the official image has it.
server_image() {
    inside env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get -qq update && apt-get -qq -y install --no-install-recommends postgresql-common &&
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf &&
        apt-get -qq -y install --no-install-recommends "postgresql-$1" && rm -rf /var/lib/apt/lists/* &&
        sample=/usr/share/postgresql/$1/postgresql.conf.sample &&
        dpkg-divert --add --rename --divert /usr/share/postgresql/postgresql.conf.sample.dpkg "$sample" &&
        cp /usr/share/postgresql/postgresql.conf.sample.dpkg /usr/share/postgresql/postgresql.conf.sample &&
        ln -s ../postgresql.conf.sample "$sample" && mkdir /docker-entrypoint-initdb.d' sh "$version"
}

# One instruction for each line, with PG filled in; the stage and the folder before it.
instructions() {
    sed -e '/^#/d' -e 's/[ \t]*$//' "$REPO/packaging/docker/Dockerfile" |
        sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}' -e '/^$/d' -e "s/\${PG}/$version/g"
}

# The source, without what Dockerfile.dockerignore names.
source_files() {
    (cd "$REPO" && git ls-files -z --cached --others --exclude-standard | grep -zv '^bench/results' |
        tar --null -cf - -T - 2>/dev/null)
}

build_root=$root
trap clean_up EXIT
as_root rm -rf --one-file-system "$image_root"
step "what stands for the image of PostgreSQL $version" server_image
as_root cp -a "$root" "$image_root" # the last image, which begins anew
as_root mkdir -p "$build_root/usr/local"
as_root ln -s "$cargo_home" "$build_root/usr/local/cargo"
as_root ln -s "$rustup_home" "$build_root/usr/local/rustup"

stage=none folder=/
while IFS= read -r line <&5; do
    read -r word first second third <<<"$line"
    case $word-$first in
        ARG-* | SHELL-*) ;;
        FROM-rust:*) stage=rust ;;
        FROM-postgres:"$version")
            stage=${third:-image} folder=/ variables=("${no_more[@]}")
            [ "$stage" = build ] || root=$image_root
            ;;
        ENV-*) variables+=("$(sed "s|\$PATH|/usr/sbin:/usr/bin:/sbin:/bin|" <<<"$first")" $second) ;;
        WORKDIR-*) folder=$first ;;
        COPY---from=rust) [ -d "$build_root$second/" ] || [ -L "$build_root$second" ] || die "no $second" ;;
        COPY---from=build) step "$line" as_root sh -c "cp $build_root$second $image_root$third" ;;
        COPY-.)
            as_root mkdir -p "$root$second"
            source_files | as_root tar -xf - -C "$root$second"
            ;;
        COPY-*) step "$line" as_root cp "$REPO/$first" "$root$second" ;;
        RUN-*)
            step "$line" inside env -i "${variables[@]}" DEBIAN_FRONTEND=noninteractive \
                bash -o pipefail -c "cd $folder && ${line#RUN }"
            ;;
        *) die "this cannot do what the Dockerfile says: $line" ;;
    esac
done 5< <(instructions)

# shellcheck disable=SC2016 # for the shell that is called
container() {
    awk '/^```sql$/ { inside = 1; next } /^```$/ { exit } inside' "$REPO/README.md" | as_root tee "$root/tmp/readme.sql" >/dev/null
    inside setpriv --reuid=postgres --regid=postgres --init-groups env -i HOME=/tmp LC_ALL=C.UTF-8 \
        PATH="/usr/lib/postgresql/$version/bin:/usr/bin:/bin" bash -e -c '
            initdb -D /tmp/data -U postgres -A trust >/dev/null
            sql() { psql -X -q -At -F " | " -v ON_ERROR_STOP=1 -h /tmp -U postgres "$@"; }
            pg_ctl -D /tmp/data -l /tmp/server.log -o "-k /tmp -h \"\"" -w -s start || { cat /tmp/server.log; exit 1; }
            for file in /docker-entrypoint-initdb.d/*.sql; do sql -f "$file"; done
            sql -f /tmp/readme.sql | grep -v "^$" | tee /tmp/readme.out
            sed -n "s/^.*--> //p" /tmp/readme.sql | diff - /tmp/readme.out
            pg_ctl -D /tmp/data -w -s -m fast stop'
}
step "a new data directory, and the README's first lines" container
tally docker "$PASSED" "$FAILED" 0
