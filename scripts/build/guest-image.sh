#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetch the kernels of the test guest, and make its initrd of a static busybox.  The
# kernel is Debian's 6.12 cloud kernel (virtio and virtio_pci built in), with its
# headers for building the modules.  Tests that read a kernel's memory also use
# Debian's 6.1 cloud kernel.
#
# The kernel 6.12 is the package of bookworm-backports: its build tools run with
# Debian 12's libc and with newer ones. The build tools of trixie's package need
# trixie's libc.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

suite=bookworm-backports
old_suite=bookworm
busybox_suite=trixie

usage() {
    echo "usage: scripts/build/guest-image.sh [--qemu DIR]"
    echo "Fetches the guest's kernels and makes its initrd."
}

while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    -h|--help) usage; exit 0 ;;
    *) die "scripts/build/guest-image.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg"
ht_tree_init
cache_lock

fetch_kernel() {
    [ ! -f "$HT_CACHE/stamps/guest" ] || return 0
    need_space 600 "$HT_CACHE"
    new=$HT_GUEST.new
    debs=$HT_CACHE/download/guest
    rm -rf "$new" "$debs"
    mkdir -p "$new"
    debian_lists "$suite" "kernels"
    image=$(debian_depends "$suite" linux-image-cloud-amd64 '^linux-image-6')
    [ -n "$image" ] || die "Debian $suite has no 6.x cloud kernel"
    release=${image#linux-image-}
    base=${release%-cloud-amd64}
    debian_debs "$suite" "$debs" "$image" "linux-headers-$release" \
        "linux-headers-$base-common" "linux-kbuild-$base"
    debian_debs "$busybox_suite" "$debs" busybox-static
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$new" || die "cannot unpack $deb (disk full?)"
    done
    headers=usr/src/linux-headers-$release
    # The headers' Makefile has an absolute path: make it point into $HT_GUEST. Delete
    # vmlinux, so that kbuild makes no BTF for modules, which would need pahole.
    sed -i "s,^include /usr/src/,include $HT_GUEST/usr/src/," \
        "$new/$headers/Makefile"
    rm -f "$new/$headers/vmlinux"
    rm -rf "${new:?}/usr/share"
    ln -s "boot/vmlinuz-$release" "$new/vmlinuz"
    ln -s "$headers" "$new/kheaders"
    rm -rf "$HT_GUEST"
    mv "$new" "$HT_GUEST"
    rm -rf "$HT_CACHE/download" "$HT_CACHE/apt/$suite" \
        "$HT_CACHE/apt/$busybox_suite"
    stamp "$HT_CACHE/stamps/guest" "$release"
}

fetch_old_kernel() {
    [ ! -f "$HT_CACHE/stamps/guest-old" ] || return 0
    need_space 300 "$HT_CACHE"
    old=$(dirname "$HT_KERNEL_OLD")
    new=$old.new
    debs=$HT_CACHE/download/guest-old
    rm -rf "$new" "$debs"
    mkdir -p "$new"
    debian_kernel "$old_suite" linux-image-cloud-amd64 "$new" "$debs"
    rm -rf "$old"
    mv "$new" "$old"
    rm -rf "$debs" "$HT_CACHE/apt/$old_suite"
    stamp "$HT_CACHE/stamps/guest-old" "$old_suite"
}

# Unpack the kernel to the ELF file $HT_VMLINUX. QEMU starts such a file by PVH, so
# the guest need not unpack its kernel.
unpack_kernel() {
    [ ! -f "$HT_VMLINUX" ] || return 0
    "$HT_PYTHON" - "$HT_KERNEL" <<'EOT' | zstd -qdc >"$HT_VMLINUX.new" ||
import struct, sys
with open(sys.argv[1], "rb") as f:
    image = f.read()
# Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length.
# The last 4 bytes of the payload are its unpacked length.
start = (image[0x1f1] + 1) * 512
offset, length = struct.unpack_from("<II", image, 0x248)
sys.stdout.buffer.write(image[start + offset:start + offset + length - 4])
EOT
        die "cannot unpack $HT_KERNEL (disk full?)"
    mv "$HT_VMLINUX.new" "$HT_VMLINUX"
}

make_initrd() {
    key=$(sha256sum <"$HT_TOP/scripts/build/guest-init")
    [ -f "$HT_INITRD" ] && stamped "$HT_TREE/initrd.stamp" "$key" && return 0
    step "making the guest's initrd"
    root=$HT_TREE/initrd.root
    rm -rf "$root"
    mkdir -p "$root/bin" "$root/sbin" "$root/usr/bin" "$root/usr/sbin" \
        "$root/proc" "$root/sys" "$root/dev" "$root/etc" "$root/ht/bin"
    busybox=$(find "$HT_GUEST/bin" "$HT_GUEST/usr/bin" -name busybox \
              2>/dev/null | head -n 1)
    cp "$busybox" "$root/bin/busybox"
    cp "$HT_TOP/scripts/build/guest-init" "$root/init"
    chmod +x "$root/init"
    "$busybox" --list-full | while IFS= read -r applet; do
        [ "$applet" = bin/busybox ] || ln -f "$root/bin/busybox" "$root/$applet"
    done
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    "$HT_TOP/scripts/build/guest-overlay.sh" "$HT_INITRD" "$root"
    rm -rf "$root"
    stamp "$HT_TREE/initrd.stamp" "$key"
}

if [ ! -f "$HT_CACHE/stamps/guest" ] || [ ! -f "$HT_CACHE/stamps/guest-old" ]; then
    have dpkg || die "the guest's kernel comes as a Debian package, and dpkg" \
        "is not here; the QEMU build and the unit tests do without"
fi
fetch_kernel
fetch_old_kernel
unpack_kernel
cache_unlock
make_initrd
