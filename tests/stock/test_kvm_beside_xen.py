# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare KVM and Xen: what the same guest costs on both, in instructions, and what the
views of hypertrace print about it.

Both hosts have one processor, under -icount: their clocks count the instructions of the
guest, the hypervisor, the host's kernel and programs. The guest's kernel, its memory and
its work are the same on both.
"""

import json
import os
from pathlib import Path

import hosts
import pytest
import stock

COMMON = """
# work NAME: let the guest do its work once, and write a line to the file result
work() {
    echo >&3
    await work
    echo "$1 ${line#work }" >>/run/out/result
    before=$total
    total=${line#work }
    total=${total%% *}
}
# await WORD: read lines from the guest, up to one that begins with the word
await() {
    until read -r line <&4 && [ "${line%% *}" = $1 ]; do
        echo "$line"
    done
}
# settle NAME: let the guest work until, twice in a row, its work takes as many instructions
# as the time before, within 1 %. First pause for 10 s, in which the kernels and the recorder
# end their other work: this takes little real time, because the clock of an idle host jumps
# to its next timer.
total=1
tries=0
settle() {
    steady=0
    sleep 10
    until [ $steady -eq 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || exit
        work $1
        more=$(((total - before) * 100 / before))
        [ $more -eq 0 ] && steady=$((steady + 1)) || steady=0
    done
}
"""

KVM = hosts.KVM_SCRIPT + COMMON + """
mount -t tracefs none /sys/kernel/tracing
mkfifo /run/talk.in /run/talk.out
exec 3<>/run/talk.in 4<>/run/talk.out
$linux -chardev pipe,id=c,path=/run/talk -serial chardev:c -pidfile /run/pid \\
    -append "console=ttyS0 $words" </dev/null &
await ready
settle first
hypertrace record --host --buffer main --kernel /run/job/vmlinuz -o /run/out/rec \\
    --pid $(cat /run/pid) >/run/out/log 2>&1 &
recorder=$!
until grep -sq 1 /sys/kernel/tracing/instances/*/events/kvm/kvm_exit/enable; do
    kill -0 $recorder || exit
    sleep 0.1
done
settle recorded
kill $recorder
wait $recorder
# 3: no event of the guest was on
[ $? -eq 3 ] && echo "status 0" >>/run/out/log
settle alone
kill $(cat /run/pid)
wait
""" + hosts.END

# With tbuf_size, Xen traces from its boot until the first xentrace ends.
XEN = hosts.XEN_SCRIPT + COMMON + """
cat >/run/work.cfg <<EOT
name="work"
type="pvh"
kernel="$(echo /boot/vmlinuz-*)"
ramdisk="/run/job/initrd"
extra="console=hvc0 panic=-1 mitigations=off quiet rdinit=/init"
memory=256
vcpus=1
tsc_mode="native"
EOT
{
    xl create /run/work.cfg
    tty=$(xenstore-read /local/domain/$(xl domid work)/console/tty)
    exec 3<>$tty 4<&3
    await ready
    settle first
    xentrace -D -e 0x0fdff000 -S 1024 /run/out/trace &
    tracer=$!
    until [ -s /run/out/trace ]; do
        sleep 0.1
    done
    settle recorded
    kill -INT $tracer
    wait $tracer
    echo "status $?"
    settle alone
} >/run/out/log 2>&1
""" + hosts.END

# For each part of the work except "sleeps": what it does, and how often (tests/stock/work.c)
PARTS = {"calls": ("system call", 20_000), "switches": ("two switches of a task", 2000),
         "forks": ("fork, exit and wait", 50), "faults": ("page touched first", 2048),
         "cpuid": ("CPUID", 1000), "ports": ("OUT to a port", 1000)}

# The exit codes of SVM that the table of exits names
CPUID, PORT = 0x72, 0x7b
REASONS = {0x00: "CR0 is read", 0x47: "FPU", 0x60: "interrupt", 0x64: "interrupt window",
           CPUID: "CPUID", 0x78: "HLT", PORT: "port", 0x7c: "MSR", 0x81: "hypercall",
           0x400: "nested page fault"}


def instructions(result):
    """{name: [{part of the work: instructions}]} by the file result: a list has an element
    for each time that the guest did its work"""
    found = {}
    for line in (result / "result").read_text().splitlines():
        name, total, *parts = line.split()
        found.setdefault(name, []).append(
            {"total": int(total), **{p: int(n) for p, n in (x.split("=") for x in parts)}})
    return found


def print_work(hosts_found):
    """Print a row for each part of the work: instructions for one of its operations, on each
    host without a recorder and with one. The numbers are those of the last time that the guest
    did its work."""
    columns = [found[name][-1] for found in hosts_found for name in ("alone", "recorded")]
    for part, (what, times) in PARTS.items():
        cells = [f"{column[part] / times:,.0f}" for column in columns]
        print(f"| {what} | {' | '.join(cells)} |")
    cells = [f"{column['total'] / 1000:,.0f}" for column in columns]
    print(f"| the whole work, 1,000 | {' | '.join(cells)} |")


def print_exits(hosts_exits, works):
    """Print a row for each reason of exits: on each host, their number while the guest did
    its work once, and their mean time"""
    reasons = {r for exits in hosts_exits for r in exits}
    for reason in sorted(reasons, key=lambda r: -sum(
            exits[r]["number"] / n for exits, n in zip(hosts_exits, works, strict=True)
            if r in exits)):
        cells = [f"{exits[reason]['number'] / n:,.0f} | {exits[reason]['mean_ns']:,}"
                 if reason in exits else "0 | " for exits, n in zip(hosts_exits, works,
                                                                     strict=True)]
        print(f"| {REASONS.get(reason, hex(reason))} | {' | '.join(cells)} |")


def test_same_guest_on_kvm_and_xen(tmp_path):
    """Only this test compares KVM with Xen: on both hosts each CPUID and each OUT of the
    guest's work causes an exit, and a recorder of the host adds between 1 % and 25 % to the
    instructions of the work."""
    work = Path(os.environ["HT_BUILD"]) / "tests/stock/stock-work"
    initrd = stock.initrd(tmp_path, files={"init": work})
    folders = [tmp_path / name for name in ("kvm", "xen")]
    for folder in folders:
        folder.mkdir()
    at_kvm = hosts.kvm(folders[0], KVM, {"initrd": initrd, "vmlinuz": hosts.XEN / "vmlinuz"},
                       hosts.ICOUNT)
    at_xen = hosts.xen(folders[1], XEN, {"initrd": initrd}, hosts.ICOUNT)
    found = [instructions(result) for result in (at_kvm, at_xen)]
    print_work(found)
    for one in found:
        alone, recorded = one["alone"][-1]["total"], one["recorded"][-1]["total"]
        print(f"a recorder of the host adds {recorded / alone - 1:.1%}")
        assert 1.01 < recorded / alone < 1.25
    traces = [json.loads(stock.run("vcpus", "--json", *args)) for args in (
        (at_kvm / "rec",), ("--xentrace", "--cpu-hz=1000M", at_xen / "trace"))]
    vcpus = [v for trace in traces for v in trace["vcpus"] if v["exits"]]
    works = [len(one["recorded"]) for one in found]
    exits = [{e["reason"]: e for e in v["exits"]} for v in vcpus]
    print_exits(exits, works)
    for v, one, n in zip(vcpus, exits, works, strict=True):
        print({s: v[s]["ns"] // n for s in ("running", "runnable")}, v["hypercalls"], n)
        assert v["unknown_ns"] < 0.001 * v["running"]["ns"]
        assert one[CPUID]["number"] == 1000 * n
        # On KVM the guest's console is a device with ports, so its output causes some
        # more exits for ports.
        assert 1000 * n <= one[PORT]["number"] < 1300 * n
