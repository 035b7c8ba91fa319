# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the kernel's events and function entries that hypertrace-sources.ko records under
load with those of an instance of ftrace, which records the same run and which trace-cmd reads.

Each CPU must have the same events in the same order with the same fields, except for three
differences that docs/reliability.md lists. Of functions, the callers are not compared. "Ours" is
the recorder in hypertrace-sources.ko, "theirs" is ftrace.

HT_AGREE=all tests events and functions with each channel; by default only events
with virtio are tested.
"""

import collections
import os
import re
import shutil
import subprocess

import pytest

import ctf_events
from bench.linux import with_libraries
from vm.machine import VM
from linux_guest import (
    LOAD, PRELUDE, assert_sound, call_sites, much, needs_glibc,
    sources_module, stats)

CASES = [(what, channel) for what in ("events", "functions")
         for channel in ("hypercall", "shm", "virtio")] \
    if os.environ.get("HT_AGREE") == "all" \
    else [("events", "virtio")]

# For events and for functions: options of trace-cmd, parameters of the module, and the
# load
EVENTS = {"FTRACE": "-e sched -e irq -e raw_syscalls",
          "PARAMETERS": "events=sched,irq,raw_syscalls",
          "HACKBENCH": "-l 5", "TAR": "bin"}
FUNCTIONS = {"FTRACE": "-p function",
             "PARAMETERS": "events= functions=entry:*",
             "HACKBENCH": "-l 1 -f 1", "TAR": "job.sh"}
# Calls of umask() mark the beginning and the end of the comparison. Each CPU makes MARKS calls
# at the beginning and MARKS at the end, because an interrupt may come between the two recordings
# of a call. At least one call at each end must have no such interrupt.
UMASK = 95                      # number of the system call umask() on x86-64
MARKS = 4

JOB = PRELUDE + LOAD + """
tc() { $LD /ht/sys/trace-cmd "$@" >/dev/null; }
mark() {
    umasks=$(yes 'umask 22' | head -n $MARKS)
    for c in 0 1; do taskset $((1 << c)) sh -c "$umasks"; done
}
# do not record the loading and unloading of the module
on=/sys/kernel/tracing/instances/own/tracing_on
tc start -B own -b 65536 $FTRACE
echo 0 >$on
insmod /ht/hypertrace-sources.ko $PARAMETERS
echo 1 >$on
mark
load "$HACKBENCH" "$TAR" /ht
mark
echo 0 >$on
rmmod hypertrace-sources
cat /proc/kallsyms >/symbols
tc extract -B own -o /t.dat
cat /t.dat >"$(echo /dev/vport*p1)"
cat /symbols >"$(echo /dev/vport*p2)"
echo recorded >&3
read answer <&3
"""

LINE = re.compile(r"own:.* (\d+)-0x([0-9a-f]+) +[\d.]+: (\w+): +(.*)")
IRQS_OFF, HARDIRQ, SOFTIRQ, NMI = 0x01, 0x08, 0x10, 0x40
EXIT_DEAD, EXIT_ZOMBIE = 0x10, 0x20


def depth(flags):
    """Return the nesting level of an event's context, in half levels, from the trace flags
    of ftrace. In the first functions of an interrupt, only the flag "interrupts off" is
    set, so that flag counts as half a level."""
    flags = int(flags, 16)
    level = 3 if flags & NMI else 2 if flags & HARDIRQ else \
        1 if flags & SOFTIRQ else 0
    return 2 * level + bool(flags & IRQS_OFF)


def from_ftrace(dat, keys):
    """Return {CPU: [((event, fields), depth of the event's context)]} of the file `dat`, by
    the command trace-cmd report.

    keys: the names of the fields of each event
    """
    cpus = {}
    patterns = {name: re.compile(f"(?:^| )({'|'.join(fields)})=")
                for name, fields in keys.items() if fields}
    patterns["function"] = re.compile("(?:^| )(ip|parent_ip)=")
    with subprocess.Popen(["trace-cmd", "report", "-l", "-N", "-R", dat],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as report:
        for line in report.stdout:
            m = LINE.fullmatch(line.rstrip("\n"))
            if not m:
                continue
            cpu, flags, name, text = m.groups()
            # after the first part: alternately a field's name and the text of
            # its value
            parts = patterns[name].split(text)[1:] if name in patterns else []
            fields = dict(zip(parts[::2], map(value_of, parts[1::2])))
            cpus.setdefault(int(cpu), []).append(
                (comparable(name, fields), depth(flags)))
    assert report.returncode == 0
    return cpus


def value_of(text):
    """Return a field's value from trace-cmd's text: a number, a text, or for an array a
    list of 64-bit numbers."""
    array = re.fullmatch(r"ARRAY\[(.*)\]", text)
    if array:
        octets = bytes.fromhex(array[1].replace(",", " "))
        return [int.from_bytes(octets[n:n + 8], "little")
                for n in range(0, len(octets), 8)]
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def comparable(name, fields):
    """Return (name, fields sorted by name), the form in which the test compares the events
    of both recorders."""
    return name, sorted(fields.items())


def reaped(first, second):
    """Return whether two sched_switch events differ only in that the first recorder saw the
    ending task as a zombie, and the second saw it as dead, after its parent had reaped
    it."""
    return first[0] == second[0] == "sched_switch" and \
        dict(first[1])["prev_state"] == EXIT_ZOMBIE and \
        dict(second[1]) == {**dict(first[1]), "prev_state": EXIT_DEAD}


def between_marks(theirs, ours, is_mark, same):
    """Return the part of each list from one of the first marks to one of the last marks.

    If an interrupt comes between the calls of the two recorders for a mark, the events of
    the interrupt are before the mark in one list and after it in the other. So choose
    marks that have the same neighbours in both lists.
    """
    marks = list(zip(*([n for n, (event, _) in enumerate(events)
                        if is_mark(event)] for events in (theirs, ours)),
                     strict=True))
    assert len(marks) >= 2 * MARKS

    def undivided(chosen):
        return [(t, o) for t, o in chosen
                if all(same(theirs[t + n][0], ours[o + n][0]) for n in (-1, 1))]

    begin, end = undivided(marks[:MARKS]), undivided(marks[-MARKS:])
    assert begin and end, (begin, end)
    return (theirs[begin[0][0]:end[-1][0] + 1],
            ours[begin[0][1]:end[-1][1] + 1])


def of_recorder(event, before):
    """Return whether an event of ftrace is a function call that our recorder caused. Its
    caller must be irq_work_queue(), by which our recorder wakes the driver, or one of the
    functions in `before`."""
    fields = dict(event[1])
    return fields.get("parent_ip") in ("irq_work_queue", *before)


def displaced(first, second, same):
    """Compare the events of the recorder that the kernel calls first with those of the
    second. Return the number of events for which an interrupt came between the two
    calls, and the number of functions that our recorder called. Fail at the first
    difference that has another cause. ftrace's events have the depth of their context,
    ours have depth 0."""
    late = []           # (index in first, length of depths) of interrupted events
    depths = []         # depths of the events that both have
    own = []            # functions that our recorder called since the last common event
    f = s = count = owns = 0

    def is_next(n):
        return n < len(first) and s < len(second) and \
            same(first[n][0], second[s][0])

    while f < len(first) or s < len(second):
        if late and is_next(late[-1][0]):
            # second[s] equals the event that was last put into `late`. Both are the same
            # event if all events between them were in a deeper context.
            n, since = late[-1]
            level = max(first[n][1], second[s][1])
            if min(depths[since:], default=level) > level:
                late.pop()
                depths.append(level)
                own.clear()
                s += 1
                count += 1
                continue
        if is_next(f):
            depths.append(max(first[f][1], second[s][1]))
            own.clear()
            f += 1
            s += 1
        elif s < len(second) and of_recorder(second[s][0], own):
            own.append(dict(second[s][0][1])["ip"])
            s += 1
            owns += 1
        else:
            assert len(late) < 4 and f < len(first), \
                (f, first[f:f + 4], s, second[s:s + 4], late)
            late.append((f, len(depths)))
            f += 1
    assert not late
    return count, owns


@needs_glibc
@pytest.mark.parametrize("what,channel", CASES)
def test_agree(tmp_path, what, channel):
    for program in "hackbench", "trace-cmd":
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    setting = EVENTS if what == "events" else FUNCTIONS
    dat, symbols = tmp_path / "trace.dat", tmp_path / "symbols"
    with VM(devices=[much(channel, packets=512)],
            job="".join(f"{k}='{v}'\n" for k, v in setting.items()) +
                f"MARKS={MARKS}\n" + JOB,
            files={**sources_module(),
                   **with_libraries(["hackbench", "trace-cmd"])},
            args=["-device", "virtio-serial-pci",
                  "-chardev", f"file,id=dat,path={dat}",
                  "-device", "virtserialport,nr=1,chardev=dat",
                  "-chardev", f"file,id=symbols,path={symbols}",
                  "-device", "virtserialport,nr=2,chardev=symbols"],
            memory=1024, workdir=tmp_path / "vm") as vm:
        vm.out.expect("^recorded$", 600)
        vm.settle("ht0")
        counted = stats(vm)
        vm.say("go on")
        vm.wait(120)
        assert_sound(vm)
    assert counted["errors"] == counted["dropped"] == counted["lost"] == 0
    at = collections.defaultdict(set)   # {name: addresses of its functions}
    for address, name in call_sites(symbols.read_text()):
        at[name].add(address)

    def same(theirs, ours):
        if theirs[0] == "function":     # compare no parents
            return ours[0] == "function_entry" and \
                ours[1][0][1] in at[theirs[1][0][1]]
        return theirs == ours or reaped(theirs, ours)

    def is_mark(event):
        name, fields = event
        return name == "sys_enter" and ("id", UMASK) in fields or \
            name == "function" and ("ip", "__x64_sys_umask") in fields or \
            name == "function_entry" and \
            fields[0][1] in at["__x64_sys_umask"]

    streams = [s for s in ctf_events.read(vm.trace("ht0")).values()
               if s.events]
    assert counted["events"] == sum(len(s.events) for s in streams)
    own = from_ftrace(dat, {name: list(fields) for s in streams
                            for name, fields in s.events})
    for s in streams:
        # leave out our events for tasks that existed before the module was
        # loaded: ftrace has none
        theirs, ours = between_marks(
            own.pop(s.cpu),
            [(comparable(*e), 0) for e in s.events
             if not e[0].startswith("lttng_statedump")], is_mark, same)
        # A tracepoint first calls the recorder that was attached first, which is ftrace. A
        # function first calls the recorder that was attached last, which is ours.
        count, owns = displaced(theirs, ours, same) if what == "events" else \
            displaced(ours, theirs, lambda a, b: same(b, a))
        print(f"{channel}, CPU {s.cpu}: {len(ours)} {what} of both, an "
              f"interrupt came into {count} of them; {owns} of the recorder's")
        assert len(ours) > 1000
        # with virtio, our recorder calls functions once a packet, which holds
        # about 500 events
        assert owns == 0 or channel == "virtio" and owns < len(ours) / 50
    assert not own
