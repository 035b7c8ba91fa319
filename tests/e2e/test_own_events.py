# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the dates of QEMU's own events, recorded by LTTng, with those of a guest's events.

With channel=hypercall and batch=1, a guest dates an event and writes to the doorbell.
QEMU dates the write.  Only then does the guest emit its next event.  The test needs
a QEMU built with LTTng-UST: ./run check --e2e --flavour ust
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from vm.payload import Payload

bt2 = pytest.importorskip("bt2")
import ctf_events
import perfetto_text

HYPERTRACE = Path(os.environ.get("HT_BUILD", "")) / \
    "tools/hypertrace/hypertrace"
EVENTS = 2000
SHIFT = 50_000      # ns
TIMEOUT = 120

pytestmark = [
    pytest.mark.skipif(
        Path(os.environ.get("HT_QEMU_BUILD", "")).name != "qemu-ust",
        reason="QEMU's own events are not in LTTng: ./run check --flavour ust"),
    pytest.mark.skipif(not HYPERTRACE.exists(),
                       reason="the command hypertrace was not built"),
]


def of_qemu(trace):
    """Return [(date, name, fields)] of the events that QEMU itself emitted, from LTTng's
    trace, in order."""
    found = []
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        assert not isinstance(msg, bt2._DiscardedEventsMessageConst)
        if isinstance(msg, bt2._EventMessageConst):
            provider, _, name = msg.event.name.partition(":")
            assert provider == "qemu"
            found.append((msg.default_clock_snapshot.value, name,
                          ctf_events.plain(msg.event.payload_field)))
    return found


def doorbells(events):
    """Return the dates of the writes to the doorbell of stream 0, which is at offset 64 KiB
    of the BAR."""
    return [ns for ns, name, fields in events
            if name == "memory_region_ops_write"
            and fields["name"] == "hypertrace-regs"
            and int(fields["addr"]) & 0x1fffff == 0x10000]


def too_early(guest, rung, bound, shift=0):
    """Add shift to QEMU's dates. Return how often a doorbell is earlier than its event, or
    an event earlier than the doorbell before it, by more than bound. All values are in
    ns."""
    story = [date for n, ns in enumerate(guest)
             for date in (ns, rung[n] + shift)]
    return sum(b + bound < a for a, b in zip(story, story[1:]))


def check(guest, rung, bound):
    assert len(guest) == len(rung) == EVENTS
    assert too_early(guest, rung, bound) == 0
    assert too_early(guest, rung, bound, SHIFT) > 0
    assert too_early(guest, rung, bound, -SHIFT) > 0


@pytest.fixture
def run(tmp_path, session):
    """Run a guest. Return the folder that has LTTng's trace of QEMU in "lttng", and the
    folder of the device's trace."""
    s = session(events=["qemu:memory_region_ops_write", "qemu:hypertrace_*"])
    with Payload(
            f"bench channel=hypercall events={EVENTS} batch=1 payload=8",
            accel="tcg", workdir=tmp_path,
            devices=[{"channel": "hypercall"}]) as vm:
        vm.wait(TIMEOUT)
    s.finish()
    trace, = (m.parent for m in vm.trace("ht0").rglob("metadata"))
    return tmp_path, trace


def test_order(run):
    """The dates of both traces have the order in which the events happened; if QEMU's dates were
    SHIFT later or earlier, some would contradict this order."""
    tmp, trace = run
    stream, = ctf_events.read(trace).values()
    own = of_qemu(tmp / "lttng")
    check(stream.cycles, doorbells(own), stream.precision)
    opened, = (ns for ns, name, _ in own if name == "hypertrace_stream_open")
    closed, = (ns for ns, name, _ in own if name == "hypertrace_stream_close")
    assert opened < stream.cycles[0] + stream.precision
    assert closed > stream.cycles[-1] - stream.precision


def test_perfetto(run):
    """Exported to one Perfetto file, each event of both traces keeps its
    date"""
    if not shutil.which("protoc"):
        pytest.skip("protoc is not installed")
    tmp, trace = run
    out = tmp / "all.pftrace"
    subprocess.run([HYPERTRACE, "export", "-o", out, trace, tmp / "lttng"],
                   check=True, timeout=TIMEOUT)
    guest, own = [], []
    for machine, track, ns, name, fields in perfetto_text.instants(
            perfetto_text.packets(out)):
        if machine:
            guest.append(ns)
        else:
            assert track.startswith("qemu, CPU ")
            own.append((ns, name, fields))
    stream, = ctf_events.read(trace).values()
    assert guest == stream.cycles
    own.sort(key=lambda e: e[0])
    assert [e[:2] for e in own] == [e[:2] for e in of_qemu(tmp / "lttng")]
    check(guest, doorbells(own), stream.precision)
