#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later

. "$(dirname -- "$0")/../lib.sh"

usage() {
    cat <<EOF
usage: ./run guest [--qemu DIR] [--job FILE] [--job-out FILE] [--add FILE]...
                   [--traces DIR] [--no-devices] [-- QEMU-ARGS]

Builds everything, then boots a Linux guest with three hypertrace devices,
one for each channel, and a shell on this terminal (Ctrl-A X ends it).
The module is loaded; the guest's programs are in PATH.

  --job FILE       run FILE with sh in the guest instead of a shell, then power
                   off; exit with the job's status
  --job-out FILE   write the job's output on \$JOB_OUT, the second serial port,
                   to FILE
  --add FILE       put FILE into the guest's /ht
  --traces DIR     keep each channel's CTF trace in DIR, a new folder; without
                   this the traces are removed at the end
  --no-devices     add no devices; QEMU-ARGS may have devices
EOF
}

job=
job_out=
devices=yes
traces=
kept=
added=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --job) job=${2:?--job needs a file}; shift 2 ;;
    --job-out) job_out=${2:?--job-out needs a file}; shift 2 ;;
    --add) added="$added
${2:?--add needs a file}"; shift 2 ;;
    --traces) traces=${2:?--traces needs a folder}; shift 2 ;;
    --no-devices) devices=; shift ;;
    -h|--help) usage; exit 0 ;;
    --) shift; break ;;
    *) die "./run guest: unknown argument '$1'; QEMU's own go after --" ;;
    esac
done
[ -z "$job" ] || [ -r "$job" ] || die "cannot read $job"
"$HT_TOP/scripts/build/build.sh" --qemu="$qemu_arg"
ht_paths "$qemu_arg"
ht_run_env

run=$(mktemp -d "$HT_SCRATCH/guest.XXXXXX") || die "cannot write to $HT_SCRATCH"
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$run/root/ht/bin"
[ -z "$job" ] || cp "$job" "$run/root/ht/job.sh"
[ -z "$HT_MODULE" ] || cp "$HT_MODULE" "$run/root/ht/"
for program in "$HT_GUEST_BIN"/*; do
    [ ! -f "$program" ] || [ ! -x "$program" ] || cp "$program" "$run/root/ht/bin/"
done
echo "$added" | while IFS= read -r file; do
    [ -z "$file" ] || cp -r "$file" "$run/root/ht/" || die "cannot copy $file"
done
"$HT_TOP/scripts/build/guest-overlay.sh" "$run/overlay.cpio" "$run/root"
cat "$HT_INITRD" "$run/overlay.cpio" >"$run/initrd"

if [ -n "$devices" ]; then
    if [ -n "$traces" ]; then
        mkdir "$traces" || die "--traces $traces: must be new"
        kept=$traces
    else
        traces=$run
    fi
    "$HT_QEMU" -device help 2>/dev/null | grep -q '^name "hypertrace"' ||
        die "this QEMU has no hypertrace device"
    for channel in hypercall shm virtio; do
        set -- "$@" -object hypertrace-backend-ctf,id=ctf-$channel,dir="$traces/$channel" \
            -device hypertrace,id=$channel,channel=$channel,backend=ctf-$channel
    done
fi
chooses_accel "$@" || set -- -accel tcg "$@"
if [ -n "$job_out" ]; then
    set -- -serial "file:$job_out" "$@"
elif [ -n "$job" ]; then
    set -- -serial file:/dev/null "$@"
fi
set -- -m 512 -smp 2 -nodefaults -no-reboot -display none \
    -kernel "$HT_KERNEL" -initrd "$run/initrd" \
    -append "$HT_KERNEL_ARGS quiet" "$@"

if [ -z "$job" ]; then
    step "starting the guest${kept:+; its traces are kept in $kept}"
    "$HT_QEMU" -serial mon:stdio "$@"
    exit
fi
"$HT_QEMU" -serial stdio "$@" </dev/null | tee "$run/console"
status=$(sed -n 's/^HT_JOB_STATUS=\([0-9]*\).*/\1/p' "$run/console" | tail -n 1)
[ -n "$status" ] || die "the guest ended without a status of the job"
exit "$status"
