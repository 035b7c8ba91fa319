# SPDX-License-Identifier: GPL-2.0-or-later
"""The device as a bare-metal guest sees it, under TCG and under KVM.

The payload checks its side (tests/guest/selftest*.c); what it sent is looked
for here in what the backends received.
"""

import re

import pytest

import payload

CHANNELS = ["hypercall", "shm", "virtio"]

# tests/guest/selftest-events.c emits these, then SEQUENCE numbered events.
SEQUENCE = 5000
KINDS = [
    ("selftest.ints", {
        "a": 0, "b": 0, "c": 0, "d": 0, "e": -2**7, "f": -2**15,
        "g": -2**31, "h": -2**63, "hex": 0}),
    ("selftest.ints", {
        "a": 2**8 - 1, "b": 2**16 - 1, "c": 2**32 - 1, "d": 2**64 - 1,
        "e": 2**7 - 1, "f": 2**15 - 1, "g": 2**31 - 1, "h": 2**63 - 1,
        "hex": 0xdeadbeef}),
    ("selftest.floats", {"single": 1.5, "twice": -0.015625}),
    ("selftest.texts", {"first": "plain", "between": 1, "last": "grüß"}),
    ("selftest.texts", {"first": "", "between": 2, "last": ""}),
    ("selftest.arrays", {"raw": [0, 0x7f, 0x80, 0xff],
                         "list": [1, 256, 65535],
                         "fixed": [-1, 0, 2**31 - 1]}),
    ("selftest.arrays", {"raw": [], "list": [], "fixed": [-1, 0, 2**31 - 1]}),
    ("selftest.empty", {}),
    ("selftest.id000", {}),
    ("selftest.id269", {}),
    ("selftest.empty", {}),
]


@pytest.fixture(params=["tcg", "kvm"])
def accel(request):
    if request.param == "kvm" and payload.kvm_problem():
        pytest.skip(payload.kvm_problem())
    return request.param


def device(channel, backend="b", **properties):
    return ["-device", ",".join(
        ["hypertrace", f"channel={channel}", f"backend={backend}",
         *(f"{k.replace('_', '-')}={v}" for k, v in properties.items())])]


def ctf(tmp_path):
    return ["-object", f"hypertrace-backend-ctf,id=b,dir={tmp_path}/ctf"]


NULL = ["-object", "hypertrace-backend-null,id=b"]


def assert_ok(r):
    bad = [row for row in r.rows if row.get("ok") is False or "error" in row]
    assert r.status == payload.OK and not bad, f"{bad}\n{r}"


# The payload itself ------------------------------------------------------------


def test_probe(tmp_path, accel):
    r = payload.run(tmp_path, accel, "probe")
    assert_ok(r)
    row, = r.named(function="probe")
    # the bounds of processors that this can run on, now and for a while
    assert 1e8 < row["clock_hz"] < 1e10
    assert 0 < row["ring3_ticks"] < 100
    assert row["ring0_at_speed"] == (row["ring0_ticks"] < 100)


@pytest.mark.parametrize("append, what", [
    ("", "no function named"),
    ("prob", "no function named"),
    ("probe fast=1", "unknown option"),
    ("exits count=many", "not a number"),
    ("exits count=0", "number out of range"),
    ("bench", "no such hypertrace device"),
    ("selftest", "no hypertrace device"),
])
def test_wrong_use(tmp_path, append, what):
    r = payload.run(tmp_path, "tcg", append)
    assert r.status == payload.USAGE, str(r)
    assert what in r.output


def test_exits(tmp_path, accel):
    args = list(NULL)
    for c in CHANNELS:
        args += device(c)
    r = payload.run(tmp_path, accel, "exits count=200", args)
    assert_ok(r)
    rows = {row["channel"]: row for row in r.rows if "channel" in row}
    assert sorted(rows) == CHANNELS
    for row in rows.values():
        assert row["mmio_write_ns"] > 0 and row["doorbell_ns"] > 0
    if accel == "kvm":
        # The kernel takes these; the hypercall's goes to QEMU and back.
        for c in ["shm", "virtio"]:
            assert rows[c]["doorbell_ns"] < rows["hypercall"]["doorbell_ns"]


# Self-test ---------------------------------------------------------------------


def only_trace(tmp_path):
    """The directory of the one CTF trace below @tmp_path/ctf."""
    found = [m.parent for m in (tmp_path / "ctf").rglob("metadata")]
    assert len(found) == 1, found
    return found[0]


def check_sent(r, streams):
    """What the payload sent is what the backend has, neither more nor less."""
    sent = {row["instance"]: row for row in r.rows if "sent" in row}
    assert set(streams) >= set(sent)
    for instance, s in streams.items():
        row = sent.get(instance, {"stream": "never used", "sent": 0,
                                  "lost": 0})
        assert len(s.events) == row["sent"], row
        assert s.discarded == row["lost"], row
        assert s.ns == sorted(s.ns), row
    by_name = {row["stream"]: streams[i].events for i, row in sent.items()}
    assert by_name["events"] == KINDS + [
        ("selftest.seq", {"n": n}) for n in range(SEQUENCE)]
    assert by_name["taken over"] == [
        ("selftest.seq", {"n": n}) for n in range(3)]
    for name in ["stopped", "as new", "after it"]:
        assert by_name[name] == [("selftest.seq", {"n": 0})]


@pytest.mark.parametrize("machine", ["pc", "q35"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_selftest(tmp_path, accel, channel, machine):
    r = payload.run(tmp_path, accel, "selftest",
                    ctf(tmp_path) + device(channel), machine=machine)
    assert_ok(r)
    check_sent(r, payload.read_ctf(only_trace(tmp_path)))
    # one stream was stopped on purpose, and the log says why
    assert "an event of an unknown class" in r.log


def test_selftest_log(tmp_path):
    """The backend for people has the same events."""
    log = tmp_path / "events.log"
    r = payload.run(tmp_path, "tcg", "selftest",
                    ["-object", f"hypertrace-backend-log,id=b,file={log}",
                     *device("shm")])
    assert_ok(r)
    text = log.read_text()
    sent = sum(row["sent"] for row in r.rows if "sent" in row)
    assert len(re.findall(r"\bselftest\.\w+", text)) == sent
    assert "grüß" in text and "-9223372036854775808" in text


# 4 GiB of stream RAM does not fit below 4 GiB of addresses.
def test_bar_above_4g(tmp_path, accel):
    r = payload.run(tmp_path, accel, "selftest",
                    ctf(tmp_path) + device("shm", streams=64, packets=64,
                                           packet_size="1M"))
    assert_ok(r)
    row, = r.named(function="selftest")
    assert row["ram"] >= 2**32
    check_sent(r, payload.read_ctf(only_trace(tmp_path)))


def test_several_behind_bridges(tmp_path, accel):
    args = list(NULL)
    for i, c in enumerate(CHANNELS):
        args += ["-device", f"pcie-root-port,id=p{i},slot={i}"]
        args += device(c, bus=f"p{i}")
    args += device("shm", addr="10.3", multifunction="on")
    args += device("virtio", addr="10.0", multifunction="on")
    r = payload.run(tmp_path, accel, "selftest", args, machine="q35")
    assert_ok(r)
    done = r.named(function="selftest")
    assert sorted(row["channel"] for row in done) == sorted(
        CHANNELS + ["shm", "virtio"])


# Bench ---------------------------------------------------------------------------


MASK = 2**64 - 1


def bench_word(tag, seq, k):
    """See tools/ht-bench-payload.h."""
    return ((seq + (tag << 40)) * 0x9e3779b97f4a7c15
            + (k + 1) * 0xd1342543de82ef95) & MASK


def check_bench(row, streams, events):
    """Each byte of 32-byte events, and that the gaps are what was lost."""
    stream, = row["streams"]
    got = streams[stream["instance"]]
    seqs = [fields["seq"] for _, fields in got.events]
    assert seqs == sorted(set(seqs)) and (not seqs or seqs[-1] < events)
    assert len(seqs) == row["sent"]
    assert got.discarded == row["discarded"] == events - len(seqs)
    for name, fields in got.events:
        seq = fields["seq"]
        assert (name, fields) == ("bench.e32", {
            "seq": seq, "a": bench_word(stream["stream"], seq, 0),
            "b": bench_word(stream["stream"], seq, 1),
            "c": bench_word(stream["stream"], seq, 2)})


@pytest.mark.parametrize("channel", CHANNELS)
def test_bench_lossless(tmp_path, accel, channel):
    events = 5000 if channel == "hypercall" else 50000
    r = payload.run(tmp_path, accel, f"bench mode=lossless events={events}",
                    ctf(tmp_path) + device(channel, packets=4))
    assert_ok(r)
    row, = r.named(tool="ht-bench")
    assert row["sent"] == events and row["lossless"]
    check_bench(row, payload.read_ctf(only_trace(tmp_path)), events)


@pytest.mark.parametrize("channel", ["shm", "virtio"])
def test_bench_flat(tmp_path, accel, channel):
    """Where the host cannot keep up, what it misses is counted."""
    r = payload.run(tmp_path, accel, "bench mode=flat events=200000",
                    ctf(tmp_path) + device(channel, packets=2,
                                           packet_size="4k"))
    assert_ok(r)
    row, = r.named(tool="ht-bench")
    assert row["discarded"] > 0
    check_bench(row, payload.read_ctf(only_trace(tmp_path)), 200000)


def test_bench_batches(tmp_path):
    """A doorbell for each so many commits, and one for the rest."""
    for batch in [1, 7, 100]:
        r = payload.run(tmp_path, "tcg", f"bench events=710 batch={batch}",
                        NULL + device("hypercall"))
        assert_ok(r)
        row, = r.named(tool="ht-bench")
        assert row["doorbells"] == -(-710 // batch)


def test_figures(tmp_path):
    """What the project claims of its channels, where exits are real.

    The rings hold all events, so that these are the producer's costs; the
    median over groups, each with packet switches and its share of doorbells,
    because other programs use the machine, too.
    """
    if payload.kvm_problem():
        pytest.skip(payload.kvm_problem())
    ns = {}
    for channel, batch, events, group in [("hypercall", 1, 5000, 1),
                                          ("hypercall", 10, 20000, 10),
                                          ("shm", 1, 1000000, 1024),
                                          ("virtio", 1, 1000000, 1024)]:
        r = payload.run(
            tmp_path, "kvm", f"bench payload=32 events={events} "
            f"batch={batch} group={group}",
            NULL + device(channel, streams=1, packets=1024,
                          packet_size="64k"), memory="512M")
        assert_ok(r)
        row, = r.named(tool="ht-bench")
        assert row["sent"] == events
        ns[channel, batch] = row["ns_median"]
    assert ns["hypercall", 1] >= 1000 * ns["shm", 1], ns
    assert ns["hypercall", 1] >= 8 * ns["hypercall", 10], ns
    assert ns["virtio", 1] <= 3 * ns["shm", 1], ns
