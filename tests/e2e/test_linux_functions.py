# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the function events of hypertrace-sources.ko with those of ftrace's function tracer,
and test the settings that choose functions, also while they change under load."""

import itertools
import os
import re
import time

import pytest

import compass_xml
import ctf_events
from vm.machine import VM
from linux_guest import (
    PRELUDE, assert_sound, call_sites, much, sources_module, stats)

# Shell function fprobes: succeed if the guest's kernel can trace exits of functions, which older
# kernels cannot. $1: a file with some lines of /proc/kallsyms, by default /proc/kallsyms itself.
# To read all its 200,000 lines takes seconds.
FPROBES = """
fprobes() { grep -Fqw register_fprobe "${1-/proc/kallsyms}"; }
"""


def needs_fprobes(text):
    if re.search("^no fprobes$", text, re.M):
        pytest.skip("the guest's kernel has no fprobes")


pytestmark = pytest.mark.xdist_group("functions")

JOB = PRELUDE + FPROBES + r"""
T=/sys/kernel/tracing
P=/sys/module/hypertrace_sources/parameters
refused insmod /ht/hypertrace-sources.ko events= \
    functions='entry:vfs_read,entry:no_such_function'
refused test -e $P
# work MASK: read a file 8 times on the CPUs of the mask
work() {
    taskset $1 sh -c 'for i in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null
        done'
}
cd $T
grep -Fw -e vfs_read -e vfs_write -e vfs_open -e vfs_statx -e ksys_read -e ksys_write \
    -e __x64_sys_read -e hrtimer_nanosleep -e register_fprobe /proc/kallsyms >/tmp/symbols
grep -vw register_fprobe /tmp/symbols >&3
echo 8192 >buffer_size_kb
echo vfs_read vfs_write vfs_open vfs_statx >set_ftrace_filter
echo function >current_tracer

insmod /ht/hypertrace-sources.ko events= functions='entry:vfs_read,entry:vfs_w*,entry:vfs_open,entry:vfs_statx,!vfs_writev'
taskset 1 sh -c 'for i in 1 2 3 4 5; do cat /proc/self/stat >/dev/null; done'
taskset 2 sh -c 'for i in 1 2 3 4 5 6 7 8; do cat /proc/self/stat >/dev/null
    done'
echo >$P/functions
echo 0 >tracing_on
for cpu in 0 1; do
    echo "BEGIN $cpu" >&3
    cat per_cpu/cpu$cpu/trace >&3
    echo "END $cpu" >&3
done
echo nop >current_tracer

# Trace entries with their exits, then only calls of at least 50 ms, such as a
# sleep
if fprobes /tmp/symbols; then
    echo calls:ksys_read >$P/functions
    work 1
    # of two nested functions, trace only the outer one, then only the inner
    # one
    echo 'calls:*sys_read,!calls:__*_sys_read,most_depth=1' >$P/functions
    echo 'calls:*sys_read,most_depth=1' >$P/functions
    work 1
    echo 'calls:*sys_read,least_depth=2' >$P/functions
    work 1
    echo 'calls:hrtimer_nanosleep,least_ns=50000000' >$P/functions
    usleep 1000
    usleep 100000
    # If one part of a setting is wrong, the module refuses all of it.
    for text in 'calls:no_such_function*' 'entry:vfs_read,calls:no_such_*' \
                'calls:vfs_read,calls:vfs_write' 'entry:vfs_read,least_ns=x' \
                'calls:vfs_*,!vfs_read,!vfs_write' \
                'entry:vfs_read,depth=1' vfs_read 'entry:' '!' ' entry: '; do
        refused sh -c "echo '$text' >$P/functions" 2>/dev/null
        test "$(cat $P/functions)" = 'calls:hrtimer_nanosleep,least_ns=50000000'
    done
else
    echo "no fprobes" >&3
    refused sh -c "echo calls:ksys_read >$P/functions"
fi
# A setting without a pattern selects no function.
for text in ',' ' ' ' , '; do
    echo entry:ksys_read >$P/functions
    test -n "$(cat $T/enabled_functions)"
    echo "$text" >$P/functions
    test -z "$(cat $T/enabled_functions)"
done
echo >$P/functions
test -z "$(cat $P/functions)"

# Many functions are switched on and off under load
(while :; do work 3; done) &
busy=$!
for i in 1 2 3 4 5; do
    echo 'entry:do_*,entry:vfs_*,entry:__x64_sys_*' >$P/functions
    usleep 20000
    echo >$P/functions
done
kill -9 $busy
wait $busy || :

# A setting written while the module is being unloaded must not attach a probe
# again.
while :; do echo 'entry:vfs_*' >$P/functions || break; done 2>/dev/null &
writer=$!
rmmod hypertrace-sources
wait $writer || :
refused grep -q fn_on_entry $T/enabled_functions
echo done >&3
read answer <&3
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run JOB; yield the guest's output, the device's counters, and the streams of the trace.

    One thread of QEMU runs both vCPUs: with two threads, a vCPU executed a breakpoint that
    the other vCPU had just removed from the kernel's text.
    """
    with VM(devices=[{"channel": "shm", "packets": 256}], job=JOB,
            files=sources_module(),
            workdir=tmp_path_factory.mktemp("functions") / "vm") as vm:
        vm.out.expect("^done", 300)
        vm.settle("ht0")
        counted = stats(vm)
        vm.say("end")
        vm.wait(60)
        assert_sound(vm)
        yield vm.out.text, counted, ctf_events.read(vm.trace("ht0"))


def addresses(text):
    """Return {call site: name} of the eight functions that the job lists; a call site is the
    low 32 bits of an address at which the function may call ftrace. A function has two."""
    # Leave out names such as vfs_open.cold, which are parts that the compiler split
    # off.
    found = {at: name for at, name in call_sites(text) if name.isidentifier()}
    assert len(found) == 2 * 8
    return found


def test_entries_as_ftrace(run):
    """On each CPU, the module records the calls that ftrace's function tracer
    records, in the same order, until the job selects other functions."""
    text, _, streams = run
    names = addresses(text)
    pieces = []         # for each stream: the CPUs whose ftrace has its events
    # Leave out empty streams: the module opened streams for a setting that it then
    # refused.
    for s in [s for s in streams.values() if s.events]:
        ours = []
        # Take only events from before the job selects other functions than vfs_*.
        for _, f in s.events:
            if "vfs_" not in names.get(f["ip"], ""):
                break
            ours.append(names[f["ip"]])
        assert len(ours) > 8
        n = len(ours)
        pieces.append(set())
        for cpu in (0, 1):
            own = re.findall(r": (vfs_\w+) <-", re.search(
                f"BEGIN {cpu}\n(.*?)END {cpu}\n", text, re.S).group(1))
            if ours in [own[i:i + n] for i in range(len(own) - n + 1)]:
                pieces[-1].add(cpu)
    assert {0, 1} == pieces[0] | pieces[1] and all(pieces)


def test_calls(run):
    """The selection "calls:" records the exits of functions. Of two nested functions,
    most_depth=1 records only the outer one, and least_depth=2 only the inner one.
    With least_ns of 50 ms, only the longer of two sleeps is recorded."""
    text, _, streams = run
    needs_fprobes(text)
    names = addresses(text)
    # A function that is not one of addresses() gives a KeyError here.
    exits = [names[f["ip"]] for s in streams.values() for name, f in s.events
             if name == "function_exit"]
    assert len(exits) >= 8 and set(exits) == {"ksys_read", "__x64_sys_read"}
    all_phases = ["ksys_read", "__x64_sys_read", "ksys_read"]
    phases = []         # for each stream: the function traced in each phase
    for s in streams.values():
        left = [names[f["ip"]] for name, f in s.events
                if name == "function_exit"]
        # A call that began before a change of the setting may end after it: ignore a
        # single event between two groups.
        phases.append([name for name, several in itertools.groupby(left)
                       if len(list(several)) > 1])
        assert len(phases[-1]) <= 3, phases
    assert all_phases in phases, phases
    calls = [f for s in streams.values() for name, f in s.events
             if name == "function_call"]
    (call,) = [f for f in calls if names[f["ip"]] == "hrtimer_nanosleep"]
    assert 100_000_000 <= call["duration_ns"] < 2 ** 32
    assert len(calls) == 1


def test_trace_compass(run):
    """function_entry and function_exit have the fields that the analysis for Trace Compass
    reads."""
    needs_fprobes(run[0])
    events = {name: fields.keys() for s in run[2].values()
              for name, fields in s.events}
    needs = compass_xml.Analysis().needs()
    for name in "function_entry", "function_exit":
        assert needs[name] <= events[name]


def test_many_functions(run):
    """With many functions, the trace has as many events, and counts as many discarded
    events, as the device's counters."""
    _, counted, streams = run
    came = sum(len(s.events) for s in streams.values())
    lost = sum(s.discarded for s in streams.values())
    assert counted["events"] == came
    assert counted["lost"] == lost
    ips = {f["ip"] for s in streams.values() for name, f in s.events
           if name == "function_entry"}
    assert len(ips) > 40


# Switch many functions of the kernel on and off under load, until the test sends a line
SOAK_JOB = PRELUDE + FPROBES + """
P=/sys/module/hypertrace_sources/parameters
insmod /ht/hypertrace-sources.ko events=
work() {
    while :; do
        find /sys/kernel /proc/sys -type f >/dev/null 2>&1
        dd if=/dev/zero bs=4k count=200 2>/dev/null | cat | tail -c 1 >/dev/null
        sh -c 'sleep 0.01 & wait'
    done
}
work &
one=$!
work &
two=$!
calls=
! fprobes || calls=yes
rounds=0
echo begun >&3
(read answer <&3; touch /tmp/enough) &
while [ ! -e /tmp/enough ]; do
    echo "$ENTRIES" >$P/functions
    usleep 50000
    if [ $calls ]; then
        echo "calls:$CALLS" >$P/functions
        usleep 50000
    fi
    echo >$P/functions
    rounds=$((rounds + 1))
    echo "round $rounds" >&3
done
kill -9 $one $two
echo "rounds $rounds missed $(cat $P/missed)" >&3
rmmod hypertrace-sources
"""


SOAK_SECONDS = 60 * float(os.environ.get("HT_SOAK_MINUTES", 0))
# With HT_SOAK_MINUTES, trace all functions. A round with all functions takes more than a
# minute, so without HT_SOAK_MINUTES trace fewer. With lockdep and KASAN, probes at the ends of
# all functions would leave no time for other work.
ENTRIES = "entry:*" if SOAK_SECONDS else ",".join(
    f"entry:{name}_*" for name in ("rcu", "ktime", "sched", "vfs", "do"))
CALLS = "*" if SOAK_SECONDS and \
    os.environ.get("HT_DEBUG_KERNEL") != "lockdep" else "rcu_*"


@pytest.mark.parametrize("channel", ["shm", "hypercall", "virtio"]
                         if SOAK_SECONDS else ["shm"])
def test_soak(tmp_path, channel):
    """Change settings under load: at least one round on one channel, or
    HT_SOAK_MINUTES on each channel."""
    with VM(devices=[much(channel, packets=64, backend="null")],
            job=f"ENTRIES='{ENTRIES}'\nCALLS='{CALLS}'\n" + SOAK_JOB,
            files=sources_module(), workdir=tmp_path / "vm") as vm:
        vm.out.expect("^begun", 240)
        vm.out.expect("^round 1$", 600)
        time.sleep(SOAK_SECONDS)
        vm.say("enough")
        vm.out.expect(r"^rounds \d+ missed", 600)
        vm.settle("ht0")
        counted = stats(vm)
        vm.wait(120)
        assert_sound(vm)
    print(re.findall("^rounds .*", vm.out.text, re.M)[-1], counted)
    assert counted["events"] > (100000 if SOAK_SECONDS else 1000)
    assert not counted["errors"]
    # The guest discards events for which its ring has no room ("lost"); the null backend
    # drops none.
    assert not counted["dropped"]
