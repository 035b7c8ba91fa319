# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices that are plugged and unplugged repeatedly, and processors that go online and offline.

In most tests the guest emits events meanwhile.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest

import ctf_events
from linux_guest import assert_sound, sources_module
from vm.machine import VM, Failure
from vm.payload import Payload

CHANNELS = ["hypercall", "shm", "virtio"]


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


@pytest.fixture(autouse=True)
def one_arena(monkeypatch):
    """Limit QEMU's malloc to one arena.  An arena for each new thread would look
    like a leak."""
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")


def held(vm):
    """Return the resources of QEMU: (KiB of anonymous memory, number of threads,
    number of open files)."""
    proc = Path(f"/proc/{vm.process.pid}")
    # Use "Anonymous", because RssAnon is inexact: it lacks counts that the kernel caches per
    # processor.
    rows = dict(line.split(":", 1) for name in ("status", "smaps_rollup")
                for line in (proc / name).read_text().splitlines())
    return (int(rows["Anonymous"].split()[0]), int(rows["Threads"]),
            len(os.listdir(proc / "fd")))


def assert_no_more(after, before):
    """Check that QEMU has at most as many threads and open files as before. It may
    have fewer, because its idle worker threads end."""
    assert after[1] <= before[1] and after[2] <= before[2], (before, after)


# Under TCG, Linux 6.12.95 assumes real hardware, and ignores processors that are
# plugged after the boot.  So these guests boot with two processors, and with the
# kernel parameter maxcpus=1 the second one is offline until the job enables it.
CPUS = {"cpus": "2,maxcpus=3", "kernel_args": "maxcpus=1"}
CPU_JOB = """
set -e
load() {
    taskset $1 sh -c 'i=0; while [ $((i += 1)) -lt 200 ]; do usleep 500; done'
}
cpu1=/sys/devices/system/cpu/cpu1
insmod /ht/hypertrace-sources.ko
[ "$(cat $cpu1/online)" = 0 ]
load 1
echo alone >&3
read answer <&3
echo 1 >$cpu1/online
load 2
ht-bench -j -b -t 2 -n 5000 -l >&3
echo two >&3
read answer <&3
for i in 1 2 3; do
    echo 0 >$cpu1/online
    load 1
    echo 1 >$cpu1/online
    load 2
done
rmmod hypertrace-sources
echo done >&3
read answer <&3
"""


def kernel_streams(trace):
    found = {}
    for path in trace.rglob("stream-*"):
        m = re.fullmatch(r"stream-\d+-(\d+)-kernel_(\d+)-\d+", path.name)
        if m:
            found.setdefault(int(m[2]), set()).add(int(m[1]))
    return found


def add_cpu(vm):
    """Plug a third processor, which the guest's kernel ignores (see CPUS), and tell
    the guest to enable its second one."""
    slot, = [s for s in vm.qmp.command("query-hotpluggable-cpus")
             if "qom-path" not in s]
    vm.qmp.command("device_add", driver=slot["type"], id="cpu2",
                   **slot["props"])
    vm.say("take it")


def test_vcpu(tmp_path, channel="shm"):
    """A processor that comes online has a stream of the kernel at once.  If it goes
    offline and online again, it uses the same stream, and no event is lost."""
    with VM(devices=[{"channel": channel, "packets": 64}], job=CPU_JOB,
            files=sources_module(), **CPUS,
            workdir=tmp_path / "vm") as vm:
        vm.out.expect("^alone", 60)
        vm.settle("ht0")
        assert set(kernel_streams(vm.trace("ht0"))) <= {0, 1}
        add_cpu(vm)
        bench = json.loads(vm.out.expect(r'^(\{"tool".*\})\n', 60)[1])
        vm.out.expect("^two", 60)
        vm.settle("ht0")
        found = kernel_streams(vm.trace("ht0"))
        assert set(found) == {0, 1}
        vm.say("go")
        vm.out.expect("^done", 120)
        counted = vm.qmp.stats("ht0")
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        # although CPU 1 went offline and online again, each CPU has the same stream instance as
        # before
        assert kernel_streams(vm.trace("ht0")) == found
        streams = ctf_events.read(vm.trace("ht0"))
    assert counted["lost"] == counted["dropped"] == counted["errors"] == 0
    assert counted["events"] == sum(len(s.events) for s in streams.values())
    assert (bench["sent"], bench["discarded"]) == (10000, 0)
    for cpu in (0, 1):
        instance, = found[cpu]
        switches = [f for name, f in streams[instance].events
                    if name == "sched_switch"]
        assert len(switches) > 100
        # each task switch begins with the task with which the previous switch ended
        gaps = sum(one["next_pid"] != two["prev_pid"]
                   for one, two in zip(switches, switches[1:]))
        # Linux has no event for the last switch of CPU 1 before it is offline
        assert gaps <= 3 * cpu


@pytest.mark.long
def test_vcpu_without_streams(tmp_path):
    """If the module's parameter kernel_streams is less than the number of processors, the
    module logs that, and the trace counts the events of the processor without a stream as
    discarded."""
    with VM(devices=[{"channel": "shm", "streams": 6, "packets": 64}],
            job=CPU_JOB, files=sources_module(), **CPUS,
            module_args="kernel_streams=1", workdir=tmp_path / "vm") as vm:
        vm.out.expect("^alone", 60)
        add_cpu(vm)
        vm.out.expect("^two", 60)
        vm.say("go")
        vm.out.expect("^done", 120)
        vm.say("go")
        vm.wait()
        assert not vm.oops()
        assert set(kernel_streams(vm.trace("ht0"))) == {0}
        assert "only 1 kernel streams for 2 CPUs" in vm.console.text
        assert any(s.discarded
                   for s in ctf_events.read(vm.trace("ht0")).values())


CYCLES = 8
# device() waits for the device node and prints its path. The number in the path
# changes if a program still has the node of the unplugged device open.
CYCLE_JOB = f"""
set -e
device() {{
    j=0
    while ! ls /dev/hypertrace* 2>/dev/null; do
        [ $((j += 1)) -lt 6000 ]
        usleep 5000
    done
}}
insmod /ht/hypertrace-sources.ko
i=0
while [ $((i += 1)) -le {CYCLES} ]; do
    ht-devtest $(device) endless >&3
done
HYPERTRACE_DEVICE=$(device) ht-bench -j -n 1000 -l >&3
"""


def add_at_once(vm, **properties):
    """Add a device with the id of a device that is being removed: retry until QEMU accepts it.
    Return how often QEMU refused it."""
    deadline = time.monotonic() + 30
    refused = 0
    while True:
        try:
            vm.qmp.command("device_add", driver="hypertrace", **properties)
            return refused
        except Failure as e:
            assert "Duplicate device ID" in str(e) or "is named" in str(e), e
            assert time.monotonic() < deadline
            refused += 1


def test_quick_cycles(channel, tmp_path):
    """The device is unplugged while a program emits, and added again as soon as
    QEMU frees its id.  The new streams have greater instance numbers than all
    streams before."""
    with VM(devices=[{"channel": channel, "backend": "null"}], job=CYCLE_JOB,
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        newest = refused = 0
        for _ in range(CYCLES):
            vm.out.expect("^emitting", 60)
            stats = vm.qmp.stats("ht0")
            instances = [s["instance"] for s in stats["streams"]]
            assert min(instances) > newest
            newest = max(instances)
            vm.qmp.command("device_del", id="ht0")
            refused += add_at_once(vm, id="ht0", channel=channel,
                                   backend="ht0-backend", name="ht0")
            vm.out.expect("^gone: flush No such device", 60)
        assert refused > 0      # QEMU still had the id at some calls of device_add
        bench = json.loads(vm.out.expect(r'^(\{"tool".*\})\n', 60)[1])
        vm.wait()
        assert_sound(vm)
        assert (bench["sent"], bench["discarded"]) == (1000, 0)


BAD = [
    {"channel": "carrier-pigeon"}, {"mode": "maybe"}, {"streams": 0},
    {"packet-size": 12288}, {"packets": 3}, {"flush-ms": 0},
    {"channel": "shm", "batch": 2}, {"channel": "virtio", "mode": "overwrite"},
    {"backend": "nowhere"}, {"name": "ht0"},
]


def test_failed_adds(channel, tmp_path):
    """Try to add fifty invalid devices while the guest emits to a valid one.  Each
    event of the guest is delivered or counted as discarded, and QEMU has no more threads
    and open files after the fiftieth than after the tenth.  A valid device then gets
    the id and the slot that the invalid ones had."""
    with Payload("soak", devices=[{"channel": channel,
                                   "backend": "null"}],
                 accel="tcg", workdir=tmp_path) as vm:
        vm.out.expect('"function": "soak"', 60)
        rounds = 0
        for n in range(50):
            if len(vm.named(function="round")) == rounds:
                rounds += 1
                vm.console.send(f"round seed={n} events=20000 end=leave\n")
            properties = {"channel": channel, "backend": "ht0-backend",
                          **BAD[n % len(BAD)]}
            with pytest.raises(Failure):
                vm.qmp.command("device_add", driver="hypertrace", id="x",
                               addr="9", **properties)
            if n == len(BAD) - 1:
                before = held(vm)
        assert_no_more(held(vm), before)
        vm.qmp.command("device_add", driver="hypertrace", id="x", addr="9",
                       channel=channel, backend="ht0-backend")
        for _ in range(rounds):
            vm.out.expect('"function": "round"', 60)
        vm.console.send("round seed=1 events=1 end=close\n")
        vm.out.expect('"function": "round".*\n', 60)
        stats = vm.qmp.stats("ht0")
        vm.console.send("quit\n")
        vm.wait(60)
        done = vm.named(function="round")
        assert rounds > 1
        assert stats["events"] == sum(r["sent"] for r in done) > 20000
        assert stats["lost"] == sum(r["discarded"] for r in done)
        assert stats["dropped"] == stats["errors"] == 0


def cycles(vm, channel, count):
    for n in range(count):
        if n % 4 == 0:
            with pytest.raises(Failure):
                vm.qmp.command("device_add", driver="hypertrace", id="x",
                               **{"channel": channel, "backend": "be",
                                  **BAD[n // 4 % (len(BAD) - 1)]})
        vm.qmp.command("device_add", driver="hypertrace", id="x",
                       channel=channel, backend="be", streams=4, name="x")
        vm.qmp.command("device_del", id="x")
        vm.qmp.command("system_reset")
        vm.qmp.wait_event("DEVICE_DELETED", 30, device="x")


def test_cycles_leak_nothing(channel, tmp_path):
    """Add and remove at least two hundred valid devices, and try to add at least fifty invalid
    ones: QEMU must not need more memory, threads or files each time. The VM is stopped, so its
    guest cannot confirm an unplug; a reset completes the unplug instead."""
    with Payload("probe", accel="tcg", workdir=tmp_path,
                 args=["-S", "-action", "reboot=reset", "-object",
                       "hypertrace-backend-null,id=be"]) as vm:
        cycles(vm, channel, 80)
        # With a leak, QEMU grows in each of three attempts; memory that QEMU allocates only
        # once does not make it grow in all of them.
        for _ in range(3):
            before = held(vm)
            cycles(vm, channel, 120)
            after = held(vm)
            assert_no_more(after, before)
            # tolerate 240 KiB, 2 KiB for each of the 120 devices
            if after[0] - before[0] <= 240:
                return
    assert False, (before, after)
