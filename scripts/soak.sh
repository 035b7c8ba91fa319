#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later

. "$(dirname -- "$0")/lib.sh"

case ${1-} in
-h|--help)
    echo "usage: ./run soak [--qemu DIR] [ARGS]"
    echo
    echo "Builds what is needed, then emits on all channels at once, with"
    echo "resets, takeovers and replaced devices, and accounts for every"
    echo "event.  ARGS:"
    exec "$HT_PYTHON" -B "$HT_TOP/scripts/soak.py" --help
    ;;
esac
while common_option "$@"; do shift "$shift_by"; done
# Wrong arguments are told before the long build.
"$HT_PYTHON" -B "$HT_TOP/scripts/soak.py" --check "$@"
"$HT_TOP/scripts/build.sh" --qemu="$qemu_arg" --only qemu --only own
ht_paths "$qemu_arg"
ht_run_env
exec "$HT_PYTHON" -B "$HT_TOP/scripts/soak.py" "$@"
