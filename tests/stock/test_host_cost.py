# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure what record --host and trace-cmd record cost a guest with many exits.

The KVM host has one processor, under -icount: its clock counts the instructions of the
guest, the host's kernel, QEMU and the recorder. The guest causes a fixed number of exits
and reads the TSC before and after them.
"""

import json
import re
import runpy
import subprocess
from pathlib import Path

import hosts
import pages
import pytest

# The host's events that both recorders record, if the kernel has them
EVENTS = runpy.run_path(str(pages.TOP / "tests/bench/host-cost.py"))["EVENTS"]

# EXITS: number of measured exits. SPIN: rounds of a loop of two instructions before each
# exit; with this number, the guest causes more than 100,000 exits a second, also under the
# recorders.
EXITS = 150_000
SPIN = 2_500

# Script of the KVM host: for each way to record, run the guest, and write a line to the file
# result: the way's name, the TSC cycles that the guest's exits took (hexadecimal), and the
# time in ns that the recorder's threads ran until the guest had written these cycles.
SCRIPT = hosts.KVM_SCRIPT + """
guest="qemu-system-x86_64 -accel kvm -m 16 -nodefaults -display none -bios firmware
-chardev file,id=c,path=/run/fifo -device isa-debugcon,chardev=c -pidfile /run/pid"
mkfifo /run/fifo
exec 3<>/run/fifo
# measure NAME RECORDER COMMAND...: run the guest under a recorder, which is a program's name
measure() {
    name=$1
    recorder=$2
    shift 2
    {
        "$@" $guest </dev/null >/run/out/$name.log 2>&1
        echo ended >&3
    } &
    guest_of=$!
    read -r ticks <&3
    [ $ticks != ended ] || return
    ns=0
    for pid in $(pgrep -x "$recorder"); do
        while read -r n _; do
            ns=$((ns + n))
        done <<EOT
$(cat /proc/$pid/task/*/schedstat)
EOT
    done
    kill $(cat /run/pid)
    wait $guest_of
    read -r _ <&3
    echo "$name $ticks $ns" >>/run/out/result
}
record() {
    measure $1 hypertrace hypertrace record $2 -o /run/out/$1 --
}
trace() {
    name=$1
    shift
    set -- "$@" -b 4096 --compression none -o /run/$name.dat
    for event in EVENTS; do
        [ -d /sys/kernel/tracing/events/$(echo $event | tr : /) ] && set -- "$@" -e $event
    done
    measure $name trace-cmd trace-cmd record "$@"
    trace-cmd report -q -i /run/$name.dat | grep -c : >/run/out/$name.events
}
# record into a ring that nothing reads
instance() {
    ring=/sys/kernel/tracing/instances/ring
    mkdir $ring
    echo mono >$ring/trace_clock
    echo 4096 >$ring/buffer_size_kb
    for event in EVENTS; do
        event=$ring/events/$(echo $event | tr : /)/enable
        [ -f $event ] && echo 1 >$event
    done
}
mount -t tracefs none /sys/kernel/tracing
measure none none env
record record
record host --host
trace trace-cmd -C mono
instance
measure ring none env
rmdir $ring
measure again none env
echo "status 0" >/run/out/log
""".replace("EVENTS", " ".join(EVENTS)) + hosts.END


def firmware(tmp):
    """Build the guest that causes exits."""
    path = tmp / "firmware"
    subprocess.run(["gcc", "-m16", "-nostdlib", "-static", f"-DEXITS={EXITS}",
                    f"-DSPIN={SPIN}", "-Wl,-Ttext=0,-estart,--build-id=none",
                    "-Wl,--oformat=binary", "-o", path,
                    Path(__file__).with_name("exits.S")], check=True)
    return path


def costs(result):
    """Print a table of the costs, and return {way to record: instructions for one exit}. The
    instructions include those of the guest's loop before the exit."""
    lines = [line.split() for line in (result / "result").read_text().splitlines()]
    rows = {way: int(ticks, 16) / EXITS for way, ticks, _ in lines}
    for way, _, ns in lines:
        print(f"{way:16}{rows[way]:9.1f}{rows[way] - rows['none']:9.1f}"
              f"{1e9 / rows[way]:9.0f} exits/s; recorder {int(ns) / 1e6:.1f} ms")
    return rows


def test_cost_of_exits(tmp_path):
    """At over 100,000 exits a second, the option --host costs more than a ring that nothing
    reads, and less than 5 % more than trace-cmd with the same events. A cost is the number of
    additional instructions that guest, host and recorder execute for an exit: those of --host
    beyond `hypertrace record` without it, those of the others beyond no recorder."""
    result = hosts.kvm(tmp_path, SCRIPT, {"firmware": firmware(tmp_path)}, hosts.ICOUNT)
    rows = costs(result)
    assert rows["again"] == pytest.approx(rows["none"], rel=0.002)
    found = re.search(r"(\d+) events of the host.*none lost", (result / "host.log").read_text())
    assert int(found[1]) > 2 * EXITS
    assert int((result / "trace-cmd.events").read_text()) > 2 * EXITS
    assert min(1e9 / n for n in rows.values()) > 100_000
    cost = rows["host"] - rows["record"]
    limit = rows["trace-cmd"] - rows["none"]
    print(f"--host costs {cost:.0f} instructions an exit, trace-cmd {limit:.0f}")
    assert rows["ring"] - rows["none"] < cost < 1.05 * limit
