#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later

. "$(dirname -- "$0")/../lib.sh"

case ${1-} in
-h|--help)
    echo "usage: ./run bench [--qemu DIR] [ARGS]"
    echo
    echo "Builds everything, then compares the channels with each other and"
    echo "with other ways out of a guest, in interleaved rounds.  ARGS:"
    ht_python bench --help
    ;;
esac
while common_option "$@"; do shift "$shift_by"; done
# Reject wrong arguments before the long build.
(ht_python bench --check "$@")
case " $*" in
*" --from"*|*" --compare"*|*" --before"*) ;;      # measures nothing
*)
    "$HT_TOP/scripts/build/prerequisites.sh" --qemu="$qemu_arg" --for bench
    "$HT_TOP/scripts/build/build.sh" --qemu="$qemu_arg" --only qemu --only own
    # The kernel of the Linux guest is a Debian package. Without dpkg, skip the Linux guest:
    # the other measurements do not need it.
    if have dpkg; then
        "$HT_TOP/scripts/build/build.sh" --qemu="$qemu_arg" --only guest
    fi
    # --full also compares LTTng's kernel tracer; its build takes minutes.
    case " $* " in
    *" --full "*)
        "$HT_TOP/scripts/build/lttng-modules.sh" ||
            note "LTTng's kernel tracer is not compared"
        ;;
    esac
    ;;
esac
ht_paths "$qemu_arg"
ht_run_env
ht_python bench "$@"
