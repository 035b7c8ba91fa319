# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that breaks the protocol harms neither QEMU nor the guest's honest streams, those
that keep to the protocol.

The payload tests/guest/hostile/ misbehaves and checks the device's answers. These tests compare
the events of its honest streams with the trace. """

import json
import re

import pytest

import ctf_events
from scale import LONG
from vm.payload import Payload, kvm_problem

RING = ["hypercall", "shm"]
CHANNELS = RING + ["virtio"]
SMALL = {"streams": 4, "packets": 4, "packet_size": "4k"}
SEEDS = [1, 2, 3] if LONG else [1]


@pytest.fixture(params=["tcg", "kvm"])
def accel(request):
    if request.param == "kvm" and kvm_problem():
        pytest.skip(kvm_problem())
    return request.param


def run(workdir, accel, append, *devices, **kwargs):
    with Payload(f"hostile {append}",
                 devices=[{**SMALL, **d} for d in devices],
                 accel=accel, workdir=workdir, **kwargs) as vm:
        vm.wait(120)
    row, = vm.named(function="hostile")
    assert row["checks"] > 0 and row["failed"] == 0
    return vm


def reports(text):
    """{device: {instance: the payload's last report of this honest stream}}, without lines that a
    reset has cut short"""
    found = {}
    for line in re.findall(r'\{[^{}\n]*"flushed"[^{}\n]*\}', text):
        row = json.loads(line)
        found.setdefault(row["device"], {})[row["instance"]] = row
    return found


def check_honest(vm, device=0, ended=True, reported=False):
    """Check that the trace has the events of each honest stream in order and without a gap,
    at least up to the last event that the payload reported as flushed.

    ended: whether the payload ran to its end, so that a stream's last report counts all
        its events; false if the machine was reset
    reported: whether the payload may have sent messages that report discarded events;
        the trace may then have discarded events, too
    """
    rows = reports(vm.out.text)[device]
    metadata, = vm.trace(f"ht{device}").rglob("metadata")
    streams = ctf_events.read(metadata.parent)
    for instance, row in rows.items():
        # the trace may lack a stream of which the host received no event
        s = streams.get(instance, ctf_events.Stream())
        assert s.events == [("hostile.seq", {"n": n})
                            for n in range(len(s.events))], row
        assert len(s.events) >= row["flushed"], row
        assert not ended or len(s.events) <= row["sent"], row
        assert reported or s.discarded == 0, row
        assert s.ns == sorted(s.ns), row
    return rows


# The guest accesses the registers with 1, 2, 4 and 8 bytes.


@pytest.mark.parametrize("channel", RING)
def test_registers(tmp_path, accel, channel):
    # Under KVM each access to a register is a VM exit, which takes up to 1 ms if KVM is
    # nested: test only every 229th offset. 229 is odd, so these offsets have all
    # alignments.
    step = {"tcg": 1, "kvm": 229}[accel]
    vm = run(tmp_path, accel, f"what=registers step={step}",
             {"channel": channel})
    check_honest(vm, reported=True)
    assert "to register 0x" in vm.guest_errors


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("properties", [
    {"channel": "hypercall"},
    {"channel": "shm"},
    {"channel": "shm", "mode": "overwrite", "packets": 16},
    {"channel": "hypercall", "mode": "overwrite", "packets": 16},
    {"channel": "virtio"},
], ids=lambda p: "-".join(str(v) for v in p.values()))
def test_streams(tmp_path, properties, seed):
    vm = run(tmp_path, "tcg", f"what=streams seed={seed}", properties)
    check_honest(vm)
    assert "stopped: " in vm.guest_errors


@pytest.mark.parametrize("channel", CHANNELS)
def test_streams_kvm(tmp_path, channel):
    if kvm_problem():
        pytest.skip(kvm_problem())
    check_honest(run(tmp_path, "kvm", "what=streams seed=4 rounds=1",
                     {"channel": channel}))


def virtqueues(workdir, accel, append, **properties):
    """Run a guest that corrupts the virtqueues of its first device. With vectors=0 this device
    has no MSI-X, and uses an interrupt pin."""
    vm = run(workdir, accel, f"what=virtqueues {append}",
             {"channel": "virtio", "vectors": 0, **properties},
             {"channel": "shm"})
    check_honest(vm)
    check_honest(vm, 1)
    assert "zero sized buffers" in vm.stderr and "Looped" in vm.stderr


@pytest.mark.parametrize("seed", SEEDS)
def test_virtqueues(tmp_path, seed):
    virtqueues(tmp_path, "tcg", f"seed={seed}")


def test_virtqueues_exits(tmp_path):
    """Without ioeventfd, a guest's notification runs the device's code for the queue in
    the thread of the vCPU."""
    virtqueues(tmp_path, "tcg", "seed=4", ioeventfd="off")


def test_virtqueues_kvm(tmp_path):
    if kvm_problem():
        pytest.skip(kvm_problem())
    virtqueues(tmp_path, "kvm", "seed=5 rounds=1")


# The guest opens the device again, as another driver would, while a stream is still open.


@pytest.mark.parametrize("channel", CHANNELS)
def test_takeovers(tmp_path, accel, channel):
    rounds = {"tcg": 30, "kvm": 6}[accel]
    check_honest(run(tmp_path, accel, f"what=takeovers rounds={rounds}",
                     {"channel": channel}))


# Where KVM emulates real mode, the firmware is slow: test only one channel
# under KVM.
@pytest.mark.parametrize("accel, channel, lives", [
    *(("tcg", c, 4) for c in CHANNELS), ("kvm", "shm", 2)],
    indirect=["accel"])
def test_resets(tmp_path, accel, channel, lives):
    """The machine is reset while it emits. The trace has all events that were committed
    before the reset, over virtio all that were flushed."""
    devices = [{"channel": channel, **SMALL}]
    with Payload("hostile what=emits", devices=devices,
                 accel=accel, workdir=tmp_path) as vm:
        vm.qmp.command("set-action", reboot="reset")
        for life in range(lives):
            # The payload reports on its stream repeatedly: wait for the first report on
            # the stream of this boot.
            while len(reports(vm.out.text).get(0, {})) == life:
                vm.out.expect(r'"flushed": [1-9]\d*', 60)
            # In each life, wait for another number of reports, so that the reset comes
            # at another point of the stream.
            for _ in range(3 + 5 * life):
                vm.out.expect(r'"flushed": [1-9]\d*', 60)
            if life < lives - 1:
                vm.qmp.command("system_reset")
        vm.qmp.command("quit")
        vm.process.wait(60)
        assert vm.process.returncode == 0, str(vm)
        vm.out.finish(10)
    assert '"ok": false' not in vm.out.text, str(vm)
    assert len(check_honest(vm, ended=False)) == lives
