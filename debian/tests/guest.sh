# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the tests of the packages: functions that boot a guest, which has a busybox
# and the newest of Debian's cloud kernels that are installed.

set -eu
cd "${AUTOPKGTEST_TMP:?is set by autopkgtest}"

kernel=$(find /boot -name 'vmlinuz-*-cloud-*' | sort -V | tail -n 1)
# shellcheck disable=SC2034 # read by the test
release=${kernel#/boot/vmlinuz-}

# no_timer_check switches off the kernel's test of its timer interrupt. On a busy host
# QEMU may raise that interrupt so late that the test ends in a panic.
words='mitigations=off no_timer_check'

# guest_root: read commands for the guest from standard input, and make a root
# file system in ./root which runs them and powers off
guest_root() {
    mkdir -p root/bin root/dev root/proc
    cp "$(command -v busybox)" root/bin/busybox
    {
        echo '#!/bin/busybox sh'
        echo '/bin/busybox --install -s /bin'
        echo 'mount -t proc none /proc'
        echo 'mount -t devtmpfs none /dev'
        cat
        echo 'poweroff -f'
    } >root/init
    chmod +x root/init
}

# guest COMMAND...: run COMMAND with the command line of a QEMU that boots the guest as
# its last arguments. COMMAND is env or hypertrace record, for example. The guest's
# console is written to the file ./console.
guest() {
    (cd root && find . | cpio --quiet -o -H newc) >initrd
    # QEMU 7.2 emulates cmpxchg16b wrongly.
    timeout 500 "$@" qemu-system-x86_64 -accel tcg,thread=single \
        -cpu qemu64,-cx16 -m 512 -nodefaults -display none -no-reboot \
        -serial file:console -kernel "$kernel" -initrd initrd \
        -append "console=ttyS0 panic=-1 $words" || {
        status=$?
        tail -n 20 console
        exit "$status"
    }
}

# has TEXT COMMAND...: let the test fail unless COMMAND succeeds and its standard output
# contains TEXT
has() {
    text=$1
    shift
    "$@" >output || { cat output; exit 1; }
    grep -q -- "$text" output || {
        cat output
        echo "the output of '$*' lacks '$text'"
        exit 1
    }
}
