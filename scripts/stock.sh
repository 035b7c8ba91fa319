#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A stock kernel under the distribution's QEMU, recorded and looked at.

. "$(dirname -- "$0")/lib.sh"

usage() {
    cat <<EOT
usage: ./run stock [-o DIR] [-- QEMU ARGS]

Builds the command hypertrace, records the boot of Debian's own kernel under
the distribution's qemu-system-x86_64, with nothing installed in the guest,
and shows where its time went.
  -o   keep the recording in DIR, which must be new
Arguments of QEMU's are added, for example -accel kvm -cpu host.
EOT
}

kept=
while [ $# -gt 0 ]; do
    case $1 in
    -o) kept=${2:?-o needs a folder}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    --) shift; break ;;
    *) die "./run stock: unknown argument '$1'; QEMU's own go after --" ;;
    esac
done
[ -z "$kept" ] || [ ! -e "$kept" ] || die "-o $kept: must be new"

"$HT_TOP/scripts/prerequisites.sh" --for stock
"$HT_TOP/scripts/build.sh" --only own
"$HT_TOP/scripts/guest-image.sh"
ht_paths ''
hypertrace=$HT_BUILD/tools/hypertrace/hypertrace
[ -x "$hypertrace" ] ||
    die "hypertrace was not built: install libtraceevent (development)"
have qemu-system-x86_64 || die "qemu-system-x86_64 is not installed"

run=$(mktemp -d "$HT_SCRATCH/stock.XXXXXX") || die "cannot write to $HT_SCRATCH"
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$run/root/ht"
cat >"$run/root/ht/job.sh" <<'EOT'
find /proc /sys -name uevent >/dev/null 2>&1
echo "a guest's last words" >/dev/kmsg
EOT
"$HT_TOP/scripts/guest-overlay.sh" "$run/overlay.cpio.gz" "$run/root"
cat "$HT_INITRD" "$run/overlay.cpio.gz" >"$run/initrd"
recording=${kept:-$run/recording}

# QEMU 7.2 emulates cmpxchg16b wrongly, and its threads disturb a kernel that
# patches its code.
case " $* " in
*" -accel "*|*" -enable-kvm "*) ;;
*) set -- -accel tcg,thread=single -cpu qemu64,-cx16 "$@" ;;
esac
step "recording the boot of $(basename "$(readlink "$HT_KERNEL")")"
"$hypertrace" record -o "$recording" -- qemu-system-x86_64 -m 512 -smp 2 \
    -nodefaults -display none -no-reboot -serial "file:$run/console" \
    -kernel "$HT_KERNEL" -initrd "$run/initrd" -append "$HT_KERNEL_ARGS" \
    "$@" </dev/null || {
    status=$?
    tail -n 5 "$run/console" >&2
    exit "$status"
}

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
