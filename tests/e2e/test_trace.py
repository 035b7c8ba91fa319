# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of programs that use ht_trace(), in a Linux guest.

The programs go on in each of these tests, and each of their events is in the trace or counted
as discarded. When a device is unplugged or suspended, one event may be missing or counted
twice.
"""

import itertools
import os
import re
from pathlib import Path

import pytest

import ctf_events
from bench.linux import with_libraries
from vm.machine import VM
from linux_guest import (
    LD, PRELUDE, assert_sound, needs_glibc, shared_library, stats,
    wait_events)

CHANNELS = ["hypercall", "shm", "virtio"]
NAMES = ("tracetest.step", "tracetest.tick", "tracetest.plugin",
         "tracetest.call")


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


def emitted(vm):
    return [int(n) for n in re.findall(r"^emitted (\d+)$", vm.out.text, re.M)]


def events(streams):
    return [(name, fields) for s in streams.values()
            for name, fields in s.events if name in NAMES]


def notes(streams):
    return {fields.get("what") for _, fields in events(streams)}


def run(tmp_path, channel, commands, **device):
    """Run commands one after the other, each with a device of its own.  Return the
    numbers of emitted events that the commands printed, and each device's streams."""
    job = "set -e\n" + "".join(
        f"HYPERTRACE_DEVICE=/dev/hypertrace{n} {c} >&3\n"
        for n, c in enumerate(commands))
    with VM(devices=[{"channel": channel, "packets": 64, **device}
                     for _ in commands], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait(240)
        assert_sound(vm)
        found = [ctf_events.read(vm.trace(f"ht{n}"))
                 for n in range(len(commands))]
    return emitted(vm), found


def all_but_one(found, count):
    """Return whether found differs from count by at most one: if the device is unplugged or
    suspended during an emit, the event may be missing or counted twice."""
    return count - 1 <= found <= count + 1


def same_date(streams):
    """Return the length of the longest series of neighbouring events with the same
    date."""
    return max(len(list(g)) for s in streams.values()
               for _, g in itertools.groupby(s.cycles))


def accounted(streams):
    return len(events(streams)) + sum(s.discarded for s in streams.values())


def test_ordinary_life(channel, tmp_path):
    """Programs that fork, exec, close all descriptors from 3 on, or emit in signal
    handlers, account for each event. In the test, "exec" alone has HYPERTRACE_STAMPS=8:
    the library then reads the clock for every 8th event, so there is a series of at least 8
    events with equal dates."""
    counts, found = run(tmp_path, channel, [
        "ht-tracetest fork 500", "HYPERTRACE_STAMPS=8 ht-tracetest exec 500",
        "ht-tracetest closed 500", "ht-tracetest signal 20000"])
    fork, exec_, closed, signal = found
    assert accounted(fork) == counts[0]
    assert notes(fork) == {"parent", "child"}
    assert accounted(exec_) == 500 + counts[1]
    assert notes(exec_) == {"before exec", "emit"}
    assert same_date(fork) < 8 <= same_date(exec_)
    assert accounted(closed) == counts[2]
    assert notes(closed) == {"before", "after"}
    assert accounted(signal) == counts[3]
    # a child of vfork() must not emit: its event is counted as discarded
    assert sum(s.discarded for s in signal.values()) >= 1
    assert any(name == "tracetest.tick" for name, _ in events(signal))
    for streams in found[:3]:
        assert sum(s.discarded for s in streams.values()) == 0


def test_64_threads(channel, tmp_path):
    """No stream has events of two threads, with 62 threads at a time, and 62 more threads
    after their end. Each thread's events are in order."""
    (count,), (streams,) = run(tmp_path, channel,
                               ["ht-tracetest threads 62 200"], streams=64,
                               packets=4)
    assert accounted(streams) == count
    by_thread = {}
    for s in streams.values():
        threads = {f["thread"] for name, f in s.events
                   if name == "tracetest.step"}
        assert len(threads) <= 1
        for _, f in s.events:
            by_thread.setdefault(f["thread"], []).append(f["n"])
    assert all(n == sorted(n) for n in by_thread.values())
    assert len(by_thread) == 124


def test_threads_share(channel, tmp_path):
    """If there are more threads than streams, threads share a stream. In it, an event
    hypertrace.thread names the thread of the events after it."""
    (count,), (streams,) = run(tmp_path, channel,
                               ["ht-tracetest threads 32 300"], streams=4)
    assert accounted(streams) == count
    shared = [s for s in streams.values()
              if any(name == "hypertrace.thread" for name, _ in s.events)]
    assert any(name == "tracetest.step" for s in shared for name, _ in s.events)
    for s in shared:
        tid, whose = None, {}
        for name, f in s.events:
            if name == "hypertrace.thread":
                tid = f["tid"]
                assert f["comm"].startswith("ht-tracetest")
            else:
                assert whose.setdefault(f["thread"], tid) == tid


# hold keeps the device's only stream open, so ht-tracetest gets none.
NO_STREAM_JOB = PRELUDE + """
hold /dev/hypertrace0 hold 10
ht-tracetest emit 700 >&3
ht-tracetest threads 4 300 >&3
echo done >&3
read answer <&3
kill $!
"""


def test_no_stream(channel, tmp_path):
    """Programs without a stream discard their events, and the trace counts these."""
    with VM(devices=[{"channel": channel, "streams": 1}], job=NO_STREAM_JOB,
            workdir=tmp_path / "vm") as vm:
        vm.out.expect("^done", 240)
        counted = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    alone, threads = emitted(vm)
    assert (alone, threads) == (700, 2400) and not events(streams)
    assert counted["lost"] == alone + threads
    assert sum(s.discarded for s in streams.values()) == alone + threads


LASTING_JOB = """
rm -f /tmp/end
ht-tracetest lasting >&3 &
read answer <&3
touch /tmp/end
wait $!
"""


def test_device_vanishes(channel, tmp_path):
    """The device is unplugged while a program emits, and plugged in again: the
    program and its recording continue."""
    with VM(devices=[{"channel": channel}], job=LASTING_JOB,
            args=["-object", f"hypertrace-backend-ctf,id=again,"
                  f"dir={tmp_path / 'again'}"],
            workdir=tmp_path / "vm") as vm:
        vm.out.expect("^under way", 60)
        vm.qmp.command("device_del", id="ht0")
        vm.qmp.wait_event("DEVICE_DELETED", 60, device="ht0")
        vm.qmp.command("device_add", driver="hypertrace", id="ht0",
                       channel=channel, backend="again", name="ht0")
        wait_events(vm, 10000)
        vm.say("end")
        vm.wait(240)
        assert_sound(vm)
        before, after = (ctf_events.read(t) for t in
                         (vm.trace("ht0"), tmp_path / "again"))
    (count,) = emitted(vm)
    assert len(events(before)) >= 10000 and len(events(after)) >= 10000
    # Events emitted without a device are counted as discarded in the first stream that
    # the program opens after the device has returned.
    assert all_but_one(accounted(before) + accounted(after), count)


SUSPEND_JOB = """
rm -f /tmp/end
ht-tracetest lasting >&3 &
read answer <&3
echo mem >/sys/power/state
echo awake >&3
read answer <&3
touch /tmp/end
wait $!
"""


@pytest.mark.long
def test_suspend(channel, tmp_path):
    """A program records again after a suspend.  The guest has one
    processor, because an emulated second one sometimes hung after a suspend."""
    with VM(devices=[{"channel": channel}], job=SUSPEND_JOB, cpus=1,
            packed=True, workdir=tmp_path / "vm") as vm:
        vm.out.expect("^under way", 60)
        vm.say("sleep")
        vm.qmp.wait_event("SUSPEND", 60)
        counted = stats(vm)["events"]
        vm.qmp.command("system_wakeup")
        vm.out.expect("^awake", 60)
        wait_events(vm, counted + 10000)
        vm.say("end")
        vm.wait(240)
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    (count,) = emitted(vm)
    assert all_but_one(accounted(streams), count)


def dynamic():
    tools = Path(os.environ["HT_BUILD"]) / "tests/e2e/programs"
    return {"sys/plugin.so": tools / "tracetest-plugin.so",
            **with_libraries([tools / "tracetest-dynamic"]),
            **shared_library()}


PRELOAD_JOB = f"""
set -e
cd /ht/sys
{LD} --preload /ht/sys/plugin.so ./tracetest-dynamic calls 2000 >&3
{LD} ./tracetest-dynamic plugin 20 /ht/sys/plugin.so >&3
{LD} ./tracetest-dynamic emit 100 >&3
mv lib/libhypertrace.so.0 lib/away
{LD} ./tracetest-dynamic none
{LD} --preload /ht/sys/plugin.so ./tracetest-dynamic calls 100 >&3
"""


@needs_glibc
def test_shared_objects(channel, tmp_path):
    """A preloaded shared object emits in a program that closes its descriptors.
    A second program loads and unloads this object; an event of the object and one of the
    program have the same name, but other fields.  A third program loads libhypertrace with
    dlopen().  If this library is not there, programs run and emit nothing."""
    with VM(devices=[{"channel": channel}], job=PRELOAD_JOB,
            files=dynamic(),
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    assert emitted(vm) == [2000, 40, 100, 100]
    assert accounted(streams) == 2140
    assert sum(s.discarded for s in streams.values()) == 0
    names = [name for name, _ in events(streams)]
    assert names.count("tracetest.call") == 2000
    assert names.count("tracetest.plugin") == 20
    opened = {}
    for s in streams.values():
        for name, fields in s.events:
            if name.startswith("open"):
                opened.setdefault(name, []).append(fields)
    assert set(opened) == {"open", "open.v2"}
    assert [{"fd": n} for n in range(20)] in opened.values()
    assert [{"path": "plugin"}] * 20 in opened.values()


def test_no_device(tmp_path):
    """Static and dynamic programs run unchanged without a device."""
    job = f"""
set -e
ht-hello
HYPERTRACE_DEVICE=none ht-tracetest none
ht-tracetest fork 1000
{LD} /ht/sys/tracetest-dynamic emit 1000
"""
    with VM(devices=[], job=job, files=dynamic(),
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert not vm.oops(), str(vm)
