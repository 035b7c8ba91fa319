# SPDX-License-Identifier: GPL-2.0-or-later
"""The best channel for each use, in sentences computed from the figures.

Times of guests are those under KVM: an exit under TCG costs far less than a real one.
"""

from bench.stats import ratio


def _ns(v):
    if v < 1000:
        return f"{v:.0f} ns" if v >= 20 else f"{v:.1f} ns"
    if v >= 1e6:
        return f"{v / 1e6:.1f} ms"
    return f"{v / 1000:.0f} µs" if v >= 20000 else f"{v / 1000:.1f} µs"


def _rate(v):
    for limit, name in ((1e6, "million"), (1e3, "thousand")):
        if v >= limit:
            return f"{v / limit:.3g} {name} events/s"
    return f"{v:.0f} events/s"


def _factor(s):
    m = s["median"]
    return f"{m:,.0f}" if m >= 10 else f"{m:.2f}"


def conclude(f):
    """Return a list of sentences, without those for which the run has no figures."""
    out = []
    shm = f.get("kvm", "payload", "shm", 32)
    stopped = f.get("kvm", "payload", "shm, consumer stopped", 32)
    virtio = f.get("kvm", "payload", "virtio", 32)
    call = f.get("kvm", "payload", "hypercall", 32)
    native = f.get("native", "native", "emit", 32)

    if shm and call:
        a, b = (c.summary["p50_ns"]["median"] for c in (shm, call))
        out.append(
            f"Pick shm where cost or rate matters: {_ns(a)} for a 32-byte "
            f"event against {_ns(b)} over an unbatched hypercall, "
            f"{_factor(ratio(call, shm))} times less. One per cent of a "
            f"processor is {_rate(1e7 / a)} over shm, {_rate(1e7 / b)} over "
            "hypercall.")
    if stopped and native:
        r = ratio(stopped, native)
        out.append(
            "While no consumer reads, an event over shm costs the guest "
            f"{_factor(r)} times as much as an event outside any guest.")
    if stopped and shm:
        r = ratio(shm, stopped)["median"]
        if r > 1.3:
            out.append(
                "With a consumer that reads while the guest emits as fast as "
                f"it can, an event costs {r:.1f} times as much: the memory has "
                "to come back from the other processor's cache.")
    if virtio and shm:
        r = ratio(virtio, shm)["median"]
        word = "as much as" if 0.9 <= r <= 1.1 else f"{r:.2f} times as much as"
        out.append(
            f"Pick virtio where a device may have no memory of its own, or "
            f"where a standard ownership protocol is wanted: an event over virtio "
            f"costs {word} an event over shm with full packets. virtio cannot "
            "overwrite old events, and delivers an event when its packet is full "
            "or flushed.")
    pair = [f.get("kvm", "producers", "shm, consumer stopped", n)
            for n in (1, 2)]
    if all(pair):
        r = ratio(pair[1], pair[0], "events_per_s")["median"]
        out.append("Two producers on two vCPUs, each with its own stream over shm, "
                   f"emit {r:.2f} times as many events a second as one.")
    batches = [(x, f.get("kvm", "batch", "hypercall", x))
               for x in (1, 10, 64)]
    if call and all(c for _, c in batches):
        costs = ", ".join(f"{_ns(c.summary['p50_ns']['median'])} at {x}"
                          for x, c in batches)
        out.append(
            "Pick hypercall where an event must have arrived before the "
            "guest goes on (last words, single-stepping, rare events): an "
            f"event costs {costs} events a doorbell. With more than one event a "
            "doorbell, an event may not have arrived before the guest goes on.")
    out += _exits(f) + _spinning(f) + _packets(f) + _overload(f) + _latency(f) + _peers(f, shm)
    return out + _kernel(f)


def _kernel(f):
    """The sentence about events of the kernel, as a list; empty if figures are missing.
    Use TCG's counts of instructions, which hardly depend on the machine."""
    events, ring = (
        f.median("tcg", "ways", series, "sched_switch", "insns")
        for series in ("hypertrace-sources.ko, shm", "the stock kernel's ring"))
    if not events or not ring:
        return []
    return ["For the kernel's own events, counted in instructions of a "
            f"sched_switch: {events:,.0f} with hypertrace-sources.ko, "
            f"{ring:,.0f} in the ring of a stock kernel with nothing "
            "installed (read along or not)."]


def _exits(f):
    parts = []
    for series in ("hypercall, batch 1", "shm", "virtio"):
        c = f.get("kvm", "exits", series, 32)
        s = c and c.summary.get("kvm_exits_per_event")
        if s and s["median"]:
            name = series.split(",")[0]
            parts.append(f"one in {1 / s['median']:,.0f} events over {name}"
                         if s["median"] < 0.5 else
                         f"{s['median']:.2f} an event over {name}")
    return [f"Exits with 32-byte events, as KVM counts them: {'; '.join(parts)}."] if parts else []


def _spinning(f):
    emit, paced, spun = (f.get("native", "native", series, 32) for series in (
        "emit", "paced live consumer", "spinning consumer"))
    if not emit or not paced or not spun:
        return []
    return ["Natively, an event costs the producer "
            f"{_factor(ratio(paced, emit))} times as much with a consumer that polls "
            "every 20 µs as without a consumer, and "
            f"{_factor(ratio(spun, emit))} times as much with a consumer that spins."]


def _packets(f):
    best = {}
    for (accel, table, series, x), c in f.cases.items():
        if accel == "kvm" and table == "packet size":
            best.setdefault(series, []).append(
                (x, c.summary["events_per_s"]["median"]))
    parts = []
    for series, values in best.items():
        top = max(v for _, v in values)
        x = min(x for x, v in values if v >= 0.9 * top)
        parts.append(f"{x // 1024} KiB for {series} ({_rate(top)} at best)")
    return ["The smallest packets that reach the best rate within a tenth: "
            f"{', '.join(parts)}."] if parts else []


def _overload(f):
    out = []
    for series in ("shm", "virtio", "shm, overwrite", "hypercall"):
        steps = sorted((x, c) for (a, t, s, x), c in f.cases.items()
                       if (a, t, s) == ("kvm", "overload", series))
        if not steps:
            continue
        last = steps[-1][1].summary
        top = max(c.summary["delivered_per_s"]["median"] for _, c in steps)
        achieved = last["offered_per_s"]["median"] / steps[-1][0]
        if series == "hypercall":
            out.append(
                "Overload over hypercall: the channel makes the guest wait. Of "
                f"{_rate(steps[-1][0])} that were asked for, the guest emitted "
                f"{100 * achieved:.0f} %. Each of them was delivered, none discarded.")
            continue
        all_in = [x for x, c in steps
                  if c.summary["delivered_share"]["median"] >= 0.999]
        keeps = f"all are delivered up to {_rate(max(all_in))}" if all_in \
            else "some are lost at each rate that was offered"
        out.append(
            f"Overload over {series}: the channel never makes the guest wait. Into "
            f"the backend of this run {keeps}, and at most {_rate(top)} are "
            f"delivered. At {_rate(steps[-1][0])}, "
            f"{100 * last['delivered_share']['median']:.0f} % are delivered, and "
            f"an event costs the guest {_ns(last['p50_ns']['median'])}.")
    return out


def _latency(f):
    parts = {}
    for (a, t, series, x), c in f.cases.items():
        if (a, t) == ("kvm", "latency"):
            m = sorted(r["latency_p50_ns"] for r in c.rows)
            parts.setdefault(x, []).append(f"{series} {_ns(m[len(m) // 2])}")
    return [f"Median time from an emit to LTTng's time stamp, at {x} events/s: "
            f"{'; '.join(p)}." for x, p in sorted(parts.items())]


def _peers(f, shm):
    parts = []
    for name, text in (("mmio", "one MMIO exit an event"),
                       ("pio", "a marker port"),
                       ("virtio-serial", "an 8-byte virtio-serial message")):
        c = f.get("kvm", "peers", name, 8)
        if c and shm:
            parts.append(f"{_factor(ratio(c, shm))} times for {text}")
    lttng = f.get("native", "native", "LTTng-UST static tracepoint", 32)
    native = f.get("native", "native", "emit", 32)
    out = ["Cost of other ways out of a guest, relative to a 32-byte event over shm: "
           f"{', '.join(parts)}."] \
        if parts else []
    if lttng and native:
        out.append("An LTTng-UST tracepoint in a native program costs "
                   f"{_factor(ratio(lttng, native))} times a native emit of "
                   "the same fields.")
    return out
