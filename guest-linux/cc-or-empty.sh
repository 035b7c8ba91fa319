#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# cc-or-empty.sh NM SYMVERS CC ARG...
#
# Compile a header of the kernel's trace events. One that does not compile
# outside of the kernel's own files, takes longer than five minutes, or calls what
# the kernel does not export makes an empty object instead, and a line that says
# so.

nm=$1
symvers=$2
shift 2
object=
previous=
for word; do
    [ "$previous" != -o ] || object=$word
    previous=$word
done
name=${object##*/}

empty() {
    echo "  LEFT OUT ${name%.o}.h: $1"
    shift
    exec "$@" -DHT_NO_HEADER
}

limit=
! command -v timeout >/dev/null || limit='timeout 300'
if ! $limit "$@" -Wno-error 2>"$object.log"; then
    why=$(grep -m 1 'error:' "$object.log")
    empty "${why:-it takes too long}" "$@"
fi
rm -f "$object.log"
# Of the kernel itself, without a namespace; of this module; of hypertrace.ko
missing=$("$nm" -u "$object" | awk -v symvers="$symvers" '
    BEGIN {
        known = 0
        while ((getline line <symvers) > 0) {
            split(line, column, "\t")
            known = 1
            if (column[3] == "vmlinux" && column[5] == "")
                exported[column[2]] = 1
        }
    }
    known && !($2 in exported) && $2 !~ /^(hte_|ht_)/ { print $2; exit }')
[ -z "$missing" ] || empty "$missing is not exported" "$@"
