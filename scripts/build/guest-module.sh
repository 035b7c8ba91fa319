#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build the Linux modules for the guest's kernel.

. "$(dirname -- "$0")/../lib.sh"

while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    -h|--help)
        echo "usage: scripts/build/guest-module.sh [--qemu DIR]"
        echo "Builds guest-linux/ for the kernel of scripts/build/guest-image.sh."
        exit 0
        ;;
    *) die "scripts/build/guest-module.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg"
ht_tree_init

[ -f "$HT_TOP/guest-linux/Kbuild" ] || [ -f "$HT_TOP/guest-linux/Makefile" ] || {
    note "no guest-linux/ in this checkout: no kernel module"
    exit 0
}

farm=$HT_TREE/module
module_farm "$farm"

# CC is given on the command line, because only there it overrides the compiler
# that the Makefile of the headers names. CONFIG_DEBUG_INFO is off, so that the
# guest copies and loads a smaller file. With HT_TOP the Kbuild file finds
# include/ and guest-lib/ in $farm.
logged module "building hypertrace.ko" \
    make -j "$(nproc 2>/dev/null || echo 1)" -C "$HT_KHEADERS" \
    M="$farm/guest-linux" CC="${CC:-gcc}" HOSTCC="${CC:-gcc}" \
    HT_TOP="$farm" CONFIG_DEBUG_INFO= modules
[ -f "$farm/guest-linux/hypertrace.ko" ] ||
    die "guest-linux/ built, but gave no hypertrace.ko"
