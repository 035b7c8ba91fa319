# SPDX-License-Identifier: GPL-2.0-or-later
"""The account of a soak: the guest's events against the devices' counters.

The guest's side is struct book of tests/guest/soak.c, read from the memory of
a stopped guest; the host's side is the result of query-hypertrace for each device.
"""

import json
import re
import struct
from dataclasses import dataclass

PACKET_HEADER = 64
EVENT_HEADER, EVENT_HEADER_EXT, ID_EXTENDED = 4, 13, 255
# {id: payload size in bytes} of the classes: soak.c registers its classes in this order
# on each device
PAYLOADS = {1: 8, 2: 32, 3: 64, 4: 256}
CONTENT_OFFSET = 56             # of the member content in struct ht_packet
# The last JSON object of a line: if a reset has cut a row short, the first row of the
# next boot is on the same line.
ROW = r'.*(\{"(?:function|error)": .*\})\n'


def whole_rows(text):
    """The guest's JSON rows in the text, without rows that a reset has
    cut short"""
    return [json.loads(m[1]) for m in re.finditer(ROW, text)]


@dataclass
class Instance:
    """An instance of a stream according to its producer.

    sent: number of committed events of which the host can know
    lost: number of events that the guest discarded
    died: number of events that a virtio guest has not submitted to the host; if a reset has
        ended the instance, with the discards that the guest had not reported
    host: the host's counters of the instance after its end, if they are known
    """
    device: int
    stream: int
    instance: int
    sent: int
    lost: int
    died: int = 0
    host: dict | None = None


class Book:
    """A copy of the guest's struct book (see soak.c); memory(address,
    size) reads the guest's memory."""

    def __init__(self, hello, memory, virtio, packet_sizes, packets):
        self.hello = hello
        self.memory = memory
        self.virtio = virtio
        self.packet_sizes = packet_sizes
        self.packets = packets
        self.data = memory(hello["book"], hello["size"])
        self.changing, self.nr_closed, self.rounds = struct.unpack_from(
            "<3Q", self.data)

    def _u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def _u64(self, at):
        return struct.unpack_from("<Q", self.data, at)[0]

    def _slots(self):
        h = self.hello
        for d in range(h["devices"]):
            for n in range(h["slots_per_device"]):
                at = h["slots"] + h["slot_size"] * (
                    d * h["slots_per_device"] + n)
                if self._u64(at + h["open"]):
                    yield d, at

    @property
    def sound(self):
        """True if the figures are consistent: no change is in progress."""
        busy = self.hello["stream"]["busy"]
        return not self.changing and not any(
            self._u32(at + busy) for _, at in self._slots())

    def closed(self):
        h = self.hello
        for n in range(self.nr_closed):
            at = h["closed"] + h["closed_size"] * n
            v = struct.unpack_from("<13Q", self.data, at)
            i = Instance(*v[:5])
            if v[5]:
                i.host = dict(zip(("events", "packets", "bytes", "lost",
                                   "dropped", "wakeups", "errors"), v[6:]))
            yield i

    def open(self):
        f = self.hello["stream"]
        for d, at in self._slots():
            i = Instance(d, self._u32(at + f["index"]),
                         self._u64(at + f["instance"]),
                         self._u64(at + f["events"]), self._u64(at + f["lost"]))
            if self.virtio[d]:
                i.died = self._unsubmitted(d, at)
                i.sent -= i.died
            yield i

    def _unsubmitted(self, d, at):
        """Number of events that a virtio producer has not submitted yet"""
        f = self.hello["stream"]
        cur, base, submitted, packet, packets = (
            self._u64(at + f[name])
            for name in ("cur", "base", "submitted", "packet", "packets"))
        size = self.packet_sizes[d]
        # the same computation as ht_head() in guest-lib/src/core.h
        head = (base + cur) % 2**64 if cur else packet * size
        count = 0
        while submitted < head:
            number, offset = divmod(submitted, size)
            data = self.memory(packets + number % self.packets[d] * size, size)
            if number == packet:
                end = head - number * size
            elif offset:
                end = self._u32(at + f["content"])
            else:
                end = struct.unpack_from("<I", data, CONTENT_OFFSET)[0]
            count += count_events(data[max(offset, PACKET_HEADER):end])
            submitted = (number + 1) * size
        return count


def count_events(data):
    at = count = 0
    while at < len(data):
        ident, header = data[at], EVENT_HEADER
        if ident == ID_EXTENDED:
            ident = struct.unpack_from("<I", data, at + 1)[0]
            header = EVENT_HEADER_EXT
        at += header + PAYLOADS[ident]
        count += 1
    assert at == len(data), "the guest's own packet does not end with an event"
    return count


class Accounts:
    """The counters of one device in the guest and on the host, since the device was
    plugged."""

    def __init__(self, name, virtio):
        self.name = name
        self.virtio = virtio
        self.ended = {}
        # instances that ended, but whose counters on the host the guest has not read:
        # check() gets them from the host
        self.untold = {}
        self.unaccounted = 0
        self.problems = []

    def wrong(self, number, what):
        self.unaccounted += max(abs(number), 1)
        self.problems.append(f"{self.name}: {what}")

    def _compare(self, i, host, final):
        """Compare an instance's figures with the host's counters.

        final: the instance has ended. Then the host must know of all discards, except
        that it may know of fewer if the stream is of virtio and its producer has not closed
        it. Before the end, the host may know of fewer.
        """
        what = f"stream {i.stream}, instance {i.instance}"
        got = host["events"] + host["dropped"]
        if got != i.sent:
            self.wrong(got - i.sent, f"{what}: the guest sent {i.sent} events,"
                       f" the host has {host['events']} and dropped"
                       f" {host['dropped']}")
        exact = final and not (self.virtio and i.instance in self.untold)
        if host["lost"] != i.lost if exact else host["lost"] > i.lost:
            self.wrong(host["lost"] - i.lost, f"{what}: the guest discarded"
                       f" {i.lost} events, the host knows of {host['lost']}")
        if host["errors"]:
            self.wrong(0, f"{what}: {host['errors']} errors")

    def end(self, i):
        """Record that a stream's instance has ended; ignore a further call for the
        same instance."""
        if i.instance in self.ended:
            return
        self.ended[i.instance] = i
        if i.host:
            self._compare(i, i.host, True)
        else:
            self.untold[i.instance] = i

    def check(self, stats, still_open):
        """Compare the host's counters of this device with the guest's, while the VM is
        stopped.

        still_open: instances of this device that are open in the guest
        """
        by_instance = {s["instance"]: s for s in stats["streams"]}
        expected = 0
        for i in still_open:
            host = by_instance.get(i.instance)
            if not host or not host["open"] or host["stopped"]:
                self.wrong(i.sent, f"instance {i.instance} is open in the"
                           f" guest, for the host it is {host}")
                continue
            self._compare(i, host, False)
            expected += i.sent
        for i in self.untold.values():
            host = by_instance.get(i.instance)
            if not host or host["open"]:
                self.wrong(i.sent, f"instance {i.instance} has ended, for the"
                           f" host it is {host}")
                continue
            self._compare(i, host, True)
            i.host = host
            i.died += i.lost - host["lost"]
        self.untold.clear()
        expected += sum(i.sent for i in self.ended.values())
        got = stats["events"] + stats["dropped"]
        if got != expected and not self.unaccounted:
            self.wrong(got - expected, f"the guest sent {expected} events, the"
                       f" device has {stats['events']} and dropped"
                       f" {stats['dropped']}")
        if stats["errors"]:
            self.wrong(0, f"{stats['errors']} errors")

    def check_recorded(self, verified):
        """Compare the result of ht-verify for the device's complete trace with the
        host's counters."""
        for problem in verified["inputs"][0]["problems"]:
            self.wrong(1, f"ht-verify: {problem}")
        rows = {s["instance"]: s for s in verified["inputs"][0]["streams"]}
        for i in self.ended.values():
            row = rows.pop(i.instance, {"recorded": 0, "discarded": None})
            if row["recorded"] != i.host["events"]:
                self.wrong(row["recorded"] - i.host["events"],
                           f"instance {i.instance}: {i.host['events']} events"
                           f" were accepted, {row['recorded']} recorded")
            discarded = i.host["lost"] + i.host["dropped"]
            if row["discarded"] not in (None, discarded):
                self.wrong(row["discarded"] - discarded,
                           f"instance {i.instance}: {discarded} events were"
                           f" discarded, the trace says {row['discarded']}")
        for instance, row in rows.items():
            self.wrong(row["recorded"], f"instance {instance} is recorded, but"
                       " no producer sent it")
