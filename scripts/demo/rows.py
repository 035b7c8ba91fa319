# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's rows: the account of all events, and their costs.

A row has the events of a burst and of a paced run together, the costs of the burst, and
the delivery latency of each of them; docs/demo.md has its keys.
"""

from demo.rounds import BURST, PACED

UNKNOWN_NS = 2**64 - 1


class Counted:
    """How many of a run's events were sent, recorded and discarded;
    `problems` lists the contradictions."""

    def __init__(self, run):
        self.problems = []
        bench = run.bench
        # number of events that the program tried to emit: those that were accepted and
        # those that were discarded
        self.sent = bench["sent"] + bench["discarded"]
        self.discarded = run.delta("lost") + run.delta("dropped")
        self.accepted = run.delta("events")
        self.streams = self._streams(run)
        self.recorded = sum(s["recorded"] for s in self.streams)
        self.altered = sum(s["altered"] for s in self.streams)
        self.lttng_discarded = self._lttng_discarded(run)
        self.unaccounted = (self.sent - self.recorded - self.discarded
                            - self.lttng_discarded)
        self._judge(run)

    def _streams(self, run):
        return [s for s in run.trace["streams"]
                if s["device"] == run.device["id"]
                and (s["trace"] == "lttng"
                     or s["instance"] in run.instances)]

    def _lttng_discarded(self, run):
        return run.trace["lttng_channels"].get(run.device["id"], 0)

    def _judge(self, run):
        def expect(ok, text):
            if not ok:
                self.problems.append(text)

        expect(self.unaccounted == 0,
               f"{self.unaccounted} events are unaccounted for")
        expect(self.altered == 0, f"{self.altered} events were altered")
        expect(run.bench["sent"] == self.accepted + run.delta("dropped"),
               f"the guest says it sent {run.bench['sent']} events, the "
               f"device accepted {self.accepted} and dropped "
               f"{run.delta('dropped')}")
        expect(run.bench["discarded"] == run.delta("lost"),
               f"the guest says it discarded {run.bench['discarded']} events,"
               f" the device knows of {run.delta('lost')}")
        expect(run.delta("errors") == 0,
               f"the device found {run.delta('errors')} errors")
        expect(run.trace["lttng_discarded_exact"],
               "LTTng does not know how many events it discarded")
        for s in self.streams:
            for defect in ("duplicates", "disordered", "backward"):
                expect(s[defect] == 0, f"{s[defect]} events: {defect}")
        told = sum(s["discarded"] for s in self.streams)
        expect(told == self.discarded,
               f"the trace says {told} events were discarded, the device "
               f"{self.discarded}")

    def latency(self):
        """Latency of the run's stream; None unless the trace has exactly one stream of
        the run"""
        return self.streams[0]["latency"] if len(self.streams) == 1 else None


def make(burst, paced):
    """A row of the result table, from a burst run and a paced run of the
    same workload."""
    parts = [(run, Counted(run)) for run in (burst, paced)]

    def total(name):
        return sum(getattr(c, name) for _, c in parts)

    bench = burst.bench
    latency = parts[1][1].latency()
    burst_latency = parts[0][1].latency()
    bound = paced.after["clock-bound-ns"]
    duration = bench["duration_ns"]
    return {
        "channel": bench["channel"],
        "batch": bench["batch"],
        "device": burst.device["id"],
        "accel": burst.accel,
        "guest": burst.guest,
        "mapping": bench["mapping"],
        "payload": burst.payload,
        "ns_median": bench["ns_median"],
        "ns_p99": bench["ns_p99"],
        "ns_mean": bench["ns_mean"],
        "events_per_s": bench["events_per_s"],
        "mb_per_s": round(bench["payload_bytes"] * 1000 / duration, 3)
        if duration else None,
        "exits_per_1000": round(bench["doorbells"] * 1000 / bench["sent"], 3)
        if bench["sent"] else None,
        "wakeups_per_1000": round(burst.delta("wakeups") * 1000
                                  / bench["sent"], 3)
        if bench["sent"] else None,
        "rate": paced.bench["rate"],
        "latency_median_ns": latency and latency["median_ns"],
        "latency_p99_ns": latency and latency["p99_ns"],
        "latency_min_ns": latency and latency["min_ns"],
        "latency_max_ns": latency and latency["max_ns"],
        "latency_negative": latency and latency["negative"],
        "latency_bound_ns": None if bound >= UNKNOWN_NS else bound,
        "burst_latency_median_ns": burst_latency
        and burst_latency["median_ns"],
        "burst_latency_p99_ns": burst_latency and burst_latency["p99_ns"],
        "sent": total("sent"),
        "recorded": total("recorded"),
        "discarded": total("discarded"),
        "lttng_discarded": total("lttng_discarded"),
        "unaccounted": sum(abs(c.unaccounted) for _, c in parts),
        "altered": total("altered"),
        "problems": [f"{run.phase}: {p}" for run, c in parts
                     for p in c.problems],
    }


def make_all(runs):
    by_key = {}
    for run in runs:
        key = (run.accel, run.guest, run.device["id"], run.payload)
        by_key.setdefault(key, {})[run.phase] = run
    return [make(r[BURST], r[PACED]) for r in by_key.values()]


def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def short(value):
    if value is None:
        return "-"
    return number(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def micro(ns):
    return None if ns is None else ns / 1000


def uncertainty(row):
    """Error of the device's dates in ns; None: the device states no bound. It is the bound
    that the device states or, if that is smaller, the longest time by which an event of
    the paced run was recorded before its own date."""
    bound, least = row["latency_bound_ns"], row["latency_min_ns"]
    return bound if bound is None or least is None else max(bound, -least)


COLUMNS = [
    # first and second line of the heading, and a function for the text of a row
    ("", "accel", lambda r: r["accel"]),
    ("", "channel", lambda r: r["channel"] + (
        f" x{r['batch']}" if r["batch"] > 1 else "")),
    ("", "payload", lambda r: r["payload"]),
    ("guest ns/event", "median", lambda r: short(r["ns_median"])),
    ("", "99%", lambda r: short(r["ns_p99"])),
    ("", "events/s", lambda r: number(r["events_per_s"])),
    ("", "MB/s", lambda r: short(r["mb_per_s"])),
    ("exits/", "1000 ev.", lambda r: short(r["exits_per_1000"])),
    ("delivery latency, us", "median",
     lambda r: short(micro(r["latency_median_ns"]))),
    ("", "99%", lambda r: short(micro(r["latency_p99_ns"]))),
    ("", "+-", lambda r: short(micro(uncertainty(r)))),
    ("", "sent", lambda r: number(r["sent"])),
    ("", "recorded", lambda r: number(r["recorded"])),
    ("discarded by", "device", lambda r: number(r["discarded"])),
    ("", "LTTng", lambda r: number(r["lttng_discarded"])),
    ("", "", lambda r: "!" if r["problems"] else ""),
]


def table(rows):
    cells = [[f(r) for _, _, f in COLUMNS] for r in rows]
    widths = [max(len(second), *(len(c[i]) for c in cells))
              for i, (_, second, _) in enumerate(COLUMNS)]
    head = ""
    at = 0
    for (first, _, _), width in zip(COLUMNS, widths):
        if first:
            head = head.ljust(at) + first
        at += width + 2
    lines = [head.rstrip()]
    lines.append("  ".join(
        second.ljust(w) if i < 2 else second.rjust(w)
        for i, ((_, second, _), w) in enumerate(zip(COLUMNS, widths))))
    last = None
    for row, c in zip(rows, cells):
        if last not in (None, (row["accel"], row["payload"])):
            lines.append("")
        last = (row["accel"], row["payload"])
        lines.append("  ".join(
            text.ljust(w) if i < 2 else text.rjust(w)
            for i, (text, w) in enumerate(zip(c, widths))))
    return "\n".join(line.rstrip() for line in lines)
