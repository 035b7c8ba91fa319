# SPDX-License-Identifier: GPL-2.0-or-later
"""The device as a bare-metal guest sees it, under TCG and under KVM.

The payload's selftest checks the guest's side (tests/guest/selftest*.c).  This file checks
that the backends' traces have the events that the payload sent, and the payload's figures.
"""

import re

import pytest

import ctf_events
from vm.payload import USAGE, Payload, kvm_problem

CHANNELS = ["hypercall", "shm", "virtio"]

# The events of tests/guest/selftest-events.c: KINDS, then SEQUENCE numbered
# events
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
    # 40 events of each of 270 classes: an 8-bit id in an event cannot name so many classes
    *[(f"selftest.id{n % 270:03}", {}) for n in range(40 * 270)],
    ("selftest.empty", {}),
]


@pytest.fixture(params=["tcg", "kvm"])
def accel(request):
    if request.param == "kvm" and kvm_problem():
        pytest.skip(kvm_problem())
    return request.param


def run(workdir, accel, append, devices=(), check=True, **kwargs):
    with Payload(append, devices=devices, accel=accel,
                 workdir=workdir, **kwargs) as vm:
        vm.wait(240, check=check)
    return vm


def null(channel, **properties):
    return {"channel": channel, "backend": "null", **properties}


def only_trace(vm, device=0):
    found = [m.parent for m in vm.trace(f"ht{device}").rglob("metadata")]
    assert len(found) == 1, found
    return ctf_events.read(found[0])


def test_probe(tmp_path, accel):
    row, = run(tmp_path, accel, "probe").named(function="probe")
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
    ("bench payload=33", "payload is up to four of"),
    ("selftest", "no hypertrace device"),
])
def test_wrong_use(tmp_path, append, what):
    vm = run(tmp_path, "tcg", append, check=False)
    assert vm.status == USAGE, str(vm)
    assert what in vm.out.text


def test_exits(tmp_path, accel):
    vm = run(tmp_path, accel, "exits count=200", [null(c) for c in CHANNELS])
    rows = {row["channel"]: row for row in vm.rows if "channel" in row}
    assert sorted(rows) == CHANNELS
    for row in rows.values():
        assert row["mmio_write_ns"] > 0 and row["doorbell_ns"] > 0
        # Under TCG the library rings by another instruction than under KVM.
        assert row.get("tcg", accel == "tcg") == (accel == "tcg"), row
    assert "tcg" in rows["hypercall"]


@pytest.mark.skipif(bool(kvm_problem()),
                    reason=str(kvm_problem()))
def test_doorbell_exits(tmp_path):
    """Under KVM, each doorbell of channel=hypercall reaches QEMU, and no doorbell of the other
    channels."""
    bells = {}
    for c in CHANNELS:
        workdir = tmp_path / c
        workdir.mkdir()
        vm = run(workdir, "kvm", "exits count=20", [null(c)],
                 args=["-trace", "memory_region_ops_write"])
        log = (vm.dir / "qemu.log").read_text()
        # The first stream's doorbell has the offset 64 KiB in the BAR with the registers, which
        # is aligned to its size, 128 KiB or more. So bit 16 of the doorbell's address is 1. The
        # payload writes to the first or the last page of the doorbell's 64 KiB.
        writes = re.findall(r"memory_region_ops_write .* addr 0x\w*[13579bdf][0f]000 .*"
                            r"'hypertrace-regs'|'virtio-pci-notify", log)
        bells[c] = len(writes)
        assert "memory_region_ops_write" in log
    # The payload makes five rounds of 20 doorbells. KVM handles the doorbells of shm and
    # virtio by an eventfd, without QEMU's vCPU thread.
    assert bells == {"hypercall": 5 * 20, "shm": 0, "virtio": 0}


def check_sent(vm, device=0):
    """Check that the CTF backend's trace has exactly the events that the selftest sent."""
    streams = only_trace(vm, device)
    sent = {row["instance"]: row for row in vm.named(device=device)
            if "sent" in row}
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


@pytest.mark.parametrize("accel, machine", [
    ("tcg", "pc"), ("tcg", "q35"), ("kvm", "pc")], indirect=["accel"])
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.each_channel
def test_selftest(tmp_path, accel, channel, machine):
    vm = run(tmp_path, accel, "selftest", [{"channel": channel}],
             machine=machine)
    check_sent(vm)
    # QEMU logs only some lines in each second, so the log may lack all faults of the
    # payload but the first one.
    assert "ht0: malformed control message" in vm.guest_errors


@pytest.mark.parametrize("properties", [
    {"channel": "shm", "mode": "overwrite"},
    {"channel": "hypercall", "mode": "overwrite"},
    {"channel": "hypercall", "batch": 64},
    {"channel": "shm", "streams": 1, "packets": 2, "packet_size": "16k"},
    {"channel": "virtio", "streams": 64, "packets": 1024,
     "packet_size": "4k"},
], ids=lambda p: "-".join(str(v) for v in p.values()))
def test_selftest_properties(tmp_path, properties):
    """With each of these sets of properties, the trace has exactly the events that the payload's
    selftest sent."""
    check_sent(run(tmp_path, "tcg", "selftest", [properties], memory=1024))


def test_selftest_log(tmp_path):
    """The log backend writes a line for each event that the payload sent."""
    log = tmp_path / "events.log"
    vm = run(tmp_path, "tcg", "selftest",
             [{"channel": "shm", "backend": "log",
               "backend_options": {"file": log}}])
    text = log.read_text()
    sent = sum(row["sent"] for row in vm.rows if "sent" in row)
    assert len(re.findall(r"\bselftest\.\w+", text)) == sent
    assert "grüß" in text and "-9223372036854775808" in text


def test_bar_above_4g(tmp_path, accel):
    """Four devices with BARs of 1 GiB each do not fit below 4 GiB, so at least one has its BAR
    above: all of them work."""
    vm = run(tmp_path, accel, "selftest",
             [{"channel": "shm", "streams": 32, "packets": 16,
               "packet_size": "1M"} for _ in range(4)])
    rows = vm.named(function="selftest")
    assert len(rows) == 4
    assert any(row["ram"] >= 2**32 for row in rows)
    for i in range(4):
        check_sent(vm, i)


def test_several_behind_bridges(tmp_path, accel):
    ports = [arg for i in range(3)
             for arg in ("-device", f"pcie-root-port,id=p{i},slot={i}")]
    devices = [null(c, bus=f"p{i}") for i, c in enumerate(CHANNELS)]
    devices += [null("shm", addr="10.3"),
                null("virtio", addr="10.0", multifunction="on")]
    vm = run(tmp_path, accel, "selftest", devices, machine="q35", args=ports)
    done = vm.named(function="selftest")
    assert sorted(row["channel"] for row in done) == sorted(
        CHANNELS + ["shm", "virtio"])


MASK = 2**64 - 1


def bench_word(tag, seq, k):
    """Word k of ht-bench's payload, by the rule in tools/ht-bench-payload.h"""
    return ((seq + (tag << 40)) * 0x9e3779b97f4a7c15
            + (k + 1) * 0xd1342543de82ef95) & MASK


def check_bench(row, streams, events):
    """Check each field of the 32-byte events, and that the trace counts as many
    discarded events as numbers are missing."""
    stream, = row["streams"]
    got = streams[stream["instance"]]
    seqs = [fields["seq"] for _, fields in got.events]
    assert seqs == sorted(set(seqs)) and (not seqs or seqs[-1] < events)
    assert got.discarded == events - len(seqs)
    for name, fields in got.events:
        seq = fields["seq"]
        assert (name, fields) == ("bench.e32", {
            "seq": seq, "a": bench_word(stream["stream"], seq, 0),
            "b": bench_word(stream["stream"], seq, 1),
            "c": bench_word(stream["stream"], seq, 2)})
    return got


@pytest.mark.parametrize("channel", CHANNELS)
def test_bench_lossless(tmp_path, accel, channel):
    events = 5000 if channel == "hypercall" else 50000
    vm = run(tmp_path, accel, f"bench mode=lossless events={events}",
             [{"channel": channel, "packets": 4}])
    row, = vm.named(tool="ht-bench")
    assert row["sent"] == events and row["lossless"]
    got = check_bench(row, only_trace(vm), events)
    # Differences of the trace's dates, which come from the host's clock, agree with the
    # guest's counter, and do not exceed the duration that the guest measured.
    (counter0, ns0), *_, (counter1, ns1) = got.begins
    ns = (counter1 - counter0) * 1e9 / row["clock_hz"]
    assert abs(ns1 - ns0 - ns) < 100_000 + ns * 0.01
    assert 0 < got.ns[-1] - got.ns[0] < 100_000 + row["duration_ns"] * 1.05


@pytest.mark.parametrize("channel", ["shm", "virtio"])
def test_bench_flat(tmp_path, accel, channel):
    """If the host cannot keep up, the discarded events are counted."""
    vm = run(tmp_path, accel, "bench mode=flat events=200000",
             [{"channel": channel, "packets": 2, "packet_size": "4k"}])
    row, = vm.named(tool="ht-bench")
    assert row["discarded"] > 0
    got = check_bench(row, only_trace(vm), 200000)
    assert len(got.events) == row["sent"]
    assert got.discarded == row["discarded"]


def test_bench_overwrite(tmp_path, accel):
    """In overwrite mode the guest discards no event of this run; the host counts those that the
    guest overwrote before the host read them."""
    vm = run(tmp_path, accel, "bench mode=flat events=200000",
             [{"channel": "shm", "packets": 4, "packet_size": "4k",
               "mode": "overwrite"}])
    row, = vm.named(tool="ht-bench")
    assert row["sent"] == 200000
    got = check_bench(row, only_trace(vm), 200000)
    assert got.events[-1][1]["seq"] == 199999


def test_virtqueue_wraps(tmp_path):
    """The device returns all buffers, also after the virtqueue's 16-bit
    indexes have wrapped."""
    vm = run(tmp_path, "tcg", "bench payload=256 events=1200000",
             [null("virtio", packet_size="4k")])
    row, = vm.named(tool="ht-bench")
    assert row["sent"] == 1200000 and not row["gave_up"]
    assert row["sent"] * 260 / 4096 > 2**16


def test_bench_batches(tmp_path):
    """The guest rings one doorbell for each whole batch of commits, and one for the
    remaining commits."""
    for batch in [1, 7, 100]:
        vm = run(tmp_path, "tcg", f"bench events=710 batch={batch}",
                 [null("hypercall")])
        row, = vm.named(tool="ht-bench")
        assert row["doorbells"] == -(-710 // batch)


def test_figures(tmp_path):
    """Under KVM, an event over hypercall costs at least 100 times one over shm, and 5 times one
    of a batch of 10; over virtio it costs at most 3 times one over shm.

    The rings have room for all events, so the figures are the producer's costs.
    """
    if kvm_problem():
        pytest.skip(kvm_problem())
    ns = {}
    for channel, batch, events, group in [("hypercall", 1, 5000, 1),
                                          ("hypercall", 10, 20000, 10),
                                          ("shm", 1, 1000000, 1024),
                                          ("virtio", 1, 1000000, 1024)]:
        vm = run(tmp_path, "kvm", f"bench payload=32 events={events} "
                 f"batch={batch} group={group}",
                 [null(channel, streams=1, packets=1024, packet_size="64k")],
                 memory=512)
        row, = vm.named(tool="ht-bench")
        assert row["sent"] == events
        ns[channel, batch] = row["ns_median"]
    assert ns["hypercall", 1] >= 100 * ns["shm", 1], ns
    assert ns["hypercall", 1] >= 5 * ns["hypercall", 10], ns
    assert ns["virtio", 1] <= 3 * ns["shm", 1], ns
