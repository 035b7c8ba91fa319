# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced after lib.sh and debian.sh: a clean chroot of a Debian suite, which is
# removed when the script ends.

chroot=$HT_TREE/package-root

# make_chroot SUITE: make the chroot $chroot of a Debian suite; it is removed
# when the script ends
make_chroot() {
    [ "$(id -u)" -eq 0 ] || die "a chroot needs root: run it with sudo"
    have mmdebstrap || die "mmdebstrap is not installed"
    need_space 4000 "$HT_TREE"
    # Keep apt's lists for the chroot in the build tree: using those of the
    # cache would need the cache's lock.
    ht_apt=$HT_TREE/package-apt
    debian_lists "$1" "packages"
    rm -rf "$chroot"
    trap 'rm -rf "$chroot"' EXIT
    trap 'exit 130' INT TERM
    logged mmdebstrap "making a chroot of Debian $1" \
        mmdebstrap --mode=root --variant=apt --skip=check/empty \
        --dpkgopt=force-unsafe-io \
        --include=apt-utils,ca-certificates,debian-archive-keyring,dpkg-dev \
        "$1" "$chroot" "$ht_apt/$1/sources.list"
    # Copy this system's settings for access to the mirrors.
    apt-config dump | grep -E '^Acquire::(https?|Retries|tor)' \
        >"$chroot/etc/apt/apt.conf.d/90host" || :
    rm -f "$chroot/etc/resolv.conf"
    cp /etc/resolv.conf "$chroot/etc/resolv.conf"
    cp -r /usr/local/share/ca-certificates "$chroot/usr/local/share/" \
        2>/dev/null || :
    # No service may start in a chroot.
    printf '#!/bin/sh\nexit 101\n' >"$chroot/usr/sbin/policy-rc.d"
    chmod +x "$chroot/usr/sbin/policy-rc.d"
}

# with_chroot COMMAND...: run COMMAND on this system while /proc, /sys, /dev and
# /dev/shm are mounted in the chroot. The mounts and processes are in namespaces
# that end with COMMAND. The shell stays the first process of its namespace,
# because the first process must reap orphans: a test waits for the end of a QEMU
# whose parent has ended.
#
# shellcheck disable=SC2016 # the inner shell expands them
with_chroot() {
    unshare -m --pid --fork sh -c '
        chroot=$1
        shift
        mount -t proc proc "$chroot/proc"
        mount --rbind /sys "$chroot/sys"
        mount --rbind /dev "$chroot/dev"
        mount -t tmpfs shm "$chroot/dev/shm"
        "$@" || exit
        exit 0' sh "$chroot" "$@"
}

# in_chroot DIR COMMAND...: run COMMAND in the chroot's folder DIR
in_chroot() {
    dir=$1
    shift
    with_chroot chroot "$chroot" env -C "$dir" "$@"
}
