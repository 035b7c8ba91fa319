# SPDX-License-Identifier: GPL-2.0-or-later
"""Events are dated by the host's clock, within the error bound that the device reports.
The test notes the host's time before and after the guest emits 20 events.  After every
fourth such turn the test stops the VM for 20 ms; that stops the guest's counter under
TCG, but not under KVM."""

import time

import pytest

import ctf_events
from bench.guest import Study
from vm.payload import kvm_problem

EVENTS = 20


def emit(vm):
    """Let the guest emit EVENTS events. Return the host's times before and after that, and
    the error bound of the device's dates, all in ns."""
    begin = time.monotonic_ns()
    row = vm.tell("run", 60, device=vm.index["ht0"], events=EVENTS, mode="flat")
    end = time.monotonic_ns()
    assert (row["sent"], row["discarded"]) == (EVENTS, 0)
    stats = vm.qmp.stats("ht0")
    return begin, end, stats["clock-bound-ns"]


@pytest.mark.parametrize("channel", ["hypercall", "shm", "virtio"])
@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_dates(tmp_path, accel, channel):
    if accel == "kvm" and kvm_problem():
        pytest.skip(kvm_problem())
    spans = []
    with Study([{"id": "ht0", "channel": channel, "backend": "ctf"}],
               peers=False, accel=accel, workdir=tmp_path) as vm:
        for n in range(16):
            spans.append(emit(vm))
            if n % 4 == 3:
                vm.qmp.command("stop")
                time.sleep(0.02)    # longer than the bound usually is
                vm.qmp.command("cont")
        trace = vm.trace("ht0")
        vm.quit()
    dates = sorted(c for s in ctf_events.read(trace).values()
                   for c in s.cycles)
    assert len(dates) == EVENTS * len(spans)
    for n, (begin, end, bound) in enumerate(spans):
        assert bound < 50e6
        for date in dates[n * EVENTS:(n + 1) * EVENTS]:
            assert begin - bound <= date <= end + bound, (n, bound)
