# SPDX-License-Identifier: GPL-2.0-or-later
"""Feed ht-verify traces with and without defects.

The payloads are built here from the description in tools/ht-bench-payload.h,
not by the code there.
"""

import json
import struct
import subprocess
import uuid
from pathlib import Path

import pytest

from built import built

HT_VERIFY = built("tools/ht-verify/ht-verify")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
U64 = 2**64 - 1
EPOCH = 1_700_000_000_000_000_000       # realtime - monotonic


def word(tag, seq, k):
    return ((seq + (tag << 40)) * 0x9E3779B97F4A7C15
            + (k + 1) * 0xD1342543DE82EF95) & U64


def e8(tag, seq):
    return struct.pack("<Q", seq)


def e32(tag, seq):
    return struct.pack("<4Q", seq, *(word(tag, seq, k) for k in range(3)))


def e64(tag, seq):
    w = [word(tag, seq, k) for k in range(4)]
    return (struct.pack("<3QII2H2B", seq, w[0], w[1], w[2] >> 32,
                        w[2] & 0xFFFFFFFF, w[3] >> 48, (w[3] >> 32) & 0xFFFF,
                        (w[3] >> 24) & 0xFF, (w[3] >> 16) & 0xFF)
            + struct.pack("<QI", 0x3FF << 52 | w[1] >> 12,
                          0x7F << 23 | w[2] >> 41)
            + struct.pack("<QQ", w[0], w[1])[:14])


def e256(tag, seq):
    n = seq % 16
    text = "".join(LETTERS[(seq + tag + i) % 64] for i in range(236 - 4 * n))
    w = word(tag, seq, 0)
    return (struct.pack("<QQH", seq, w, len(text)) + text.encode()
            + struct.pack(f"<H{n}I", n, *(((w >> i) + i) & 0xFFFFFFFF
                                          for i in range(n))))


def integer(bits, signed=False, extra=""):
    return (f"integer {{ size = {bits}; align = 8; "
            f"signed = {str(signed).lower()}; {extra} }}")


U = {n: integer(n) for n in (8, 16, 32, 64)}
S = {n: integer(n, True) for n in (8, 16, 32, 64)}
X64 = integer(64, False, "base = 16;")
F32 = "floating_point { exp_dig = 8; mant_dig = 24; align = 8; }"
F64 = "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }"
CLASSES = {
    "bench.e8": (e8, [(U[64], "_seq")]),
    "bench.e32": (e32, [(U[64], f"_{n}") for n in ("seq", "a", "b", "c")]),
    "bench.e64": (e64, [
        (U[64], "_seq"), (X64, "_hash"), (S[64], "_delta"), (U[32], "_count"),
        (S[32], "_diff"), (U[16], "_port"), (S[16], "_heat"),
        (U[8], "_flags"), (S[8], "_level"), (F64, "_ratio"), (F32, "_share"),
        (U[8], "_raw[14]")]),
    "bench.e256": (e256, [
        (U[64], "_seq"), (X64, "_hash"), (U[16], "__message_length"),
        (integer(8, False, "encoding = UTF8;"), "_message[__message_length]"),
        (U[16], "__numbers_length"), (U[32], "_numbers[__numbers_length]")]),
    "other.event": (e8, [(U[64], "_value")]),
}
NAMES = list(CLASSES)
PREFIX = [(U[32], "_stream"), (S[32], "_vcpu"), (U[64], "_guest_ns")]


class Event:
    """An event as ht-bench emits it.

    late: ns from the emit to the time that LTTng records
    """

    def __init__(self, name, tag, seq, ns, late=1000):
        self.name = name
        self.tag = tag
        self.ns = ns
        self.late = late
        self.payload = CLASSES[name][0](tag, seq)


class Trace:
    """A CTF directory: LTTng's, or (lttng=False) one of our CTF backend."""

    def __init__(self, path, lttng=True, classes=None):
        self.path = Path(path)
        self.path.mkdir(parents=True)
        self.lttng = lttng
        self.uuid = uuid.uuid4()
        self.discarded = {}
        self.packets = {}
        fields = classes or {n: f for n, (_, f) in CLASSES.items()}
        (self.path / "metadata").write_text(self.metadata(fields))

    def metadata(self, classes):
        tracer = "lttng-ust" if self.lttng else "hypertrace"
        clk = "map = clock.monotonic.value;"
        text = f"""/* CTF 1.8 */
trace {{ major = 1; minor = 8; uuid = "{self.uuid}"; byte_order = le;
    packet.header := struct {{ {U[32]} magic; {U[8]} uuid[16];
        {U[32]} stream_id; {U[64]} stream_instance_id; }}; }};
env {{ tracer_name = "{tracer}"; domain = "ust"; device = "ht0";
    channel = "shm"; }};
clock {{ name = "monotonic"; freq = 1000000000; offset = {EPOCH};
    absolute = TRUE; }};
stream {{ id = 0;
    packet.context := struct {{
        {integer(64, False, clk)} timestamp_begin;
        {integer(64, False, clk)} timestamp_end;
        {U[64]} content_size; {U[64]} packet_size; {U[64]} packet_seq_num;
        {U[64]} events_discarded; {U[32]} cpu_id; {U[32]} stream_index; }};
    event.header := struct {{ {U[32]} id;
        {integer(64, False, clk)} timestamp; }}; }};
"""
        for i, (name, fields) in enumerate(classes.items()):
            if self.lttng:
                name, fields = f"ht0:{name}", PREFIX + fields
            text += (f'event {{ name = "{name}"; id = {i}; stream_id = 0; '
                     "fields := struct { "
                     + " ".join(f"{t} {n};" for t, n in fields) + " }; };\n")
        return text

    def packet(self, file, events, instance=0, discarded=0, cpu=0, index=0):
        """Append a packet; @discarded: events lost before it."""
        stamps = [e.ns + (e.late if self.lttng else 0) for e in events]
        body = b""
        for e, ns in zip(events, stamps):
            body += struct.pack("<IQ", NAMES.index(e.name), ns)
            if self.lttng:
                body += struct.pack("<IiQ", e.tag, -1, e.ns)
            body += e.payload
        total = self.discarded.get(file, 0) + discarded
        self.discarded[file] = total
        number = self.packets.get(file, 0)
        self.packets[file] = number + 1
        last = getattr(self, "last", {}).get(file, 0)
        begin, end = (min(stamps), max(stamps)) if stamps else (last, last)
        self.last = {**getattr(self, "last", {}), file: end}
        size = (24 + 8 + 7 * 8 + len(body)) * 8
        data = (struct.pack("<I", 0xC1FC1FC1) + self.uuid.bytes
                + struct.pack("<IQ", 0, instance)
                + struct.pack("<6QII", begin, end, size, size, number, total,
                              cpu, index) + body)
        with open(self.path / file, "ab") as f:
            f.write(data)
        return self


def mix(tag, count, start=10**9, skip=()):
    return [Event(NAMES[n % 4], tag, n, start + 100 * n)
            for n in range(count) if n not in skip]


def verify(*args):
    p = subprocess.run([HT_VERIFY, "--json", *map(str, args)], check=False,
                       capture_output=True, text=True)
    return p.returncode, json.loads(p.stdout) if p.stdout else None, p.stderr


def streams(result, n=0):
    return {s["stream"]: s for s in result["inputs"][n]["streams"]}


def expect(got, want):
    assert got == want


def single(tmp, events, **kwargs):
    Trace(tmp / "t").packet("ch_0", events, **kwargs)
    status, result, stderr = verify(tmp / "t")
    return status, streams(result)[0], stderr


@pytest.fixture(name="tmp")
def folder(tmp_path):
    return tmp_path


def test_sound(tmp):
    events = mix(3, 400)
    Trace(tmp / "t").packet("ch_0", events[:150]).packet("ch_0", events[150:])
    status, result, stderr = verify("--lossless", tmp / "t")
    s = streams(result)[3]
    expect((status, stderr), (0, ""))
    expect((s["device"], s["trace"], s["recorded"]), ("ht0", "lttng", 400))
    expect((s["first_seq"], s["last_seq"], s["missing"]), (0, 399, 0))
    expect(sorted((c["class"], c["recorded"], c["checked"])
                  for c in s["classes"]),
           sorted((n, 100, True) for n in NAMES[:4]))


def test_sound_ctf(tmp):
    t = Trace(tmp / "t", lttng=False)
    t.packet("s0", mix(0, 100), instance=7, index=0)
    t.packet("s1", mix(1, 100), instance=8, index=1)
    status, result, _ = verify("--lossless", tmp / "t")
    s = streams(result)
    expect(status, 0)
    expect([(s[i]["instance"], s[i]["recorded"], s[i]["latency"])
            for i in (0, 1)], [(7, 100, None), (8, 100, None)])


def test_order_over_cpus(tmp):
    """The events of one producer lie in the buffers of several CPUs: their order
    is still known."""
    events = mix(0, 300)
    t = Trace(tmp / "t")
    for cpu in range(3):
        t.packet(f"ch_{cpu}", events[cpu::3], cpu=cpu, instance=cpu)
    status, result, _ = verify("--lossless", tmp / "t")
    expect((status, streams(result)[0]["disordered"]), (0, 0))


def test_latency(tmp):
    events = mix(0, 1000)
    for n, e in enumerate(events):
        e.late = 1_000_000 if n >= 980 else 5_000
    _, s, _ = single(tmp, events)
    lat = s["latency"]
    expect((lat["count"], lat["min_ns"], lat["max_ns"], lat["negative"]),
           (1000, 5000, 1000000, 0))
    expect(abs(lat["median_ns"] - 5000) < 50, True)
    expect(abs(lat["p99_ns"] - 1000000) < 10000, True)


def test_before_it_was_emitted(tmp):
    events = mix(0, 100)
    for e in events:
        e.late = -50
    status, s, _ = single(tmp, events)
    expect((status, s["latency"]["negative"], s["latency"]["median_ns"]),
           (0, 100, 0))


def test_every_byte_is_checked(tmp):
    """A changed bit in any byte of a payload is detected, except in a length, and except in the
    payload of bench.e8."""
    for name in NAMES[:4]:
        size = len(CLASSES[name][0](0, 5))
        # lengths of text and sequence are not changed: a wrong length would move
        # the fields after it
        fixed = {16, 17, 234, 235} if name == "bench.e256" else set()
        events = []
        for n in range(size):
            e = Event(name, 0, 5 + 16 * n, 10**9 + n)
            if n not in fixed:
                changed = bytearray(e.payload)
                changed[n] ^= 0x40 if n < 8 else 0x01
                e.payload = bytes(changed)
            events.append(e)
        # a payload of bench.e8 is only the event's number: it has no bytes that
        # must fit the number
        if name == "bench.e8":
            continue
        status, s, stderr = single(tmp / name, events)
        expect((status, s["altered"]), (1, size - len(fixed)))
        expect("altered" in stderr, True)


def test_other_length(tmp):
    events = mix(0, 8)
    p = events[3].payload           # seq 3: 3 numbers, 224 letters
    events[3].payload = (p[:16] + struct.pack("<H", 223) + p[18:241]
                         + p[242:])
    status, s, _ = single(tmp, events)
    expect((status, s["altered"]), (1, 1))


def test_other_tag(tmp):
    events = mix(0, 40)
    for e in events:
        # a wrong tag: the payloads are those of stream 0
        e.tag = 1
    Trace(tmp / "t").packet("ch_0", events)
    status, result, _ = verify(tmp / "t")
    expect((status, streams(result)[1]["altered"]), (1, 30))


def test_other_fields(tmp):
    fields = {n: f for n, (_, f) in CLASSES.items()}
    fields["bench.e32"] = [(S[64], "_seq")] + fields["bench.e32"][1:]
    Trace(tmp / "t", classes=fields).packet("ch_0", mix(0, 40))
    status, result, stderr = verify(tmp / "t")
    expect((status, streams(result)[0]["altered"]), (1, 10))
    expect("does not have the fields" in stderr, True)


def test_missing(tmp):
    status, s, _ = single(tmp, mix(0, 100, skip={0, 10, 11, 50}))
    expect((status, s["recorded"], s["missing"]), (0, 96, 4))
    status, _, stderr = verify("--lossless", tmp / "t")
    expect((status, "4 events are missing" in stderr), (1, True))


def test_duplicate(tmp):
    events = mix(0, 100)
    again = Event(events[50].name, 0, 50, events[50].ns + 1)
    status, s, _ = single(tmp, events[:51] + [again] + events[51:])
    expect((status, s["duplicates"], s["missing"]), (1, 1, 0))


def test_disorder(tmp):
    events = mix(0, 100)
    events[20].payload, events[24].payload = (events[24].payload,
                                              events[20].payload)
    status, s, _ = single(tmp, events)
    expect((status, s["duplicates"], s["altered"]), (1, 0, 0))
    expect(s["disordered"] > 0, True)


def test_time_goes_back(tmp):
    events = mix(0, 100)
    events[60].ns -= 500
    events[60].late += 500
    status, s, _ = single(tmp, events)
    expect((status, s["backward"]), (1, 1))


def test_wild_sequence(tmp):
    events = mix(0, 100)
    events[99].payload = struct.pack("<Q", 2**63) + events[99].payload[8:]
    status, s, _ = single(tmp, events)
    expect((status, s["altered"], s["last_seq"]), (1, 1, 98))


def test_lttng_discards(tmp):
    events = mix(0, 200, skip=range(50, 80))
    t = Trace(tmp / "t")
    t.packet("shm_0", events[:50]).packet("shm_0", events[50:100],
                                          discarded=23)
    t.packet("shm_0", events[100:], discarded=7)
    t.packet("other_0", [], instance=1)
    status, result, _ = verify(tmp / "t")
    i = result["inputs"][0]
    expect((status, i["lttng_discarded"], i["lttng_discarded_exact"]),
           (0, 30, True))
    expect(i["lttng_channels"], {"shm": 30})
    expect(verify("--lossless", tmp / "t")[0], 1)


def test_lttng_discards_before_the_trace(tmp):
    """If the first packet of a buffer has a count of discarded events, the
    number of them that the trace lacks is unknown: the trace is not without losses."""
    Trace(tmp / "t").packet("shm_0", mix(0, 50), discarded=5)
    status, result, _ = verify(tmp / "t")
    i = result["inputs"][0]
    expect((status, i["lttng_discarded_exact"]), (0, False))
    status, _, stderr = verify("--lossless", tmp / "t")
    expect((status, "discarded at least" in stderr), (1, True))


def test_ctf_discards(tmp):
    t = Trace(tmp / "t", lttng=False)
    t.packet("s", [], instance=1)
    t.packet("s", mix(0, 90, skip=range(7)), instance=1, discarded=7)
    t.packet("s", [], instance=1, discarded=3)
    status, result, _ = verify(tmp / "t")
    s = streams(result)[0]
    expect((status, s["recorded"], s["missing"], s["discarded"]),
           (0, 83, 7, 10))


def test_foreign_events(tmp):
    events = mix(0, 40) + [Event("other.event", 0, n, 2 * 10**9 + n)
                           for n in range(5)]
    status, s, _ = single(tmp, events)
    expect((status, s["recorded"], s["sequenced"]), (0, 45, 40))
    expect([c["checked"] for c in s["classes"]
            if c["class"] == "other.event"], [False])


def tee(tmp, lttng_events, ctf_events, **kwargs):
    t = Trace(tmp / "lttng").packet("ch_0", lttng_events[:10])
    t.packet("ch_0", lttng_events[10:], **kwargs)
    Trace(tmp / "ctf", lttng=False).packet("s", ctf_events, instance=1)
    return verify("--compare", tmp / "lttng", tmp / "ctf")


def test_compare_same(tmp):
    status, result, stderr = tee(tmp, mix(0, 100), mix(0, 100))
    expect((status, stderr), (0, ""))
    expect(result["differences"], [{"device": "ht0", "stream": 0, "same": 100,
                                    "only_first": 0, "only_second": 0}])


def test_compare_instances(tmp):
    """In LTTng's traces, the instances of a stream cannot be distinguished: --compare
    takes the instances in the other trace for one stream."""
    first, second = mix(0, 50), mix(0, 100)[50:]
    Trace(tmp / "lttng").packet("ch_0", first + second)
    t = Trace(tmp / "ctf", lttng=False)
    t.packet("a", first, instance=1)
    t.packet("b", second, instance=2)
    status, result, _ = verify("--compare", tmp / "lttng", tmp / "ctf")
    expect((status, result["differences"][0]["same"]), (0, 100))


def test_compare_lacking(tmp):
    status, result, stderr = tee(tmp, mix(0, 100, skip={50, 51}), mix(0, 100))
    expect((status, "2 events are only in" in stderr), (1, True))
    expect((result["differences"][0]["only_first"],
            result["differences"][0]["only_second"]), (0, 2))


def test_compare_lacking_and_said(tmp):
    status, _, _ = tee(tmp, mix(0, 100, skip={50, 51}), mix(0, 100),
                       discarded=2)
    expect(status, 0)


def test_compare_value(tmp):
    other = mix(0, 100) + [Event("other.event", 0, 1, 2 * 10**9)]
    same = mix(0, 100) + [Event("other.event", 0, 2, 2 * 10**9)]
    status, result, _ = tee(tmp, same, other)
    expect((status, result["differences"][0]["same"]), (1, 100))


def test_compare_time(tmp):
    events = mix(0, 100)
    events[30].ns += 1
    status, result, _ = tee(tmp, events, mix(0, 100))
    expect((status, result["differences"][0]["same"]), (1, 99))


def test_compare_stream_lacking(tmp):
    Trace(tmp / "lttng").packet("ch_0", mix(0, 20))
    t = Trace(tmp / "ctf", lttng=False)
    t.packet("a", mix(0, 20), instance=1)
    t.packet("b", mix(1, 20), instance=2, index=1)
    status, result, _ = verify("--compare", tmp / "lttng", tmp / "ctf")
    expect((status, result["differences"][1]["only_second"]), (1, 20))


def test_unreadable(tmp):
    t = Trace(tmp / "t").packet("ch_0", mix(0, 20))
    data = (t.path / "ch_0").read_bytes()
    (t.path / "ch_0").write_bytes(data[:-10])
    status, result, stderr = verify(tmp / "t")
    expect((status, result), (3, None))
    expect(stderr.startswith("ht-verify: "), True)


def test_nothing_there(tmp):
    (tmp / "empty").mkdir()
    status, _, stderr = verify(tmp / "empty")
    expect((status, "has no trace" in stderr), (3, True))
    expect(verify(tmp / "none")[0], 3)


def test_usage(tmp):
    expect(verify()[0], 2)
    expect(verify("--compare", tmp)[0], 2)
    expect(verify("--nonsense", tmp)[0], 2)
