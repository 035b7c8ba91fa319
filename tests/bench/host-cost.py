#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the cost of `hypertrace record --host`, and of trace-cmd with the same events.

The load is `perf bench sched pipe`: two tasks that wake each other. Rounds without a recorder,
with `hypertrace record`, with its option --host, and with trace-cmd alternate. Run it as root;
it needs perf and trace-cmd.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# The host's events that `hypertrace record --host` records, if the kernel has
# them: those of tools/hypertrace/host/host-record.c
EVENTS = ("sched:sched_switch sched:sched_waking irq:irq_handler_entry irq:irq_handler_exit "
          "kvm:kvm_entry kvm:kvm_exit kvm:kvm_userspace_exit kvm:kvm_inj_virq kvm:kvm_pio "
          "kvm:kvm_mmio kvm:kvm_msr kvm:kvm_hypercall kvm:kvm_page_fault "
          "kvm:kvm_halt_poll_ns kvm:kvm_vcpu_wakeup kvm:kvm_write_tsc_offset").split()


def seconds(usage):
    return usage.ru_utime + usage.ru_stime


def work(loops, result):
    """Run the load and wait for it. Write its time per operation in us, and the
    processor time in s of this process and the load, to the file result."""
    out = subprocess.run(["perf", "bench", "sched", "pipe", "-l", str(loops)], check=True,
                         capture_output=True, text=True).stdout
    cpu = sum(seconds(resource.getrusage(w))
              for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    Path(result).write_text(json.dumps({
        "us": float(re.search(r"([\d.]+) usecs/op", out)[1]), "cpu": cpu}))


def wait(command, log, ok=""):
    """Run a command with its output in the file log; return the processor time in s
    of the command and of the children that the command has waited for."""
    with open(log, "wb") as f:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    # Ignore a failure if the log has the text @ok: for example, `hypertrace record` reports
    # a failure because the load is not a guest.
    if p.returncode and not (ok and ok in Path(log).read_text()):
        sys.exit(f"{command[0]} failed: {Path(log).read_text()[-1000:]}")
    return seconds(usage)


def events():
    roots = [p for p in map(Path, ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))
             if (p / "events").is_dir()]
    if not roots:
        sys.exit("mount tracefs: mount -t tracefs nodev /sys/kernel/tracing")
    found = [e for e in EVENTS if (roots[0] / "events" / e.replace(":", "/")).is_dir()]
    return [word for e in found for word in ("-e", e)]


def trace_cmd(folder):
    """The command line that runs trace-cmd in a mount namespace. There, bind mounts
    hide those files that trace-cmd wants to reset but the kernel protects."""
    names = ["/proc/sys/kernel/ftrace_enabled"]
    names += [f"/sys/kernel/tracing/{n}" for n in
              ("set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid",
               "set_ftrace_notrace_pid", "set_graph_function", "set_graph_notrace")]
    binds = ""
    for name in filter(os.path.exists, names):
        try:
            text = Path(name).read_text() if "proc" in name else ""
            Path(name).write_text(text)
        except PermissionError:
            copy = folder / Path(name).name
            copy.write_text(text)
            binds += f"mount --bind {copy} {name} && "
    return ["unshare", "-m", "sh", "-c", binds + 'exec trace-cmd "$@"', "sh"]


def measure(way, loops, tool, folder):
    result, log = folder / "result", folder / "log"
    load = [sys.executable, __file__, "--work", str(result), "--loops", str(loops)]
    trace = folder / "trace"
    count = 0
    if way == "none":
        total = wait(load, log)
    elif way == "record":
        total = wait([tool, "record", "-o", trace, "--", *load], log, "no ring")
        shutil.rmtree(trace, ignore_errors=True)
    elif way == "--host":
        total = wait([tool, "record", "--host", "-o", trace, "--", *load], log,
                     "events of the host")
        text = log.read_text()
        count = int(re.search(r"(\d+) events of the host", text)[1])
        if "none lost" not in text:
            sys.exit(text)
        shutil.rmtree(trace)
    else:
        total = wait([*trace_cmd(folder), "record", "-C", "mono", "-b", "4096",
                      "--compression", "none", "-o", trace, *events(), *load], log,
                     "data recorded")
        lines = subprocess.Popen(["trace-cmd", "report", "-q", "-i", trace],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        count = sum(b": " in line for line in lines.stdout)
        lines.wait()
        trace.unlink()
    found = json.loads(result.read_text())
    return {"us": found["us"], "events": count, "cpu": total - found["cpu"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--loops", type=int, default=200000)
    parser.add_argument("--tool", default="hypertrace")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.loops, args.work)
        return
    rows = {"none": [], "record": [], "--host": [], "trace-cmd": []}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(args.rounds):
            for way, found in rows.items():
                found.append(measure(way, args.loops, args.tool, Path(name)))
    print(f"{'':12}{'us/op':>8}{'least':>8}{'recorder, ms':>14}{'events':>10}{'events/s':>10}"
          f"{'ns/event':>10}{'least':>7}{'most':>7}")
    for way, found in rows.items():
        us = [r["us"] for r in found]
        line = f"{way:12}{statistics.median(us):8.2f}{min(us):8.2f}"
        if way != "none":
            line += f"{statistics.median(r['cpu'] for r in found) * 1e3:14.0f}"
        if found[0]["events"]:
            # Subtract the cost of "record" alone, to get that of the option --host.
            base = [r["cpu"] if way == "--host" else 0 for r in rows["record"]]
            ns = [(r["cpu"] - b) * 1e9 / r["events"] for r, b in zip(found, base, strict=True)]
            rate = statistics.median(r["events"] / (r["us"] * args.loops) * 1e6 for r in found)
            line += (f"{statistics.median(r['events'] for r in found):10.0f}{rate:10.0f}"
                     f"{statistics.median(ns):10.0f}{min(ns):7.0f}{max(ns):7.0f}")
        print(line)


if __name__ == "__main__":
    main()
