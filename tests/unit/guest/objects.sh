#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guest library, as compiled: the core needs no outside symbol, and the fast
# path of an emit (checked on x86-64) is short, without a call or a locked instruction.
#
# usage: objects.sh CORE-ARCHIVE CODEGEN-ARCHIVE

set -eu

echo "1..5"
test=0
failed=0

result() {
    test=$((test + 1))
    if [ -n "$2" ]; then
        echo "$2" | sed 's/^/# /'
        echo "not ok $test $1"
        failed=1
    else
        echo "ok $test $1"
    fi
}

# Symbols that an object of the archive uses and no object of the archive defines
defined=$(nm --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u)
missing=$(nm --undefined-only "$1" | awk '$1 == "U" { print $2 }' | sort -u |
          grep -vx _GLOBAL_OFFSET_TABLE_ |
          while read -r symbol; do
              echo "$defined" | grep -qx "$symbol" || echo "$symbol"
          done)
result "the core is freestanding" "$missing"

# Instructions up to the first return: the compiler puts the likely path first.
fast_path() {
    objdump --disassemble="$1" --no-show-raw-insn "$2" |
        awk -F '\t' '/^ / && NF > 1 { print $2 } $2 ~ /^ret/ { exit }'
}

check_path() {
    path=$(fast_path "$1" "$2")
    if [ "$(echo "$path" | grep -c '^rdtsc')" != 1 ]; then
        echo "the clock is not read once:"
        echo "$path"
    elif echo "$path" | grep -Eq '^(call|lock|xchg|mfence)'; then
        echo "$path" | grep -E '^(call|lock|xchg|mfence)'
    elif [ "$(echo "$path" | wc -l)" -gt "$3" ]; then
        echo "$(echo "$path" | wc -l) instructions, more than $3"
        echo "$path"
    fi
}

# An emit has 6 stores and those of the payload: it stores the busy flag twice, the event's
# header, the producer's own position, the ring's head, and the number of events.
check_stores() {
    path=$(fast_path "$1" "$2")
    stores=$(echo "$path" | grep -E '^(mov[a-z]*|add[lq]?|inc[lq]?) +.*[^,]\)$' |
             grep -vc '(%rsp)$')
    if [ "$stores" -gt "$3" ]; then
        echo "$stores stores, more than $3"
        echo "$path"
    fi
}

if [ "$(uname -m)" = x86_64 ]; then
    result "an emit of 32 bytes is straight" "$(check_path codegen_32 "$2" 60)"
    result "an emit of constant text is straight" \
           "$(check_path codegen_text "$2" 60)"
    result "an emit of 32 bytes is 6 stores, and the payload's" \
           "$(check_stores codegen_32 "$2" $((6 + 4)))"
    result "an emit of constant text is 6 stores, and the payload's" \
           "$(check_stores codegen_text "$2" $((6 + 4)))"
else
    for what in "32 bytes" "constant text"; do
        for test in $((test + 1)) $((test + 2)); do
            echo "ok $test an emit of $what # SKIP not x86-64"
        done
    done
fi
exit "$failed"
