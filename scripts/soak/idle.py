# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the processor time of hypertrace watch while its machines are idle.

The machines are processes of watch-guest, of the unit tests: each writes two events
every 20 ms.  With --vms 0, the machines that run already and that --name chooses are
measured.
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


def cpu_ns(pid):
    """Processor time in ns of a process that has only one thread"""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


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
        for i in range(vms):
            stack.enter_context(running(guest, "-name", f"ht-idle-{i}"))
        tools = args.tool or [build / "tools/hypertrace/hypertrace"]
        watches = [follow(stack, tool, args.name or "ht-idle-*", tmp / f"{i}")
                   for i, tool in enumerate(tools)]
        for watch in watches:
            wait_recorders(watch, max(vms, 1))
        time.sleep(args.settle)
        pids = [[w, *children(w)] for w in watches]
        before, begun = [[cpu_ns(p) for p in ps] for ps in pids], time.monotonic()
        time.sleep(args.seconds)
        took = time.monotonic() - begun
        after = [[cpu_ns(p) for p in ps] for ps in pids]
    for tool, old, new in zip(tools, before, after):
        show(tool, [(n - o) / 1e7 / took for o, n in zip(old, new)])


def show(tool, spent):
    recorders = spent[1:]
    print(f"{tool}: {len(recorders)} machines, load {os.getloadavg()[0]:.1f}: watch"
          f" {spent[0]:.3f} %, each recorder"
          f" {sum(recorders) / len(recorders):.3f} % (at most"
          f" {max(recorders):.3f} %), in all for each machine"
          f" {sum(spent) / len(recorders):.3f} %", flush=True)


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
