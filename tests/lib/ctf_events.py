# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a CTF trace, and return its events as plain Python values."""

import collections

import bt2


class Stream:
    """A stream instance.

    events: [(name, {field: value})]
    ns: for each event, its time in ns since 1970
    cycles: for each event, its time in cycles of the trace's clock
    precision: precision of the trace's clock; None: there is no event
    begins: for each packet with events, the guest's counter at the packet's begin, and the
        time of its first event as in ns
    cpu: the cpu_id in the last packet's context
    discarded: number of discarded events that the trace states
    """

    def __init__(self):
        self.events = []
        self.ns = []
        self.cycles = []
        self.precision = None
        self.cpu = None
        self.begins = []
        self.discarded = 0


def plain(field):
    """Return the value of a field of the module bt2 as a number, text, list or dict."""
    kind = type(field)
    if kind is bt2._UnsignedIntegerFieldConst or kind is bt2._SignedIntegerFieldConst:
        return int(field)       # most fields
    if isinstance(field, bt2._StructureFieldConst):
        # The length of a sequence or text is a separate field, _NAME_length: leave it
        # out.  bt2 may return an earlier event's text for an empty text.
        items = dict(field.items())
        return {k: "" if items.get(f"_{k}_length") == 0 and
                isinstance(v, bt2._StringFieldConst) else plain(v)
                for k, v in items.items()
                if not (k[0] == "_" and k.endswith("_length"))}
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(v) for v in field]
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    if isinstance(field, bt2._RealFieldConst):
        return float(field)
    return int(field)


def read(trace):
    """Read a CTF trace; return {stream instance id: Stream}"""
    streams = collections.defaultdict(Stream)
    counters = {}
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(msg, bt2._EventMessageConst):
            # msg.event creates an object at each access
            event = msg.event
            stream = event.stream.id
            s = streams[stream]
            fields = event.payload_field
            s.events.append((event.name, plain(fields) if fields else {}))
            clock = msg.default_clock_snapshot
            s.ns.append(clock.ns_from_origin)
            s.cycles.append(clock.value)
            if s.precision is None:
                s.precision = clock.clock_class.precision
            if stream in counters:
                s.begins.append((counters.pop(stream), s.ns[-1]))
        elif isinstance(msg, bt2._PacketBeginningMessageConst):
            context = msg.packet.context_field
            counters[msg.packet.stream.id] = int(context["guest_counter"])
            streams[msg.packet.stream.id].cpu = int(context["cpu_id"])
        elif isinstance(msg, bt2._DiscardedEventsMessageConst):
            streams[msg.stream.id].discarded += msg.count
    return dict(streams)
