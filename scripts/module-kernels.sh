#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build the Linux modules for the kernels that they support: the oldest, the one
# of the guest, and the newest that Debian has, each normal and PREEMPT_RT, and
# for arm64 with pages of 4 and of 16 KiB. And as DKMS does, from what is
# installed.

. "$(dirname -- "$0")/lib.sh"
. "$HT_TOP/scripts/debian.sh"

# name, suite, package whose dependency is the headers', architecture
kernels="\
6.1 bookworm linux-headers-amd64
6.1-rt bookworm linux-headers-rt-amd64
6.12 bookworm-backports linux-headers-amd64
6.12-rt bookworm-backports linux-headers-rt-amd64
newest sid linux-headers-amd64
newest-rt sid linux-headers-rt-amd64
arm64 bookworm-backports linux-headers-arm64 arm64
arm64-16k sid linux-headers-arm64-16k arm64
"

usage() {
    cat <<EOF
usage: scripts/module-kernels.sh [NAME]...

Builds guest-linux/ with warnings as errors for several kernels, whose headers
are fetched from Debian and kept. NAME is one of:
 $(printf '%s' "$kernels" | sed 's/ .*//' | tr '\n' ' ') dkms
EOF
}

wanted=
while [ $# -gt 0 ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    -*) die "scripts/module-kernels.sh: unknown argument $1" ;;
    *) wanted="$wanted $1"; shift ;;
    esac
done
"$HT_TOP/scripts/prerequisites.sh" --for modules
ht_paths ""
ht_tree_init
ht_apt=$HT_CACHE/kernels/apt    # who builds QEMU has not to wait for these

# The tools of newer kernels' kbuild want a newer libc than there may be here:
# they are run with their suite's.
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

fetch() {
    name=$1
    suite=$2
    kernel_root=$HT_CACHE/kernels/$name
    [ ! -f "$HT_CACHE/stamps/kernel-$name" ] || return 0
    need_space 600 "$HT_CACHE"
    debs=$kernel_root.debs
    rm -rf "$kernel_root" "$debs"
    mkdir -p "$kernel_root"
    ht_arch=${4-}
    debian_lists "$suite" "kernels"
    headers=$(debian_depends "$suite" "$3" '^linux-headers-[0-9]')
    [ -n "$headers" ] || die "Debian $suite has no $3"
    common=$(debian_depends "$suite" "$headers" '^linux-headers-.*-common')
    kbuild=$(debian_depends "$suite" "$headers" '^linux-kbuild-')
    if [ -n "$ht_arch" ]; then
        debian_debs "$suite" "$debs" "$headers"
        ht_arch=                # the rest is of any, or runs here
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
    # The package expects to live in /; without vmlinux, no BTF is made.
    sed -i "s,\(^\|[ =]\)/usr/,\1$kernel_root/usr/," \
        "$kernel_root/usr/src/$headers/Makefile"
    rm -f "$kernel_root/usr/src/$headers/vmlinux"
    ln -s "usr/src/$headers" "$kernel_root/kheaders"
    [ "$suite" != sid ] || wrap_tools "$kernel_root"
    rm -rf "$debs"
    stamp "$HT_CACHE/stamps/kernel-$name" "$headers"
}

# build NAME [ARCHITECTURE]
build() {
    farm=$HT_TREE/module-$1
    cc=${CC:-gcc}
    [ -z "${2-}" ] || cc=aarch64-linux-gnu-gcc
    if ! have "$cc"; then
        note "no $cc: the modules are not built for $1"
        return 0
    fi
    module_farm "$farm"
    # Headers may be for a compiler that knows more than the one here.
    logged "module-$1" \
        "building the module: $(cat "$HT_CACHE/stamps/kernel-$1")" \
        make -j "$(nproc 2>/dev/null || echo 1)" \
        -C "$HT_CACHE/kernels/$1/kheaders" M="$farm/guest-linux" \
        ${2:+ARCH=$2 CROSS_COMPILE=aarch64-linux-gnu-} \
        CC="$cc" HOSTCC="${CC:-gcc}" KCFLAGS="-Werror -Wno-attributes" \
        CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= modules
}

# What "make dkms-source" installs is built and installed by dkms, below a
# folder of this tree, for the kernel 6.12.
by_dkms() {
    have dkms || {
        note "no dkms: not tried"
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

for name in $(printf '%s' "$kernels" | sed 's/ .*//'); do
    case " $wanted " in
    "  "|*" $name "*) ;;
    *) continue ;;
    esac
    row=$(printf '%s' "$kernels" | grep "^$name ")
    shared_lock "$HT_CACHE/kernels"
    # shellcheck disable=SC2086
    fetch $row
    cache_unlock
    # shellcheck disable=SC2086
    set -- $row
    build "$name" "${4-}"
done
case " $wanted " in
"  "|*" dkms "*)
    # shellcheck disable=SC2046
    set -- $(printf '%s' "$kernels" | grep '^6\.12 ')
    shared_lock "$HT_CACHE/kernels"
    fetch "$@"
    cache_unlock
    by_dkms
    ;;
esac
