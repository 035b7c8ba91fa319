# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the events that the guest's kernel itself emits through the driver, also while
streams or classes are refused, the machine is suspended, or a device is unplugged."""

import re

import pytest

import ctf_events
from vm.machine import VM
from linux_guest import (
    PRELUDE, assert_sound, sources_module, rows, stats)

CHANNELS = ["hypercall", "shm", "virtio"]


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


KERNEL_JOB = """
set -e
T=/sys/kernel/tracing
insmod /ht/hypertrace-sources.ko \\
    events='sched,irq,nmi,signal:,task:*,!signal:*_deliver'
for e in sched/sched_process_exec sched/sched_process_fork \\
         sched/sched_process_exit signal/signal_generate task/task_newtask; do
    echo 1 >$T/events/$e/enable
done
taskset 2 sh -c '/bin/true
    for i in 1 2 3 4 5; do /bin/cat /proc/self/stat >/dev/null; done
    /bin/false' || :
echo 0 >$T/tracing_on
cat $T/trace >&3
for i in 1 2 3 4 5; do
    echo "the serial port interrupts" >&3
    for j in 1 2 3 4 5 6 7 8 9; do cat /proc/self/stat >/dev/null & done
    wait
done
uname -v >&3
echo loaded >&3
read answer <&3
until grep -q "NMI:.*[1-9].*Non-mask" /proc/interrupts; do :; done
rmmod hypertrace-sources
echo done >&3
read answer <&3
"""


def check_nesting(stream):
    """Check that the handlers of a CPU's interrupts and softirqs are nested properly."""
    stack = []
    # The module attaches and detaches its probes one by one. An interrupt meanwhile may
    # have only one of its two events, so check only events from the time in which all
    # probes were attached.
    names = [name for name, _ in stream.events]
    exits = [[n for n, name in enumerate(names) if name == exit]
             for exit in ("softirq_exit", "irq_handler_exit") if exit in names]
    start, end = max(e[0] for e in exits), min(e[-1] for e in exits)
    for n, (name, f) in enumerate(stream.events[start:end], start):
        kind, _, edge = name.rpartition("_")
        what = (kind, f.get("irq", f.get("vec")))
        around = n, start, end, stream.events[max(n - 40, 0):n + 1]
        if edge == "entry":
            assert what not in stack, around
            stack.append(what)
        elif edge == "exit" and stack:
            assert stack.pop() == what, around


# {event: pattern of its line in ftrace}; the groups are the fields that this line shows
SHOWN = {
    "sched_process_exec":
        r"filename=(?P<filename>\S+) pid=(?P<pid>\d+) old_pid=(?P<old_pid>\d+)",
    "sched_process_fork":
        r"comm=(?P<parent_comm>.*) pid=(?P<parent_pid>\d+) "
        r"child_comm=(?P<child_comm>.*) child_pid=(?P<child_pid>\d+)",
    "sched_process_exit":
        r"comm=(?P<comm>.*) pid=(?P<pid>\d+) prio=(?P<prio>\d+).*",
    "signal_generate":
        r"sig=(?P<sig>\d+) errno=(?P<errno>\d+) code=(?P<code>-?\d+) "
        r"comm=(?P<comm>.*) pid=(?P<pid>\d+) grp=(?P<group>\d+) "
        r"res=(?P<result>\d+)",
    "task_newtask":
        r"pid=(?P<pid>\d+) comm=(?P<comm>.*) "
        r"clone_flags=(?P<clone_flags>\w+) "
        r"oom_score_adj=(?P<oom_score_adj>-?\d+)",
}


def between(events):
    """Return the events from the exec of /bin/true to the exec of /bin/false, both
    included."""
    at = [n for n, (name, f) in enumerate(events)
          if name == "sched_process_exec"
          and f["filename"] in ("/bin/true", "/bin/false")]
    assert len(at) == 2
    return events[at[0]:at[1] + 1]


def check_against_ftrace(text, stream):
    """Check that ftrace and the module recorded the same events of CPU 1 with equal fields,
    from the exec of /bin/true to the exec of /bin/false."""
    ftrace, ours = [], []
    for line in re.findall(r"\[001\].*?: (\w+: .*)", text):
        name, rest = line.split(": ", 1)
        fields = re.fullmatch(SHOWN[name], rest.strip())
        assert fields, line
        ftrace.append((name, fields.groupdict()))
    for name, f in stream.events:
        if name in SHOWN:
            if name == "task_newtask":
                f = dict(f, clone_flags=f"{f['clone_flags']:x}")
            fields = re.compile(SHOWN[name]).groupindex
            ours.append((name, {k: str(f[k]) for k in fields}))
    assert between(ours) == between(ftrace)
    assert len(between(ours)) > 5 * len(SHOWN)


def check_tasks(streams):
    """Check the events by which the module reports the tasks that
    existed when it was loaded"""
    tasks = {f["tid"]: f for s in streams.values() for name, f in s.events
             if name == "lttng_statedump_process_state"}
    assert tasks[1]["name"] == "init" and tasks[1]["ppid"] == 0
    assert tasks[1]["type"] == 0 and tasks[1]["status"] == 5
    assert tasks[2]["name"] == "kthreadd" and tasks[2]["type"] == 1
    assert "insmod" in {t["name"] for t in tasks.values()}
    # The task that emits these events, insmod or a kernel worker, is itself running.
    assert any(t["status"] == 2 for t in tasks.values())


@pytest.mark.each_channel
def test_kernel_events(channel, tmp_path):
    """The kernel's own events, from tasks, softirqs, interrupts and NMIs.

    Each CPU's task switches form a chain: each next task is the following
    switch's previous task.
    """
    with VM(devices=[{"channel": channel, "packets": 64}], job=KERNEL_JOB,
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.out.expect("^loaded", 60)
        vm.qmp.command("inject-nmi")
        vm.say("go")
        vm.out.expect("^done", 60)
        counted = stats(vm)
        assert_sound(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    # An NMI that interrupts an emit of its CPU cannot emit; its event counts as lost.
    assert counted["lost"] <= 4
    assert counted["dropped"] == counted["errors"] == 0
    assert counted["events"] == sum(len(s.events) for s in streams.values())
    seen = set()
    chains = 0
    for s in streams.values():
        seen |= {name for name, _ in s.events}
        # with PREEMPT_RT, threads handle interrupts, and can be preempted
        if "PREEMPT_RT" not in vm.out.text:
            check_nesting(s)
        switches = [f for name, f in s.events if name == "sched_switch"]
        chains += len(switches) > 50
        for one, two in zip(switches, switches[1:]):
            assert one["next_pid"] == two["prev_pid"]
    assert seen >= {"sched_switch", "sched_wakeup", "irq_handler_entry",
                    "irq_handler_exit", "softirq_entry", "softirq_exit"}
    assert "nmi_handler" in seen or counted["lost"]
    assert chains == 2
    assert "signal_deliver" not in seen
    check_against_ftrace(vm.out.text, next(
        s for s in streams.values() if s.cpu == 1 and
        any(name in SHOWN for name, _ in s.events)))
    check_tasks(streams)


FLOOD_JOB = """
set -e
insmod /ht/hypertrace-sources.ko
for i in 1 2 3; do
    for j in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null & done
    wait
done
rmmod hypertrace-sources
echo done >&3
read answer <&3
"""


def run_flood(tmp_path, **kwargs):
    """Run FLOOD_JOB. Return the device's counters, the streams of the trace, and the lines
    of QEMU's trace event hypertrace_control."""
    with VM(job=FLOOD_JOB, files=sources_module(), workdir=tmp_path / "vm",
            **kwargs) as vm:
        vm.out.expect("^done", 120)
        counted = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        return (counted, ctf_events.read(vm.trace("ht0")),
                vm.traced("hypertrace_control"))


def test_kernel_streams_suffice(tmp_path):
    """By default each of 8 CPUs gets a stream of the kernel.  When hypertrace-sources.ko is
    unloaded, the driver asks for the close of all 8 streams before it waits for one."""
    counted, streams, messages = run_flood(
        tmp_path, devices=[{"channel": "virtio"}], cpus=8,
        args=["-trace", "hypertrace_control"])
    assert counted["lost"] == counted["dropped"] == counted["errors"] == 0
    assert len([s for s in streams.values() if s.events]) == 8
    closings = [m.endswith("status 1") for m in messages if " type 4 " in m]
    assert len(closings) >= 16, messages
    assert all(closings[:8]) and closings.count(False) == 8, messages


def test_kernel_events_without_stream(channel, tmp_path):
    """The trace counts events of CPUs without a stream as discarded."""
    counted, streams, _ = run_flood(tmp_path, devices=[{"channel": channel}],
                                    module_args="kernel_streams=1")
    assert counted["dropped"] == counted["errors"] == 0
    discarded = sum(s.discarded for s in streams.values())
    assert discarded == counted["lost"] > 0


ALL_HELD_JOB = PRELUDE + """
hold /dev/hypertrace0 hold 10
insmod /ht/hypertrace-sources.ko
echo held >&3
read answer <&3
kill $!
echo free >&3
read answer <&3
rmmod hypertrace-sources
echo done >&3
read answer <&3
"""


def test_programs_hold_all_streams(channel, tmp_path):
    """While programs hold all streams, the driver reports the kernel's discards by
    messages; when a program releases its stream, the kernel gets it."""
    with VM(job=ALL_HELD_JOB, files=sources_module(),
            devices=[{"channel": channel, "streams": 1}],
            workdir=tmp_path / "vm") as vm:
        vm.out.expect("^held", 240)
        vm.until(lambda: stats(vm)["lost"] > 0, "nothing was told")
        assert stats(vm)["events"] == 10
        vm.say("go")
        vm.out.expect("^free", 60)
        vm.until(lambda: stats(vm)["events"] > 10, "no stream for the kernel")
        vm.say("go")
        vm.out.expect("^done", 60)
        counted = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        assert "refused" not in vm.console.text, str(vm)
        streams = ctf_events.read(vm.trace("ht0"))
    assert counted["dropped"] == counted["errors"] == 0
    assert sum(s.discarded for s in streams.values()) == counted["lost"]


SUSPEND_JOB = """
set -e
insmod /ht/hypertrace-sources.ko
ht-devtest /dev/hypertrace0 suspended >&3 &
read answer <&3
echo mem >/sys/power/state
echo awake >/tmp/awake
wait $!
ht-bench -j -n 1000 -l >&3
cat /proc/self/stat >/dev/null
rmmod hypertrace-sources
"""


def test_suspend(channel, tmp_path):
    """A suspend closes the streams; the trace has all events that were committed before.
    After the machine wakes, the kernel emits again; a program finds its stream closed, and
    can open a new stream.
    """
    with VM(devices=[{"channel": channel}], job=SUSPEND_JOB,
            packed=True, files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.out.expect("^emitted", 60)
        vm.say("sleep")
        vm.qmp.wait_event("SUSPEND", 60)
        vm.qmp.command("system_wakeup")
        vm.out.expect("^closed: lost 1000, flush Input/output error", 60)
        vm.wait()
        assert_sound(vm)
        (run,) = rows(vm)
        streams = ctf_events.read(vm.trace("ht0")).values()
    assert run["sent"] == 1000
    assert [s.events for s in streams
            if s.events and s.events[0][0] == "devtest.event"] == [
        [("devtest.event", {"n": n, "note": "before"}) for n in range(1000)],
        [("devtest.event", {"n": n, "note": "after"}) for n in range(1000)]]
    # each of the two CPUs has a stream from before the suspend and one from
    # after it
    kernel = [s for s in streams
              if any(name == "sched_switch" for name, _ in s.events)]
    assert len(kernel) == 4
    assert any(s.discarded for s in kernel)


def test_node_in_a_container(tmp_path):
    """A program may create a device node of its own, as a container does; unmounting
    the file system with this node does not disturb the device."""
    job = """
set -e
mkdir /tmp/dev
mount -t tmpfs tmpfs /tmp/dev
mknod /tmp/dev/node c $(tr : ' ' </sys/class/misc/hypertrace0/dev)
ht-bench -n 10 -l -d /tmp/dev/node
umount /tmp/dev
ht-bench -j -n 10 -l >&3
"""
    with VM(devices=[{"channel": "shm", "backend": "null"}], job=job,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)


FAILOVER_JOB = """
set -e
insmod /ht/hypertrace-sources.ko
echo loaded >&3
read answer <&3
while [ -e /dev/hypertrace1 ]; do usleep 10000; done
for j in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null & done
wait
rmmod hypertrace-sources
"""


def test_kernel_events_go_on(tmp_path):
    """By default the first device takes the kernel's events; when it is
    unplugged, the next one takes them."""
    with VM(devices=[{"channel": "shm"}, {"channel": "virtio"}],
            job=FAILOVER_JOB.replace("hypertrace1", "hypertrace0"),
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.out.expect("^loaded", 60)
        assert stats(vm, "ht1")["events"] == 0
        vm.qmp.command("device_del", id="ht0")
        vm.qmp.wait_event("DEVICE_DELETED", 60, device="ht0")
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        for n in range(2):
            names = {name for s in ctf_events.read(
                vm.trace(f"ht{n}")).values() for name, _ in s.events}
            assert "sched_switch" in names


DEVICE_JOB = PRELUDE + """
refused insmod /ht/hypertrace-sources.ko events='sched,nonsense:*'
insmod /ht/hypertrace-sources.ko events='*'
cd /sys/module/hypertrace_sources/parameters
refused sh -c 'echo "sched,nonsense" >events'
test "$(cat events)" = '*'
echo 'sched_switch,timer:,!hrtimer_*' >events
test "$(cat events)" = 'sched_switch,timer:,!hrtimer_*'
cd /
rmmod hypertrace-sources
touch /tmp/busy
while [ -e /tmp/busy ]; do cat /proc/self/stat >/dev/null; done &
for i in 1 2 3; do
    insmod /ht/hypertrace-sources.ko events='sched,irq,raw_syscalls:'
    rmmod hypertrace-sources
done
rm /tmp/busy
wait
"""


def test_kernel_device(tmp_path):
    """The device that the parameter kernel_device names takes the kernel's events.
    Events can be attached and detached under load. The module leaves out tracepoints
    with values that it cannot read, such as sched_move_numa."""
    with VM(devices=[{"channel": "shm"}, {"channel": "hypercall"}],
            job=DEVICE_JOB, files=sources_module(),
            module_args="kernel_device=1", workdir=tmp_path / "vm") as vm:
        vm.wait(240)
        assert_sound(vm)
        first, second = (ctf_events.read(vm.trace(f"ht{n}"))
                         for n in range(2))
        metadata = next(vm.trace("ht1").rglob("metadata")).read_text(
            errors="replace")
    assert not any(s.events for s in first.values())
    assert '"sched_process_hang"' in metadata
    assert '"sched_move_numa"' not in metadata
    names = {name for s in second.values() for name, _ in s.events}
    assert names >= {"sched_switch", "sys_enter", "hrtimer_start",
                     "lttng_statedump_start"}


REFUSED_JOB = PRELUDE + """
insmod /ht/hypertrace-sources.ko events='*'
until dmesg | grep -q 'the host refused .* and [1-9][0-9][0-9] other classes'; do
    usleep 20000
done
for i in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null; done
rmmod hypertrace-sources
echo lines $(dmesg | grep -c 'the host refused') >&3
"""


def test_refused_classes(tmp_path):
    """If the host refuses some of the kernel's classes because class-bytes is used up, other
    classes are still recorded, and the kernel logs at most three lines about it."""
    with VM(devices=[{"channel": "shm", "class_bytes": "64K", "packets": 64}],
            job=REFUSED_JOB, files=sources_module(),
            workdir=tmp_path / "vm") as vm:
        vm.wait(240)
        assert not vm.oops(), str(vm)
        streams = ctf_events.read(vm.trace("ht0")).values()
    names = {name for s in streams for name, _ in s.events}
    assert names >= {"sched_switch", "sched_process_exec"}, names
    assert int(re.search(r"^lines (\d+)", vm.out.text, re.M)[1]) <= 3


LOCKDOWN_JOB = PRELUDE + """
P=/sys/module/hypertrace_sources/parameters
insmod /ht/hypertrace-sources.ko events=sched
if mount -t securityfs securityfs /sys/kernel/security; then
    echo open >&3
else
    echo "cannot be locked down" >&3
    exit 0
fi
read answer <&3
echo confidentiality >/sys/kernel/security/lockdown
refused sh -c "echo timer >$P/events" 2>/dev/null
test "$(cat $P/events)" = sched
echo locked >&3
while read answer <&3 && [ $answer != bench ]; do
    for i in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null; done
    echo worked >&3
done
ht-bench -j -n 1000 -l >&3
echo emitted >&3
read answer <&3
rmmod hypertrace-sources
"""


def test_lockdown(tmp_path):
    """After a guest was locked down for confidentiality, no further events of the kernel can be
    attached, and the kernel emits nothing from the time when the host next changes its property
    `events`. Programs can still emit."""
    def host_wants(events):
        vm.qmp.command("qom-set", path="/machine/peripheral/ht0",
                       property="events", value=events)

    def worked():
        """Return the number of events that the kernel emits while the guest works."""
        before = stats(vm)["events"]
        vm.say("work")
        vm.out.expect("^worked", 60)
        vm.settle("ht0")
        return stats(vm)["events"] - before

    with VM(devices=[{"channel": "shm"}], job=LOCKDOWN_JOB,
            kernel_args="lsm=lockdown,capability", files=sources_module(),
            workdir=tmp_path / "vm") as vm:
        if vm.out.expect(r"^(open|cannot be locked down)$", 240)[1] != b"open":
            pytest.skip("the guest's kernel has no securityfs: it cannot be locked down")
        vm.until(lambda: stats(vm)["events"] > 0, "the kernel emits nothing")
        vm.say("go")
        vm.out.expect("^locked", 60)
        assert worked() > 0
        # For events that are attached, the driver notices that the kernel is locked down
        # when the host switches events on or off.
        host_wants("!*")
        host_wants("*")
        vm.until(lambda: worked() == 0, "the kernel still emits")
        before = stats(vm)
        vm.say("bench")
        vm.out.expect("^emitted", 60)
        vm.settle("ht0")
        after = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        (run,) = rows(vm)
    assert run["sent"] == 1000
    assert after["events"] - before["events"] == 1000
    assert after["lost"] == before["lost"]
