#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Make the kernel record emit-bench's USDT probe event_32 while a command runs.
# The kernel records into a separate ring without a reader, like a flight
# recorder. If recording is not possible, print the reason and run the command
# nevertheless.
#
# usage: usdt.sh PATH-OF-EMIT-BENCH COMMAND...

set -eu

bench=$1
shift
name=emit_bench_$$
tracefs=/sys/kernel/tracing
own=
instance=
pid=

# offset ADDRESS: print the offset in the program's file of a virtual address
offset() {
    readelf -lW "$bench" | while read -r kind at virtual _ size _; do
        if [ "$kind" = LOAD ] && [ $(($1)) -ge $((virtual)) ] &&
            [ $(($1)) -lt $((virtual + size)) ]; then
            printf '0x%x' $(($1 - virtual + at))
        fi
    done
}

# probe: print the USDT probe as uprobe_events takes it: PATH:OFFSET(SEMAPHORE)
# ARGUMENTS
probe() {
    readelf -n "$bench" 2>/dev/null |
        sed -n '/Name: event_32$/,/Arguments/p' >"$notes"
    at=$(sed -n 's/.*Location: \([^,]*\),.*/\1/p' "$notes")
    semaphore=$(sed -n 's/.*Semaphore: \(.*\)/\1/p' "$notes")
    arguments=$(sed -n 's/.*Arguments: //p' "$notes" | tr ' ' '\n' |
        sed -n -E 's/^8@%(r[0-9]+)$/\1/p; s/^8@%r([a-z]+)$/\1/p')
    # shellcheck disable=SC2086 # a word each
    set -- $arguments
    [ -n "$at" ] && [ $# = 4 ] || return 1
    echo "p:$name/event_32 $bench:$(offset "$at")($(offset "$semaphore"))" \
        "a=%$1:u64 b=%$2:u64 c=%$3:u64 d=%$4:u64"
}

start() {
    [ "$(id -u)" = 0 ] || {
        echo "only root may" && return 1
    }
    if [ ! -e "$tracefs/uprobe_events" ]; then
        own=$(mktemp -d)
        tracefs=$own
        mount -t tracefs nodev "$own" 2>/dev/null &&
            [ -e "$tracefs/uprobe_events" ] || {
            echo "the kernel has no uprobe_events" && return 1
        }
    fi
    line=$(probe) || {
        echo "$bench has no such probe" && return 1
    }
    echo "$line" >>"$tracefs/uprobe_events" || return 1
    instance=$tracefs/instances/$name
    mkdir "$instance"
    # for each CPU a ring as large as that of emit-bench
    echo 1024 >"$instance/buffer_size_kb"
    echo 1 >"$instance/events/$name/enable"
}

end() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || :
    if [ -n "$instance" ]; then
        # show the number of recorded events: if it is 0, the row usdt is wrong
        grep -hE '^(entries|overrun)' "$instance"/per_cpu/cpu*/stats |
            awk '{ n += $2 } END { print "usdt.sh: the kernel recorded", n + 0,
                "events" }' >&2
        echo 0 >"$instance/events/$name/enable"
        rmdir "$instance"
        echo "-:$name/event_32" >>"$tracefs/uprobe_events"
    fi
    if [ -n "$own" ]; then
        umount "$own" 2>/dev/null || :
        rmdir "$own"
    fi
    rm -f "$notes"
}

notes=$(mktemp)
trap end EXIT
trap 'exit 1' INT TERM HUP
why=$(mktemp)
start >"$why" 2>&1 ||
    echo "usdt.sh: the probe is not recorded: $(cat "$why")" >&2
rm -f "$why"
# Run the command in the background: a trap does not interrupt a foreground command.
"$@" &
pid=$!
wait "$pid" && status=0 || status=$?
pid=
(exit "$status")
