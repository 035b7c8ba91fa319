#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Print the environment variables that the demo, the tests and users need.

. "$(dirname -- "$0")/lib.sh"

usage() {
    cat <<EOF
usage: eval "\$(scripts/env.sh [--qemu DIR] [--flavour NAME])"

Prints, without building anything, shell exports of
  HT_TOP         the checkout
  HT_CACHE       the cache of downloads and build trees
  HT_TREE        this checkout's folder in it
  HT_QEMU        qemu-system-x86_64; firmware is found without -L
  HT_QEMU_L      -L options for the firmware, for another QEMU binary
  HT_QEMU_SRC    the grafted QEMU source tree
  HT_QEMU_BUILD  its build folder
  QEMU_MODULE_DIR  the same: where QEMU looks for its modules
  HT_BUILD       meson's build folder of the library, tools and unit tests
  HT_KERNEL      the guest's kernel
  HT_VMLINUX     the same, unpacked
  HT_KERNEL_OLD  an older kernel, 6.1
  HT_KERNEL_ARGS what its command line begins with
  HT_INITRD      its initrd; append what scripts/build/guest-overlay.sh makes
  HT_KHEADERS    the kernel's headers, for make -C
  HT_MODULE      hypertrace.ko for that kernel; empty if it was not built
  HT_LTTNG_MODULES  what scripts/build/lttng-modules.sh makes
  HT_GUEST_BIN   static programs for the guest
  HT_SCRATCH     a folder for temporary files
  HT_PYTHON      Debian's python, which has pytest
  HT_MESON       a meson new enough
EOF
}

flavour=plain
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --flavour) flavour=${2:?}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) die "scripts/env.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg" "$flavour"
ht_run_env
for name in HT_TOP HT_CACHE HT_TREE HT_QEMU HT_QEMU_L HT_QEMU_SRC \
    HT_QEMU_BUILD QEMU_MODULE_DIR HT_BUILD HT_KERNEL HT_VMLINUX \
    HT_KERNEL_OLD HT_KERNEL_ARGS HT_INITRD HT_KHEADERS HT_MODULE HT_LTTNG_MODULES \
    HT_GUEST_BIN HT_SCRATCH HT_PYTHON HT_MESON; do
    eval "value=\$$name"
    # shellcheck disable=SC2154
    printf "export %s='%s'\n" "$name" \
        "$(printf '%s' "$value" | sed "s/'/'\\\\''/g")"
done
