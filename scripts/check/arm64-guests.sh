#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Test programs and the Linux modules on arm64 over each channel. The guests run
# Debian's kernels with pages of 4 KiB and of 16 KiB; QEMU emulates the processor.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"
. "$HT_TOP/scripts/build/kernels.sh"

kernels="arm64 arm64-16k"
cross=aarch64-linux-gnu-
limit=900                       # seconds a guest may take

usage() {
    cat <<EOF
usage: scripts/check/arm64-guests.sh [NAME]...

Builds a QEMU for arm64, the modules and programs for it, and boots the kernels
NAME ($kernels), whose packages are fetched from Debian and kept. Each guest has
one device for each channel. All events of programs must arrive, and events of
the kernel, too.
EOF
}

for name; do
    case " $kernels " in
    *" $name "*) ;;
    *)
        usage
        [ "$name" = --help ] || [ "$name" = -h ] || exit 2
        exit 0
        ;;
    esac
done
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $kernels
"$HT_TOP/scripts/build/prerequisites.sh" --for arm64
"$HT_TOP/qemu/fetch.sh"
"$HT_TOP/qemu/graft.sh"
"$HT_TOP/qemu/build.sh" --flavour arm64
ht_paths "" arm64
ht_tree_init
shared_lock "$HT_CACHE/kernels"
for name; do
    kernel_image "$name"
done
cache_unlock
"$HT_TOP/scripts/build/module-kernels.sh" "$@"
qemu=$HT_QEMU_BUILD/qemu-system-aarch64
work=$HT_TREE/arm64
mkdir -p "$work"

# program NAME SOURCE: build the static program NAME for arm64 from SOURCE and
# the guest library
program() {
    # shellcheck disable=SC2046
    "${cross}gcc" -static -O2 -Wall -Werror -DTRACETEST_STATIC -pthread \
        -I "$HT_TOP/guest-lib/include" -I "$HT_TOP/include" \
        -o "$work/$1" "$HT_TOP/$2" \
        $(find "$HT_TOP/guest-lib/src" -name '*.c') \
        $(find "$HT_TOP/guest-lib/ports" -maxdepth 1 -name 'linux-*.c')
}

# The guest's init. virtio's modules depend on each other, so init tries four times
# to load all of them.
#
# shellcheck disable=SC2016
init='#!/busybox sh
export PATH=/bin
/busybox mkdir -p /bin /proc /sys /dev
/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for round in 1 2 3 4; do
    for module in /keep/virtio*.ko; do
        insmod $module 2>/dev/null
    done
done
insmod /modules/hypertrace.ko || echo FAILED
awk "/KernelPageSize/ { print \"PAGES\", \$2; exit }" /proc/self/smaps
for n in 0 1 2; do
    export HYPERTRACE_DEVICE=/dev/hypertrace$n
    /ht-hello || echo FAILED
    /ht-tracetest emit 700 || echo FAILED
    /ht-tracetest threads 4 300 || echo FAILED
    /ht-tracetest fork 500 || echo FAILED
done
rmmod hypertrace
for n in 0 1 2; do
    insmod /modules/hypertrace.ko kernel_device=$n || echo FAILED
    insmod /modules/hypertrace-sources.ko events=sched || echo FAILED
    sleep 1
    rmmod hypertrace-sources hypertrace || echo FAILED
done
dmesg | grep -e "Call trace" -e "BUG:" -e "WARNING:" && echo FAILED
echo END
poweroff -f
'

make_initrd() {
    root=$work/root
    rm -rf "$root"
    mkdir -p "$root/modules"
    cp -r "$HT_CACHE/kernels/$1.image" "$root/keep"
    rm "$root/keep/kernel"
    mv "$root/keep/busybox" "$root/busybox"
    cp "$HT_TREE/module-$1/guest-linux/"*.ko "$root/modules/"
    cp "$work/ht-hello" "$work/ht-tracetest" "$root/"
    printf '%s' "$init" >"$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
}

# arrived CHANNEL PATTERN: print how many events of the device with this channel
# are in its log and match PATTERN
arrived() {
    grep -c "^[^ ]* $1 stream [0-9]* vcpu [-0-9]* $2" "$work/$1.log" || :
}

boot() {
    make_initrd "$1"
    set --
    for channel in hypercall shm virtio; do
        rm -f "$work/$channel.log"
        set -- "$@" -object \
            "hypertrace-backend-log,id=l$channel,file=$work/$channel.log" \
            -device "hypertrace,id=$channel,channel=$channel,backend=l$channel,packets=64"
    done
    ht_hint="see $work/console"
    # shellcheck disable=SC2034 # read by logged
    logged arm64-guest "booting $name" timeout "$limit" "$qemu" \
        -M virt -cpu max -smp 2 -m 1024 -nodefaults -display none -no-reboot \
        -kernel "$HT_CACHE/kernels/$name.image/kernel" \
        -initrd "$work/initrd" -append "console=ttyAMA0 panic=-1" \
        -serial "file:$work/console" "$@"
    ht_hint=
}

failed=0
program ht-hello examples/hello.c
program ht-tracetest tests/e2e/programs/ht-tracetest.c
for name; do
    boot "$name"
    tr -d '\r' <"$work/console" >"$work/text"
    grep -q '^END$' "$work/text" || die "$name: the guest did not come to its end (see $work/console)"
    ! grep -q '^FAILED$' "$work/text" || die "$name: something failed (see $work/console)"
    pages=$(sed -n 's/^PAGES //p' "$work/text")
    # ht-tracetest prints how many events it emitted. The guest ran the same three
    # commands of ht-tracetest on each of its three devices, so each device must have
    # logged a third of the sum.
    emitted=$(sed -n 's/^emitted //p' "$work/text" |
              awk '{ n += $1 } END { print n / 3 }')
    for channel in hypercall shm virtio; do
        hellos=$(arrived "$channel" 'hello')
        tests=$(arrived "$channel" 'tracetest\.')
        printf '%s, pages of %s KiB, %s: hello %s of 10, programs %s of %s,' \
            "$name" "$pages" "$channel" "$hellos" "$tests" "$emitted"
        printf ' sched %s, printk %s\n' "$(arrived "$channel" 'sched_')" \
            "$(arrived "$channel" 'printk')"
        [ "$hellos" -eq 10 ] && [ "$tests" -eq "$emitted" ] &&
            [ "$(arrived "$channel" sched_)" -gt 0 ] &&
            [ "$(arrived "$channel" printk)" -gt 0 ] || failed=1
    done
done
[ "$failed" -eq 0 ] || die "events are missing"
