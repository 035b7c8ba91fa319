#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetch Debian's QEMU source, the firmware that is not in it, and a meson new enough for
# QEMU, into the cache. A part that the cache has is not fetched again.

. "$(dirname -- "$0")/../scripts/lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

suite=trixie

usage() {
    echo "usage: qemu/fetch.sh [--qemu DIR] [--meson-only]"
    echo "Fetches what a build of QEMU needs; with --qemu no QEMU source."
}

meson_only=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --meson-only) meson_only=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    *) die "qemu/fetch.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg"
cache_lock
mkdir -p "$HT_CACHE/stamps"

fetch_source() {
    stamped "$HT_CACHE/stamps/qemu-source" "$suite" && return 0
    need_space 1500 "$HT_CACHE"
    rm -rf "$HT_CACHE/download/qemu" "$HT_CACHE/qemu-source.new"
    mkdir -p "$HT_CACHE/download/qemu"
    debian_lists "$suite" "QEMU source"
    cd "$HT_CACHE/download/qemu"
    ht_hint=$ht_offline
    logged qemu-download "downloading the source of QEMU (Debian $suite)" \
        private_apt "$suite" apt-get source --download-only --only-source qemu
    ht_hint=
    logged qemu-unpack "unpacking it" \
        dpkg-source --no-copy -x ./*.dsc "$HT_CACHE/qemu-source.new"
    rm -rf "$HT_CACHE/qemu-source"
    mv "$HT_CACHE/qemu-source.new" "$HT_CACHE/qemu-source"
    cd "$HT_TOP"
    stamp "$HT_CACHE/stamps/qemu-source" "$suite"
}

# unpack_debs NAME PACKAGE...: download the packages and unpack them into
# $HT_CACHE/NAME
unpack_debs() {
    name=$1
    shift
    stamped "$HT_CACHE/stamps/$name" "$suite $*" && return 0
    rm -rf "$HT_CACHE/download/$name" "$HT_CACHE/$name.new"
    debian_debs "$suite" "$HT_CACHE/download/$name" "$@"
    mkdir -p "$HT_CACHE/$name.new"
    for deb in "$HT_CACHE/download/$name"/*.deb; do
        dpkg -x "$deb" "$HT_CACHE/$name.new" ||
            die "cannot unpack $deb (disk full?)"
    done
    case $name in
    meson) write_meson "$HT_CACHE/$name.new" ;;
    firmware) gather_firmware "$HT_CACHE/$name.new" ;;
    esac
    rm -rf "${HT_CACHE:?}/$name"
    mv "$HT_CACHE/$name.new" "$HT_CACHE/$name"
    stamp "$HT_CACHE/stamps/$name" "$suite $*"
}

# Write a script that starts this meson. ninja runs the script again by its path.
write_meson() {
    cat >"$1/meson.py" <<EOF
#!$HT_PYTHON
import os
import sys

here = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(here, 'usr/lib/python3/dist-packages'))
from mesonbuild.mesonmain import main
sys.exit(main())
EOF
    chmod +x "$1/meson.py"
}

# Link the firmware files of all packages into one folder
gather_firmware() {
    mkdir "$1/all"
    for file in "$1"/usr/share/seabios/* "$1"/usr/share/qemu/*; do
        ln -sf "../${file#"$1"/}" "$1/all/"
    done
}

if have apt-get; then
    unpack_debs meson meson
    if [ -z "$meson_only" ]; then
        [ -n "$HT_USER_QEMU" ] || fetch_source
        unpack_debs firmware seabios qemu-system-data ipxe-qemu
    fi
    rm -rf "$HT_CACHE/download" "$HT_CACHE/apt/$suite"
elif [ -z "$HT_USER_QEMU$meson_only" ]; then
    debian_mirrors "QEMU's source"
fi
