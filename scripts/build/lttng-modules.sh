#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build LTTng's kernel tracer for the guest's kernel from Debian's package for DKMS.
# ./run bench compares it with hypertrace-sources.ko.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

# depmod and modinfo are in folders that a user's PATH may lack.
PATH=$PATH:/usr/sbin:/sbin

suite=trixie
package=lttng-modules-dkms

case ${1-} in
-h|--help)
    echo "usage: scripts/build/lttng-modules.sh"
    echo "Builds LTTng's modules for the kernel of scripts/build/guest-image.sh into"
    echo "\$HT_LTTNG_MODULES, which scripts/env.sh prints, once."
    exit 0
    ;;
esac
ht_paths ""
ht_tree_init
kernel=$(basename "$(readlink -f "$HT_KHEADERS")")
! stamped "$HT_CACHE/stamps/lttng-modules" "$suite $kernel" || exit 0

cache_lock
work=$HT_CACHE/download/lttng-modules
rm -rf "$work"
debian_debs "$suite" "$work/debs" "$package"
dpkg -x "$work/debs/"*.deb "$work/all" || die "cannot unpack $package"
source=$(find "$work/all/usr/src" -mindepth 1 -maxdepth 1)
# Leave out the probes of timers: the guest's stable kernel has changed these
# tracepoints since this version of LTTng.
sed -i '/lttng-probe-timer\.o/d' "$source/src/probes/Kbuild"
logged lttng-modules "building LTTng's modules: $(basename "$source")" \
    make -j "$(nproc 2>/dev/null || echo 1)" -C "$HT_KHEADERS" M="$source" \
    CC="${CC:-gcc}" HOSTCC="${CC:-gcc}" CONFIG_LTTNG=m CONFIG_DEBUG_INFO= modules
version=$(modinfo -F vermagic "$source/src/lttng-tracer.ko" | cut -d' ' -f1)
# Make the folder in which the guest's session daemon searches modules. Strip
# debugging information, because the guest would copy it, too.
rm -rf "$HT_LTTNG_MODULES"
into=$HT_LTTNG_MODULES/lib/modules/$version/extra
mkdir -p "$into"
find "$source" -name '*.ko' ! -path '*/tests/*' -exec cp {} "$into/" \;
strip --strip-debug "$into/"*.ko
cp "$HT_GUEST/lib/modules/$version"/modules.order \
    "$HT_GUEST/lib/modules/$version"/modules.builtin* "${into%/*}/"
depmod -b "$HT_LTTNG_MODULES" "$version"
rm -rf "$work"
stamp "$HT_CACHE/stamps/lttng-modules" "$suite $kernel"
cache_unlock
