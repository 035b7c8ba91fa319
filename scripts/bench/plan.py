# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of the comparison: lists of cases, in the order in which they are measured.

A list is measured in rounds: each round measures each case of the list once. So a
disturbance of the machine that lasts for a few rounds does not affect one case alone.
"""

from dataclasses import dataclass, field

SIZES = [0, 8, 32, 64, 256, 1024, 4096]
BATCHES = [1, 2, 4, 10, 16, 32, 64]
PACKETS = [4, 16, 64, 256]              # KiB
CHANNELS = ["hypercall", "shm", "virtio"]
PEERS = ["limit", "pio", "mmio", "virtio-serial", "virtio-serial-queued"]
RING_KIB = 1024                         # size of a stream's ring, for each size of its packets

# {payload size in bytes: rough cost in ns of an event without an exit} and {accelerator:
# rough cost in ns of an exit}, to choose the number of events
COST = {0: 15, 8: 15, 32: 20, 64: 25, 256: 40, 1024: 120, 4096: 500}
EXIT_NS = {"kvm": 26000, "tcg": 400}


@dataclass
class Case:
    """A measurement that each round makes once.

    table: name of a table of the report; the report does not show the table "base"
    series, x: the case's line in a plot, and the place in that line
    device: id of a device of the bare-metal guest. None: a peer in that guest, with its
        name in options, or a case that measure() does not measure
    consumer: state of the device's consumer: stopped, paced or asleep
    options: options of the payload's command; for the table "macro", facts of the case
    rows: the results, one per round
    """

    table: str
    series: str
    x: object
    accel: str
    device: str = None
    consumer: str = "asleep"
    options: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)

    @property
    def id(self):
        return f"{self.accel}/{self.table}/{self.series}/{self.x}"

    def measure(self, guest):
        if "producers" in self.options:
            self.rows.append(guest.pair(self.device, **self.options))
        elif self.device is None:
            self.rows.append(guest.peer(**self.options))
        else:
            self.rows.append(guest.run(self.device, self.consumer,
                                       **self.options))


def device(name, channel, packet_kib, backend="null", **properties):
    return {"id": name, "channel": channel, "backend": backend, "streams": 1,
            "packet_size": f"{packet_kib}k",
            "packets": max(RING_KIB // packet_kib, 2), **properties}


def devices(channels):
    """The devices of the guest that runs guest_cases()"""
    result = []
    for c in channels:
        sizes = PACKETS if c != "hypercall" else [64]
        result += [device(f"{c}-{kib}k", c, kib) for kib in sizes]
    if "shm" in channels:
        result.append(device("shm-overwrite", "shm", 64, mode="overwrite"))
    return result


def group_of(size, packet_kib):
    """Number of events that are timed together: 64 or, if fewer events fit in half a
    packet, the number that fits, but at least 1"""
    fits = packet_kib * 1024 // 2 // (size + 16)
    return max(1, min(64, fits))


def count_of(size, ms):
    return max(2000, int(ms * 1e6 / COST[size]))


def run_options(size, packet_kib, ms, **more):
    return {"event": size, "events": count_of(size, ms),
            "group": group_of(size, packet_kib), **more}


def hypercall_options(size, batch, ms, accel):
    doorbells = max(100, int(ms * 1e6 / EXIT_NS[accel]))
    return {"event": size, "events": doorbells * batch, "group": batch,
            "batch": batch}


def burst_options(size, packet_kib, ms):
    """Options of a run with so few events that all fit into the ring, so that no
    consumer is needed."""
    options = run_options(size, packet_kib, ms, mode="flat")
    fit = int(RING_KIB * 1024 * 0.85) // (size + 8)
    return dict(options, events=min(options["events"], fit))


def payload_cases(accel, channels, ms):
    for size in SIZES:
        if "shm" in channels:
            yield Case("payload", "shm, consumer stopped", size, accel,
                       "shm-overwrite", "stopped",
                       run_options(size, 64, ms))
            yield Case("payload", "shm", size, accel, "shm-64k", "asleep",
                       run_options(size, 64, ms))
        if "virtio" in channels:
            yield Case("payload", "virtio, consumer stopped", size, accel,
                       "virtio-64k", "stopped", burst_options(size, 64, ms))
        if "virtio" in channels:
            yield Case("payload", "virtio", size, accel, "virtio-64k",
                       "asleep", run_options(size, 64, ms))
        if "hypercall" in channels:
            yield Case("payload", "hypercall", size, accel, "hypercall-64k",
                       "asleep", hypercall_options(size, 1, ms, accel))


def batch_cases(accel, channels, ms):
    if "hypercall" in channels:
        for batch in BATCHES:
            yield Case("batch", "hypercall", batch, accel, "hypercall-64k",
                       "asleep", hypercall_options(32, batch, ms, accel))


def packet_cases(accel, channels, ms):
    for kib in PACKETS:
        for c in channels:
            if c != "hypercall":
                yield Case("packet size", c, kib * 1024, accel,
                           f"{c}-{kib}k", "asleep", run_options(32, kib, ms))


def consumer_cases(accel, channels, ms):
    """Cases that measure an emit over shm and virtio while the consumer is stopped,
    paced or asleep.

    Over virtio, no consumer is paced: QEMU's main loop, which reads the events, cannot be
    made to poll. A consumer that polls without pauses ("spinning") exists only in
    emit-bench.
    """
    flat = {"shm": run_options(32, 64, ms),
            "virtio": burst_options(32, 64, ms)}
    for state in ["stopped", "paced", "asleep"]:
        for c in ("shm", "virtio"):
            if c in channels and (c, state) != ("virtio", "paced"):
                name = "shm-overwrite" if (c, state) == ("shm", "stopped") \
                    else f"{c}-64k"
                yield Case("consumer", f"{c}, as fast as possible", state,
                           accel, name, state, flat[c] if state == "stopped"
                           else run_options(32, 64, ms))
    for state in ["paced", "asleep"] if "shm" in channels else []:
        yield Case("consumer", "shm, 1 million events/s", state, accel,
                   "shm-64k", state,
                   {"event": 32, "group": 1, "mode": "rate", "rate": 1000000,
                    "events": max(2000, int(ms * 1000))})


def quiet_cases(accel, channels):
    """Cases that measure the cost of a single event. Over shm and virtio, the consumer
    does not poll."""
    for c in channels:
        # With "hold", the stream is closed only after the event was delivered. Do not
        # use "hold" with virtio: the event waits in the open packet until the stream is
        # closed.
        hold = {"hold": 1} if c != "virtio" else {}
        yield Case("one event", c, 1, accel, f"{c}-64k", "asleep",
                   {"event": 32, "events": 1, **hold})


def exit_cases(accel, channels, peers, ms):
    """Cases in which KVM counts the VM exits while the guest only emits
    events."""
    for batch in (1, 10) if "hypercall" in channels else ():
        yield Case("exits", f"hypercall, batch {batch}", 32, accel,
                   "hypercall-64k", "asleep",
                   dict(hypercall_options(32, batch, ms, accel), hold=1))
    for c in ("shm", "virtio"):
        if c in channels:
            name = {"shm": "shm-overwrite"}.get(c, f"{c}-64k")
            yield Case("exits", f"{c}, consumer stopped", 32, accel, name,
                       "stopped", burst_options(32, 64, ms))
            yield Case("exits", c, 32, accel, f"{c}-64k", "asleep",
                       run_options(32, 64, ms, hold=1))
    for name in ("mmio", "virtio-serial"):
        if name in peers:
            yield Case("exits", name, 8, accel, None, "",
                       {"name": name, "hold": 1, "events":
                        max(100, int(ms * 1e6 / EXIT_NS[accel]))})


def peer_cases(accel, names, ms):
    for name in names:
        if name in ("limit",):
            options = {"events": count_of(32, ms), "group": 64}
        else:
            options = {"events": max(100, int(ms * 1e6 / EXIT_NS[accel]))}
        yield Case("peers", name, 8, accel, None, "",
                   {"name": name, **options})


BASE_EVERY = 6


def with_bases(cases, accel, ms):
    """The cases, and between them measurements of the limit loop (the least cost of an
    event), by which compare.bases() divides: one before the first case, and one more
    after each BASE_EVERY cases that are not the last"""
    for n, case in enumerate(cases):
        if n % BASE_EVERY == 0:
            yield Case("base", "limit", n // BASE_EVERY, accel, None, "",
                       {"name": "limit", "events": count_of(32, ms),
                        "group": 64})
        yield case


def guest_cases(accel, channels, peers, ms):
    cases = [*payload_cases(accel, channels, ms),
             *batch_cases(accel, channels, ms),
             *packet_cases(accel, channels, ms),
             *(consumer_cases(accel, channels, ms) if accel == "kvm" else ()),
             *quiet_cases(accel, channels),
             *(exit_cases(accel, channels, peers, ms) if accel == "kvm"
               else ()),
             *peer_cases(accel, [p for p in peers if p in PEERS], ms)]
    # Under TCG do not measure the limit loop between the cases: ratios to it mean
    # nothing there.
    return list(with_bases(cases, accel, ms)) if accel == "kvm" else cases


def pair_devices():
    return [dict(device("shm-pair", "shm", 64, mode="overwrite"), streams=2)]


def pair_cases(accel, channels, ms):
    if "shm" not in channels:
        return []
    return [Case("producers", "shm, consumer stopped", n, accel, "shm-pair",
                 "stopped", {"producers": n, "events":
                             count_of(32, ms) // 64 * 64})
            for n in (1, 2)]


OFFERED = {"hypercall": [5e3, 10e3, 20e3, 40e3, 80e3],
           "shm": [1e6, 2e6, 5e6, 10e6, 20e6, 40e6, 80e6],
           "virtio": [1e6, 2e6, 5e6, 10e6, 20e6, 40e6, 80e6]}


LATENCY_RATES = [20, 1000]


def load_devices(channels, backend):
    result = [device(f"{c}-load", c, 64, backend) for c in channels]
    if "shm" in channels:
        result.append(device("shm-load-overwrite", "shm", 64, backend,
                             mode="overwrite"))
    return result


def overload_cases(accel, channels, ms):
    for c in channels:
        for rate in OFFERED[c]:
            group = 1 if c == "hypercall" else 32
            options = {"event": 32, "mode": "rate", "rate": int(rate),
                       "group": group,
                       "events": max(200, int(rate * ms / 1000))}
            yield Case("overload", c, int(rate), accel, f"{c}-load", "asleep",
                       options)
            if c == "shm":
                yield Case("overload", "shm, overwrite", int(rate), accel,
                           "shm-load-overwrite", "asleep", dict(options))


def latency_cases(accel, channels, events):
    """Cases that measure delivery latency at two rates. Over shm, an event at the lower
    rate wakes the consumer, unless the consumer polls ("paced"). An event at the higher
    rate waits for the consumer's next poll of the open packet."""
    for rate in LATENCY_RATES:
        for c in channels:
            for state in ["asleep", "paced"] if c == "shm" else ["asleep"]:
                yield Case("latency",
                           f"{c}, {state}" if c == "shm" else c, rate, accel,
                           f"{c}-load", state,
                           {"event": 32, "mode": "rate", "rate": rate,
                            "group": 1,
                            "events": max(10, min(events, events * rate //
                                                  LATENCY_RATES[-1]))})
