# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program that emits events costs other programs in a Linux guest.

A round runs each benchmark alone, then beside each source of events (linux.py), which
emits RATE events a second.  The benchmarks are programs of the host (Debian: rt-tests,
sysbench), which are copied into the guest with their libraries.
"""

import re
import shutil

from bench import linux
from bench.plan import Case
from vm.machine import Failure

# Rate in events per second. ht-bench polls the clock for the last 100 us before an
# event is due: for a tenth of the time at this rate, for more at a higher rate.
RATE = 1000

# {name: (program, arguments, pattern of the figure in its output, True if a higher
# figure is better)}
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
PROGRAMS = sorted({program for program, *_ in BENCHMARKS.values()})


def problem():
    lacking = [p for p in PROGRAMS if not shutil.which(p)]
    if lacking:
        return f"{', '.join(lacking)} not installed " \
               "(Debian: rt-tests, sysbench)"
    return linux.problem()


def count(channels):
    return (1 + linux.count(channels)) * len(BENCHMARKS)


def _benchmark(guest, name, seconds):
    program, args, pattern, _ = BENCHMARKS[name]
    text = guest.tell(f"{program} {args.format(seconds=seconds)}",
                      60 + 10 * seconds)
    found = re.findall(pattern, text, re.M)
    if not found:
        raise Failure(f"{name}: {text}")
    return sum(float(v) for v in found) / len(found)


def measure(accel, channels, rounds, seconds, workdir, step):
    cases = {}
    with linux.Linux(channels, accel, workdir, PROGRAMS) as guest:
        for r in range(rounds):
            for source in [None, *guest.sources]:
                series = source.name if source else "none"
                if source:
                    guest.tell(f"{source.at_rate(RATE)} >/tmp/source & "
                               "pid=$!")
                for name, (*_, more) in BENCHMARKS.items():
                    step(f"{name.split(',')[0]}, {series}")
                    value = _benchmark(guest, name, seconds)
                    cases.setdefault((series, name), Case(
                        "macro", series, name, accel,
                        options={"rate": RATE, "more_is_better": more})
                    ).rows.append({"function": "macro", "round": r,
                                   "value": value})
                if source:
                    # Fail if the source of events ended during the benchmark.
                    guest.tell("kill -0 $pid || { cat /tmp/source; false; }")
                    guest.run("kill $pid; wait $pid 2>/dev/null")
        guest.quit()
    return list(cases.values())
