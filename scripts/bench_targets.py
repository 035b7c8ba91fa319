# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that the project set itself, against those measured.

Each is a ratio within the rounds of one run, or a time that does not depend
on another machine's; docs/comparison says where they come from.
"""

from bench_stats import ratio, spread


class Figures:
    """The cases of a result by table, series and place."""

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


def _ns(v):
    for limit, unit in ((1e6, "ms"), (1e3, "µs")):
        if v >= limit:
            return f"{v / limit:.3g} {unit}"
    return f"{v:.3g} ns"


def _times(v):
    return f"{v:.2f}" if v < 10 else f"{v:,.0f}"


def evaluate(result):
    """List of dicts: figure, wanted, measured, reached (None: not known)."""
    f = Figures(result)
    rows = []

    def target(figure, limit, measured, at_most, show, why=""):
        sign = "at most" if at_most else "at least"
        row = {"figure": figure, "wanted": f"{sign} {show(limit)}",
               "reached": None, "measured": "not measured", "why": why}
        if measured:
            m = measured["median"]
            row["measured"] = f"{show(m)} ({show(measured['q1'])} to " \
                              f"{show(measured['q3'])})"
            row["reached"] = m <= limit if at_most else m >= limit
            row["value"] = m
        rows.append(row)

    def native(series, x):
        return f.get("native", "native", series, x)

    no_lttng = "needs LTTng"
    limit = native("limit", 32)
    target("native emit of 32 bytes, against the limit loop", 1.05,
           ratio(native("emit", 32), limit), True, _times)
    target("native emit of 8 bytes without the clock", 2,
           _quantity(native("without a clock", 8), "p50_ns"), True, _ns)
    target("native emit of 32 bytes without the clock", 8,
           _quantity(native("without a clock", 32), "p50_ns"), True, _ns)
    target("a discarded event, native", 5,
           _quantity(native("discarded", 32), "p50_ns"), True, _ns)
    target("native emit with a paced live consumer, against the limit", 2.5,
           ratio(native("paced live consumer", 32), limit), True, _times)

    no_kvm = "needs KVM"
    stopped = f.get("kvm", "consumer", "shm, as fast as possible", "stopped")
    shm = f.get("kvm", "payload", "shm", 32)
    virtio = f.get("kvm", "payload", "virtio", 32)
    one = f.get("kvm", "batch", "hypercall", 1)
    ten = f.get("kvm", "batch", "hypercall", 10)
    serial = f.get("kvm", "peers", "virtio-serial", 8)
    shm8 = f.get("kvm", "payload", "shm, consumer stopped", 8)
    target("shm with the consumer stopped, against native emit", 1.3,
           ratio(stopped, native("emit", 32)), True, _times, no_kvm)
    target("unbatched hypercall, against shm (consumer stopped)", 1500,
           ratio(one, stopped), False, _times, no_kvm)
    target("unbatched hypercall, against shm at full load", 1500,
           ratio(one, shm), False, _times, no_kvm)
    target("8-byte virtio-serial message, against an 8-byte shm event "
           "(consumer stopped)", 150,
           ratio(serial, shm8), False, _times, no_kvm)
    target("virtio with full packets, against shm", 1.5,
           ratio(virtio, shm), True, _times, no_kvm)
    target("hypercall batch=1, against batch=10", 9, ratio(one, ten), False,
           _times, no_kvm)
    one, two = (f.get("kvm", "producers", "shm, consumer stopped", n)
                for n in (1, 2))
    target("two producers on two vCPUs, against one, shm", 1.9,
           ratio(two, one, "events_per_s"), False, _times,
           "needs KVM and two processors")

    def per_second(v):
        return f"{v / 1e6:.0f} million/s"

    target("host: copy and walk of 32-byte events", 120e6,
           _quantity(f.get("native", "host", "copy and walk", 32),
                     "events_per_s"), False, per_second)
    target("host: rate of the lttng backend, against a bare loop of the same "
           "run-time event", 0.9,
           ratio(f.get("native", "host", "lttng, bare run-time event", 32),
                 f.get("native", "host", "lttng backend", 32)), False, _times,
           no_lttng)
    target("host: ctf backend into tmpfs, 64 KiB packets", 1,
           _quantity(f.get("native", "host", "ctf backend", 32), "gb_per_s"),
           False, lambda v: f"{v:.2f} GB/s")

    target("delivery latency, native, consumer polling, median", 5000,
           _quantity(f.get("native", "host", "latency, polling", 32),
                     "p50_ns"), True, _ns)
    quiet = f.get("kvm", "latency", "shm, asleep", 20)
    target("delivery latency to LTTng, shm, quiet stream, worst: flush-ms",
           10e6, _quantity(quiet, "latency_max_ns"), True, _ns, no_lttng)
    quiet = f.get("kvm", "one event", "shm", 1)
    target("wake-ups of a sleeping consumer for one event, and the stream's "
           "end", 2, spread([r["host"]["wakeups"] for r in quiet.rows])
           if quiet else None, True, lambda v: f"{v:.0f}", no_kvm)
    for row in rows:
        if row["reached"] is not None:
            row["why"] = ""
    return rows
