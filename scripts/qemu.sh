#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later

. "$(dirname -- "$0")/lib.sh"

usage() {
    cat <<EOF
usage: ./run qemu [--qemu DIR] [--flavour NAME] [-- ARGS]

Builds QEMU with the device, then runs qemu-system-x86_64 ARGS, for example
  ./run qemu -- -device hypertrace,help
EOF
}

flavour=plain
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --flavour) flavour=${2:?--flavour needs a name}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    --) shift; break ;;
    *) die "./run qemu: unknown argument '$1'; QEMU's own go after --" ;;
    esac
done
"$HT_TOP/scripts/build.sh" --qemu="$qemu_arg" --flavour "$flavour" --only qemu
ht_paths "$qemu_arg" "$flavour"
ht_run_env
exec "$HT_QEMU" "$@"
