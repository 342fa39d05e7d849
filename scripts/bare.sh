# shellcheck shell=bash
# shellcheck disable=SC2154 # OUTPUT is of tally.sh
# A bare Debian to try things in; sourced after lib.sh and make_output. Its packages come from where this machine's
# come from. Removed at the end of the script that sources this.
#
#   why_not_inside CODENAME    make it; what prevents it, or nothing
#   root                       where it is
#   inside COMMAND...          run a command in it

root=
clean_up_root() { [ -z "$root" ] || as_root rm -rf --one-file-system "$root"; }
trap clean_up_root EXIT

# Kept for a week as it comes from debootstrap.
bare_debian() { # CODENAME
    local here bare list site
    here=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    bare=$TTL_CACHE/bare-$1.tar
    make_cache
    root=$(mktemp -d "$TTL_CACHE/bare.XXXXXX")
    chmod 755 "$root"
    if [ -n "$(find "$bare" -mtime -7 2>/dev/null)" ]; then
        as_root tar -xpf "$bare" -C "$root"
    else
        say "making a bare Debian $1: a minute or two"
        site=$(debian_archive "$here")
        as_root debootstrap --variant=minbase "$1" "$root" "$site" >"$OUTPUT/debootstrap.log" 2>&1 || return
        as_root tar -cpf "$bare" -C "$root" .
    fi
    as_root cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    as_root rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
    as_root cp -R /etc/apt/sources.list* "$root/etc/apt/"
    if [ "$1" != "$here" ]; then
        # Of another release, what this machine has of Debian's own archives.
        for list in "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/*; do
            if grep -qs "\b$here\b" "$list" && grep -qs debian-archive-keyring "$list"; then
                as_root sed -i "s/\b$here\b/$1/g; s/\b$here-/$1-/g" "$list"
            else
                as_root rm -f "$list"
            fi
        done
    fi
    as_root mkdir -p "$root/usr/share/keyrings" "$root/etc/apt/keyrings" "$root/packages"
    as_root cp -R /usr/share/keyrings/. "$root/usr/share/keyrings/"
    [ ! -d /etc/apt/keyrings ] || as_root cp -R /etc/apt/keyrings/. "$root/etc/apt/keyrings/"
    apt-config dump Acquire | as_root tee "$root/etc/apt/apt.conf.d/99ttl_ext" >/dev/null
}

# With mounts and processes of its own: they are gone when the session ends. BOUND are folders that are
# shown in it at the same places.
BOUND=()
inside() { # COMMAND...
    # shellcheck disable=SC2016 # expanded by the shell that is called
    as_root unshare --mount --pid --ipc --fork --kill-child -- sh -c '
        root=$1 bound=$2 && shift 2 && mount --make-rprivate / && mount -t proc proc "$root/proc" &&
        mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" &&
        for folder in $bound; do mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder" || exit; done &&
        exec chroot "$root" "$@"' sh "$root" "${BOUND[*]}" "$@"
}

why_not_inside() { # CODENAME
    if ! is_root && ! sudo -n true 2>/dev/null; then
        echo "it needs root, or sudo without a password"
    elif ! command -v debootstrap >/dev/null; then
        echo "debootstrap is not installed"
    elif ! as_root unshare --mount --pid --ipc --fork -- true 2>/dev/null; then
        echo "namespaces cannot be made here"
    elif ! bare_debian "$1"; then
        echo "a bare Debian $1 cannot be made: $OUTPUT/debootstrap.log"
    fi
}
