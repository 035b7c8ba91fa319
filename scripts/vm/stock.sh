#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Record a stock kernel under the distribution's QEMU, and show the recording. With
# --check, run the tests with stock guests instead.

. "$(dirname -- "$0")/../lib.sh"

usage() {
    cat <<EOT
usage: ./run stock [--disk] [-o DIR] [-- QEMU ARGS]
       ./run stock --check [-- PYTEST ARGS]

Builds the command hypertrace, records the boot of Debian's own kernel under
the distribution's qemu-system-x86_64, with nothing installed in the guest,
and shows where its time went.
  -o       keep the recording in DIR, which must be new
  --disk   a Debian with systemd on a disk instead, with its own kernel and
           boot loader; its console is this terminal: log in as root, without
           password, and end it with 'poweroff'
  --check  run the tests with other guests: this disk, Debian's newest and 5.10
           kernels, RT, arm64, 16 GiB, resets, kexec, kdump, microvm, unified
           kernel images, a million events, guests that are killed, a KVM host and
           a Xen host with their guests, programs that start QEMU (libvirt, mkosi),
           xenalyze on traces of Xen, and the pipeline of docs/ci.md; this takes
           two hours; ./run check does not run these tests
QEMU ARGS are added to QEMU's arguments, for example -accel kvm -cpu host.
EOT
}

kept=
disk=
check=
while [ $# -gt 0 ]; do
    case $1 in
    -o) kept=${2:?-o needs a folder}; shift 2 ;;
    --disk) disk=yes; shift ;;
    --check) check=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    --) shift; break ;;
    *) die "./run stock: unknown argument '$1'; QEMU's own go after --" ;;
    esac
done
[ -z "$kept" ] || [ ! -e "$kept" ] || die "-o $kept: must be new"

what=stock
[ -z "$check$disk" ] || what=guests
"$HT_TOP/scripts/build/prerequisites.sh" --for "$what"
"$HT_TOP/scripts/build/build.sh" --only own
"$HT_TOP/scripts/build/guest-image.sh"
ht_paths ''
hypertrace=$HT_BUILD/tools/hypertrace/hypertrace
have qemu-system-x86_64 || die "qemu-system-x86_64 is not installed"

if [ -n "$check" ]; then
    "$HT_TOP/scripts/vm/stock-guests.sh"
    ht_run_env
    HT_SCRATCH=$(mktemp -d "$HT_SCRATCH/stock.XXXXXX") ||
        die "cannot write to $HT_TREE (disk full?)"
    trap 'rm -rf "$HT_SCRATCH"' EXIT
    trap 'exit 130' INT TERM
    "$HT_PYTHON" -B -m pytest -p no:cacheprovider -rs --tb=short -v \
        --basetemp "$HT_SCRATCH/tests" "$@" "$HT_TOP/tests/stock"
    exit
fi
run=$(mktemp -d "$HT_SCRATCH/stock.XXXXXX") || die "cannot write to $HT_SCRATCH"
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
recording=${kept:-$run/recording}

# If the arguments do not choose an accelerator, use TCG without
# cmpxchg16b, which QEMU 7.2 sometimes emulates wrongly, and with one thread,
# because several threads disturb a kernel that patches its code.
chooses_accel "$@" || set -- -accel tcg,thread=single -cpu qemu64,-cx16 "$@"

# record_guest OPTION... -- QEMU ARGS...: run `hypertrace record` with these
# options; add options for a QEMU without a display and without reboots
record_guest() {
    "$hypertrace" record -o "$recording" "$@" -nodefaults -display none \
        -no-reboot
}

record_kernel() {
    mkdir -p "$run/root/ht"
    cat >"$run/root/ht/job.sh" <<'EOT'
find /proc /sys -name uevent >/dev/null 2>&1
echo "a guest's last words" >/dev/kmsg
EOT
    "$HT_TOP/scripts/build/guest-overlay.sh" "$run/overlay.cpio" "$run/root"
    cat "$HT_INITRD" "$run/overlay.cpio" >"$run/initrd"
    step "recording the boot of $(basename "$(readlink "$HT_KERNEL")")"
    record_guest -- qemu-system-x86_64 -m 512 -smp 2 \
        -serial "file:$run/console" -kernel "$HT_KERNEL" \
        -initrd "$run/initrd" -append "$HT_KERNEL_ARGS" "$@" </dev/null || {
        status=$?
        tail -n 5 "$run/console" >&2
        exit "$status"
    }
}

record_disk() {
    "$HT_TOP/scripts/vm/stock-guests.sh" disk
    image=$HT_CACHE/stock/disk
    step "recording a Debian on a disk: log in as root, end it with 'poweroff'"
    # snapshot=on: QEMU discards the guest's writes to its disk when it ends.
    record_guest --kernel "$image/vmlinuz" -- qemu-system-x86_64 -m 1G -smp 2 \
        -serial mon:stdio -nic user,model=virtio -drive \
        "file=$image/disk.img,if=virtio,format=raw,snapshot=on" "$@"
}

if [ -n "$disk" ]; then
    record_disk "$@"
else
    record_kernel "$@"
fi

show() {
    printf '\n$ hypertrace %s\n' "$*"
    "$hypertrace" "$@" "$recording"
}
show boot --slowest 8
show top --rows 6
printf '\n$ hypertrace log | tail -n 3\n'
"$hypertrace" log "$recording" | tail -n 3
[ -z "$kept" ] || cat <<EOT

Next:
  $hypertrace boot --svg boot.svg $kept
  $hypertrace report $kept | less
  $hypertrace export -o boot.pftrace $kept     # open it in ui.perfetto.dev
EOT
