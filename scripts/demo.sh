#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later

. "$(dirname -- "$0")/lib.sh"

case ${1-} in
-h|--help)
    echo "usage: ./run demo [--qemu DIR] [ARGS]"
    echo
    echo "Builds everything, then runs one workload over all three channels."
    echo "ARGS:"
    exec "$HT_PYTHON" "$HT_TOP/scripts/demo.py" --help
    ;;
esac
while common_option "$@"; do shift "$shift_by"; done
"$HT_TOP/scripts/build.sh" --qemu="$qemu_arg"
ht_paths "$qemu_arg"
ht_run_env
exec "$HT_PYTHON" "$HT_TOP/scripts/demo.py" \
    --qemu-bin "$HT_QEMU" --build "$HT_BUILD" "$@"
