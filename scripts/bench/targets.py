# SPDX-License-Identifier: GPL-2.0-or-later
"""The project's targets, and the measured figures.

A target is a limit for the median over the rounds of a run. The figure is a ratio of
two cases, a time, a rate or a number of wakeups. docs/comparison explains the targets.
"""

from bench.stats import ratio, spread


class Figures:
    """The cases of a benchmark result, found by accelerator, table,
    series and x"""

    def __init__(self, result):
        self.cases = {}
        for c in result["cases"]:
            case = type("Row", (), {"rows": [], **c})()
            self.cases[c["accel"], c["table"], c["series"], c["x"]] = case

    def get(self, accel, table, series, x):
        return self.cases.get((accel, table, series, x))

    def median(self, accel, table, series, x, name="p50_ns"):
        case = self.get(accel, table, series, x)
        return case.summary.get(name, {}).get("median") if case else None


def _quantity(case, name):
    if not case:
        return None
    values = [r[name] for r in case.rows if r.get(name) is not None]
    return spread(values) if values else None


def _more(case, base):
    """Summary (see stats.spread()) of the median cost of a case minus that of @base,
    which is computed for each round; None if one of them is missing"""
    if not case or not base:
        return None
    return spread([a["p50_ns"] - b["p50_ns"]
                   for a, b in zip(case.rows, base.rows)])


def _ns(v):
    for limit, unit in ((1e6, "ms"), (1e3, "µs")):
        if v >= limit:
            return f"{v / limit:.3g} {unit}"
    return f"{v:.3g} ns"


def _times(v):
    return f"{v:.2f}" if v < 10 else f"{v:,.0f}"


# Reasons that the report prints beside a missed target
EXPLAINED = "see docs/comparison/limits.md"
STORES = f"an event, however short, is more stores than that; {EXPLAINED}"
LINES = "the ring's lines are in the reader's cache, and each has to come " \
    f"back; {EXPLAINED}"
EXITS = f"what an exit costs is the machine's; {EXPLAINED}"
FINDING = "the backend also copies, walks and finds each event; " \
    f"{EXPLAINED}"
SCHEDULED = "another program had the processor when it was the consumer's " \
    "turn; see \"load before\""


def evaluate(result):
    """List of dicts, one for each target: figure, wanted and measured (texts), reached
    (True or False; None: not measured), and

    why: what a figure that was not measured needs, or the reason of a miss; or ""
    value: the median, if the figure was measured
    ratio: median, minimum and maximum over the rounds, if a ratio was measured
    """
    f = Figures(result)
    rows = []

    def target(figure, limit, measured, at_most, show, needs="", missed="",
               is_ratio=False):
        sign = "at most" if at_most else "at least"
        row = {"figure": figure, "wanted": f"{sign} {show(limit)}",
               "reached": None, "measured": "not measured", "why": needs}
        if measured:
            m = measured["median"]
            row["measured"] = f"{show(m)} ({show(measured['q1'])} to " \
                              f"{show(measured['q3'])})"
            row["reached"] = m <= limit if at_most else m >= limit
            row["value"] = m
            row["why"] = "" if row["reached"] else missed or EXPLAINED
            if is_ratio:
                row["ratio"] = [m, measured["min"], measured["max"]]
                row["measured"] += f", rounds {show(measured['min'])} to " \
                                   f"{show(measured['max'])}"
        rows.append(row)

    def times(figure, limit, measured, at_most, needs="", missed=""):
        target(figure, limit, measured, at_most, _times, needs, missed, True)

    _native_targets(f, target, times)
    _guest_targets(f, target, times)
    _host_targets(f, target, times)
    _latency_targets(f, target)
    return rows


def _native_targets(f, target, times):
    def native(series, x):
        return f.get("native", "native", series, x)

    limit = native("limit", 32)
    empty = ratio(native("emit", 0), limit)
    times("native emit of 32 bytes, against the limit loop", 1.05,
          ratio(native("emit", 32), limit), True,
          missed=f"reading the clock hides too little of it: without a "
                 f"payload it is {_times(empty['median'])}; {EXPLAINED}"
                 if empty else "")
    target("native emit of 8 bytes without the clock", 2,
           _quantity(native("without a clock", 8), "p50_ns"), True, _ns,
           missed=STORES)
    target("native emit of 32 bytes without the clock", 8,
           _quantity(native("without a clock", 32), "p50_ns"), True, _ns,
           missed=STORES)
    target("native emit of 8 bytes, the clock read for each 8th", 6,
           _quantity(native("clock for each 8th event", 8), "p50_ns"), True,
           _ns)
    for text, state in (("without a device", "no device"),
                        ("that the host does not want", "off")):
        target(f"ht_trace() {text}, against an empty loop", 1,
               _more(f.get("native", "tracepoint", "ht_trace()", state),
                     f.get("native", "tracepoint", "none: the loop alone",
                           "off")), True, _ns)
    target("a discarded event, native", 5,
           _quantity(native("discarded", 32), "p50_ns"), True, _ns)
    times("native emit with a paced live consumer, against the limit", 2.5,
          ratio(native("paced live consumer", 32), limit), True,
          missed=LINES)


def _exit_bound(one, limit):
    """Return the reason that the report prints if the ratio of an exit's cost to an
    event's cost misses its target."""
    bound = ratio(one, limit)
    return f"an exit is {_times(bound['median'])} limit loops in this guest, " \
        f"and no event that reads the clock is cheaper; {EXPLAINED}" \
        if bound else EXITS


def _guest_targets(f, target, times):
    needs = "needs KVM"
    stopped = f.get("kvm", "consumer", "shm, as fast as possible", "stopped")
    shm = f.get("kvm", "payload", "shm", 32)
    virtio = f.get("kvm", "payload", "virtio", 32)
    alone = f.get("kvm", "consumer", "virtio, as fast as possible", "stopped")
    one = f.get("kvm", "batch", "hypercall", 1)
    ten = f.get("kvm", "batch", "hypercall", 10)
    bound = _exit_bound(one, f.get("kvm", "peers", "limit", 8))
    serial = f.get("kvm", "peers", "virtio-serial", 8)
    times("shm with the consumer stopped, against native emit", 1.3,
          ratio(stopped, f.get("native", "native", "emit", 32)), True, needs)
    times("unbatched hypercall, against shm with the consumer stopped", 1500,
          ratio(one, stopped), False, needs, bound)
    times("unbatched hypercall, against shm at full load", 1500,
          ratio(one, shm), False, needs, bound)
    times("8-byte virtio-serial message, against an 8-byte shm event, "
          "consumer stopped", 150,
          ratio(serial, f.get("kvm", "payload", "shm, consumer stopped", 8)),
          False, needs, EXITS)
    times("8-byte virtio-serial message, against an 8-byte shm event at full "
          "load", 150, ratio(serial, f.get("kvm", "payload", "shm", 8)),
          False, needs, LINES)
    times("virtio with full packets, against shm", 1.5, ratio(virtio, shm),
          True, needs)
    times("virtio with full packets, against shm, consumers stopped", 1.5,
          ratio(alone, stopped), True, needs)
    times("hypercall batch=1, against batch=10", 9, ratio(one, ten), False,
          needs, EXITS)
    one, two = (f.get("kvm", "producers", "shm, consumer stopped", n)
                for n in (1, 2))
    times("two producers on two vCPUs, against one, shm, consumer stopped",
          1.9, ratio(two, one, "events_per_s"), False,
          "needs KVM and two processors")


def _host_targets(f, target, times):
    def host(series):
        return f.get("native", "host", series, 32)

    target("host: copy and walk of 32-byte events, into nothing", 120e6,
           _quantity(host("copy and walk"), "events_per_s"), False,
           lambda v: f"{v / 1e6:.0f} million/s")
    times("host: rate of the lttng backend, against a bare loop of the same "
          "run-time event", 0.9,
          ratio(host("lttng, bare run-time event"), host("lttng backend")),
          False, "needs LTTng", FINDING)
    target("host: ctf backend into tmpfs, 64 KiB packets", 1,
           _quantity(host("ctf backend"), "gb_per_s"), False,
           lambda v: f"{v:.2f} GB/s", "needs a tmpfs")


def _latency_targets(f, target):
    target("delivery latency, native, consumer polling, median", 5000,
           _quantity(f.get("native", "host", "latency, polling", 32),
                     "p50_ns"), True, _ns)
    quiet = f.get("kvm", "one event", "shm", 1)
    target("wake-ups of a sleeping consumer for one event, shm", 1,
           _quantity(quiet, "woken"), True, lambda v: f"{v:.0f}",
           "needs KVM", SCHEDULED)
    for channel, series in (("shm", "shm, asleep"), ("virtio", "virtio")):
        quiet = f.get("kvm", "latency", series, 20)
        target(f"delivery latency to LTTng, {channel}, quiet stream, worst "
               "event of a round: flush-ms", 10e6,
               _quantity(quiet, "latency_max_ns"), True, _ns,
               "needs KVM and LTTng", SCHEDULED)
