# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a comparison: text, Markdown, and one HTML page."""

import base64
import html

from bench import conclusions, plot, stats, targets

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif;
  color: #1c1c1c; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem; border-bottom: 1px solid #ccc;
  padding-bottom: .2rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .86rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid #e2e2e2;
  text-align: right; vertical-align: top; }
th { border-bottom: 2px solid #999; font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
table.words td, table.words th { text-align: left; }
.reached { color: #00613d; font-weight: 600; }
.missed { color: #a8320a; font-weight: 600; }
.unknown { color: #666; }
.note { color: #555; }
figure { margin: 1.2rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .88rem; }
.wide { overflow-x: auto; }
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; }
  h2 { break-after: avoid; } tr { break-inside: avoid; }
}
"""

COLUMNS = [
    ("ns/event", "p50_ns"), ("p99", "p99_ns"), ("max", "max_ns"),
    ("events/s", "events_per_s"), ("MB/s", "mb_per_s"),
    ("exits/event", "exits_per_event"), ("host CPU ns/event", "host_cpu_ns"),
]


def number(v, digits=3):
    if v is None:
        return ""
    if v == 0:
        return "0"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(v) >= limit:
            scale = {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{v / scale:.{digits}g} {unit}" if v / scale < 1000 \
                else f"{v / scale:.0f} {unit}"
    if abs(v) >= 100:
        return f"{v:.0f}"
    return f"{v:.{digits}g}"


def with_spread(s):
    if not s:
        return ""
    if s["n"] == 1:
        return number(s["median"])
    return f"{number(s['median'])} [{number(s['q1'])} – {number(s['q3'])}]"


def place(x):
    if isinstance(x, (int, float)) and x >= 1000000:
        return f"{x / 1e6:g} M"
    return str(x)


class Report:
    """A list of blocks (headings, paragraphs, lists, tables and plots), which markdown()
    and html() format. text() has only the targets, the conclusions and what was left
    out."""

    def __init__(self, result):
        self.result = result
        self.figures = targets.Figures(result)
        self.targets = targets.evaluate(result)
        self.conclusions = conclusions.conclude(self.figures)
        self.blocks = []
        self.plot_problem = plot.problem()
        self._build()

    def _build(self):
        r = self.result
        n = r["rounds"]
        self.blocks += [
            ("h1", "hypertrace: the channels compared"),
            ("p", f"{r['started']}, profile {r['profile']}, {n} interleaved "
             f"round{'s' if n > 1 else ''}. Figures in this report are medians "
             "over the rounds, with the quartiles in brackets. Within a round, ns "
             "an event is the median over groups of events, which an interruption "
             "by another program hardly changes; p99 and max of these groups "
             "include such interruptions. Ratios are taken within each round. "
             "Quartiles are of this run; in another run a ratio may be anywhere "
             "in the range of its rounds, or "
             f"{100 * stats.FLOOR:.0f} % around its median if that is "
             "more (./run bench --compare checks two runs against this).")]
        self._ways_picture()
        self.blocks += [
            ("h2", "Which channel to choose"),
            ("list", self.conclusions or
             ["Without KVM there is nothing to conclude: times of TCG "
              "prove that the channels work, and nothing else."]),
            ("h2", "Figures to reach"), ("targets", self.targets),
            ("h2", "Where it was measured"),
            ("words", ["", ""], [[k, v] for k, v in
                                 r["environment"].items()])]
        if r["skipped"]:
            self.blocks.append(("list", [f"Left out: {s['what']}: {s['why']}"
                                         for s in r["skipped"]]))
        self._native()
        for accel in ("kvm", "tcg"):
            if any(c["accel"] == accel for c in r["cases"]):
                self._accel(accel)
        for accel in ("kvm", "tcg"):
            self._linux(accel)
            self._macro(accel)
        self._ways()

    def _cases(self, accel, table):
        return [c for (a, t, _, _), c in self.figures.cases.items()
                if a == accel and t == table]

    def _table(self, cases, xname, columns=None, first="channel"):
        columns = [(h, k) for h, k in columns or COLUMNS
                   if any(k in c.summary for c in cases)]
        if not all(isinstance(c.x, str) for c in cases):
            names = list(dict.fromkeys(c.series for c in cases))
            cases = sorted(cases, key=lambda c: (names.index(c.series),
                                                 str(type(c.x)), c.x))
        if cases:
            self.blocks.append(("table", [first, xname,
                                          *(h for h, _ in columns)],
                                [[c.series, place(c.x),
                                  *(with_spread(c.summary.get(k)) if i == 0
                                    else number(c.summary.get(k, {}).get(
                                        "median"))
                                    for i, (_, k) in enumerate(columns))]
                                 for c in cases]))

    def _plot(self, name, caption, make, *args, **kwargs):
        if self.plot_problem:
            return
        self.blocks.append(("plot", name, caption, make(*args, **kwargs)))

    def _ways_picture(self):
        """Add a plot of the cost of an event by several ways out of a guest, relative to the
        cost over shm. KVM's bars are ratios of times; TCG's are ratios of the numbers of
        instructions in a Linux guest."""
        f = self.figures
        rows = []
        base = f.median("kvm", "payload", "shm", 32)
        if base:
            rows += [(name, f.get("kvm", table, series, x), "p50_ns", base, 0)
                     for name, table, series, x in (
                         ("shm", "payload", "shm", 32),
                         ("virtio", "payload", "virtio", 32),
                         ("hypercall", "payload", "hypercall", 32),
                         ("hypercall, 64 a doorbell", "batch", "hypercall",
                          64),
                         ("port I/O exit", "peers", "pio", 8),
                         ("MMIO exit", "peers", "mmio", 8),
                         ("virtio-serial, 8 bytes, no kernel", "peers",
                          "virtio-serial", 8))]
        base = f.median("tcg", "ways", "shm", 32, "insns")
        if base:
            rows += [(f"{c.series}: {c.x}" if isinstance(c.x, str) else
                      f"{c.series}, in Linux", c, "insns", base, 1)
                     for c in self._cases("tcg", "ways")
                     # Leave out costs with a first quartile that is not positive, such
                     # as that of an event that is off: the axis is logarithmic.
                     if "hypercall" not in c.series and
                     c.summary["insns"]["q1"] > 0]
        rows = sorted(((name, *(c.summary[key][k] / base for k in
                                ("median", "q1", "q3")), kind)
                       for name, c, key, base, kind in rows if c),
                      key=lambda r: r[1])
        if not rows:
            return
        self.blocks.append((
            "p", "The picture shows the cost of an event of 32 bytes by each way "
            "out of a guest, relative to an event over shm. Ways with an exit are "
            "timed under KVM, in a bare-metal guest without a kernel. Ways "
            "through a guest's kernel are counted in the instructions that a "
            "Linux guest executes, which leave out the work of an exit. "
            "sched_switch is the kernel's own event, as large as the tracer "
            "makes it."))
        self._plot("ways", "What an event costs the guest, on a logarithmic "
                   "scale", plot.bars, rows, "times an event over shm",
                   start=0.5, kinds=["time, KVM", "instructions, Linux"])

    def _ways(self):
        cases = self._cases("tcg", "ways")
        if not cases:
            return
        self.blocks += [
            ("h2", "An event in a Linux guest"),
            ("p", "A plugin of TCG counts the instructions of an event between two "
             "marks in a program, kernel and interrupts included. "
             "\"instructions\" is the median over groups of 16 events, for each "
             "event; \"mean\" includes timer ticks, new packets and new pages. " + (
                 "\"ns\" is the time of an event in a guest without the plugin, "
                 "under TCG. " if "ns" in cases[0].summary else "") +
             "The row 32 is a program's event of 32 bytes. The events "
             "sched_switch (two threads that yield to each other) and function "
             "(vfs_write() of /dev/null) are compared with the same work without "
             "tracing. No event was discarded.")]
        self._table(cases, "event", [("instructions", "insns"),
                                     ("mean", "insns_mean"),
                                     ("ns", "ns")], "way")

    def _native(self):
        cases = self._cases("native", "native")
        if not cases:
            return
        self.blocks += [
            ("h2", "Native: the library alone"),
            ("p", "The native rows measure the same loops as in the guest, in "
             "a process of the host. “limit” is the least that an event can "
             "cost: read the clock, write 40 bytes, do one release store. A "
             "consumer reads the ring only if the row names one. It runs on the "
             "other processor and is paced (it polls every 20 µs), asleep (it is "
             "woken for each packet), or spinning (it polls the open packet "
             "without pauses, which the device does not do).")]
        self._table(cases, "bytes", [("ns/event", "p50_ns")], "what")
        self._tracepoints()
        host = self._cases("native", "host")
        if host:
            self.blocks.append(("p", "The next table has the time that the host takes "
                                "for an event of 32 bytes, natively, on one processor:"))
            self._table(host, "bytes", [("ns", "p50_ns"), ("p99", "p99_ns"),
                                        ("events/s", "events_per_s")], "what")

    def _tracepoints(self):
        cases = self._cases("native", "tracepoint")
        if not cases:
            return
        recorded = self.figures.get("native", "native",
                                    "LTTng-UST static tracepoint", 32)
        if recorded:
            cases.append(type("N", (), {"series": "LTTng-UST", "x": "on",
                                        "summary": recorded.summary})())
        self.blocks.append(
            ("p", "A tracepoint of four 64-bit fields in a program, off and "
             "on. USDT: a probe of <sys/sdt.h>; on, a uprobe whose ring "
             "nobody reads, as nobody reads the others'."))
        self._table(cases, "state", [("ns", "p50_ns")], "tracepoint")

    def _lines(self, accel, table, xs, name="p50_ns", extra=()):
        series = {}
        for c in [*extra, *self._cases(accel, table)]:
            s = c.summary.get(name)
            if s and c.x in xs:
                series.setdefault(c.series, []).append(
                    (xs.index(c.x), s["median"], s["q1"], s["q3"]))
        return [(k, sorted(v)) for k, v in series.items()]

    def _accel(self, accel):
        kvm = accel == "kvm"
        note = "" if kvm else " (proves function, not ratios)"
        title = accel.upper() + note

        cases = self._cases(accel, "payload")
        if cases:
            self.blocks += [("h2", f"Cost against payload, {title}")]
            xs = sorted({c.x for c in cases})
            native = [type("N", (), {"series": "native emit", "x": c.x,
                                     "summary": c.summary})()
                      for c in self._cases("native", "native")
                      if c.series == "emit"] if kvm else []
            self._plot(f"{accel}-payload", "Guest ns an event against the "
                       "payload; each exit of the hypercall channel is an "
                       "event here", plot.lines,
                       self._lines(accel, "payload", xs, extra=native),
                       "payload, bytes", "ns/event", xs)
            self._table(cases, "bytes")

        cases = self._cases(accel, "batch")
        if cases:
            self.blocks.append(("h2", f"Cost against batch, {title}"))
            xs = sorted({c.x for c in cases})
            self._plot(f"{accel}-batch", "Guest ns an event of 32 bytes "
                       "against the events of one doorbell", plot.lines,
                       self._lines(accel, "batch", xs), "events a doorbell",
                       "ns/event", xs)
            self._table(cases, "batch")

        cases = self._cases(accel, "packet size")
        if cases:
            self.blocks.append(("h2", f"Packet size, {title}"))
            xs = sorted({c.x for c in cases})
            self._plot(f"{accel}-packets", "Sustained events/s, none "
                       "discarded, in a ring of 1 MiB", plot.lines,
                       self._lines(accel, "packet size", xs, "events_per_s"),
                       "bytes a packet", "events/s",
                       [f"{x // 1024} KiB" for x in xs], logy=False,
                       more="set yrange [0:*]\nset format y '%.0s %c'\n")
            self._table(cases, "packet")

        cases = self._cases(accel, "consumer")
        if cases:
            self.blocks += [
                ("h2", f"The consumer at the same time, {title}"),
                ("p", "The column \"consumer\" has the state of the thread "
                 "that reads the ring. Stopped: the thread is held; the ring "
                 "of shm overwrites old events, and that of virtio has room "
                 "for all (its main loop, which empties the queue, is held as "
                 "well). Paced: the thread polls every 20 µs and never sleeps. "
                 "Asleep: a doorbell wakes the thread at the next packet, or "
                 "at the next event after a pause. The device has no thread "
                 "that polls without pauses; the native rows have one "
                 "(\"spinning\").")]
            self._table(cases, "consumer",
                        [*COLUMNS[:4], ("doorbells/event", "exits_per_event"),
                         ("wake-ups", "wakeups"),
                         ("host CPU ns/event", "host_cpu_ns")])
        cases = self._cases(accel, "one event")
        if cases:
            self.blocks += [
                ("h2", f"One event for a consumer that sleeps, {title}"),
                ("p", "This table has the cost of a single event. Over shm, a "
                 "consumer that has just read events polls again within flush-ms, "
                 "so that the next event needs no doorbell. Over virtio, the "
                 "event is handed over when the stream is closed.")]
            self._table(cases, "events",
                        [("ns", "p50_ns"), ("doorbells", "exits_per_event"),
                         ("wake-ups for the event", "woken"),
                         ("host CPU ns, with opening and closing",
                          "host_cpu_ns")])
        self._exits(accel, title)
        cases = self._cases(accel, "producers")
        if cases:
            self.blocks += [
                ("h2", f"Producers on a vCPU each, {title}"),
                ("p", "Each producer has a vCPU and a stream of its own, and all begin "
                 "together. events/s is the sum of the producers' rates, each computed "
                 "from the producer's median cost of an event.")]
            self._table(cases, "producers")
        self._peers(accel, title)
        self._overload(accel, title)
        self._latency(accel, title)

    def _exits(self, accel, title):
        cases = self._cases(accel, "exits")
        if not cases:
            return
        self.blocks += [
            ("h2", f"Exits as KVM counts them, {title}"),
            ("p", "\"KVM's exits/event\" is computed from KVM's statistics of the "
             "vCPU, read before the first event and after the last. The guest's "
             "program asks for its next command by port I/O; these exits are "
             "left out. \"doorbells/event\" is the number of doorbells that the "
             "producer itself counted.")]
        if not any("kvm_exits_per_event" in c.summary for c in cases):
            self.blocks.append(("p", "This kernel has no such statistics."))
        self._table(cases, "bytes",
                    [("KVM's exits/event", "kvm_exits_per_event"),
                     ("doorbells/event", "exits_per_event"),
                     ("ns/event", "p50_ns")])

    def _peers(self, accel, title):
        peers = self._cases(accel, "peers")
        if not peers:
            return
        self.blocks += [
            ("h2", f"Peers in the same guest, {title}"),
            ("p", "Peers are other ways out of a guest. limit: the least cost "
             "of an event, as in the native rows. pio: a marker write to an I/O "
             "port. mmio: an exit to QEMU for each event, the design of 2016. "
             "virtio-serial: 8-byte messages to a stock port; the guest waits for "
             "each message, as Linux's driver does. virtio-serial-queued: the "
             "same, without waiting for each message.")]
        f = self.figures
        rows = [(c.series, c) for c in peers]
        for name, table, x in (("shm", "payload", 8), ("virtio", "payload", 8),
                               ("hypercall", "payload", 8)):
            c = f.get(accel, table, name, x)
            if c:
                rows.append((f"{name}, 8 bytes", c))
        for name, series in (("LTTng-UST, native",
                              "LTTng-UST static tracepoint"),):
            c = f.get("native", "native", series, 32)
            if c:
                rows.append((name, c))
        rows = [(n, c.summary["p50_ns"]) for n, c in rows]
        rows.sort(key=lambda r: r[1]["median"])
        self._plot(f"{accel}-peers", "ns an event, on a logarithmic scale",
                   plot.bars, [(n, s["median"], s["q1"], s["q3"])
                               for n, s in rows], "ns/event")
        self._table(peers, "bytes", first="peer")

    def _overload(self, accel, title):
        cases = self._cases(accel, "overload")
        if not cases:
            return
        backend = cases[0].options.get("backend", "null")
        self.blocks += [
            ("h2", f"Overload, {title}"),
            ("p", "The guest tries to emit 32-byte events at the rate "
             f"\"offered/s\", into the {backend} backend. \"share delivered\" is "
             "the share of the guest's events, with those that were discarded, "
             "that reached the backend. If the guest's rate is below the offered "
             "rate, the channel made the guest wait, or the guest could not emit "
             "faster.")]
        series = {}
        for c in cases:
            s = c.summary["delivered_per_s"]
            series.setdefault(c.series, []).append(
                (c.x, s["median"], s["q1"], s["q3"]))
        self._plot(f"{accel}-overload", "Delivered events/s against those "
                   "offered", plot.lines,
                   [(k, sorted(v)) for k, v in series.items()],
                   "offered events/s", "delivered events/s", logx=True)
        self._table(cases, "offered/s",
                    [("ns/event", "p50_ns"), ("p99", "p99_ns"),
                     ("guest's rate", "offered_per_s"),
                     ("delivered/s", "delivered_per_s"),
                     ("share delivered", "delivered_share"),
                     ("share discarded", "discarded_share")])

    def _latency(self, accel, title):
        cases = self._cases(accel, "latency")
        if not cases:
            return
        self.blocks += [
            ("h2", f"Delivery latency, {title}"),
            ("p", "The latency of an event is the time from the guest's clock "
             "reading to LTTng's time stamp on the host. Over hypercall, the "
             "vCPU delivers an event at its doorbell. Over shm at 20 events/s, "
             "an event wakes the consumer if it is asleep, and a paced consumer "
             "finds the event at its next poll. Over shm at 1,000 events/s, an "
             "event waits for the next poll of the open packet, about flush-ms "
             "(10) at most.")]
        rates = {}
        rows = []
        for c in cases:
            points = [sorted(r["latency_points_ns"][i] for r in c.rows)
                      for i in range(21)]
            rates.setdefault(c.x, []).append((c.series, [
                (p[len(p) // 2] / 1000, i * 5, i * 5, i * 5)
                for i, p in enumerate(points) if p[len(p) // 2] > 0]))
            rows.append([c.series, place(c.x)] + [number(
                sorted(r[k] for r in c.rows)[len(c.rows) // 2] / 1000)
                for k in ("latency_min_ns", "latency_p50_ns",
                          "latency_p90_ns", "latency_p99_ns",
                          "latency_max_ns")])
        for rate, series in rates.items():
            self._plot(f"{accel}-latency-{rate}", "Share of events delivered "
                       f"within a time, at {rate} events/s",
                       plot.lines, series, "µs", "% of events",
                       logx=True, logy=False,
                       more="set format x '%g'\nset yrange [0:100]\n")
        self.blocks.append(("table", ["channel", "events/s", "min µs", "median", "p90",
                                      "p99", "max"], rows))

    def _linux(self, accel):
        cases = self._cases(accel, "linux")
        if not cases:
            return
        note = "" if accel == "kvm" else " (proves function, not ratios)"
        self.blocks += [
            ("h2", f"Sources in a Linux guest, {accel.upper()}{note}"),
            ("p", "A program in a Linux guest emits events of 32 bytes at full "
             "rate in several ways: through hypertrace's kernel module over each "
             "channel (null backend), by a write() to ftrace's trace_marker, by a "
             "write() to a port of a stock virtio-serial device, and by an "
             "LTTng-UST static tracepoint that a session daemon in the guest "
             "records to a tmpfs. LTTng's trace was read, and had each event.")]
        rows = sorted(((c.series, c.summary["p50_ns"]) for c in cases),
                      key=lambda r: r[1]["median"])
        self._plot(f"{accel}-linux", "ns an event, on a logarithmic scale",
                   plot.bars, [(n, s["median"], s["q1"], s["q3"])
                               for n, s in rows], "ns/event")
        self._table(cases, "bytes", [*COLUMNS[:4],
                                     ("doorbells/event", "exits_per_event")],
                    "source")

    def _macro(self, accel):
        cases = self._cases(accel, "macro")
        if not cases:
            return
        note = "" if accel == "kvm" else \
            " (proves function, not overhead)"
        self.blocks += [
            ("h2", f"Benchmarks in a Linux guest, {accel.upper()}{note}"),
            ("p", f"While a program emits {cases[0].options['rate']} 32-byte "
             "events/s over a channel, or through a peer as above, against the "
             "same without: mean and standard deviation of the additional "
             "time, within each round. Negative: it was quicker, by "
             "chance.")]
        rows, bars = [], []
        for c in cases:
            base = self.figures.get(accel, "macro", "none", c.x)
            mean = stats.spread([r["value"] for r in c.rows])
            cost = stats.overhead(c, base) \
                if c.series != "none" and base else None
            rows.append([c.x, c.series, with_spread(mean),
                         f"{cost['mean']:+.1f} % ± {cost['sd']:.1f}"
                         if cost else ""])
            if cost:
                bars.append((f"{c.x.split(',')[0]}, {c.series}",
                             cost["mean"], cost["mean"] - cost["sd"],
                             cost["mean"] + cost["sd"]))
        rows.sort(key=lambda r: r[0])
        self._plot(f"{accel}-macro", "What it costs more than without "
                   "tracing, with the standard deviation", plot.bars,
                   sorted(bars, key=lambda b: b[0].split(",")[0]),
                   "% more", logx=False)
        self.blocks.append(("table", ["benchmark", "source", "figure",
                                      "cost"], rows))

    @staticmethod
    def _verdict(row):
        return {True: "reached", False: "missed",
                None: "unknown"}[row["reached"]]

    def _target_rows(self):
        return [[self._verdict(t), t["figure"], t["wanted"],
                 t["measured"] + (f": {t['why']}" if t["why"] else "")]
                for t in self.targets]

    def text(self):
        out = ["Figures to reach:"]
        for verdict, figure, wanted, measured in self._target_rows():
            out.append(f"  {verdict:8} {figure}: {measured} ({wanted})")
        out.append("")
        out += [f"- {c}" for c in self.conclusions]
        out += [f"- left out: {s['what']}: {s['why']}"
                for s in self.result["skipped"]]
        return "\n".join(out)

    def markdown(self):
        def row(cells):
            return "| " + " | ".join(str(c).replace("|", "\\|")
                                     for c in cells) + " |\n"
        out = []
        for kind, *b in self.blocks:
            if kind in ("h1", "h2"):
                out.append(f"{'#' * int(kind[1])} {b[0]}\n")
            elif kind == "p":
                out.append(b[0] + "\n")
            elif kind == "list":
                out.append("".join(f"- {item}\n" for item in b[0]))
            elif kind == "plot":
                out.append(f"![{b[1]}]({b[0]}.svg)\n")
            else:
                head, rows = b if kind != "targets" else (
                    ["", "figure", "wanted", "measured (quartiles)"],
                    self._target_rows())
                out.append(row(head) + row(["---"] * len(head)) +
                           "".join(row(r) for r in rows))
        if self.plot_problem:
            out.append(f"No plots: {self.plot_problem}.\n")
        return "\n".join(out)

    def html(self):
        e = html.escape

        def table(head, rows, words=False):
            cls = ' class="words"' if words else ""
            top = "" if not any(head) else "<thead><tr>" + "".join(
                f"<th>{e(h)}</th>" for h in head) + "</tr></thead>"
            return (f'<div class="wide"><table{cls}>{top}<tbody>' + "".join(
                "<tr>" + "".join(c if c.startswith("<td") else
                                 f"<td>{e(c)}</td>" for c in r) + "</tr>\n"
                for r in rows) + "</tbody></table></div>")

        out = []
        for kind, *b in self.blocks:
            if kind in ("h1", "h2", "p"):
                out.append(f"<{kind}>{e(b[0])}</{kind}>")
            elif kind == "list":
                out.append("<ul>" + "".join(f"<li>{e(i)}</li>"
                                            for i in b[0]) + "</ul>")
            elif kind == "plot":
                data = base64.b64encode(b[2].encode()).decode()
                out.append('<figure><img src="data:image/svg+xml;base64,'
                           f'{data}" alt="{e(b[1])}" width="780" '
                           f'height="430"><figcaption>{e(b[1])}'
                           '</figcaption></figure>')
            elif kind == "targets":
                rows = [[f'<td class="{v}">{v}</td>', f, w, m]
                        for v, f, w, m in self._target_rows()]
                out.append(table(["", "figure", "wanted",
                                  "measured (quartiles)"], rows, True))
            else:
                out.append(table(*b, kind == "words"))
        if self.plot_problem:
            out.append(f'<p class="note">No plots: {e(self.plot_problem)}.'
                       "</p>")
        return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                '<meta name="viewport" content="width=device-width">'
                "<link rel=\"icon\" href=\"data:,\">"
                "<title>hypertrace: the channels compared</title>"
                f"<style>{STYLE}</style></head>\n<body>\n" +
                "\n".join(out) + "\n</body></html>\n")

    def write(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        for kind, *b in self.blocks:
            if kind == "plot":
                (directory / f"{b[0]}.svg").write_text(b[2])
        (directory / "report.md").write_text(self.markdown())
        (directory / "report.html").write_text(self.html())
