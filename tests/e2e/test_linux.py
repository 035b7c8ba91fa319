# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the driver hypertrace.ko and of libhypertrace in a Linux guest, most of them with
each channel.

The guest runs under TCG: the tests check the events, not the speed.
"""

import re
import struct

import pytest

import ctf_events
from vm.machine import VM
from linux_guest import (
    PRELUDE, assert_sound, sources_module, rows, stats)

CHANNELS = ["hypercall", "shm", "virtio"]
MASK = 2**64 - 1
LETTERS = ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
           "0123456789-_")


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


def signed(value, bits):
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def bench_fields(size, tag, seq):
    w = [((seq + (tag << 40)) * 0x9e3779b97f4a7c15
          + (k + 1) * 0xd1342543de82ef95) & MASK for k in range(4)]
    if size == 8:
        return {"seq": seq}
    if size == 32:
        return {"seq": seq, "a": w[0], "b": w[1], "c": w[2]}
    if size == 64:
        ratio = struct.pack("<Q", 0x3ff << 52 | w[1] >> 12)
        share = struct.pack("<I", 0x7f << 23 | w[2] >> 41)
        return {"seq": seq, "hash": w[0], "delta": signed(w[1], 64),
                "count": w[2] >> 32, "diff": signed(w[2], 32),
                "port": w[3] >> 48, "heat": signed(w[3] >> 32, 16),
                "flags": w[3] >> 24 & 0xff, "level": signed(w[3] >> 16, 8),
                "ratio": struct.unpack("<d", ratio)[0],
                "share": struct.unpack("<f", share)[0],
                "raw": list(struct.pack("<QQ", w[0], w[1])[:14])}
    n = seq % 16
    return {"seq": seq, "hash": w[0],
            "message": "".join(LETTERS[(seq + tag + i) % 64]
                               for i in range(236 - 4 * n)),
            "numbers": [((w[0] >> i) + i) & 0xffffffff for i in range(n)]}


def check_bench(run, trace):
    """Check that the trace has each event that a run of ht-bench sent, with the right
    fields, and counts those that the run discarded."""
    streams = ctf_events.read(trace)
    for row in run["streams"]:
        s = streams[row["instance"]]
        expected = -1
        for name, fields in s.events:
            seq = fields["seq"]
            size = run["payload"][seq % len(run["payload"])]
            assert name == f"bench.e{size}"
            assert fields == bench_fields(size, row["stream"], seq)
            assert seq > expected
            expected = seq
        assert len(s.events) == row["sent"]
        assert s.discarded == row["discarded"]
        assert s.ns == sorted(s.ns)


BENCH_JOB = """
set -e
ht-bench -j -n 6000 -p mix -t 2 -l >&3
ht-bench -j -n 2000 -p 64,8 -r 20000 -b >&3
ht-bench -j -n 8000 -p 256 >&3
"""


def test_bench(channel, tmp_path):
    """The events of ht-bench, of four classes, are in the trace with all fields and in
    order, or counted as discarded."""
    with VM(devices=[{"channel": channel}], job=BENCH_JOB,
            workdir=tmp_path / "vm") as vm:
        vm.wait(120)
        assert_sound(vm)
        lossless, paced, flat = rows(vm)
        for run in lossless, paced, flat:
            assert run["channel"] == channel
            assert run["counter_begin"] < run["counter_end"]
            check_bench(run, vm.trace("ht0"))
    assert (lossless["sent"], lossless["discarded"]) == (12000, 0)
    assert len(lossless["streams"]) == 2
    assert paced["sent"] + paced["discarded"] == 2000
    assert paced["duration_ns"] >= 2000 / 20000 * 1e9 * 0.99
    assert flat["sent"] + flat["discarded"] == 8000
    if channel == "hypercall":
        assert flat["doorbells"] == flat["sent"]
    else:
        assert flat["doorbells"] < flat["sent"] / 10


def test_discards_are_counted(channel, tmp_path):
    """If a stream has only two packets of 4 KiB, events are discarded (with channel=hypercall
    perhaps none), and the trace counts them."""
    with VM(devices=[{"channel": channel, "packet_size": 4096, "packets": 2,
                      "streams": 2}],
            job="ht-bench -j -n 30000 -p mix >&3",
            workdir=tmp_path / "vm") as vm:
        vm.wait(120)
        assert_sound(vm)
        (run,) = rows(vm)
        check_bench(run, vm.trace("ht0"))
    assert run["sent"] + run["discarded"] == 30000
    assert channel == "hypercall" or run["discarded"] > 0


def test_one_program_three_channels(tmp_path):
    """examples/hello.c works unchanged with each channel; each device has its own events."""
    job = "set -e\n" + "".join(
        f"HYPERTRACE_DEVICE=/dev/hypertrace{n} ht-hello\n" for n in range(3))
    with VM(devices=[{"channel": c} for c in CHANNELS], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        for n in range(3):
            (s,) = ctf_events.read(vm.trace(f"ht{n}")).values()
            assert s.events == [("hello", {"n": i, "who": "world"})
                                for i in range(10)]


KILL_JOB = PRELUDE + """
hold /dev/hypertrace0 hold 1000
killed
ht-bench -j -n 100 -l >&3
echo done >&3
read answer <&3
rmmod hypertrace
"""


def test_killed_process(channel, tmp_path):
    """The committed events of a process that is killed arrive, and another process can open the
    device's only stream."""
    batch = {"batch": 65536} if channel == "hypercall" else {}
    with VM(devices=[{"channel": channel, "streams": 1, "flush_ms": 1000,
                      **batch}],
            job=KILL_JOB, workdir=tmp_path / "vm") as vm:
        vm.out.expect("^done", 60)
        counted = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    assert counted["events"] == 1100 and counted["lost"] == 0
    held = [s.events for s in streams.values()
            if s.events and s.events[0][0] == "devtest.event"]
    assert held == [[("devtest.event", {"n": n, "note": "held"})
                     for n in range(1000)]]


def devtest_events(streams):
    """Return [(numbers in the recorded events, number of discarded events)], an item for
    each stream of ht-devtest."""
    return [([f["n"] for _, f in s.events], s.discarded)
            for s in streams.values()
            if s.events and s.events[0][0] == "devtest.event"]


def test_killed_while_handing_over(tmp_path):
    """If a process is killed after it submitted a part of a packet, the trace has all
    events that it committed, and a second process can emit."""
    job = """
ht-devtest /dev/hypertrace0 abandon 5000
ht-bench -j -n 100 -l >&3 || exit 1
exit 0
"""
    with VM(devices=[{"channel": "virtio", "packet_size": 4096, "packets": 64,
                      "flush_ms": 1000}], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    assert devtest_events(streams) == [(list(range(5000)), 0)]


KILLS = 12


def test_killed_mid_event(channel, tmp_path):
    """If producers are killed, each event that they committed is recorded, and each
    event that they discarded is counted."""
    with VM(devices=[{"channel": channel, "streams": 1, "packets": 4,
                      "packet_size": 4096}],
            job=f"ht-devtest /dev/hypertrace0 kills {KILLS} >&3",
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        said = [(int(a), int(b)) for a, b in
                re.findall(r"^killed (\d+) (\d+)$", vm.out.text, re.M)]
        found = devtest_events(ctf_events.read(vm.trace("ht0")))
    assert len(said) == len(found) == KILLS
    for (emitted, discarded), (numbers, counted) in zip(said, found):
        # the producer may have been killed after it committed or discarded an
        # event, but before it counted the event
        assert len(numbers) - emitted in (0, 1)
        assert counted - discarded in (0, 1)
        assert numbers == sorted(set(numbers))
        # Each missing number is that of a discarded event; events that were discarded
        # after the last recorded event leave no gap in the numbers.
        assert numbers[-1] + 1 - len(numbers) <= counted


@pytest.mark.parametrize("how", ["panic", "reboot"])
def test_last_words(channel, how, tmp_path):
    """The trace has the events that were committed just before a panic or a reboot, also if
    no flush by flush-ms was due after them."""
    job = f"""
insmod /ht/hypertrace-sources.ko
ht-devtest /dev/hypertrace0 last {how}
"""
    with VM(devices=[{"channel": channel, "flush_ms": 1000}], job=job,
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.wait_end(60)
        assert "HT_JOB_STATUS" not in vm.console.text
        assert not vm.guest_errors, str(vm)
        streams = ctf_events.read(vm.trace("ht0")).values()
    last = [s.events for s in streams
            if s.events and s.events[0][0] == "devtest.event"]
    assert last == [[("devtest.event", {"n": n, "note": "last"})
                     for n in range(1000)]]
    assert any(name == "sched_switch" for s in streams for name, _ in s.events)


UNPLUG_JOB = """
set -e
insmod /ht/hypertrace-sources.ko
ht-devtest /dev/hypertrace0 ids >&3
ht-devtest /dev/hypertrace0 endless >&3
[ ! -e /dev/hypertrace0 ]
echo unplugged >&3
while [ ! -e /dev/hypertrace0 ]; do usleep 10000; done
ht-devtest /dev/hypertrace0 ids >&3
ht-bench -j -n 1000 -l >&3
"""


def test_unplug_while_emitting(channel, tmp_path):
    """A program and the kernel survive an unplug of the device. After it is plugged in again,
    programs use it, and their classes have the same ids."""
    with VM(devices=[{"channel": channel, "backend": "null"}],
            job=UNPLUG_JOB, files=sources_module(),
            workdir=tmp_path / "vm") as vm:
        ids = vm.out.expect(r"^ids (\d+ \d+)$", 60).group(1)
        vm.out.expect("^emitting", 60)
        vm.qmp.command("device_del", id="ht0")
        vm.qmp.wait_event("DEVICE_DELETED", 60, device="ht0")
        gone = "No such device"
        vm.out.expect(f"^gone: flush {gone}, close {gone}$", 60)
        vm.out.expect("^unplugged", 60)
        vm.qmp.command("device_add", driver="hypertrace", id="ht0",
                       channel=channel, backend="ht0-backend", name="ht0")
        assert vm.out.expect(r"^ids (\d+ \d+)$", 60).group(1) == ids
        vm.wait()
        assert_sound(vm)
        assert rows(vm)[-1]["sent"] == 1000


RELOAD_JOB = PRELUDE + """
ht-devtest /dev/hypertrace0 ids >&3
for i in 1 2 3; do
    hold /dev/hypertrace0 hold 10
    refused rmmod hypertrace 2>/dev/null
    killed
    rmmod hypertrace
    insmod /ht/hypertrace.ko
done
ht-bench -n 100 -l
ht-devtest /dev/hypertrace0 ids >&3
"""


def test_reload_keeps_ids(channel, tmp_path):
    """A class that is registered again after the driver was unloaded and loaded has the
    same id as before. While a process has a stream open, the driver cannot be unloaded."""
    with VM(devices=[{"channel": channel, "backend": "null"}],
            job=RELOAD_JOB, workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        ids = re.findall(r"^ids (.*)", vm.out.text, re.M)
    assert len(ids) == 2 and ids[0] == ids[1]


def test_stream_ownership(channel, tmp_path):
    """Through one open file of the device node, a program cannot map, submit to, flush or
    close a stream that was opened through another open file of the node."""
    job = """
set -e
ht-devtest /dev/hypertrace0 ownership
[ "$(stat -c %a:%u /dev/hypertrace0)" = 600:0 ]
"""
    with VM(devices=[{"channel": channel, "backend": "null"}], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)


TRUST_JOB = PRELUDE + """
chmod 666 /dev/hypertrace0
hold /dev/hypertrace0 trust
cat /tmp/held >&3
insmod /ht/hypertrace-sources.ko
ht-bench -j -n 1000 -l >&3
rmmod hypertrace-sources
killed
echo lines $(dmesg | grep -c hypertrace) >&3
"""


def test_untrusted_user(channel, tmp_path):
    """A user who may open the node cannot claim the kernel's origin, use up
    streams or classes, send clock messages, or fill the kernel's log. The driver puts the
    program's name and the user's number into the name of each stream of a program.
    """
    with VM(devices=[{"channel": channel}], job=TRUST_JOB,
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        assert "holding" in vm.out.text, vm.out.text
        assert rows(vm)[0]["sent"] == 1000
        assert int(re.search(r"^lines (\d+)", vm.out.text, re.M)[1]) < 60
        names = [path.name for path in vm.trace("ht0").rglob("stream-*")]
        streams = ctf_events.read(vm.trace("ht0")).values()
    users = [n for n in names if re.search(r"ht-devtest_\d+_1000-", n)]
    root = [n for n in names if re.search(r"ht-bench_\d+_0-", n)]
    kernel = [n for n in names if re.search(r"-kernel_\d+-", n)]
    assert users and root and kernel, names
    assert len(users) + len(root) + len(kernel) == len(names), names
    for s in streams:
        assert s.discarded == 0


def test_survival(channel, tmp_path):
    """A program that emits in the child of fork(), or after it has closed the device, goes
    on; the trace has no event of the child."""
    with VM(devices=[{"channel": channel, "packets": 64}],
            job="ht-devtest /dev/hypertrace0 survival >&3",
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        (s,) = (s for s in ctf_events.read(vm.trace("ht0")).values()
                if s.events)
    assert {f["note"] for _, f in s.events} == {"parent"}
    assert len(s.events) + s.discarded == 40000


def test_hostile_process(channel, tmp_path):
    """If a process writes invalid content to a stream's control page, the device stops this
    stream. Other streams, the device and the guest's kernel go on."""
    job = """
set -e
ht-devtest /dev/hypertrace0 hostile
ht-bench -j -n 5000 -p mix -l >&3
"""
    with VM(devices=[{"channel": channel}], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert not vm.oops(), str(vm)
        assert "stopped" in vm.guest_errors
        # the driver must not submit a buffer of a stream that it has closed
        assert "which is closed" not in vm.guest_errors
        (run,) = rows(vm)
        assert run["sent"] == 5000
        check_bench(run, vm.trace("ht0"))


@pytest.mark.parametrize("memory", [512, 3584])
def test_mapping_is_reported(memory, tmp_path):
    """sysfs shows how the guest's kernel maps the device's stream RAM: uncached if the
    firmware placed it below 4 GiB, as with 512 MiB of guest RAM, and write-back if above,
    as with 3584 MiB."""
    job = PRELUDE + """
ht-bench -j -n 10 -l >&3
grep hypertrace0 /proc/iomem >&3
cd /sys/class/misc/hypertrace0
hold /dev/hypertrace0 hold 10
echo sysfs $(cat streams_used) >&3
killed
echo sysfs $(cat channel mode mapping packet_size packets streams \
    streams_used kernel_events) >&3
"""
    with VM(devices=[{"channel": "shm", "backend": "null"}], job=job,
            memory=memory, fresh=True, workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        (run,) = rows(vm)
        ram = max(int(start, 16) for start in
                  re.findall(r"^ *(\w+)-", vm.out.text, re.M))
        sysfs = re.findall("^sysfs (.*)$", vm.out.text, re.M)
    assert run["mapping"] == ("write-back" if ram >> 32 else "uncached")
    assert (ram >> 32 != 0) == (memory > 3072)
    assert sysfs == ["1", f"shm discard {run['mapping']} 32768 16 16 0 1"]
