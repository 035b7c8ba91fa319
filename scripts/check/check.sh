#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build what the tests need, then run the tests with pytest: unit, fuzz, qtest and e2e, or
# the chosen kinds of these.

. "$(dirname -- "$0")/../lib.sh"

usage() {
    cat <<EOF
usage: ./run check [--qemu DIR] [--flavour NAME] [--unit] [--fuzz]
                   [--qtest] [--e2e] [--long]

Builds what is needed, then runs all kinds of tests, or only
  --unit   the native tests of the library, the host core and the tools
  --fuzz   the fuzz targets with the committed corpus, and for some seconds
           (./run fuzz is for longer runs)
  --qtest  the device's tests in QEMU's framework, and QEMU's own tests that
           create each device
  --e2e    whole runs with a guest (pytest)
and, with
  --long   all cases of each test: every channel, more events, more kills
The last line is "N passed, N failed, N skipped"; above it are the failures,
and the reason of each skip.
EOF
}

kinds=
flavour=plain
lint_failed=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --unit|--fuzz|--qtest|--e2e) kinds="$kinds ${1#--}"; shift ;;
    --long) export HT_LONG=1; shift ;;
    --flavour) flavour=${2:?--flavour needs a name}; shift 2 ;;
    # CI passes --count-lint 1 if ./run lint has failed, and --count-lint 0 if it has
    # succeeded. The totals then count lint as one more test.
    --count-lint) lint_failed=${2:?}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) die "./run check: unknown argument '$1'; see --help" ;;
    esac
done
[ -n "$kinds" ] || kinds=" unit fuzz qtest e2e"

kind() {
    case " $kinds " in *" $1 "*) ;; *) return 1 ;; esac
}

# conclude PASSED FAILED SKIPPED: print the totals, and exit with 1 if a test
# failed
conclude() {
    case $lint_failed in
    0) set -- $(($1 + 1)) "$2" "$3" ;;
    1) echo "failed: lint, see above"; set -- "$1" $(($2 + 1)) "$3" ;;
    esac
    echo "$1 passed, $2 failed, $3 skipped"
    [ "$2" -eq 0 ]
    exit
}

build_failed() {
    echo "failed: $1, see above"
    conclude 0 1 0
}

! kind e2e || "$HT_TOP/scripts/build/prerequisites.sh" --qemu="$qemu_arg" --for e2e
set -- --qemu="$qemu_arg" --flavour "$flavour"
{ ! kind unit && ! kind fuzz; } || set -- "$@" --only own
! kind qtest || set -- "$@" --only qtest
! kind e2e || set -- "$@" --only qemu --only own --only guest
HT_WERROR=y "$HT_TOP/scripts/build/build.sh" "$@" || build_failed build
"$HT_PYTHON" -c 'import pytest' 2>/dev/null ||
    die "the tests need pytest: install python3-pytest"
fuzz_skipped=
if kind fuzz; then
    status=0
    fuzz_skipped=$("$HT_TOP/scripts/check/fuzz.sh" --qemu="$qemu_arg" --build) ||
        status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || build_failed "the fuzz targets"
fi

ht_paths "$qemu_arg" "$flavour"
ht_run_env
[ "$flavour" != asan ] || ht_sanitizer_env
exec 7>"$HT_TREE/check.lock"
lock_wait 7 "the tests of $HT_TREE"
results=$HT_TREE/results
rm -rf "$results.before" "$HT_SCRATCH"/check.*
[ ! -d "$results" ] || mv "$results" "$results.before"
mkdir -p "$results"
HT_SCRATCH=$(mktemp -d "$HT_SCRATCH/check.XXXXXX") ||
    die "cannot write to $HT_TREE (disk full?)"
HT_TOTALS=$results/totals
export HT_SCRATCH HT_TOTALS PYTHONDONTWRITEBYTECODE=1

# in_memory COMMAND...: run COMMAND with its temporary files in a tmpfs, because
# a slow disk makes tests miss their deadlines. If less than 8 GiB of memory are available,
# or if this user may not unshare the mounts, run COMMAND with files on the disk. The tmpfs
# ends with COMMAND: to examine the files afterwards, run pytest without this script.
in_memory() {
    available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
    trap : INT                  # on Ctrl-C, wait until the command ends
    # a short path, because a socket's path has at most 107 bytes
    if [ "${available:-0}" -lt $((8 << 20)) ] ||
        ! unshare -m true 2>/dev/null || ! memory=$(mktemp -d); then
        "$@"
        return
    fi
    status=0
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs none "$0" &&
            export TMPDIR="$0" HT_SCRATCH="$0"
        exec "$@"' "$memory" "$@" || status=$?
    rmdir "$memory"
    return "$status"
}

# pytest runs the programs of a meson build, too: see tests/lib/programs.py.
programs=meson-info/intro-tests.json
set --
! kind e2e || set -- "$@" "$HT_TOP/tests/e2e"
! kind qtest || set -- "$@" "$HT_QEMU_BUILD/$programs"
! kind unit || set -- "$@" "$HT_TOP/tests/unit" "$HT_BUILD/$programs"
if kind fuzz && [ -z "$fuzz_skipped" ]; then
    set -- "$@" "$HT_TREE/fuzz/$programs"
fi
step "running the tests:$kinds ($results/tests.log)"
cd "$HT_TOP"
if [ $# -eq 0 ]; then
    echo 0 0 0 >"$HT_TOTALS"
else
    # Run one more test at a time than there are processors, because a test with
    # a guest does not use its processor all the time.
    ! "$HT_PYTHON" -c 'import xdist' 2>/dev/null ||
        set -- -n "$(($(nproc) + 1))" --dist loadgroup "$@"
    # With pytest-timeout, a test fails after this time, in seconds, and the other tests
    # still give their results.
    limit=1200
    [ -z "${HT_LONG-}${HT_SOAK_MINUTES-}" ] || limit=14400
    ! "$HT_PYTHON" -c 'import pytest_timeout' 2>/dev/null ||
        set -- --timeout="$limit" "$@"
    PYTHONPATH=$HT_TOP/tests/lib in_memory "$HT_PYTHON" -B -m pytest \
        -c tests/pytest.ini --rootdir tests \
        -p programs -p selection -p no:cacheprovider -q -rs --tb=short \
        --junitxml="$results/tests.junit.xml" "$@" \
        </dev/null 2>&1 7>&- | tee "$results/tests.log"
fi
exec 7>&-

[ -f "$HT_TOTALS" ] || {
    echo "failed: the tests did not run to their end, see $results/tests.log"
    conclude 0 1 0
}
read -r passed failed skipped <"$HT_TOTALS"
if [ -n "$fuzz_skipped" ]; then
    echo "skipped: fuzz: $fuzz_skipped"
    skipped=$((skipped + 1))
fi
conclude "$passed" "$failed" "$skipped"
