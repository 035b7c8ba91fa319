# SPDX-License-Identifier: GPL-2.0-or-later
"""What tracing costs programs that know nothing of it, in a Linux guest.

A round runs each benchmark without tracing, then with an event source of ours
at a stated rate over each channel, and with the same source through ftrace's
trace_marker.  The benchmarks are the host's own (Debian: rt-tests, sysbench),
copied into the guest with their libraries.
"""

import os
import re
import shutil
import subprocess

from bench_plan import Case
from htvm import VM, Failure

# events/s: ht-bench looks at the clock for the last 100 us before an event,
# so that a higher rate would measure that
RATE = 1000
SOURCES = ["none", "hypercall", "shm", "virtio", "trace_marker"]

# name: arguments, how to find the figure, and whether more is better
BENCHMARKS = {
    "hackbench, s": (
        "hackbench", "-s 100 -l 40 -g 2", r"^Time: ([0-9.]+)", False),
    "cyclictest average, µs": (
        "cyclictest", "-q -D {seconds} -i 1000 -p 80",
        r"Avg: *([0-9]+)", False),
    "sysbench cpu, events/s": (
        "sysbench", "cpu --time={seconds} --threads=2 run",
        r"events per second: *([0-9.]+)", True),
    "sysbench threads, events": (
        "sysbench", "threads --time={seconds} --threads=4 run",
        r"total number of events: *([0-9]+)", True),
}


def problem():
    """Why this cannot be run; None if it can."""
    lacking = [p for p, *_ in BENCHMARKS.values() if not shutil.which(p)]
    if lacking:
        return f"{', '.join(sorted(set(lacking)))} not installed " \
               "(Debian: rt-tests, sysbench)"
    for name in ("HT_MODULE", "HT_KERNEL", "HT_INITRD"):
        if not os.path.isfile(os.environ.get(name) or ""):
            return "the Linux guest has not been built: ./run build"
    return None


def _files():
    """Programs and libraries, by their place in the guest's /ht."""
    files = {}
    for name in {p for p, *_ in BENCHMARKS.values()}:
        path = shutil.which(name)
        files[f"macro/{name}"] = path
        out = subprocess.run(["ldd", path], check=True, capture_output=True,
                             text=True).stdout
        for library in re.findall(r"(/\S+)", out):
            files[f"macro/lib/{os.path.basename(library)}"] = library
    return files


def _loader(files):
    return next(os.path.basename(f) for f in files if "/lib/ld-" in f)


def script(files, channels, rounds, seconds):
    """The guest's job: lines ROUND SOURCE NUMBER, output, then END."""
    sources = [s for s in SOURCES
               if s in channels or s in ("none", "trace_marker")]
    device = {c: n for n, c in enumerate(channels)}
    lines = ["run() { "
             f"/ht/macro/lib/{_loader(files)} --library-path /ht/macro/lib "
             '"$@" </dev/null 2>&1; }']
    for r in range(rounds):
        for source in sources:
            if source in device:
                lines.append(f"ht-bench -r {RATE} -n 1000000000 -j -d "
                             f"/dev/hypertrace{device[source]} "
                             ">/dev/null & pid=$!")
            elif source == "trace_marker":
                lines.append("ht-marker /sys/kernel/tracing/trace_marker "
                             f"{RATE} & pid=$!")
            for n, (name, args, _, _) in enumerate(BENCHMARKS.values()):
                lines += [f'echo "BEGIN {r} {source} {n}" >&3',
                          f"run /ht/macro/{name} "
                          f"{args.format(seconds=seconds)} >&3",
                          'echo "END $?" >&3']
            if source != "none":
                lines += ["kill -0 $pid || exit 1", "kill $pid",
                          "wait $pid 2>/dev/null"]
    return "\n".join(lines + ["exit 0"]) + "\n"


def measure(accel, channels, rounds, seconds, workdir):
    """Cases of the table macro; a row is a benchmark's figure."""
    files = _files()
    devices = [{"channel": c, "backend": "null", "id": f"{c}-macro"}
               for c in channels]
    cases = {}
    with VM(devices=devices, accel=accel, memory=1024, files=files,
            job=script(files, channels, rounds, seconds),
            workdir=workdir) as vm:
        vm.wait(120 + rounds * len(SOURCES) * (20 + 8 * seconds))
        out = vm.out.text
    names = list(BENCHMARKS)
    for r, source, n, text, status in re.findall(
            r"^BEGIN (\d+) (\S+) (\d+)\n(.*?)^END (\d+)$", out,
            re.M | re.S):
        name = names[int(n)]
        _, _, pattern, more = BENCHMARKS[name]
        found = re.findall(pattern, text, re.M)
        if status != "0" or not found:
            raise Failure(f"{name}: {text}")
        case = cases.setdefault((source, name), Case(
            "macro", source, name, accel,
            options={"rate": RATE, "more_is_better": more}))
        values = [float(v) for v in found]
        case.rows.append({"function": "macro", "round": int(r),
                          "value": sum(values) / len(values)})
    if not cases:
        raise Failure(f"the guest measured nothing: {vm}")
    return list(cases.values())
