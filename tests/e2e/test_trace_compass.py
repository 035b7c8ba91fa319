# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a trace of a guest's kernel in the way in which Trace Compass reads it.

Like the kernel analyses of Trace Compass, this test follows, by the names and fields of events,
which thread each CPU runs and in which system call each thread is. No event may contradict
this state.  On CPU 1, ftrace must have recorded the same system calls.
"""

import lzma
import os
import re
from pathlib import Path

import bt2

import ctf_events
from linux_guest import assert_sound, sources_module, stats
from vm.machine import VM

# The guest has the events of kyber only after it has loaded the module kyber-iosched.
EVENTS = "sched,irq,timer,syscalls,exceptions,irq_vectors,kyber"
UUID = "6d1b2f0e-58a5-4f0c-9d10-3a5f7c1e2b44"

JOB = f"""
set -e
T=/sys/kernel/tracing
echo 8192 >$T/buffer_size_kb
echo 1 >$T/events/sched/sched_process_exec/enable
echo 1 >$T/events/syscalls/enable
insmod /ht/hypertrace-sources.ko events={EVENTS}
insmod /ht/kyber-iosched.ko
rmmod kyber-iosched
taskset 2 sh -c '/bin/true
    for i in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null & done
    wait
    mkdir /tmp/d
    mv /tmp/d /tmp/e
    ls /nowhere || :
    /bin/false' || :
echo 0 >$T/tracing_on
rmmod hypertrace-sources
cat $T/per_cpu/cpu1/trace >&3
echo done >&3
read answer <&3
"""

# Fields that each event must have: those that Trace Compass reads, and fields of events that it
# does not read
FIELDS = {
    "sched_switch": {"prev_comm", "prev_tid", "prev_prio", "prev_state",
                     "next_comm", "next_tid", "next_prio"},
    "sched_wakeup": {"tid", "target_cpu"},
    "sched_waking": {"tid", "target_cpu"},
    "sched_wakeup_new": {"tid", "target_cpu"},
    "sched_process_fork": {"parent_tid", "child_tid", "child_comm"},
    "sched_process_exec": {"filename", "tid", "old_tid"},
    "sched_process_exit": {"tid"},
    "sched_process_free": {"tid"},
    "sched_migrate_task": {"tid", "prio", "orig_cpu", "dest_cpu"},
    "sched_pi_setprio": {"tid", "newprio"},
    "irq_handler_entry": {"irq", "name"},
    "irq_handler_exit": {"irq", "ret"},
    "irq_softirq_raise": {"vec"},
    "irq_softirq_entry": {"vec"},
    "irq_softirq_exit": {"vec"},
    "timer_hrtimer_start": {"hrtimer", "function", "expires", "softexpires"},
    "timer_hrtimer_expire_entry": {"hrtimer", "now", "function"},
    "timer_hrtimer_expire_exit": {"hrtimer"},
    "timer_hrtimer_cancel": {"hrtimer"},
    "lttng_statedump_process_state": {
        "tid", "pid", "ppid", "name", "type", "mode", "submode", "status",
        "cpu"},
    "syscall_entry_openat": {"dfd", "filename", "flags", "mode"},
    "syscall_exit_openat": {"ret"},
    "syscall_entry_read": {"fd", "buf", "count"},
    "syscall_exit_read": {"ret"},
    "syscall_entry_execve": {"filename", "argv", "envp"},
    "syscall_entry_clone": {"clone_flags", "newsp"},
    "x86_exceptions_page_fault_user": {"address", "ip", "error_code"},
    "x86_irq_vectors_local_timer_entry": {"vector"},
    "x86_irq_vectors_reschedule_exit": {"vector"},
    "kyber_latency": {"domain"},
}


def check_trace(trace):
    """Check that a trace has the environment, the clock, the classes and fields that
    Trace Compass needs, and for each system call both an entry and an exit class.

    Return {class: {field: number of bits}} of all classes; a field that is no integer
    has None.
    """
    assert {k: str(v) for k, v in trace.environment.items()}.items() >= {
        "domain": "kernel", "sysname": "Linux",
        "tracer_name": "lttng-modules", "tracer_major": "2",
        "tracer_minor": "13"}.items()
    (streams,) = trace.cls.values()
    assert str(streams.default_clock_class.uuid) == UUID
    assert "cpu_id" in streams.packet_context_field_class
    bits = {c.name: {
        k: getattr(m.field_class, "field_value_range", None)
        for k, m in (c.payload_field_class or {}).items()}
        for c in streams.values()}
    assert not any(name.startswith(("sys_enter_", "sys_exit_", "softirq",
                                    "hrtimer")) for name in bits)
    for name, fields in FIELDS.items():
        assert bits[name].keys() >= fields, name
    calls = {name[14:] for name in bits if name.startswith("syscall_entry")}
    assert calls == {name[13:] for name in bits
                     if name.startswith("syscall_exit")}
    assert len(calls) > 300
    return bits


class Analysis:
    """Follows the task of each processor and the system call of each thread, event
    by event, and checks that each event fits this state"""

    def __init__(self):
        self.tasks = set()      # threads that an event has announced
        self.running = {}       # processor: thread
        self.call = {}          # thread: the system call it is in
        self.ended = 0          # number of system calls that ended
        # True while all threads are known and all probes of the module are attached. System
        # calls, and the next task of a switch, are checked only while this is true.
        self.on = False

    def lttng_statedump_process_state(self, _, f):
        self.tasks.add(f["tid"])

    def lttng_statedump_end(self, _, __):
        # Ignore a state dump before the first task switch: at that time the guest does
        # not have the host's setting yet.
        self.on = bool(self.running)

    def sched_switch(self, cpu, f):
        assert self.running.get(cpu, f["prev_tid"]) == f["prev_tid"]
        assert not self.on or f["next_tid"] in self.tasks | {0}
        self.running[cpu] = f["next_tid"]

    def sched_process_fork(self, _, f):
        self.tasks.add(f["child_tid"])
        self.call[f["child_tid"]] = self.call.get(f["parent_tid"])

    def sched_process_free(self, _, f):
        self.tasks.discard(f["tid"])

    def syscall_entry(self, thread, name, f):
        # rt_sigreturn, the last system call of a signal handler, has no exit
        # event
        assert self.call.get(thread) in (None, "rt_sigreturn"), (thread, name)
        self.call[thread] = name
        # The unload of the module begins with the call
        # delete_module("hypertrace_sources"), and then detaches the probes one by one.
        self.on = f.get("name_user") != "hypertrace_sources"

    def syscall_exit(self, thread, name, _):
        assert self.call.get(thread) in (None, name), thread
        self.ended += self.call.get(thread) is not None
        self.call[thread] = None

    def feed(self, name, cpu, f):
        kind, call = name[:13].rstrip("_"), name[13:].lstrip("_")
        if not name.startswith("syscall_"):
            getattr(self, name, lambda *_: None)(cpu, f)
        elif self.on and self.running.get(cpu):
            getattr(self, kind)(self.running[cpu], call, f)


def between(events, is_start):
    """Return the events between the two events for which is_start is true, without these
    two."""
    at = [n for n, e in enumerate(events) if is_start(*e)]
    assert len(at) == 2
    return events[at[0] + 1:at[1]]


def check_against_ftrace(text, events, bits):
    """Check that ftrace and the module recorded the same system calls on CPU 1, with equal
    integer fields, from the exec of /bin/true to the exec of /bin/false."""
    ftrace = between(re.findall(
        r"\[001\].*?: (sys_\w+|sched_process_exec)[:(]? ?(.*?)\s*$", text,
        re.M),
        lambda name, rest: re.match(r"filename=/bin/(true|false) ", rest))
    own = between(events, lambda name, f: name == "sched_process_exec" and
                  f["filename"] in ("/bin/true", "/bin/false"))
    ftrace = [e for e in ftrace if e[0].startswith("sys_")]
    own = [e for e in own if e[0].startswith("syscall_")]
    assert len(own) > 100
    for (call, rest), (name, f) in zip(ftrace, own, strict=True):
        if rest.startswith("-> "):
            assert name == f"syscall_exit_{call[4:]}"
            assert int(rest[3:], 16) == f["ret"] % 2**64
            continue
        assert name == f"syscall_entry_{call[4:]}"
        args = dict(a.split(": ") for a in rest[:-1].split(", ") if a)
        assert list(args) == list(f), rest
        for key, value in args.items():
            if bits[name][key]:
                assert (int(value, 16) - f[key]) % 2**bits[name][key] == 0


def kyber(tmp_path):
    ko, = Path(os.environ["HT_KERNEL"]).parent.glob(
        "lib/modules/*/kernel/block/kyber-iosched.ko.xz")
    path = tmp_path / ko.stem
    path.write_bytes(lzma.decompress(ko.read_bytes()))
    return {path.name: path}


def test_trace_compass(tmp_path):
    with VM(devices=[{"channel": "shm", "packets": 256,
                      "backend_options": {"lttng-kernel": "on"}}],
            job=JOB, files=sources_module() | kyber(tmp_path),
            args=["-uuid", UUID],
            # one thread for all vCPUs, because the kernel patches running
            # code: see docs/kernel-tracing.md
            accel="tcg-single", workdir=tmp_path / "vm") as vm:
        vm.out.expect("^done", 120)
        counted = stats(vm)
        vm.say("go")
        vm.wait()
        assert_sound(vm)
        path = vm.trace("ht0")
    assert counted["lost"] == counted["dropped"] == counted["errors"] == 0
    analysis = Analysis()
    events = []
    for msg in bt2.TraceCollectionMessageIterator(str(path)):
        if isinstance(msg, bt2._StreamBeginningMessageConst):
            bits = check_trace(msg.stream.trace)
        if not isinstance(msg, bt2._EventMessageConst):
            continue
        cpu = int(msg.event.packet.context_field["cpu_id"])
        f = ctf_events.plain(msg.event.payload_field)
        analysis.feed(msg.event.name, cpu, f)
        if cpu == 1:
            events.append((msg.event.name, f))
    assert analysis.ended > 100
    assert {name for name, _ in events} >= {
        "irq_softirq_entry", "timer_hrtimer_expire_entry", "sched_waking",
        "x86_irq_vectors_local_timer_entry", "x86_exceptions_page_fault_user"}
    assert set(analysis.running) == {0, 1}
    check_against_ftrace(vm.out.text, events, bits)
    texts = {(name[14:], v) for name, f in events
             if name.startswith("syscall_entry_")
             for v in f.values() if isinstance(v, str)}
    assert texts >= {("execve", "/bin/true"), ("mkdir", "/tmp/d"),
                     ("rename", "/tmp/d"), ("rename", "/tmp/e")}
