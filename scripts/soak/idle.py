# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the processor time of hypertrace watch and its recorders with nearly idle machines.

The machines are processes of the unit tests' program watch-guest, each of which writes
two events every 20 ms.  With --vms 0, machines are measured that run already, and that
--name chooses.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEADLINE = 120


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


def used(pid):
    """Processor time in ns and number of voluntary sleeps of a process's first thread"""
    status = Path(f"/proc/{pid}/status").read_text()
    wakes = status.split("\nvoluntary_ctxt_switches:")[1].split()[0]
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]), int(wakes)


@contextlib.contextmanager
def running(*command, **kwargs):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **kwargs)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def follow(stack, tool, name, tmp):
    return stack.enter_context(running(
        tool, "watch", "--dir", tmp, "--name", name,
        stderr=subprocess.DEVNULL)).pid


def wait_recorders(watch, number):
    end = time.monotonic() + DEADLINE
    while len(children(watch)) < number:
        if time.monotonic() > end:
            sys.exit("the machines were not found")
        time.sleep(0.2)


def measure(build, vms, args):
    with contextlib.ExitStack() as stack:
        tmp = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        guest = shutil.copy(build / "tests/unit/tool/watch-guest",
                            tmp / "qemu-system-x86_64")
        guests = [stack.enter_context(running(guest, "-name", f"ht-idle-{i}")).pid
                  for i in range(vms)]
        tools = args.tool or [build / "tools/hypertrace/hypertrace"]
        watches = [follow(stack, tool, args.name or "ht-idle-*", tmp / f"{i}")
                   for i, tool in enumerate(tools)]
        for watch in watches:
            wait_recorders(watch, max(vms, 1))
        time.sleep(args.settle)
        pids = [guests, *([w, *children(w)] for w in watches)]
        before, begun = [[used(p) for p in ps] for ps in pids], time.monotonic()
        time.sleep(args.seconds)
        took = time.monotonic() - begun
        after = [[used(p) for p in ps] for ps in pids]
    for tool, old, new in zip(tools, before[1:], after[1:]):
        show(tool, [(n[0] - o[0]) / 1e7 / took for o, n in zip(old, new)])
        show_wakes("recorder", old[1:], new[1:], took)
    if guests:
        show_wakes("machine", before[0], after[0], took)


def show(tool, spent):
    recorders = spent[1:]
    print(f"{tool}: {len(recorders)} machines, load {os.getloadavg()[0]:.1f}: watch"
          f" {spent[0]:.3f} %, each recorder"
          f" {sum(recorders) / len(recorders):.3f} % (at most"
          f" {max(recorders):.3f} %), in all for each machine"
          f" {sum(spent) / len(recorders):.3f} %", flush=True)


def show_wakes(name, before, after, took):
    ns, wakes = (sum(n[i] - o[i] for o, n in zip(before, after)) for i in range(2))
    print(f"  each {name}: {wakes / took / len(before):.1f} wake-ups a second,"
          f" {ns / 1e3 / max(wakes, 1):.0f} us each", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vms", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--name", help="machines to measure, for --vms 0")
    parser.add_argument("--tool", nargs="+", metavar="FILE", help="builds of the"
                        " command to compare: they follow the same machines at once")
    parser.add_argument("--settle", type=float, default=40, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    for vms in args.vms:
        measure(Path(os.environ["HT_BUILD"]), vms, args)


if __name__ == "__main__":
    main()
