#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetch more stock guests than scripts/build/guest-image.sh does, each from Debian's
# archive: a system on a disk, kernels of other versions and architectures, the
# parts of a unified kernel image, a program that starts guests, a KVM host, a Xen
# host, and a program that reads traces of Xen.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

# Programs for file systems are often in folders outside PATH.
PATH=$PATH:/usr/sbin:/sbin

all="disk newest oldest rt arm64 uki mkosi kvmhost xenhost xenalyze"
debian=trixie
newest_suite=trixie-backports
oldest_suite=bullseye
mkosi_suite=bookworm
xen_suite=bookworm

usage() {
    cat <<EOF
usage: scripts/vm/stock-guests.sh [NAME]...

Makes guests in \$HT_CACHE/stock, once. NAME is one of
  disk    a Debian with systemd on a disk, with its own kernel and boot loader
  newest  the newest kernel that Debian $newest_suite has
  oldest  the 5.10 kernel of Debian $oldest_suite
  rt      Debian's kernel with PREEMPT_RT
  arm64   Debian's kernel for arm64, and a static busybox
  uki     the tools that join a kernel and systemd's stub into one file
  mkosi   mkosi 14 of Debian $mkosi_suite, which starts QEMU for its images
  kvmhost a Debian that runs QEMU with KVM, inside an emulated processor that
          has AMD's SVM
  xenhost the same for Xen: its hypervisor, and a Debian for the domain 0
  xenalyze the program of Debian $xen_suite that reads traces of Xen
EOF
}

# begin NAME RECIPE: make the empty folder $new for the guest NAME. If NAME was
# already made by the same recipe, return 1.
begin() {
    recipe=$2
    ! stamped "$HT_CACHE/stamps/stock-$1" "$recipe" || return 1
    new=$stock/$1.new
    debs=$HT_CACHE/download/stock-$1
    rm -rf "$new" "$debs"
    mkdir -p "$new"
}

end() {
    rm -rf "${stock:?}/$1" "$debs"
    mv "$new" "$stock/$1"
    stamp "$HT_CACHE/stamps/stock-$1" "$recipe"
}

unpack() {
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$new" || die "cannot unpack $deb (disk full?)"
    done
}

# make_kernel NAME SUITE META PACKAGE...: make the guest NAME: the kernel on which the
# package META depends, and the content of the other packages
make_kernel() {
    name=$1
    begin "$name" "$2" || return 0
    need_space 600 "$stock"
    from=$2
    meta=$3
    shift 3
    debian_kernel "$from" "$meta" "$new" "$debs" "$@"
    end "$name"
}

# GRUB adds words from SMBIOS to the kernel's command line, as systemd's stub
# does. The longer timeouts are for an emulated guest on a busy host.
# shellcheck disable=SC2016
grub_cfg='serial
terminal_output serial
insmod smbios
insmod regexp
smbios --type 11 --get-string 4 --set oem
regexp --set 1:extra "^io\.systemd\.stub\.kernel-cmdline-extra=(.*)" "$oem"
set patience="systemd.default_device_timeout_sec=3600 systemd.default_timeout_start_sec=3600"
set timeout=0
menuentry Debian {
    linux /vmlinuz root=/dev/vda1 ro console=ttyS0 no_timer_check $patience $extra
    initrd /initrd.img
}'
grub_modules="biosdisk part_msdos ext2 normal linux serial terminal smbios regexp"

# Script that completes the root file system in the folder $1
#
# shellcheck disable=SC2016
set_up='set -eu
echo "/dev/vda1 / ext4 defaults 0 1" >"$1/etc/fstab"
echo debian >"$1/etc/hostname"
printf "[Match]\nName=e*\n[Network]\nDHCP=ipv4\n" \
    >"$1/etc/systemd/network/all.network"
chroot "$1" systemctl enable systemd-networkd serial-getty@ttyS0
chroot "$1" passwd -d root
mkdir -p "$1/boot/grub"
chroot "$1" grub-mkimage -O i386-pc -o /boot/grub/core.img \
    -p "(hd0,msdos1)/boot/grub" '"$grub_modules"

# debian_root LOG WHAT OPTION...: set root to a folder, and make the root file
# system of a Debian in it by mmdebstrap, which gets the options. LOG is the name of
# the log file; WHAT says in messages what is made.
debian_root() {
    log=$1
    what=$2
    shift 2
    have mmdebstrap && have mke2fs || die "$what needs mmdebstrap and e2fsprogs"
    need_space 3000 "$stock"
    debian_mirrors "$what"
    in_guest=
    [ "$(id -u)" -eq 0 ] || in_guest="mmdebstrap --unshare-helper"
    root=$new/root
    ht_hint=$ht_offline
    logged "$log" "making $what of $debian" \
        mmdebstrap --variant=minbase --keyring="$ht_keyring" \
        --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$@" "$debian" "$root" "$ht_mirror"
    ht_hint=
}

make_disk() {
    begin disk "$(printf '%s\n' "$debian" "$grub_cfg" "$set_up" | sha256sum)" ||
        return 0
    have sfdisk || die "a Debian on a disk needs fdisk"
    write_file "$new/grub.cfg" "$grub_cfg"
    debian_root stock-disk "a Debian on a disk" \
        --include=linux-image-cloud-amd64,initramfs-tools,grub-pc-bin \
        --include=systemd-sysv,udev,dbus,kmod,login,iproute2 \
        --include=cron,openssh-server,procps \
        --customize-hook="$set_up" \
        --customize-hook="upload '$new/grub.cfg' /boot/grub/grub.cfg"
    image=$new/disk.img
    cp -L "$root/vmlinuz" "$new/vmlinuz"
    truncate -s 1537M "$image"
    echo 'start=2048, type=83, bootable' | sfdisk -q "$image" ||
        die "cannot make a partition in $image"
    # shellcheck disable=SC2086
    logged stock-ext4 "making the disk" \
        $in_guest mke2fs -q -t ext4 -d "$root" -E offset=1048576 "$image" 1536M
    # boot.img, in the first sector of the disk, loads core.img, which begins in
    # the second.
    dd if="$root/usr/lib/grub/i386-pc/boot.img" of="$image" bs=440 count=1 \
        conv=notrunc status=none
    dd if="$root/boot/grub/core.img" of="$image" bs=512 seek=1 \
        conv=notrunc status=none
    $in_guest rm -rf "$root"
    end disk
}

# Init of a host that runs guests. The third disk has a tar archive; init unpacks it and
# runs its script "run", which may write a tar archive to the second disk. Then init
# powers the host off.
host_init='#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
mount -t tmpfs none /run
mount -t tmpfs none /tmp
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mkdir /run/job
tar x -C /run/job </dev/vdc
cd /run/job && sh ./run
sync
echo o >/proc/sysrq-trigger
sleep 1000'

# First process of a host that runs guests: load the modules for the disk, and
# start $host_init from it
#
# shellcheck disable=SC2016
host_start='#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /dev /root
$b mount -t devtmpfs none /dev
while read -r module; do $b insmod "/modules/$module"; done </modules/list
while [ ! -b /dev/vda ]; do $b sleep 0.1; done
$b mount -t ext4 /dev/vda /root
exec $b switch_root /root /sbin/host-init'

# Script that puts the files of an initrd for the root file system in the folder $1
# into the folder $2, and writes the initrd to its standard output
#
# shellcheck disable=SC2016
host_initrd='set -eu
version=$(ls "$1/lib/modules")
mkdir -p "$2/bin" "$2/modules"
cp "$1/bin/busybox" "$2/bin/busybox"
for module in virtio_pci virtio_blk ext4 crc32c_generic; do
    modprobe -d "$1" -S "$version" --show-depends "$module"
done | while read -r what path _; do
    [ "$what" = insmod ] || continue
    name=$(basename "$path")
    case $name in
    *.xz) name=${name%.xz}; xz -dc "$path" >"$2/modules/$name" ;;
    *.zst) name=${name%.zst}; zstd -dcq "$path" >"$2/modules/$name" ;;
    *) cp "$path" "$2/modules/$name" ;;
    esac
    echo "$name"
done | awk "!seen[\$0]++" >"$2/modules/list"
cd "$2"
find . | cpio -o -H newc --quiet'

# make_host NAME WHAT PACKAGES OPTION...: make the disk, the kernel and the initrd of a
# host that runs guests. The host has the PACKAGES, which commas separate; mmdebstrap
# gets the options; WHAT says in messages what is made.
make_host() {
    host=$1
    host_is=$2
    packages=kmod,busybox-static,procps,iproute2,$3
    shift 3
    begin "$host" "$(printf '%s\n' "$debian" "$packages" "$*" "$host_init" \
        "$host_start" "$host_initrd" | sha256sum)" || return 0
    have modprobe && have cpio || die "$host_is needs kmod and cpio"
    # Keep the package of the kernel from making an initrd, because $host_initrd
    # makes one.
    export INITRD=No
    debian_root "stock-$host" "$host_is" --include="$packages" \
        --aptopt='APT::Install-Recommends "false"' "$@"
    unset INITRD
    cp "$root"/boot/vmlinuz-* "$new/vmlinuz"
    ! [ "$host" = xenhost ] || gzip -dc "$root"/boot/xen-*.gz >"$new/xen" ||
        die "cannot unpack Xen"
    write_file "$root/sbin/host-init" "$host_init"
    chmod 755 "$root/sbin/host-init"
    mkdir -p "$new/initrd.root"
    write_file "$new/initrd.root/init" "$host_start"
    chmod 755 "$new/initrd.root/init"
    sh -c "$host_initrd" sh "$root" "$new/initrd.root" >"$new/initrd" ||
        die "cannot make the initrd of $host_is"
    # shellcheck disable=SC2086
    logged "$host-ext4" "making the disk of $host_is" \
        $in_guest mke2fs -q -t ext4 -d "$root" "$new/disk.img" 1536M
    $in_guest rm -rf "$root"
    rm -rf "$new/initrd.root"
    end "$host"
}

make_kvmhost() {
    make_host kvmhost "a KVM host" \
        linux-image-cloud-amd64,qemu-system-x86,trace-cmd,linux-perf
}

# Xen's domain 0 needs linux-image-amd64, because Debian's kernel for clouds does not
# support it. Leave out drivers that the host does not need.
make_xenhost() {
    set --
    for drivers in gpu net media iio usb scsi infiniband; do
        set -- "$@" \
            --dpkgopt="path-exclude=/usr/lib/modules/*/kernel/drivers/$drivers/*" \
            --dpkgopt="path-exclude=/lib/modules/*/kernel/drivers/$drivers/*"
    done
    make_host xenhost "a Xen host" linux-image-amd64,xen-system-amd64 "$@"
}

make_uki() {
    begin uki "$debian" || return 0
    debian_debs "$debian" "$debs" systemd-boot-efi systemd-ukify
    unpack
    end uki
}

make_mkosi() {
    begin mkosi "$mkosi_suite" || return 0
    debian_debs "$mkosi_suite" "$debs" mkosi
    unpack
    end mkosi
}

make_xenalyze() {
    begin xenalyze "$xen_suite" || return 0
    debian_debs "$xen_suite" "$debs" xen-utils-common
    unpack
    end xenalyze
}

wanted=
while [ $# -gt 0 ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    *)
        case " $all " in *" $1 "*) ;; *)
            die "scripts/vm/stock-guests.sh: no guest '$1'; there are: $all" ;;
        esac
        wanted="$wanted $1"
        shift
        ;;
    esac
done
ht_paths ""
ht_tree_init
stock=$HT_CACHE/stock
mkdir -p "$stock"
cache_lock
for guest in ${wanted:-$all}; do
    case $guest in
    disk) make_disk ;;
    newest) make_kernel newest "$newest_suite" linux-image-cloud-amd64 ;;
    oldest)
        # Mirrors drop a suite when its support has ended: then this guest is
        # not made, and its tests are skipped.
        (make_kernel oldest "$oldest_suite" linux-image-cloud-amd64) ||
            echo "no guest 'oldest': see the message above" >&2
        ;;
    rt) make_kernel rt "$debian" linux-image-rt-amd64 ;;
    arm64)
        # shellcheck disable=SC2034 # read by private_apt
        ht_arch=arm64
        make_kernel arm64 "$debian" linux-image-cloud-arm64 busybox-static
        ht_arch=
        ;;
    uki) make_uki ;;
    mkosi) make_mkosi ;;
    kvmhost) make_kvmhost ;;
    xenhost) make_xenhost ;;
    xenalyze) make_xenalyze ;;
    esac
done
cache_unlock
