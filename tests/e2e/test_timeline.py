# SPDX-License-Identifier: GPL-2.0-or-later
"""The same events of a guest are in two traces, with dates from different clocks: in
the kernel's ring, dated by hypertrace record, and in the device's trace, dated by the
TSC.  The kernel writes each event to the ring first, then to the device, and both
before the next event.  No date contradicts that order by more than its bound.
"""

import collections
import json
import os
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from linux_guest import RING_LOOP, assert_sound, stats
from vm.machine import VM

bt2 = pytest.importorskip("bt2")
import ctf_events
import perfetto_text

HYPERTRACE = Path(os.environ.get("HT_BUILD", "")) / \
    "tools/hypertrace/hypertrace"
pytestmark = pytest.mark.xdist_group("timeline")

MODULE = "hypertrace-sources.ko"
# Kernel parameters: a ring, and the events that it records. The kernel emits most of these
# events with interrupts off, so seldom another event comes between the record in the ring
# and the event of the device.
WORDS = ("reserve_mem=16M:2M:ht trace_instance=boot_map@ht,"
         "sched:sched_switch,sched:sched_waking,timer:hrtimer_start,"
         "timer:hrtimer_expire_entry,task")
TIMEOUT = 300
SHIFT = 50_000      # ns
# Increase of the error bound of the device's dates for a clock reading that is 100 ms
# late
LATE = 10_000       # ns


def lacking():
    if not HYPERTRACE.exists():
        return "the command hypertrace was not built"
    if not shutil.which("busybox"):
        return "busybox is not installed"
    return None


def key(name, fields):
    """Return a key that identifies the start or the expiry of a timer, (event, timer, time);
    False for other events."""
    when = {"hrtimer_start": "expires", "hrtimer_expire_entry": "now"}
    return name in when and (name, fields["hrtimer"], fields[when[name]])


def once(events):
    """Return {key: value} from a list of (key, value), without keys that occur more than
    once, and without the key False."""
    seen = {}
    for k, value in events:
        if k:
            seen[k] = None if k in seen else value
    return {k: v for k, v in seen.items() if v}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Record a guest. Return the folder that has the recording "rec" and the device's trace
    "device", and the largest error in ns that a date in the device's trace may have."""
    if lacking():
        pytest.skip(lacking())
    tmp = tmp_path_factory.mktemp("timeline")
    env = {**os.environ, "XDG_CACHE_HOME": os.environ["HT_TREE"]}
    ko = Path(os.environ["HT_MODULE"]).parent / MODULE
    vm = VM(devices=[{"channel": "shm", "packets": 256}], job=RING_LOOP,
            files={MODULE: ko}, memory=256, kernel_args=WORDS,
            workdir=tmp / "vm")

    def say(commands):
        vm.say(commands)
        vm.out.expect(r'\{"done": 1\}', TIMEOUT)

    def device_bound():
        return stats(vm)["clock-bound-ns"] + LATE

    with vm:
        vm.out.expect(r'\{"up": 1\}', TIMEOUT)
        say("insmod /ht/hypertrace-sources.ko events=sched:sched_switch,"
            "sched:sched_waking,timer:hrtimer_start,"
            "timer:hrtimer_expire_entry,task")
        recorder = subprocess.Popen(
            [HYPERTRACE, "record", "-q", "-o", tmp / "rec", "--kernel",
             os.environ["HT_KERNEL"], "--pid", str(vm.process.pid)], env=env)
        deadline = time.monotonic() + TIMEOUT
        while not list((tmp / "rec").glob("cpu*")):
            assert time.monotonic() < deadline
            assert recorder.poll() is None
            time.sleep(0.05)
        bounds = [device_bound()]
        say("work 200")
        bounds.append(device_bound())
        say("echo 0 >$T/tracing_on")
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(TIMEOUT) == 0
        vm.qmp.command("stop")
        vm.qmp.command("quit")
        vm.process.wait(TIMEOUT)
        assert_sound(vm)
        shutil.move(vm.trace("ht0"), tmp / "device")
    return tmp, max(bounds)


def recorded(path):
    """Return {cpu: [(key, (date, error bound))]} of the events in a recording."""
    out = subprocess.run([HYPERTRACE, "report", "--json", "--clock=host",
                          path], check=True, stdout=subprocess.PIPE,
                         timeout=TIMEOUT).stdout
    cpus = collections.defaultdict(list)
    for e in map(json.loads, out.splitlines()):
        cpus[e["cpu"]].append((key(e["event"], e["fields"]),
                               (e["ns"], e["bound_ns"])))
    return cpus


def traced(path, bound):
    """Return {cpu: [(key, (date, bound))]} of the events in the device's trace, all with
    the given error bound."""
    cpus = collections.defaultdict(list)
    for s in ctf_events.read(path).values():
        cpus[s.cpu].extend((key(name, fields), (ns, bound))
                           for (name, fields), ns in zip(s.events, s.cycles))
    return cpus


def exported(path, bound):
    """Read a Perfetto file. Return ({cpu: [date]} of the recording, the error bound of these
    dates, the device's events in the form of traced())."""
    packets = perfetto_text.packets(path)
    assert perfetto_text.machines(packets) == {0: "host", 1: "rec",
                                               2: "vm, ht0"}
    ring, device = (collections.defaultdict(list) for _ in range(2))
    for p in packets:
        for bundle in p.get("ftrace_events", []):
            ring[bundle["cpu"][0]] += [e["timestamp"][0]
                                       for e in bundle["event"]]
    for machine, track, ns, name, fields in perfetto_text.instants(packets):
        assert machine == 2
        device[int(track.rsplit(" ", 1)[1])].append(
            (key(name, fields), (ns, bound)))
    return ring, perfetto_text.bounds(packets)[1], device


def story(ring, device):
    """Return a list for each processor. It has two (date, bound) for each timer event that is
    in both traces exactly once, in the ring's order: the ring's, then the device's."""
    stories = []
    for cpu, events in ring.items():
        alone, other = once(events), once(device[cpu])
        stories.append([date for k, in_ring in events
                        if k in alone and k in other
                        for date in (in_ring, other[k])])
    return stories


def too_early(stories, shift=0):
    """Add shift, in ns, to the ring's dates. Return how often a date in a story is
    earlier than the date before it by more than the bounds of both."""
    found = 0
    for dates in stories:
        shifted = [(ns + (0 if n % 2 else shift), bound)
                   for n, (ns, bound) in enumerate(dates)]
        found += sum(b + b_bound < a - a_bound for (a, a_bound), (b, b_bound)
                     in zip(shifted, shifted[1:]))
    return found


def check(stories):
    assert len(stories) == 2 and min(map(len, stories)) > 200
    assert too_early(stories) == 0
    # A shift of the ring's dates by SHIFT can be seen only if the bounds are small. On
    # a busy host few events have small bounds; there only tests/unit/tool/test_merge.py
    # proves that a shift is seen.
    bounds = [bound for dates in stories for _, bound in dates]
    if statistics.median(bounds[::2]) + max(bounds[1::2]) < SHIFT / 2:
        assert too_early(stories, SHIFT) > 0
        assert too_early(stories, -SHIFT) > 0


def test_recorded(run):
    """The recorder's dates, each with its own bound, do not contradict the
    order of the events."""
    tmp, bound = run
    check(story(recorded(tmp / "rec"), traced(tmp / "device", bound)))


def test_perfetto(run):
    """In one Perfetto file each event has the date that it has in the recording or
    in the device's trace. The error bound of a machine is at least that of each of
    its events."""
    tmp, bound = run
    if not shutil.which("protoc"):
        pytest.skip("protoc is not installed")
    out = tmp / "both.pftrace"
    subprocess.run([HYPERTRACE, "export", "-o", out, tmp / "device",
                    tmp / "rec"], check=True, timeout=TIMEOUT)
    dates, worst, device = exported(out, bound)
    ring = recorded(tmp / "rec")
    assert dates == {cpu: [ns for _, (ns, _) in events]
                     for cpu, events in ring.items()}
    assert worst >= max(b for events in ring.values() for _, (_, b) in events)
    assert device == {cpu: events for cpu, events
                      in traced(tmp / "device", bound).items() if events}
    check(story(ring, device))
