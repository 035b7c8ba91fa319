#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build the Linux modules for Debian's kernels. By default, these are for amd64 the oldest
# that the modules support (6.1), 6.12 and the newest, each normal and PREEMPT_RT, and for
# arm64 6.12 with pages of 4 KiB and the newest with pages of 16 KiB. By default, also let
# DKMS build the modules for 6.12.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"
. "$HT_TOP/scripts/build/kernels.sh"

usage() {
    cat <<EOF
usage: scripts/build/module-kernels.sh [--every] [NAME]...

Builds guest-linux/ with warnings as errors for several kernels, whose headers
are fetched from Debian and kept. NAME is one of:
 $(kernel_names | tr '\n' ' ') dkms
or a kernel of Debian's archive, such as 6.1.0-47-rt-amd64, whose headers are not
kept. --every stands for all of these that are 6.1 or 6.12 and for amd64. A table of
the results follows; the status is 1 if a build failed.
EOF
}

wanted=
every=
while [ $# -gt 0 ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    --every) every=yes; shift ;;
    -*) die "scripts/build/module-kernels.sh: unknown argument $1" ;;
    *) wanted="$wanted $1"; shift ;;
    esac
done
"$HT_TOP/scripts/build/prerequisites.sh" --for modules
ht_paths ""
ht_tree_init

# build NAME [ARCHITECTURE]: build the modules for the kernel NAME, with the headers that
# kernel_headers has fetched; ARCHITECTURE is arm64, or empty for this system's. Return 77
# if there is no compiler for it.
build() {
    farm=$HT_TREE/module-$1
    cc=${CC:-gcc}
    [ -z "${2-}" ] || cc=aarch64-linux-gnu-gcc
    if ! have "$cc"; then
        note "no $cc: the modules are not built for $1"
        return 77
    fi
    module_farm "$farm"
    # The kernel may be configured for a compiler that has more options than this one.
    # So switch CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT off. Without debugging data the
    # build is faster.
    logged "module-$1" \
        "building the module: $(cat "$HT_CACHE/stamps/kernel-$1")" \
        make -j "$(nproc 2>/dev/null || echo 1)" \
        -C "$HT_CACHE/kernels/$1/kheaders" M="$farm/guest-linux" \
        ${2:+ARCH=$2 CROSS_COMPILE=aarch64-linux-gnu-} \
        CC="$cc" HOSTCC="${CC:-gcc}" KCFLAGS="-Werror -Wno-attributes" \
        CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO= modules
}

# Let dkms build and install the modules for the kernel 6.12 below a folder of the build
# tree, from the sources that "make dkms-source" installs there.
by_dkms() {
    have dkms || {
        note "dkms is not installed: the build by dkms is skipped"
        return 0
    }
    root=$HT_TREE/dkms
    version=$(cat "$HT_CACHE/kernels/6.12/kheaders/include/config/kernel.release")
    package=hypertrace/$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' \
        "$HT_TOP/guest-linux/dkms.conf")
    rm -rf "$root"
    mkdir -p "$root/tree" "$root/modules/$version" "$root/etc"
    make -s -C "$HT_TOP/guest-linux" DESTDIR="$root" dkms-source install-rules
    logged dkms "building $package by dkms" \
        dkms install "$package" -k "$version" --no-depmod \
        --dkmstree "$root/tree" --sourcetree "$root/usr/src" \
        --kernelsourcedir "$HT_CACHE/kernels/6.12/kheaders" \
        --directive "CC=${CC:-gcc}" --directive "HOSTCC=${CC:-gcc}" \
        --directive CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= \
        --installtree "$root/modules"
    installed=$(find "$root/modules" -name 'hypertrace*.ko*' | wc -l)
    [ "$installed" -eq "$(grep -c '^BUILT_MODULE_NAME' \
        "$HT_TOP/guest-linux/dkms.conf")" ] ||
        die "dkms installed $installed modules of $package"
    have systemd-sysusers || return 0
    systemd-sysusers --root="$root" 2>/dev/null
    grep -q '^tracing:' "$root/etc/group" || die "there is no group tracing"
}

# one NAME: fetch the headers of the kernel NAME, and build; return 77 if there
# is no compiler for it
one() {
    shared_lock "$HT_CACHE/kernels"
    kernel_headers "$1"
    cache_unlock
    build "$1" "$arch"
}

# kernel_version NAME: print the version of the kernel NAME, such as 6.1.170 for
# the package 6.1.0-47
kernel_version() {
    in=$HT_CACHE/kernels/$1/kheaders/include/generated/uapi/linux/version.h
    sed -n 's/^#define LINUX_VERSION_[PSM][A-Z]* //p' "$in" | paste -sd.
}

[ -z "$every" ] || wanted="$wanted $(kernel_every | tr '\n' ' ')"
table="| Debian's headers | kernel | result |
|---|---|---|"
status=0
for name in ${wanted:-$(kernel_names)}; do
    [ "$name" != dkms ] || continue
    (one "$name") && ret=0 || ret=$?
    case $ret in
    0) result=built ;;
    77) result="no compiler" ;;
    *) result=failed; status=1 ;;
    esac
    headers=$(cat "$HT_CACHE/stamps/kernel-$name" 2>/dev/null) || headers=$name
    table="$table
| $headers | $(kernel_version "$name" 2>/dev/null) | $result |"
    case $name in
    *-amd64)
        rm -rf "$HT_CACHE/kernels/$name" "$HT_CACHE/stamps/kernel-$name" \
            "$HT_TREE/module-$name" ;;
    esac
done
printf '%s\n' "$table"
[ "$status" = 0 ] || exit 1
case " $wanted " in
"  "|*" dkms "*)
    shared_lock "$HT_CACHE/kernels"
    kernel_headers 6.12
    cache_unlock
    by_dkms
    ;;
esac
