# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs and the kernel emit while the guest and its hosts change: the test accounts for
each event.

Programs start, fork, exec and die; CPUs go offline, or the machine sleeps; the modules are
reloaded; settings change; the VM stops; the recorder of the memory-only device stops, and
another one replaces it. An event that a program emitted is recorded once, was reported as
discarded, or is one that its program could not report. HT_SOAK_MINUTES gives the duration,
HT_SOAK_SEED the seed; the test prints both.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from itertools import groupby

import pytest

from built import need
from linux_guest import assert_sound, sources_module
from test_memory import Host
from vm.machine import PATIENCE, VM

MINUTES = float(os.environ.get("HT_SOAK_MINUTES", 0))
SEED = int(os.environ.get("HT_SOAK_SEED") or time.time())
PROGRAMS = 64 if MINUTES else 12
ROUND = 60 if MINUTES else 6            # seconds
PAUSE = int(200 * PATIENCE)             # ms; gives the changes time in a slow guest
CHANNELS = ["hypercall", "shm", "virtio", "memory"]

# Evaluate each line that the test sends, and print its status.
JOB = """
P=/sys/module/hypertrace_sources/parameters
echo up >&3
while read -r line <&3; do
    [ "$line" != bye ] || exit 0
    eval "$line"
    echo "status $?" >&3
done
"""


def attach(hosts, tmp_path, *options):
    hosts.append(Host(tmp_path, os.environ, f"recording-{len(hosts)}", *options))


def end_host(host):
    """End a recorder, which may be stopped by SIGSTOP; return the folder of its recording
    of programs, or None if there is no such folder."""
    host.process.send_signal(signal.SIGCONT)
    host.end()
    assert host.process.returncode in (0, 3), host.errors
    trace = host.dir / "programs"
    return trace if trace.exists() else None


def parts(trace):
    """Split a trace into traces of some 50 streams, because babeltrace2's time for an event
    grows with the number of streams. Yield the folder of each part. All streams with the
    same name, such as those that a thread opened one after the other, are in one part."""
    for metadata in trace.rglob("metadata"):
        streams = list(metadata.parent.glob("stream-*"))

        def part_of(file):
            """Return the part for a file stream-INDEX-INSTANCE-NAME-FILE; it depends on
            NAME, which contains the thread's number."""
            return zlib.crc32(file.name.split("-")[3].encode()) % (1 + len(streams) // 50)

        for n, group in groupby(sorted(streams, key=part_of), key=part_of):
            part = trace.with_name(f"{trace.name}.part-{n}")
            part.mkdir()
            for file in (metadata, *group):
                (part / file.name).symlink_to(file)
            yield part


class Totals:
    """What babeltrace2 reads in a trace: the numbers of events and of discarded events. The
    constructor also adds the numbers in ht-churn's events to `threads`, {thread: list}."""

    def __init__(self, threads, trace):
        self.events = self.discarded = 0
        for part in parts(trace) if trace else ():
            self._read(part, threads)
            shutil.rmtree(part)

    def _read(self, part, threads):
        found = defaultdict(list)
        with tempfile.TemporaryFile() as stderr:
            with subprocess.Popen(["babeltrace2", part], stdout=subprocess.PIPE,
                                  stderr=stderr, text=True) as p:
                for line in p.stdout:
                    self.events += 1
                    if "churn.tick: " in line:
                        m = re.search(r"thread = (\d+), n = (\d+)", line)
                        found[int(m[1])].append(int(m[2]))
            stderr.seek(0)
            errors = stderr.read().decode()
        assert p.returncode == 0, errors
        self.discarded += sum(map(int, re.findall(r"discarded (\d+) event", errors)))
        for thread, numbers in found.items():
            assert numbers == sorted(numbers), f"thread {thread}: not in order"
            threads[thread] += numbers


class Thread:
    """A thread of ht-churn, according to the row that ht-churn prints"""

    ROW = (r"^thread (\d+) device (\d+) (\w+) evaluated (\d+) finished (\d+) told (\d+)"
           r" unreported (\d+)$")

    def __init__(self, m, device, number):
        self.device = device
        self.round = number
        self.ending = m[3]
        self.evaluated, self.finished, self.told, self.unreported = map(
            int, m.groups()[3:])

    def untold(self, seen):
        """Return the maximum number of this thread's events that may be missing without being
        reported as discarded: those that the program said it could not report, and, unless
        the program ended by exit(), those after both its last recorded event and its last
        finished burst.

        seen: sorted numbers of the recorded events
        """
        last = max(seen[-1] + 1 if seen else 0, self.told)
        return self.unreported + (self.evaluated - last if self.ending != "exit" else 0)


class Churn:
    """A VM, the recorders of its memory-only device (the last one is attached), and what
    was changed and counted so far"""

    def __init__(self, vm, hosts, rng):
        self.vm = vm
        self.cpus = vm.cpus
        self.hosts = hosts
        self.rng = rng
        self.threads = {}
        # {(round, device): number of discarded events that programs reported}
        self.reported = Counter()
        # (round, device) pairs in which the recorder stopped or the machine slept
        self.disturbed = set()
        # of the memory-only device in each round: (trace, whether only programs emitted)
        self.recordings = []
        self.done = Counter()
        self.number = 0

    def ask(self, line, timeout=240, refusable=False):
        self.vm.say(line)
        status = int(self.vm.out.expect(r"^status (\d+)$", timeout)[1])
        assert refusable or status == 0, f"{line}: {status}\n{self.vm}"
        return status

    # Each of the following functions returns after its change, or after the guest has refused
    # the change.

    def cpu(self):
        n = self.rng.randrange(1, self.cpus)
        path = f"/sys/devices/system/cpu/cpu{n}/online"
        self.ask(f'echo "$((1 - $(cat {path})))" >{path}')

    def online(self):
        for n in range(1, self.cpus):
            self.ask(f"echo 1 >/sys/devices/system/cpu/cpu{n}/online")

    def reload_sources(self):
        if self.ask("[ -e $P ]", refusable=True) == 0:
            self.ask("rmmod hypertrace-sources")
        events = self.rng.choice(["sched", "sched,irq,timer", "raw_syscalls:", ""])
        functions = self.rng.choice(["", "entry:vfs_*", "calls:do_sys_*"])
        self.ask("insmod /ht/hypertrace-sources.ko"
                 f" events='{events}' functions='{functions}'")

    def settings(self):
        text = self.rng.choice(["sched", "sched,irq", "", "nonsense:*", "timer:,sched"])
        self.ask(f"echo '{text}' >$P/events", refusable=True)

    def stop_vm(self):
        self.vm.qmp.command("stop")
        time.sleep(self.rng.uniform(0, 0.3))
        self.vm.qmp.command("cont")

    def stop_host(self):
        self.disturbed.add((self.number, CHANNELS.index("memory")))
        host = self.hosts[-1].process
        host.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0, 3))
        if self.rng.random() < 0.5:     # change something while the recorder is stopped
            self.rng.choice([self.reload_sources, self.settings])()
        host.send_signal(signal.SIGCONT)

    def suspend(self):
        """Suspend and wake the machine.  The kernel refuses to suspend if a task cannot
        be frozen for 20 s, such as one that waits for a change of functions."""
        self.disturbed |= {(self.number, d) for d in range(len(CHANNELS))}
        self.vm.say("echo mem >/sys/power/state")
        slept = False
        ended = None

        def over():
            nonlocal slept, ended
            ended = ended or self.vm.out.find(r"^status (\d+)$", 0.05)
            if not ended and self.vm.qmp.command("query-status")["status"] == "suspended":
                slept = True
                time.sleep(self.rng.uniform(0, 0.3))
                self.vm.qmp.command("system_wakeup")
            return ended

        self.vm.until(over, f"the guest does not suspend\n{self.vm}", 240)
        self.done["slept"] += slept
        assert slept == (ended[1] == b"0"), str(self.vm)

    def changes(self, seconds):
        kinds = [self.cpu if self.cpus > 1 else self.suspend, self.reload_sources,
                 self.settings, self.stop_vm, self.stop_host]
        weights = [6 if self.cpus > 1 else 1, 3, 4, 3, 2]
        end = time.monotonic() + seconds
        each = list(kinds)              # make each change once, then random ones
        self.rng.shuffle(each)
        while each or time.monotonic() < end:
            change = each.pop() if each else self.rng.choices(kinds, weights)[0]
            change()
            self.done[change.__name__] += 1
            time.sleep(self.rng.uniform(0, 0.5))

    def lost(self):
        return [self.vm.qmp.stats(f"ht{n}")["lost"] for n in range(3)]

    def round(self):
        """Load the modules, let programs run during changes, and unload all."""
        # The kernel's events go to one device, the programs' events to the others.
        kernel = self.rng.randrange(len(CHANNELS))
        self.ask(f"insmod /ht/hypertrace.ko kernel_device={kernel}")
        self.ask("until [ -e /dev/hypertrace3 ]; do usleep 20000; done")
        for n, channel in enumerate(CHANNELS):
            self.ask(f"grep -q {channel} /sys/class/misc/hypertrace{n}/channel")
        before = self.lost()
        devices = [n for n in range(len(CHANNELS)) if n != kernel]
        first = max(self.threads, default=-1) + 1
        self.ask("rm -f /tmp/end; insmod /ht/hypertrace-sources.ko events=sched")
        self.ask("ht-churn"
                 f" {PROGRAMS} {PAUSE} {first} {self.rng.randrange(2**31)}"
                 + "".join(f" /dev/hypertrace{n}" for n in devices)
                 + " >/tmp/rows & churn=$!")
        self.changes(ROUND)
        self.online()
        self.ask("touch /tmp/end; wait $churn", 600)
        self.ask("[ ! -e $P ] || rmmod hypertrace-sources")
        self.ask("cat /tmp/rows >&3", 600)
        for m in re.finditer(Thread.ROW, self.vm.out.text, re.M):
            if int(m[1]) >= first:
                self.threads[int(m[1])] = Thread(m, devices[int(m[2])], self.number)
        # The driver closes the streams of ended programs in the background.
        self.ask("until [ $(cat /sys/class/misc/hypertrace*/streams_used | sort -u) = 0 ];"
                 " do usleep 20000; done")
        unload_first = self.rng.random() < 0.5
        if unload_first:
            self.ask("rmmod hypertrace")
        for n in range(3):
            self.vm.settle(f"ht{n}")
        for n, (old, new) in enumerate(zip(before, self.lost())):
            if n != kernel:
                self.reported[self.number, n] = new - old
        self.recordings.append((end_host(self.hosts[-1]),
                                kernel != CHANNELS.index("memory")))
        attach(self.hosts, self.hosts[-1].dir.parent)
        if not unload_first:
            self.ask("rmmod hypertrace")
        self.number += 1


def gaps(numbers):
    """Return the pairs of neighbours between which numbers are missing, where -1 precedes
    the first number, and then the last number."""
    return [(a, b) for a, b in zip([-1, *numbers], numbers) if b != a + 1] + numbers[-1:]


def check(churn, counted, traces):
    """Compare the rows of ht-churn with the traces and with the devices' counters."""
    seen = defaultdict(list)            # {thread: numbers of its events}
    for n, trace in enumerate(traces):
        totals = Totals(seen, trace)
        assert totals.events == counted[n]["events"], CHANNELS[n]
        assert counted[n]["dropped"] == counted[n]["errors"] == 0, CHANNELS[n]
        assert totals.discarded == counted[n]["lost"], CHANNELS[n]
    memory = CHANNELS.index("memory")
    for number, (trace, only_programs) in enumerate(churn.recordings):
        totals = Totals(seen, trace)
        if only_programs:
            churn.reported[number, memory] = totals.discarded
    assert not set(seen) - set(churn.threads)
    assert sorted(churn.threads) == list(range(len(churn.threads)))
    assert sum(t.evaluated for t in churn.threads.values()) > 1000
    missing, untold = Counter(), Counter()
    for number, t in churn.threads.items():
        # a thread may have events in the shared stream of its program, too
        numbers = sorted(seen[number])
        what = f"{CHANNELS[t.device]}: thread {number}: {vars(t)}, {numbers[-3:]}"
        # each event is recorded once, and was emitted
        assert len(numbers) == len(set(numbers)), what
        assert not numbers or numbers[-1] < t.evaluated, what
        missing[t.device] += t.evaluated - len(numbers)
        untold[t.device] += t.untold(numbers)
        place = (t.round, t.device)
        if not (place in churn.disturbed or churn.reported[place] or t.unreported):
            assert len(numbers) >= t.finished, what
    for n, channel in enumerate(CHANNELS):
        mine = [t for t in churn.threads.values() if t.device == n]
        reported = sum(count for (_, device), count in churn.reported.items()
                       if device == n)
        print(f"{channel}: {len(mine)} threads,"
              f" {sum(t.ending == 'killed' for t in mine)} killed,"
              f" {sum(t.evaluated for t in mine)} events, {missing[n]} missing,"
              f" {reported} reported as discarded, at most {untold[n]} more")
        assert reported <= missing[n] <= reported + untold[n], \
            f"{channel}: " + "\n".join(
                f"{number}: {vars(t)}, {len(seen[number])} recorded:"
                f" {gaps(sorted(seen[number]))}"
                for number, t in churn.threads.items()
                if t.device == n and t.evaluated > len(seen[number]))


# With 3 processors, processors go offline; with 1 processor, the machine sleeps. A machine with
# several processors does not sleep, because QEMU's emulation with one thread for all processors
# often cannot resume it, with or without hypertrace's modules: all processors but the first
# execute random code. For emulation with a thread for each processor, see VM in vm/machine.py.
@pytest.mark.parametrize("cpus", [3, pytest.param(1, marks=[] if MINUTES else
                                                  pytest.mark.long)])
def test_churn(tmp_path, cpus):
    need("babeltrace2")
    rng = random.Random(SEED)
    print(f"seed {SEED}, {MINUTES} minutes")
    hosts = []
    attach(hosts, tmp_path, "--create=64M")
    try:
        with VM(devices=[{"channel": c, "streams": 96} for c in CHANNELS[:3]],
                job=JOB, files=sources_module(), packed=True, memory=768,
                cpus=cpus, workdir=tmp_path / "vm",
                args=["-object", "memory-backend-file,id=m,share=on,size=64M,"
                      f"mem-path={tmp_path}/memory", "-device", "ivshmem-plain,memdev=m"]
                ) as vm:
            vm.out.expect("^up", 240)
            churn = Churn(vm, hosts, rng)
            churn.ask("rmmod hypertrace")
            end = time.monotonic() + 60 * MINUTES
            while not churn.number or time.monotonic() < end:
                churn.round()
            counted = [vm.qmp.stats(f"ht{n}") for n in range(3)]
            vm.say("bye")
            vm.wait()
            assert_sound(vm)
            print(f"{churn.number} rounds, {dict(churn.done)}")
            assert "ht-churn:" not in vm.out.text, vm.out.text
            assert cpus > 1 or churn.done["slept"], "each suspend was refused"
            check(churn, counted, [vm.trace(f"ht{n}") for n in range(3)])
    finally:
        end_host(hosts[-1])
