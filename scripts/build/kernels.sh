# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced after debian.sh: functions that fetch into $HT_CACHE/kernels the headers of
# Debian's kernels, to build the Linux modules, and images of kernels, to boot them.

# columns: name, Debian suite, package that depends on the headers, and the
# architecture if it is not amd64
ht_kernels="\
6.1 bookworm linux-headers-amd64
6.1-rt bookworm linux-headers-rt-amd64
6.12 bookworm-backports linux-headers-amd64
6.12-rt bookworm-backports linux-headers-rt-amd64
newest sid linux-headers-amd64
newest-rt sid linux-headers-rt-amd64
arm64 bookworm-backports linux-headers-arm64 arm64
arm64-16k sid linux-headers-arm64-16k arm64
"

kernel_names() {
    printf '%s' "$ht_kernels" | sed 's/ .*//'
}

# Print the names of all kernels 6.1 of bookworm and 6.12 of bookworm-backports for amd64
# that Debian's archive has now, such as 6.1.0-47-rt-amd64.
kernel_every() {
    # shellcheck disable=SC2034 # read by private_apt
    ht_apt=$HT_CACHE/kernels/apt
    for suite in bookworm bookworm-backports; do
        debian_lists "$suite" "kernels"
        private_apt "$suite" apt-cache pkgnames linux-headers-6.1
    done | sed -nE 's/^linux-headers-(6\.1\.0-[0-9]+.*-amd64)$/\1/p
        s/^linux-headers-(6\.12\..*-amd64)$/\1/p' | sort -uV
}

# kernel_row NAME: set suite, package and arch of the kernel NAME, which is in
# the list $ht_kernels or is printed by kernel_every
kernel_row() {
    # shellcheck disable=SC2034 # read by private_apt
    ht_apt=$HT_CACHE/kernels/apt    # not the lists that a build of QEMU locks
    arch=
    package=linux-headers-$1
    case $1 in
    6.1.0-*-amd64) suite=bookworm; return 0 ;;
    6.12.*-amd64) suite=bookworm-backports; return 0 ;;
    esac
    # shellcheck disable=SC2046
    set -- $(printf '%s' "$ht_kernels" | grep "^$1 ")
    suite=$2
    package=$3
    arch=${4-}
}

# wrap_tools DIR: make kbuild's tools below DIR run with the libc that was
# unpacked there. The tools of newer kernels may need a newer libc than this
# system's.
wrap_tools() {
    libraries=$1/lib-of-tools
    mkdir -p "$libraries"
    find "$1" -name '*.so*' -path '*x86_64-linux-gnu*' ! -type d \
        -exec cp -P {} "$libraries/" \;
    find "$1"/usr/lib/linux-kbuild-* -type f -perm -u+x |
    while IFS= read -r tool; do
        readelf -lW "$tool" 2>/dev/null | grep -q INTERP || continue
        mv "$tool" "$tool.real"
        # shellcheck disable=SC2016
        printf '#!/bin/sh\nexec %s --argv0 "$0" --library-path %s %s "$@"\n' \
            "$libraries/ld-linux-x86-64.so.2" "$libraries" "$tool.real" \
            >"$tool"
        chmod +x "$tool"
    done
}

# kernel_headers NAME: fetch the headers of the kernel NAME into the folder
# kernels/NAME of the cache, unless they are there. The link kheaders there leads
# to the folder of the headers in which make is run to build modules.
kernel_headers() {
    name=$1
    kernel_row "$name"
    kernel_root=$HT_CACHE/kernels/$name
    [ ! -f "$HT_CACHE/stamps/kernel-$name" ] || return 0
    need_space 600 "$HT_CACHE"
    debs=$kernel_root.debs
    rm -rf "$kernel_root" "$debs"
    mkdir -p "$kernel_root"
    ht_arch=$arch
    debian_lists "$suite" "kernels"
    case $package in
    linux-headers-[0-9]*) headers=$package ;;
    *) headers=$(debian_depends "$suite" "$package" '^linux-headers-[0-9]') ;;
    esac
    [ -n "$headers" ] || die "Debian $suite has no $package"
    common=$(debian_depends "$suite" "$headers" '^linux-headers-.*-common')
    kbuild=$(debian_depends "$suite" "$headers" '^linux-kbuild-')
    if [ -n "$ht_arch" ]; then
        debian_debs "$suite" "$debs" "$headers"
        ht_arch=                # the others are for this system or for all
        debian_lists "$suite" "kernels"
        set -- "$common" "$kbuild"
    else
        set -- "$headers" "$common" "$kbuild"
    fi
    [ "$suite" != sid ] ||
        set -- "$@" libc6 libelf1t64 zlib1g libzstd1 libssl3t64
    debian_debs "$suite" "$debs" "$@"
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$kernel_root" || die "cannot unpack $deb (disk full?)"
    done
    # The headers' Makefile has absolute paths: make them point into
    # $kernel_root. Delete vmlinux, so that kbuild makes no BTF for modules.
    sed -i "s,\(^\|[ =]\)/usr/,\1$kernel_root/usr/," \
        "$kernel_root/usr/src/$headers/Makefile"
    rm -f "$kernel_root/usr/src/$headers/vmlinux"
    ln -s "usr/src/$headers" "$kernel_root/kheaders"
    [ "$suite" != sid ] || wrap_tools "$kernel_root"
    rm -rf "$debs"
    stamp "$HT_CACHE/stamps/kernel-$name" "$headers"
}

# kernel_image NAME: put the kernel NAME into the folder kernels/NAME.image of the cache, as the
# file "kernel", with a static busybox and with virtio's drivers that are modules, unless it is
# there. If Debian no longer has the kernel of the fetched headers, fetch the suite's present
# headers, and the kernel of these.
kernel_image() {
    kernel_headers "$1"
    at=$HT_CACHE/kernels/$1.image
    headers=$(cat "$HT_CACHE/stamps/kernel-$1")
    [ ! -f "$at/kernel" ] ||
        ! stamped "$HT_CACHE/stamps/kernel-image-$1" "$headers" || return 0
    ht_arch=$arch
    debian_lists "$suite" "kernels"
    if ! private_apt "$suite" apt-cache show "linux-image-${headers#linux-headers-}" \
        >/dev/null 2>&1; then
        rm "$HT_CACHE/stamps/kernel-$1"
        kernel_headers "$1"
        headers=$(cat "$HT_CACHE/stamps/kernel-$1")
        ht_arch=$arch
    fi
    image=linux-image-${headers#linux-headers-}
    binary=$(debian_depends "$suite" "$image" '^linux-binary-' || :)
    modules=$(debian_depends "$suite" "$image" '^linux-modules-' || :)
    new=$at.new
    need_space 1500 "$HT_CACHE"
    rm -rf "$at" "$new"
    mkdir -p "$at"
    # shellcheck disable=SC2086
    debian_debs "$suite" "$new/debs" "${binary:-$image}" $modules
    debian_lists bookworm "packages"
    debian_debs bookworm "$new/debs" busybox-static
    for deb in "$new/debs"/*.deb; do
        dpkg -x "$deb" "$new/root" || die "cannot unpack $deb (disk full?)"
    done
    ht_arch=
    find "$new/root" -type f \( -path '*/drivers/virtio/virtio*.ko*' -o \
        -name 'virtio_console.ko*' \) -exec mv {} "$at/" \;
    find "$new/root" -type f -path '*bin/busybox' -exec mv {} "$at/" \;
    find "$new/root" -type f -name 'vmlinu[xz]*' -exec mv {} "$at/kernel" \;
    [ -f "$at/kernel" ] && [ -f "$at/busybox" ] ||
        die "$image has no kernel, or busybox-static no busybox"
    find "$at" -name '*.xz' -exec xz -d {} +
    rm -rf "$new"
    stamp "$HT_CACHE/stamps/kernel-image-$1" "$headers"
}
