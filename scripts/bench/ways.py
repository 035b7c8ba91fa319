# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of an event in a Linux guest, by each way out of the guest.

A plugin for TCG counts the guest's instructions, also those of its kernel, between
two marks in the program (tests/bench/insn-plugin.c).  The median count hardly depends on
the host, with one exception: over channel shm, after a doorbell each event takes more
instructions until the consumer runs.  On a busy host the consumer may not run during
the whole run of a program.  So ht-marker-trace runs RUNS times over each channel, and
the minimum over the groups is recorded, too.  Except in a smoke run, the same programs
are then timed in a guest without the plugin.
"""

import os
import shutil
import statistics
import subprocess
from pathlib import Path

from bench import linux
from bench.plan import Case
from vm.machine import TOP, Failure

GROUP = 16          # events of ht-marker between two marks
BEGIN, END = 1, 2   # insn-marks.h
T = "/sys/kernel/tracing"
KERNEL_EVENT = "sched_switch"
RUNS = 8
# number of task switches for each event of ht-marker-switch: to the other thread, and
# back
SWITCHES = 2
# the kernel function that each event of ht-marker calls once
FUNCTION = "vfs_write"
ENTRY, CALL = "function entry", "function entry and exit"
# {x of a case: number of traced switches or calls for each event of the program}; the
# program's cost is divided by this number
KERNEL_EVENTS = {KERNEL_EVENT: SWITCHES, ENTRY: 1, CALL: 1}
MODULES = ["hypertrace.ko", "hypertrace-sources.ko"]
OFF = "hypertrace-sources.ko, off by the host"


def compiler():
    return os.environ.get("CC", "cc")


def problem():
    config = Path(os.environ["HT_QEMU_BUILD"]) / "config-host.h"
    if not config.exists() or "CONFIG_PLUGIN" not in config.read_text():
        return "this QEMU was built without plugins"
    if not shutil.which(compiler()):
        return f"{compiler()} is not installed"
    return linux.problem()


def plugin(workdir):
    """Build tests/bench/insn-plugin.c for the QEMU that loads it; return
    the plugin's path."""
    flags = subprocess.run(["pkg-config", "--cflags", "glib-2.0"], check=True,
                           capture_output=True, text=True).stdout.split()
    so = workdir / "insn-plugin.so"
    subprocess.run(
        [compiler(), "-shared", "-fPIC", "-O2", *flags,
         f"-I{os.environ['HT_QEMU_SRC']}/include/qemu", "-o", so,
         TOP / "tests/bench/insn-plugin.c"], check=True)
    return so


class Way:
    """A command of the guest that is measured, and commands to run before and after it.

    command: emits n events or, for an event of the kernel, does n times what the kernel
        traces; the way "none" does it untraced
    runs: how often the command runs in a round
    """

    def __init__(self, name, what, command, before="", after="", runs=1):
        self.name = name
        self.what = what
        self.command = command
        self.before = before
        self.after = after
        self.runs = runs


def user_ways(guest, channels):
    # Run the programs on one vCPU, because the plugin counts the instructions of each
    # vCPU separately.
    marker = "taskset 2 ht-marker"
    ways = [Way(c, 32, f"{marker}-trace -n {{n}}",
                f"export HYPERTRACE_DEVICE=/dev/hypertrace{n}", runs=RUNS)
            for n, c in enumerate(channels)]
    ways += [Way("trace_marker", 32, f"{marker} -n {{n}} {T}/trace_marker",
                 after=f"echo >{T}/trace"),
             Way("virtio-serial write()", 32, f"{marker} -n {{n}} $stock")]
    if guest.lttng:
        ways.append(Way("LTTng-UST", 32, f"{marker}-lttng -n {{n}}"))
    return ways


def recorded(ring, each):
    """A shell command, to be formatted with n, that fails if CPU 1 has recorded fewer
    than @each * n events, with those that were overwritten, in the ftrace instance @ring"""
    return (f"cat {ring}/per_cpu/cpu1/stats | awk '/^(entries|overrun)/ "
            f"{{{{ n += $2 }}}} END {{{{ exit n < {each} * {{n}} }}}}'")


def kernel_ways(channels, recorder, lttng):
    switch = "taskset 2 ht-marker-switch -n {n}"
    ring = f"{T}/instances/boot_map"
    # The cost of an event that is off is the difference between the medians of the ways
    # "none" and OFF. The scheduler's path differs between groups, so both ways run RUNS
    # times.
    ways = [
        Way("none", KERNEL_EVENT, switch, runs=RUNS),
        Way("the stock kernel's ring", KERNEL_EVENT, switch,
            f"echo 1 >{ring}/events/sched/{KERNEL_EVENT}/enable",
            f"echo 0 >{ring}/events/enable; "
            f"{recorded(ring, SWITCHES)} && echo >{ring}/trace")]
    if recorder:
        ways.append(Way(
            "trace-cmd record", KERNEL_EVENT,
            f"trace-cmd record -q -o /tmp/t.dat -e {KERNEL_EVENT} {switch}",
            # Fail if the file is too small to have all events: an event takes more than
            # 64 bytes.
            after=f"test $(stat -c %s /tmp/t.dat) -gt $((64 * {SWITCHES} * "
            "{n})) && rm /tmp/t.dat"))
    if lttng:
        lttng = "lttng --no-sessiond"
        ways.append(Way(
            "LTTng's modules", KERNEL_EVENT, switch,
            f"{lttng} create k --output=/tmp/k && {lttng} enable-channel "
            f"--kernel --subbuf-size=1M --num-subbuf=4 c && {lttng} "
            f"enable-event --kernel --channel=c {KERNEL_EVENT} && "
            f"{lttng} start",
            # Fail if the file is too small to have all events: an event with its header
            # takes 60 bytes.
            f"{lttng} destroy k && test $(stat -c %s /tmp/k/kernel/c_1) -ge "
            f"$((60 * {SWITCHES} * {{n}})) && rm -r /tmp/k"))
    for n, c in enumerate(channels):
        ways.append(Way(
            f"hypertrace-sources.ko, {c}", KERNEL_EVENT, switch,
            f"{load_module(n)}; insmod /ht/hypertrace-sources.ko",
            "rmmod hypertrace-sources"))
    ways.append(Way(
        OFF, KERNEL_EVENT, switch,
        f"{load_module(len(channels))}; insmod /ht/hypertrace-sources.ko",
        "rmmod hypertrace-sources", runs=RUNS))
    return ways


def load_module(n):
    return f"rmmod hypertrace; insmod /ht/hypertrace.ko kernel_device={n}"


def function_ways(channels):
    """Ways to trace the entries of a function, and its entries with exits. For each
    kind, "none" runs the same program without tracing, for comparison."""
    write = "taskset 2 ht-marker -n {n} /dev/null"
    ways = [Way("none", x, write) for x in (ENTRY, CALL)]
    for x, tracer in ((ENTRY, "function"), (CALL, "function_graph")):
        ways.append(Way(
            f"{tracer} tracer", x, write,
            f"echo >{T}/trace; echo {FUNCTION} >{T}/set_ftrace_filter; "
            f"echo {tracer} >{T}/current_tracer",
            f"{recorded(T, 1)} && echo nop >{T}/current_tracer && "
            f"echo >{T}/set_ftrace_filter"))
    for n, c in enumerate(channels):
        ways += [Way(f"hypertrace-sources.ko, {c}", x, write,
                     f"{load_module(n)}; insmod /ht/hypertrace-sources.ko "
                     f"events= functions={kind}:{FUNCTION}",
                     "rmmod hypertrace-sources")
                 for x, kind in ((ENTRY, "entry"), (CALL, "calls"))]
    ways += [Way(OFF, x, write,
                 f"{load_module(len(channels))}; "
                 f"insmod /ht/hypertrace-sources.ko events= "
                 f"functions={kind}:{FUNCTION}", "rmmod hypertrace-sources")
             for x, kind in ((ENTRY, "entry"), (CALL, "calls"))]
    return ways


def groups(lines, n):
    """Average number of instructions per event in each group of runs with n events
    together, in order; raise Failure unless there are n / GROUP groups.

    lines: (vCPU, mark, count) of each mark
    """
    begun, found = {}, []
    for vcpu, mark, count in lines:
        if mark == BEGIN:
            begun[vcpu] = count
        elif mark == END and vcpu in begun:
            found.append((count - begun.pop(vcpu)) / GROUP)
    if len(found) != n // GROUP:
        raise Failure(f"{len(found)} groups instead of {n // GROUP}; a "
                      "program was moved to another vCPU in one")
    return found


def measure(channels, rounds, events, workdir, step, timed):
    """Measure the cases of the table "ways": count instructions in a guest under TCG with
    the plugin and, if timed, the median time of an event in a second guest without it."""
    events = events // GROUP * GROUP
    marks = workdir / "marks"
    ways, _ = run_all(channels, rounds, events, workdir, step,
                      ["-plugin", f"{plugin(workdir)},out={marks}"])
    lines = [tuple(map(int, line.split()))
             for line in marks.read_text().splitlines()]
    cases = cases_of(ways, rounds, events, lines)
    if timed:
        _, times = run_all(channels, rounds, events, workdir, step, [])
        add_times(cases, ways, times)
    return [c for c in cases if c.series != "none"]


def run_all(channels, rounds, events, workdir, step, args):
    """In each of @rounds rounds, run one way after the other in a guest. Returns the ways
    and, for each round and way, the median time in ns of an event of the program: that of
    the run in which the median is smallest."""
    modules = Path(os.environ["HT_MODULE"]).parent
    recorder = shutil.which("trace-cmd")
    times = []
    with linux.Linux(
            channels, "tcg", workdir, [recorder] if recorder else [],
            events=f"{KERNEL_EVENT}*,,marker_32,,function_*",
            files={m: modules / m for m in MODULES},
            kernel_args="reserve_mem=16M:2M:ht trace_instance=boot_map@ht",
            args=args, lttng_modules=linux.lttng_modules(),
            idle=True) as guest:
        ways = (user_ways(guest, channels) + kernel_ways(channels, recorder,
                                                  guest.lttng_modules) +
                function_ways(channels))
        guest.tell("echo -1 >/proc/sys/kernel/sched_rt_runtime_us")
        for _ in range(rounds):
            for way in ways:
                step(f"{way.name}, {way.what}")
                if way.before:
                    guest.tell(way.before)
                times.append(min(
                    linux.row_of(guest.tell(way.command.format(
                        n=events)))["p50_ns"] for _ in range(way.runs)))
                if way.after:
                    guest.tell(way.after.format(n=events))
        guest.tell("rmmod hypertrace")      # closes the module's streams
        # For each of @events and each round, a channel gets RUNS events of
        # ht-marker-trace, SWITCHES task switches, 1 function entry, and 2 events for an
        # entry with its exit.
        emitted = rounds * events * (RUNS + SWITCHES + 1 + 2)
        for channel in channels:
            arrived(guest, f"{channel}-linux", emitted)
        if guest.qmp.stats("idle")["events"]:
            raise Failure(f"an event that is off arrived\n{guest}")
        guest.quit()
    return ways, times


def arrived(guest, device, emitted):
    """Raise Failure unless at least @emitted events of a device arrived and none was
    discarded: a discard costs less than an emit."""
    guest.settle(device)
    stats = guest.qmp.stats(device)
    if stats["events"] < emitted or stats["lost"] or stats["dropped"]:
        raise Failure(f"{device}: of at least {emitted} events "
                      f"{stats['events']} arrived, {stats['lost']} were "
                      f"discarded in the guest, {stats['dropped']} by the "
                      "device")


def cases_of(ways, rounds, events, lines):
    cases = [Case("ways", w.name, w.what, "tcg") for w in ways]
    per_run = 2 * (events // GROUP)
    runs = rounds * sum(w.runs for w in ways)
    if len(lines) != runs * per_run:
        raise Failure(f"{len(lines)} marks of {runs} runs")
    none = {}
    for n in range(rounds * len(ways)):
        way, case = ways[n % len(ways)], cases[n % len(ways)]
        marks, lines = lines[:way.runs * per_run], lines[way.runs * per_run:]
        each = [v / KERNEL_EVENTS.get(case.x, 1)
                for v in groups(marks, way.runs * events)]
        row = {"insns": statistics.median(each),
               "insns_mean": statistics.mean(each), "insns_least": min(each)}
        case.rows.append(against(none, case, row))
    return cases


def against(none, case, row):
    """A row's cost minus that of the row "none" of the same x, which must come first.
    If there is no such row, the cost is not changed."""
    if case.series == "none":
        none[case.x] = row
    base = none.get(case.x)
    return {"function": "ways", **{k: v - base[k] if base else v
                                   for k, v in row.items()}}


def add_times(cases, ways, times):
    none = {}
    for n, ns in enumerate(times):
        case = cases[n % len(ways)]
        case.rows[n // len(ways)].update(against(
            none, case, {"ns": ns / KERNEL_EVENTS.get(case.x, 1)}))


def count(channels, timed):
    return (1 + timed) * (5 * len(channels) + 13)
