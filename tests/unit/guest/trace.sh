#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Test ht_trace() without a device: compilers, languages, loading.
# tests/e2e/test_trace.py tests it with a device.
#
# usage: trace.sh SOURCE-ROOT PROGRAM PLUGIN LIBRARY

set -eu

top=$1
program=$2
plugin=$3
libraries=$(mktemp -d)
trap 'rm -rf "$libraries"' EXIT
cp "$4" "$libraries/libhypertrace.so.0"
ln -s libhypertrace.so.0 "$libraries/libhypertrace.so"
# Do not use a device of the machine that runs the tests.
export HYPERTRACE_DEVICE=none

echo "1..13"
test=0
failed=0

# check NAME COMMAND...: pass if COMMAND exits 0, otherwise print its output
check() {
    name=$1
    shift
    test=$((test + 1))
    if output=$("$@" 2>&1); then
        echo "ok $test $name"
    else
        echo "$output" | sed 's/^/# /'
        echo "not ok $test $name"
        failed=1
    fi
}

skip() {
    test=$((test + 1))
    echo "ok $test $1 # SKIP $2"
}

# A build for an unsupported processor ends with the library's own #error.
echo '#include <hypertrace/arch.h>' >"$libraries/arch.c"
# shellcheck disable=SC2317
processors() {
    compile="clang -ffreestanding -fsyntax-only -I $top/guest-lib/include"
    for target in x86_64 aarch64; do
        $compile --target="$target" "$libraries/arch.c" || return
    done
    for target in i386 riscv64 aarch64_be; do
        if $compile --target="$target" "$libraries/arch.c" \
            2>"$libraries/said" ||
           ! grep '#error "hypertrace: ' "$libraries/said"; then
            echo "$target is not refused"
            return 1
        fi
    done
}
if command -v clang >/dev/null; then
    check "processors that it cannot run on are refused" processors
else
    skip "processors that it cannot run on are refused" "no clang"
fi

# Events that have fields with names that C++ reserves, no field, or the maximum number of
# fields
cat >"$libraries/fields.c" <<END
#include <hypertrace.h>
HT_EVENT(no_field);
static const struct ht_label states[] = { { 0, "idle" }, { 1, "run" } };
HT_EVENT(reserved, (u32, new), (text, class), (bytes, template), (f64, this),
         (seq, u16, delete), (array, x8, operator, 6));
HT_EVENT_LEVEL(forms, HT_LEVEL_INFO, (bool, flag), (ptr, where),
               (enum, u8, state, states), (flags, x32, set, states));
HT_EVENT(many $(i=0; while [ $i -lt 32 ]; do
    printf ', (u8, f%d)' $i; i=$((i + 1)); done));
int main(void)
{
    const uint16_t two[2] = { 1, 2 };
    const uint8_t six[6] = { 1, 2, 3, 4, 5, 6 };

    ht_trace(no_field);
    ht_trace(forms, true, two, 1, 3);
    ht_trace(reserved, 1, "text", six, 6, 1.5, two, 2, six);
    ht_trace(many$(i=0; while [ $i -lt 32 ]; do
        printf ', %d' $i; i=$((i + 1)); done));
    return ht_event_enabled(many);
}
END
cp "$libraries/fields.c" "$libraries/fields.cc"
strict="-O2 -Wall -Wextra -Werror -I $top/guest-lib/include"

# shellcheck disable=SC2086
check "C" ${CC:-cc} -std=gnu11 $strict "$libraries/fields.c" \
    -o "$libraries/fields" -ldl
if command -v "${CXX:-c++}" >/dev/null; then
    # shellcheck disable=SC2086
    check "C++17" ${CXX:-c++} -std=c++17 -Wpedantic $strict \
        "$libraries/fields.cc" -o "$libraries/fieldscc" -ldl
else
    skip "C++17" "no C++ compiler"
fi
check "a program with all kinds of fields" "$libraries/fields"

# The two source files that include this header share one class.
cat >"$libraries/inline.h" <<END
#include <hypertrace.h>
HT_EVENT_INLINE(seen, "test.seen", HT_LEVEL_INFO, (u32, n));
inline struct ht_class *see(unsigned n)
{
    ht_trace(seen, n);
    return &ht_class_seen;
}
END
echo '#include "inline.h"
struct ht_class *other(void) { return see(1); }' >"$libraries/other.cc"
echo '#include "inline.h"
struct ht_class *other(void);
int main() { return see(2) != other(); }' >"$libraries/one.cc"
# shellcheck disable=SC2317
inline() {
    # shellcheck disable=SC2086
    ${CXX:-c++} -std=c++17 -Wpedantic $strict "$libraries/one.cc" \
        "$libraries/other.cc" -o "$libraries/one" -ldl && "$libraries/one"
}
if command -v "${CXX:-c++}" >/dev/null; then
    check "one class for an inline function of a C++ header" inline
else
    skip "one class for an inline function of a C++ header" "no C++ compiler"
fi

# With --gc-sections, lld may discard sections although __start_ and __stop_ symbols
# refer to them.
cat >"$libraries/sections.c" <<END
#include <hypertrace.h>
HT_EVENT(one);
HT_EVENT(two, (u32, n));
int main(void)
{
    ht_trace(one);
    ht_trace(two, 2);
    return ht_module.end - ht_module.begin == 2 ? 0 : 1;
}
END
# shellcheck disable=SC2317
collected() {
    # shellcheck disable=SC2086
    ${CC:-cc} $strict -ffunction-sections -fdata-sections \
        -fuse-ld=lld -Wl,--gc-sections "$libraries/sections.c" \
        -o "$libraries/sections" -ldl && "$libraries/sections"
}
if command -v ld.lld >/dev/null; then
    check "classes survive the linker's garbage collection" collected
else
    skip "classes survive the linker's garbage collection" "no lld"
fi
unset LD_LIBRARY_PATH
check "no library" "$program" none
# shellcheck disable=SC2317
why() {
    HYPERTRACE_DEBUG=1 "$program" none 2>&1 |
        grep "tracing is off: libhypertrace.so.0 was not found"
}
check "HYPERTRACE_DEBUG says that there is no library" why
export LD_LIBRARY_PATH="$libraries"
check "a library, no device" "$program" none
check "shared objects that come and go" "$program" plugin 100 "$plugin"

if command -v python3 >/dev/null; then
    check "Python" env PYTHONDONTWRITEBYTECODE=1 \
        PYTHONPATH="$top/guest-lib/python" python3 "$top/examples/hello.py"
    check "how often the clock is read" python3 -c \
        "from ctypes import CDLL; f = CDLL('libhypertrace.so.0').ht_trace_stamps
assert [f(n) for n in (0, 1, 1024, 1025)] == [-22, 0, 0, -22]"
else
    skip "Python" "no python3"
    skip "how often the clock is read" "no python3"
fi
if command -v rustc >/dev/null; then
    # shellcheck disable=SC2317
    rust() {
        rustc -D warnings "$top/examples/hello.rs" -L "$libraries" \
            -l hypertrace -o "$libraries/hello-rs" && "$libraries/hello-rs"
    }
    check "Rust" rust
else
    skip "Rust" "no rustc"
fi
exit "$failed"
