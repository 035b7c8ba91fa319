# SPDX-License-Identifier: GPL-2.0-or-later
"""Record all functions of a boot, and measure what this costs the guest.

With -icount and no sleep the guest's clock counts its instructions, 4 ns each, so that
the times do not depend on the host's load.  With -s, the test prints two tables of
docs/performance.md:

    ./run stock --check -- -k boot_functions -s
"""

import itertools
import os
import re
import shutil

import pytest
import stock

RING = 64                       # size of the guest's ring, MiB

# Script for init: stop tracing, and print the ring's counters: "entries", the number of
# events that the ring still has, and "overrun", the number of overwritten events.
INIT = stock.MOUNTS + """cd /trace
echo 0 >tracing_on
echo "COUNT 0" $($b grep -E '^(entries|overrun)' per_cpu/cpu0/stats)
$b poweroff -f
$b sleep 1000
"""

RUNS = {
    "no functions": (),
    "all functions, calls and returns": ("--graph", "*"),
    "all functions, calls only": ("--functions", "*"),
    "all functions, 3 levels": ("--graph", "*,depth=3"),
    "`acpi_init` and all below it": ("--graph", "acpi_init"),
    "`acpi_init`, 3 levels": ("--graph", "acpi_init,depth=3"),
}


class Run:
    """A guest that was recorded from its start to its end"""

    def __init__(self, tmp, options):
        tmp.mkdir()
        image = stock.initrd(tmp, init=INIT)
        stock.record(tmp, [
            "qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount",
            "shift=2,sleep=off", "-cpu", "qemu64,-cx16", "-m", "513",
            "-nodefaults", "-display", "none", "-no-reboot", "-kernel",
            os.environ["HT_KERNEL"], "-initrd", str(image), "-serial",
            f"file:{tmp}/console", "-append",
            os.environ["HT_KERNEL_ARGS"] + " nokaslr"],
            "--buffer", "main", "--size", f"{RING}M", *options)
        entries, overrun = re.search(r"COUNT 0 entries: (\d+) overrun: (\d+)",
                                     stock.console(tmp)).groups()
        self.inside, self.events = int(entries), int(entries) + int(overrun)
        self.bytes = sum(p.stat().st_size for p in (tmp / "rec").glob("cpu*"))
        self.seconds = float(re.search(r"([\d.]+)\] Run /init as init process",
                                       stock.run("log", tmp / "rec"))[1])
        self.levels = list(levels(tmp / "rec"))
        # The start of the tracer "function_graph" empties the ring, so the guest's
        # counts do not include earlier events: count those up to the initcall that
        # starts the tracer.
        self.emptied = next(levels(
            tmp / "rec", r"initcall_start: func=(init_graph_trace)\b"))[1] \
            if "--graph" in options else 0
        shutil.rmtree(tmp / "rec")

    @property
    def recorded(self):
        return sum(n for _, n, _ in self.levels)


def levels(recording, begin_of=r"initcall_level: level=(\w+)"):
    """Divide a recording's events at each event that matches begin_of. Yield (name,
    number of events, duration in s) of each part. The name is what begin_of matched,
    by default a level of initcalls, or "before" for the events before the first
    match."""
    name, count, begin, last = "before", 0, None, 0.0
    for line in stock.lines_of([stock.TOOL, "report", recording], env=stock.ENV):
        at = re.match(r" *(\d+\.\d+)", line)
        if not at:
            continue
        last = float(at[1])
        begin = last if begin is None else begin
        if level := re.search(begin_of, line):
            yield name, count, last - begin
            name, count, begin = level[1], 0, last
        count += 1
    yield name, count, last - begin


def table(runs):
    base = runs["no functions"]
    print("\n| recorded | events | MB | time to init, s | ring in the guest has |")
    print("|---|---:|---:|---:|---:|")
    for name, run in runs.items():
        print(f"| {name} | {run.recorded:,} | {run.bytes / 1e6:.1f} |"
              f" {run.seconds:.2f} | {100 * run.inside / run.recorded:.1f} % |")
    whole = runs["all functions, calls and returns"]
    print("\n| level of initcalls | events | time, s | without functions, s |")
    print("|---|---:|---:|---:|")
    for (name, n, s), (_, _, before) in itertools.islice(
            zip(whole.levels, base.levels), 1, None):
        print(f"| {name} | {n:,} | {s:.3f} | {before:.3f} |")


# Only this test proves that a recording has as many events as the guest's counters say when all
# functions of a boot are traced: over a hundred times as many events as without functions.
def test_boot_functions(tmp_path):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    runs = {name: Run(tmp_path / str(n), options)
            for n, (name, options) in enumerate(RUNS.items())}
    table(runs)
    for name, run in runs.items():
        # The recording also has events, such as those of interrupts, from between the
        # start of the initcall that starts the tracer and the emptying of the ring. The
        # guest's counts have no such event.
        more = run.recorded - run.events - run.emptied
        assert 0 <= more < (20 if run.emptied else 1), (name, more)
    whole = runs["all functions, calls and returns"]
    assert whole.events > 100 * runs["no functions"].events
    assert whole.inside < whole.events
    assert [name for name, _, _ in whole.levels] == \
        [name for name, _, _ in runs["no functions"].levels]
