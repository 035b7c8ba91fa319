#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzz the host's code that parses bytes of guests, of files and of other programs, and
# whole devices in QEMU. Measure which lines of this code the corpus covers.

. "$(dirname -- "$0")/../lib.sh"

# Files that form three sums of the coverage: "core" and "backends" (output to files)
# of host-lib and include, and "tool" of the command hypertrace
core="engine/walk.c engine/class-table.c engine/time-map.c engine/consumer.c
 engine/consumer-state.c engine/dead-streams.c engine/run.c
 ftrace/ftrace-class.c ftrace/ftrace-copy.c ftrace/ftrace-cpu.c
 ftrace/ftrace-dates.c ftrace/ftrace-follow.c ftrace/ftrace-format.c
 ftrace/ftrace-page.c ftrace/ftrace-ring.c ftrace/ftrace-time.c
 recording/recording-info.c recording/recording.c
 ftrace/symbols.c
 kernel/btf.c kernel/formats.c kernel/guest-kernel.c kernel/guest-memory.c
 kernel/image-elf.c
 kernel/image.c kernel/kallsyms.c kernel/kernel-image.c kernel/log.c
 kernel/page-tables.c kernel/ring-cpu.c kernel/ring-place.c kernel/ring.c
 kernel/space.c
 kernel/unpack.c include/hypertrace/class.h
 include/hypertrace/time-map.h include/hypertrace/run.h"
backends="output/ctf-metadata.c output/ctf-stream.c output/ctf-writer.c
 output/log-format.c"
tool="host/runstates.c host/threads.c host/xentrace.c print/print-call.c
 print/print-expression.c print/print-fmt.c
 print/print-format.c print/print-pointer.c memory/source-core.c memory/source.c"

pure=
for source in "$HT_TOP"/tests/fuzz/fuzz-*.c; do
    name=${source##*/fuzz-}
    [ "$name" = lib.c ] || pure="$pure ${name%.c}"
done

usage() {
    cat <<EOF
usage: ./run fuzz [--minutes N] [--target NAME]... [--jobs N] [--qemu DIR]

Fuzzes all targets, or the named ones, for a total of N minutes (default: 10).
--jobs sets how many run at a time (default: the number of processors). Targets:
 $pure: with libFuzzer and clang's sanitizers
  guest: a hostile guest and a whole device, in a QEMU with sanitizers
  chaos: devices are plugged, migrated and hang at random, in the same QEMU
New inputs are kept in \$HYPERTRACE_CACHE/fuzz, where the next run starts with
them; an input that crashed a target is kept there, too. The last line has the
numbers of runs and crashes and the covered lines. The exit status is 1 after a
crash.

--coverage only measures which lines the corpus covers; --show also prints the
lines that it does not cover.
EOF
}

minutes=10
jobs=$(nproc 2>/dev/null || echo 1)
targets=
mode=fuzz
show=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --minutes) minutes=${2:?--minutes needs a number}; shift 2 ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift 2 ;;
    --target) targets="$targets ${2:?--target needs a name}"; shift 2 ;;
    --coverage) mode=coverage; shift ;;
    --show) show=yes; shift ;;
    # For ./run check: only build; if fuzz targets cannot be built here, print
    # the reason and exit with 77.
    --build) mode=build; shift ;;
    -h|--help) usage; exit 0 ;;
    *) die "./run fuzz: unknown argument '$1'; see --help" ;;
    esac
done
for number in "$minutes" "$jobs"; do
    case $number in
    *[!0-9]*|''|0) die "./run fuzz: '$number' is not a positive number" ;;
    esac
done
for target in $targets; do
    case " $pure guest chaos " in
    *" $target "*) ;;
    *) die "./run fuzz: no target '$target'; there are:$pure guest chaos" ;;
    esac
done
[ -n "$targets" ] || targets="$pure guest chaos"

ht_paths "$qemu_arg" asan
ht_tree_init
build=$HT_TREE/fuzz
found=$HT_CACHE/fuzz/corpus
crashes=$HT_CACHE/fuzz/crashes
totals=$HT_CACHE/fuzz/totals
logs=$HT_TREE/fuzz-log
export LLVM_PROFILE_FILE=/dev/null

selected() {
    case " $targets " in *" $1 "*) ;; *) return 1 ;; esac
}

without_fuzzer() {
    have clang || {
        echo "clang is not installed"
        return 0
    }
    echo 'int LLVMFuzzerTestOneInput(const char *, long);
        int LLVMFuzzerTestOneInput(const char *p, long n) { return !p && n; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o "$HT_SCRATCH/probe" \
            >/dev/null 2>&1 || {
        echo "clang has no libFuzzer (libclang-rt-dev)"
        return 0
    }
    rm -f "$HT_SCRATCH/probe"
    return 1
}

build_targets() {
    "$HT_TOP/scripts/build/prerequisites.sh" --for fuzz
    "$HT_TOP/qemu/fetch.sh" --meson-only
    ht_paths "$qemu_arg" asan
    if reason=$(without_fuzzer); then
        echo "$reason"
        exit 77
    fi
    exec 6>"$HT_TREE/fuzz.lock"
    lock_wait 6 "$build"
    [ -f "$build/build.ninja" ] || {
        rm -rf "$build"
        logged fuzz-meson "configuring the fuzz targets" env CC=clang \
            "$HT_MESON" setup "$build" "$HT_TOP" -Dfuzz=true \
            -Dlttng=disabled -Dbabeltrace=disabled
    }
    set --
    for target in $pure; do
        set -- "$@" "tests/fuzz/fuzz-$target" "tests/fuzz/cover-$target"
    done
    logged fuzz "building the fuzz targets" ninja -C "$build" "$@"
    exec 6>&-
}

# run_pure NAME SECONDS: run the libFuzzer program fuzz-NAME
run_pure() {
    mkdir -p "$found/$1" "$crashes"
    set -- "$1" "$2" "$found/$1"
    [ ! -d "$HT_TOP/tests/fuzz/corpus/$1" ] ||
        set -- "$@" "$HT_TOP/tests/fuzz/corpus/$1"
    name=$1
    limit=$2
    shift 2
    "$build/tests/fuzz/fuzz-$name" -max_total_time="$limit" -timeout=30 \
        -max_len=4096 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$crashes/$name-" "$@" >"$logs/$name.log" 2>&1
}

# run_device NAME SECONDS: fuzz the device in a QEMU; NAME is guest
# (hypertrace-fuzz-test) or chaos (hypertrace-chaos-test)
run_device() {
    mkdir -p "$crashes"
    ht_sanitizer_env
    cd "$HT_QEMU_BUILD"
    test=hypertrace-chaos-test
    [ "$1" != guest ] || test=hypertrace-fuzz-test
    HT_FUZZ_SECONDS=$2 QTEST_QEMU_BINARY=./qemu-system-x86_64 \
        "tests/qtest/$test" >"$logs/$1.log" 2>&1 || {
        cp "$logs/$1.log" "$crashes/$1-$(date +%s).log"
        return 1
    }
}

# run_target NAME SECONDS: fuzz a target; write the number of runs, "ok" or
# "crash", the seconds, and the processor seconds to NAME.result
run_target() {
    status=ok
    runner=run_pure
    begin=$(date +%s)
    case $1 in guest|chaos) runner=run_device ;; esac
    (
        $runner "$@"
        status=$?
        times >"$logs/$1.times"
        exit $status
    ) || status=crash
    end=$(date +%s)
    if [ "$runner" = run_device ]; then
        runs=$(sed -n 's/.*: \([0-9]*\) actions.*/\1/p' "$logs/$1.log" |
            awk '{ n += $1 } END { print n + 0 }')
    else
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' \
            "$logs/$1.log")
    fi
    # The second line of "times" is the children's user and system time, such as
    # "1m2.3s 0m4.5s".
    cpu=$(tail -n 1 "$logs/$1.times" | tr 'ms' '  ' |
        awk '{ printf "%.0f", $1 * 60 + $2 + $3 * 60 + $4 }')
    echo "${runs:-0} $status $((end - begin)) $cpu" >"$logs/$1.result"
    mkdir -p "$totals"
    echo "$((end - begin)) ${runs:-0} $cpu" >>"$totals/$1"
}

# worker SECONDS NAME...: fuzz the targets one after the other, each for
# SECONDS
worker() {
    share=$1
    shift
    for target; do
        run_target "$target" "$share"
    done
}

# lines SOURCES: print the number of covered lines and of all lines of these
# files, from coverage.txt
lines() {
    awk -v files="$(echo "$1" | tr '\n' ' ')" '
        BEGIN { n = split(files, names) }
        {
            for (i = 1; i <= n; i++) {
                at = length($1) - length(names[i])
                if (at >= 0 && substr($1, at + 1) == names[i] &&
                    (at == 0 || substr($1, at, 1) == "/")) {
                    all += $8
                    missed += $9
                }
            }
        }
        END { print all - missed, all + 0 }' "$logs/coverage.txt"
}

# percent COVERED ALL: print COVERED as a percentage of ALL
percent() {
    awk -v c="$1" -v a="$2" 'BEGIN { printf "%.1f", a ? 100 * c / a : 0 }'
}

measure_coverage() {
    have llvm-profdata && have llvm-cov || {
        echo "coverage not measured: llvm is not installed" >"$logs/coverage"
        return 0
    }
    rm -rf "$logs/profile"
    mkdir -p "$logs/profile"
    objects=
    for target in $pure; do
        set --
        for dir in "$found/$target" "$HT_TOP/tests/fuzz/corpus/$target"; do
            [ ! -d "$dir" ] || set -- "$@" "$dir"
        done
        # Ignore a crash of a target here: a fuzz run reports crashes.
        LLVM_PROFILE_FILE=$logs/profile/$target.raw \
            "$build/tests/fuzz/cover-$target" -runs=0 "$@" \
            >"$logs/profile/$target.log" 2>&1 || :
        objects="$objects -object $build/tests/fuzz/cover-$target"
    done
    # shellcheck disable=SC2086
    llvm-profdata merge -o "$logs/profile/all" "$logs"/profile/*.raw &&
        llvm-cov report $objects -instr-profile="$logs/profile/all" \
            >"$logs/coverage.txt" 2>"$logs/profile/cov.log" ||
        die "cannot measure the coverage, see $logs/profile"
    # shellcheck disable=SC2046
    set -- $(lines "$core") $(lines "$backends") $(lines "$tool")
    printf '%s %% of %s lines of the host core, %s %% of %s of the %s\n' \
        "$(percent "$1" "$2")" "$2" "$(percent "$3" "$4")" "$4" \
        "backends, $(percent "$5" "$6") % of $6 of the command covered" \
        >"$logs/coverage"
    [ -n "$show" ] || return 0
    # shellcheck disable=SC2086
    llvm-cov show $objects -instr-profile="$logs/profile/all" |
        awk '/^[^ ].*:$/ { file = $0 }
            /^ *[0-9]+\| *0\|/ && file ~ /(hw|include)\/hypertrace\/|host-lib\// {
                n = split(file, part, "/")
                print part[n] $0
            }'
}

mkdir -p "$logs"
rm -f "$logs"/*.result
[ "$mode" != fuzz ] || step "fuzz: $targets"
build_targets
[ "$mode" != build ] || exit 0
if [ "$mode" = coverage ]; then
    measure_coverage
    cat "$logs/coverage"
    exit 0
fi
if selected guest || selected chaos; then
    "$HT_TOP/scripts/build/build.sh" --qemu="$qemu_arg" --flavour asan --only qtest
    ht_run_env
fi

count=$(echo "$targets" | wc -w)
[ "$jobs" -le "$count" ] || jobs=$count
seconds=$((minutes * 60 * jobs / count))
step "$count targets, $seconds s each, $jobs at a time ($logs)"
pids=
# shellcheck disable=SC2154 # set by the trap
trap 'status=$?; kill $pids 2>/dev/null; exit $status' INT TERM
first=1
while [ "$first" -le "$jobs" ]; do
    # shellcheck disable=SC2046
    worker "$seconds" $(echo "$targets" | xargs -n 1 |
        awk -v j="$jobs" -v f="$first" 'NR % j == f % j') &
    pids="$pids $!"
    first=$((first + 1))
done
# shellcheck disable=SC2086
wait $pids || :
trap - INT TERM

measure_coverage
runs=0
failed=0
printf '\n  target        runs  seconds     CPU seconds    total minutes\n'
for target in $targets; do
    # shellcheck disable=SC2046
    set -- $(cat "$logs/$target.result" 2>/dev/null || echo 0 crash 0 0)
    runs=$((runs + $1))
    printf '  %-7s %10s %8s %15s %16s%s\n' "$target" "$1" "$3" "$4" \
        "$(awk '{ s += $1 } END { printf "%.0f", s / 60 }' "$totals/$target")" \
        "$([ "$2" = ok ] || echo "  CRASH, see $logs/$target.log")"
    if [ "$2" != ok ]; then
        failed=$((failed + 1))
        sed -n 's/.*Test unit written to /      input: /p' "$logs/$target.log"
    fi
done
echo
echo "fuzz: $runs runs, $failed crashes, $(cat "$logs/coverage")"
[ "$failed" -eq 0 ]
