#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build, run all kinds of tests, add up their results.

. "$(dirname -- "$0")/../lib.sh"

usage() {
    cat <<EOF
usage: ./run check [--qemu DIR] [--flavour NAME] [--unit] [--fuzz]
                   [--qtest] [--e2e]

Builds what is needed and runs
  --unit   the native tests of the library, the host core and the tools
  --fuzz   the fuzz targets: the committed corpus and some seconds more
           (./run fuzz is for longer runs)
  --qtest  the device's tests in QEMU's framework, and QEMU's own that
           create each device
  --e2e    whole runs with a guest (pytest)
or, without one of these, all. The last line is "N passed, N failed,
N skipped"; above it stands what failed and what was skipped and why.
EOF
}

kinds=
flavour=plain
lint_failed=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --unit|--fuzz|--qtest|--e2e) kinds="$kinds ${1#--}"; shift ;;
    --flavour) flavour=${2:?--flavour needs a name}; shift 2 ;;
    # Used by CI, where lint counts as one test more.
    --count-lint) lint_failed=${2:?}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) die "./run check: unknown argument '$1'; see --help" ;;
    esac
done
[ -n "$kinds" ] || kinds="unit fuzz qtest e2e"

kind() {
    case " $kinds " in *" $1 "*) ;; *) return 1 ;; esac
}

count_and_exit() {
    exec "$HT_PYTHON" -B "$HT_TOP/scripts/check/count-tests.py" \
        ${lint_failed:+--lint "$lint_failed"} "$@"
}

! kind e2e || "$HT_TOP/scripts/build/prerequisites.sh" --qemu="$qemu_arg" --for e2e
set -- --qemu="$qemu_arg" --flavour "$flavour"
{ ! kind unit && ! kind fuzz; } || set -- "$@" --only own
! kind qtest || set -- "$@" --only qtest
! kind e2e || set -- "$@" --only qemu --only own --only guest
HT_WERROR=y "$HT_TOP/scripts/build/build.sh" "$@" || count_and_exit --failed build
fuzz_skipped=
if kind fuzz; then
    status=0
    fuzz_skipped=$("$HT_TOP/scripts/check/fuzz.sh" --qemu="$qemu_arg" --build) ||
        status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || count_and_exit --failed fuzz
fi

ht_paths "$qemu_arg" "$flavour"
ht_run_env
exec 7>"$HT_TREE/check.lock"
lock_wait 7 "the tests of $HT_TREE"
results=$HT_TREE/results
rm -rf "$results.before" "$HT_SCRATCH"/check.*
[ ! -d "$results" ] || mv "$results" "$results.before"
mkdir -p "$results"
HT_SCRATCH=$(mktemp -d "$HT_SCRATCH/check.XXXXXX") ||
    die "cannot write to $HT_TREE (disk full?)"
export HT_SCRATCH PYTHONDONTWRITEBYTECODE=1

# Run a command whose temporary files are in memory, if this may be done and
# there is enough: what waits for seconds on a slow disk misses its deadlines.
# To look at the files afterwards, run pytest itself.
in_memory() {
    available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
    trap : INT                  # Ctrl-C is the command's: wait for its end
    # a short name: those of sockets have 107 bytes
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

run_unit() {
    rm -f "$HT_BUILD"/meson-logs/testlog*
    in_memory "$HT_MESON" test -C "$HT_BUILD" --no-rebuild --num-processes 2 \
        >"$results/unit.log" 2>&1 </dev/null || :
    keep_meson_logs "$HT_BUILD" unit
}

run_fuzz() {
    if [ -n "$fuzz_skipped" ]; then
        echo "$fuzz_skipped" >"$results/fuzz.skipped"
        return
    fi
    rm -f "$HT_TREE"/fuzz/meson-logs/testlog*
    "$HT_MESON" test -C "$HT_TREE/fuzz" --no-rebuild --num-processes 2 \
        --suite fuzz >"$results/fuzz.log" 2>&1 </dev/null || :
    keep_meson_logs "$HT_TREE/fuzz" fuzz
}

run_qtest() {
    [ "$flavour" != asan ] || ht_sanitizer_env
    cd "$HT_QEMU_BUILD"
    rm -f meson-logs/testlog*
    tests=
    for test in "$HT_TOP"/tests/qtest/hypertrace*-test.c; do
        [ ! -f "$test" ] || tests="$tests qtest-x86_64/$(basename "$test" .c)"
    done
    for test in device-introspect-test qom-test qmp-cmd-test; do
        tests="$tests qtest-x86_64/$test"
    done
    # shellcheck disable=SC2086
    in_memory pyvenv/bin/meson test --no-rebuild --num-processes 2 $tests \
        >"$results/qtest.log" 2>&1 </dev/null || :
    keep_meson_logs "$HT_QEMU_BUILD" qtest
}

keep_meson_logs() {
    for suffix in json junit.xml txt; do
        [ ! -f "$1/meson-logs/testlog.$suffix" ] ||
            cp "$1/meson-logs/testlog.$suffix" "$results/$2.$suffix"
    done
}

run_e2e() {
    if ! "$HT_PYTHON" -c 'import pytest' 2>/dev/null; then
        echo "end-to-end tests: python3-pytest is not installed" \
            >"$results/e2e.skipped"
        return
    fi
    cd "$HT_TOP"
    # A guest waits for its host half of the time.
    parallel=
    ! "$HT_PYTHON" -c 'import xdist' 2>/dev/null ||
        parallel="-n 3 --dist loadgroup"
    # shellcheck disable=SC2086
    in_memory "$HT_PYTHON" -m pytest -p no:cacheprovider -rs --tb=short \
        $parallel --junitxml="$results/e2e.junit.xml" tests/e2e \
        </dev/null 2>&1 7>&- | tee "$results/e2e.log"
}

# Those that only compute run side by side; those with a guest measure time.
native_pid=
qtest_pid=
if kind unit || kind fuzz; then
    step "running the unit tests and fuzz targets ($results/*.log)"
    (! kind unit || run_unit
     ! kind fuzz || run_fuzz) 7>&- &
    native_pid=$!
fi
if kind qtest; then
    step "running QEMU's tests ($results/qtest.log)"
    (run_qtest) 7>&- &
    qtest_pid=$!
fi
trap 'kill $native_pid $qtest_pid 2>/dev/null; exit 130' INT TERM
[ -z "$native_pid" ] || wait "$native_pid" || :
[ -z "$qtest_pid" ] || wait "$qtest_pid" || :
if kind e2e && [ -d "$HT_TOP/tests/e2e" ]; then
    step "running the end-to-end tests ($results/e2e.log)"
    run_e2e || :
fi
exec 7>&-

# shellcheck disable=SC2086
count_and_exit --results "$results" $kinds
