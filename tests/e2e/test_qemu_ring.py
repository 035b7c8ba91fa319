# SPDX-License-Identifier: GPL-2.0-or-later
"""-object hypertrace-ftrace: QEMU follows the ring of a stock kernel itself.

One guest boots twice and crashes.  The CTF trace is compared with the guest's own
file `trace` and with LTTng's recording; the ring's content at the reset, and at
the crash, becomes a separate recording.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from linux_guest import HYPERTRACE, RING_LOOP, Control, kernel_module
from vm.machine import VM

bt2 = pytest.importorskip("bt2")
import ctf_events

WORDS = ("reserve_mem=8M:2M:ht trace_instance=boot_map@ht,"
         "sched:sched_switch,sched:sched_waking,irq:softirq_entry,task")
TIMEOUT = 300

LINE = re.compile(r"^ *(?P<comm>.{1,16})-(?P<pid>\d+) +\[(?P<cpu>\d+)\] +"
                  r"\S+ +\d+\.\d+: (?P<name>\w+): ?(?P<rest>.*)$")
# The marker's event in the guest's file
NAMES = {"tracing_mark_write": "print"}


def lacking():
    if not HYPERTRACE.exists():
        return "the command hypertrace was not built"
    for program in ("qemu-system-x86_64", "busybox"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


def run(vm, commands):
    vm.say(commands)
    vm.out.expect(r'\{"done": 1\}', TIMEOUT)


def stats(vm):
    return vm.qmp.stats("vm0")


def wait_stats(vm, condition):
    """Wait until the statistics fulfil the condition."""
    deadline = time.monotonic() + TIMEOUT
    while not condition(stats(vm)):
        assert time.monotonic() < deadline, json.dumps(stats(vm)["rings"])
        time.sleep(0.05)


def guest_trace(vm):
    """{cpu: [(event, pid, number of the mark or None)]} as the guest reads it"""
    begin = len(vm.out.text)
    run(vm, "cat $T/trace >&3")
    events = collections.defaultdict(list)
    for line in vm.out.text[begin:].splitlines():
        m = LINE.match(line)
        if m:
            events[int(m["cpu"])].append(
                (NAMES.get(m["name"], m["name"]), int(m["pid"]),
                 mark(m["rest"])))
    return dict(events)


def mark(text):
    m = re.match(r"(?:\S+: )?HT (\d+)", text)
    return int(m[1]) if m else None


def flight(vm, trigger):
    """The next recording of a snapshot, and its page"""
    snapshot = {}
    while snapshot.get("trigger") != trigger:
        e = vm.qmp.wait_event("HYPERTRACE_SNAPSHOT", TIMEOUT)
        snapshot = e["data"]["snapshot"]
    assert "error" not in snapshot, snapshot
    page = subprocess.run([HYPERTRACE, "last", "--json", "--log=200",
                           snapshot["directory"]], check=True,
                          capture_output=True, text=True).stdout
    return snapshot, json.loads(page)


def known(event):
    name, fields = event
    return name, fields["common_pid"], mark(fields.get("buf", ""))


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    if lacking():
        pytest.skip(lacking())
    path = tmp_path_factory.mktemp("formats") / "formats"
    # fetched once per checkout, as for users
    env = {**os.environ, "XDG_CACHE_HOME": os.environ["HT_TREE"]}
    subprocess.run([HYPERTRACE, "formats", "-o", path,
                    os.environ["HT_KERNEL"]], env=env, check=True)
    return path


def test_two_boots(tmp_path, session, formats):
    s = session(events=["vm0:sched_*", "vm0:print"], blocking=True)
    control = Control(tmp_path)
    vm = VM(job=RING_LOOP, module=False, memory=256, kernel_args=WORDS, args=[
        "-object", f"hypertrace-backend-ctf,id=c,dir={tmp_path}/ctf",
        "-object", "hypertrace-backend-lttng,id=l",
        "-object", "hypertrace-ftrace,id=vm0,backend=c:l,"
        f"formats={formats},flight={tmp_path}/flights",
        "-device", "pvpanic", *control.args],
        files={m: kernel_module(m, "drivers/misc/pvpanic", tmp_path)
               for m in ("pvpanic.ko", "pvpanic-mmio.ko")})
    guest, between, flights = [], [], []
    with vm:
        vm.qmp.command("set-action", reboot="reset", panic="pause")
        for boot in range(2):
            vm.out.expect(r'\{"up": 1\}', TIMEOUT)
            first = boot * 1000
            wait_stats(vm, lambda st: st["rings"])
            run(vm, f"marks {first} {first + 50}; /bin/true")
            for n in range(first + 50, first + 60):
                before = stats(vm), time.clock_gettime_ns(
                    time.CLOCK_MONOTONIC)
                run(vm, f"marks {n} {n + 1}")
                after = time.clock_gettime_ns(time.CLOCK_MONOTONIC), stats(vm)
                between.append((n + 1, before, after))
            run(vm, "echo 0 >$T/tracing_on")
            guest.append(guest_trace(vm))
            if boot == 0:
                vm.qmp.command("system_reset")
                flights.append(flight(vm, "reset"))
        check_control(control)
        run(vm, "insmod /ht/pvpanic.ko; insmod /ht/pvpanic-mmio.ko; "
            "echo 1 >$T/events/printk/enable; echo 1 >$T/tracing_on")
        vm.say("echo c >/proc/sysrq-trigger")
        flights.append(flight(vm, "panic"))
        wait_stats(vm, lambda st: all(b["idle"] for b in st["backends"]))
        last = stats(vm)
        vm.qmp.command("quit")
        vm.process.wait(TIMEOUT)
    s.finish()

    assert last["boots"] == 2 and last["resets"] == 1, last
    assert last["gaps"] == 0 and last["no-format"] == 0, last
    assert all(b["discarded"] == 0 for b in last["backends"]), last
    ring, = last["rings"]
    assert ring["changes"] and ring["layout"] == "6.12", ring
    assert ring["address"] % (2 << 20) == 0 and ring["cpus"] == 2, ring

    check_guest(tmp_path / "ctf", guest, last)
    check_flights(flights, last)
    check_lttng(tmp_path)
    check_times(tmp_path / "ctf", between)


TWO_RINGS = r"""
I=/sys/kernel/tracing/instances
echo '{"up": 1}' >&3
read -r line <&3
i=0
while [ $i -lt 50 ]; do
    i=$((i + 1))
    echo "HT $i" >$I/one/trace_marker
    echo "HT $((1000 + i))" >$I/two/trace_marker
done
echo '{"done": 1}' >&3
read -r line <&3
"""


def test_two_rings(tmp_path, session, formats):
    """Two rings of one guest: each event's stream belongs to one ring."""
    s = session(events=["vm0:*"], blocking=True)
    control = Control(tmp_path)
    vm = VM(job=TWO_RINGS, module=False, memory=256, kernel_args=(
        "reserve_mem=2M:2M:a trace_instance=one@a,task "
        "reserve_mem=2M:2M:b trace_instance=two@b,task"), args=[
            "-object", f"hypertrace-backend-ctf,id=c,dir={tmp_path}/ctf",
            "-object", "hypertrace-backend-lttng,id=l", "-object",
            f"hypertrace-ftrace,id=vm0,backend=c:l,formats={formats}",
            *control.args])
    with vm:
        vm.out.expect(r'\{"up": 1\}', TIMEOUT)
        wait_stats(vm, lambda st: len(st["rings"]) == 2 and
                   all(r["changes"] for r in st["rings"]))
        vm.say("go")
        vm.out.expect(r'\{"done": 1\}', TIMEOUT)
        wait_stats(vm, lambda st: st["events"] >= 100 and
                   all(b["idle"] for b in st["backends"]))
        last = stats(vm)
        text = control("status")
        vm.qmp.command("quit")
        vm.process.wait(TIMEOUT)
    s.finish()
    assert last["no-format"] == 0 and last["boots"] == 2, last
    rings = [set(r["streams"]) for r in last["rings"]]
    assert all(rings) and not rings[0] & rings[1], rings
    assert text.count("; stream") == 2, text

    # LTTng's events name a stream, and each stream belongs to one ring
    found = collections.defaultdict(set)
    for msg in bt2.TraceCollectionMessageIterator(str(tmp_path / "lttng")):
        if isinstance(msg, bt2._EventMessageConst):
            fields = ctf_events.plain(msg.event.payload_field)
            ring, = [n for n, streams in enumerate(rings)
                     if fields["stream"] in streams]
            found[ring].add(mark(fields.get("buf", "")))
    marks = [m - {None} for m in found.values()]
    assert sorted(marks, key=min) == [set(range(1, 51)),
                                      set(range(1001, 1051))]
    # CTF's file names have both numbers
    files = [re.match(r"stream-(\d+)-\d+-ring(\d+)\.cpu\d", f.name)
             for f in (tmp_path / "ctf").rglob("stream-*")]
    assert all(files) and {(int(f[2]), int(f[1])) for f in files} == {
        (r["ring"], n) for r in last["rings"] for n in r["streams"]}


def check_guest(trace, guest, last):
    """One stream per processor and boot, equal to the guest's `trace`"""
    streams = ctf_events.read(trace)
    assert sum(len(st.events) for st in streams.values()) == last["events"]
    followed = [[known(e) for e in st.events] for st in streams.values()]
    for boot in guest:
        assert sorted(boot) == [0, 1]
        for events in boot.values():
            assert len(events) > 50
            # the last boot went on after its `trace` was read
            assert events in followed or (boot is guest[-1] and any(
                f[:len(events)] == events for f in followed))
    assert len(followed) == 4
    for st in streams.values():
        assert st.discarded == 0
        assert st.ns == sorted(st.ns)


def check_control(control):
    """Statistics of a guest that writes nothing now"""
    one, = control.json("status")
    assert one["id"] == "vm0" and one["stats"]["boots"] == 2, one
    text = control("status")
    assert "vm0: ring of the guest's kernel\n" in text
    assert re.search(r"^  ring at 0x[0-9a-f]+, \d+ KiB, 2 CPUs, Linux 6.12: "
                     r"\d+ events, 0 gaps, about 0 lost; dates ", text,
                     re.M), text
    classes = {c["class"]: c["on"] for c in control.json("list")}
    assert classes["print"] and classes["sched_switch"], classes
    assert "disable: " in control("disable", "*", status=1)


def check_flights(flights, last):
    """Complete recordings of each boot, as nothing was overwritten"""
    assert sum(s["events"] for s, page in flights) == last["events"]
    assert last["recordings"] == 2 and last["skipped-recordings"] == 0, last
    for snapshot, page in flights:
        assert page["events"] == snapshot["events"], page
        assert page["boots"] == 1 and not page["gaps"], page
        assert {c["cpu"] for c in page["cpus"]} == {0, 1}, page
    text = "\n".join(line["text"] for line in flights[1][1]["log"])
    assert "Kernel panic - not syncing: sysrq triggered crash" in text


def check_lttng(tmp_path):
    """Both backends have the same events, except those not enabled"""
    ctf = collections.Counter(
        known(e) for st in ctf_events.read(tmp_path / "ctf").values()
        for e in st.events
        if e[0].startswith("sched_") or e[0] == "print")
    lttng = collections.Counter()
    for msg in bt2.TraceCollectionMessageIterator(str(tmp_path / "lttng")):
        assert not isinstance(msg, bt2._DiscardedEventsMessageConst)
        if isinstance(msg, bt2._EventMessageConst):
            name = msg.event.name.removeprefix("vm0:")
            lttng[known((name, ctf_events.plain(msg.event.payload_field)))] += 1
    assert sum(lttng.values()) > 100
    assert lttng == ctf


def check_times(trace, between):
    """A mark's date lies between the host's times before and after it, within
    the reported bound; the trace gives the offset to the wall clock."""
    times, offset = {}, None
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if not isinstance(msg, bt2._EventMessageConst):
            continue
        clock = msg.default_clock_snapshot
        offset = clock.ns_from_origin - clock.value
        n = mark(ctf_events.plain(msg.event.payload_field).get("buf", ""))
        if n is not None:
            times[n] = clock.ns_from_origin - offset
    assert len(times) == 120
    checked = 0
    for n, (st, before), (after, st_after) in between:
        if (not st["rings"] or not st_after["rings"]
                or st["clock-steps"] != st_after["clock-steps"]):
            continue
        if st["rings"][0]["clock-bound-ns"] == 2**64 - 1:
            continue
        bound = st_after["rings"][0]["clock-worst-ns"]
        assert before - bound <= times[n] <= after + bound, (
            n, before, times[n], after, bound)
        checked += 1
    assert checked
