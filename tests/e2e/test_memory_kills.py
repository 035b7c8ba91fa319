# SPDX-License-Identifier: GPL-2.0-or-later
"""Kill the recorder of a memory-only device again and again, each time followed by another
recorder, or kill QEMU, at random times under load.

The guest is a Linux in the distribution's QEMU. Each event of its programs must then be in one
recording, or counted as discarded once. With HT_MEMORY_KILLS=60 each case of a test has 60 kills.
HT_MEMORY_SEED gives the seed of the random times; the tests print it.
"""

import os
import random
import re
import socket
import struct
import subprocess
import time
from collections import Counter, namedtuple

import pytest

from test_memory import Host, memory_image
from test_record import DEADLINE, console, env, guest, wait_for  # noqa: F401

KILLS = int(os.environ.get("HT_MEMORY_KILLS", "0"))
SEED = int(os.environ.get("HT_MEMORY_SEED", "0")) or random.randrange(1 << 32)
PROGRAMS = 3
HEADER = struct.Struct("<I16sIQQQQQQQQiIQQ")

pytestmark = [
    pytest.mark.xdist_group("record"),
    pytest.mark.skipif(not os.environ.get("HT_MODULE"),
                       reason="the kernel module was not built")]

JOB = """
while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done
# Use processes instead of threads: threads may share a stream, and then the discards
# include events of the library that name the thread.
for thread in $(seq %d); do ht-tracetest steady $thread %d & done
echo UNDER WAY
read -r line <$JOB_OUT
touch /tmp/end
wait
echo THE END
sleep 1000
"""


class Run:
    """A guest whose programs emit bursts until the test ends them, and the recorders
    attached to it one after the other"""

    def __init__(self, tmp, environment, burst):
        self.tmp = tmp
        self.env = environment
        self.hosts = []
        self.attach("--create=64M")
        self.qemu = subprocess.Popen(
            [*guest(tmp, memory_image(tmp, JOB % (PROGRAMS, burst))),
             "-serial", f"unix:{tmp}/job,server=on,wait=off",
             "-object", "memory-backend-file,id=m,share=on,size=64M,"
             f"mem-path={tmp}/memory", "-device", "ivshmem-plain,memdev=m"],
            stdin=subprocess.DEVNULL)

    def attach(self, *options):
        self.hosts.append(Host(self.tmp, self.env, f"rec{len(self.hosts)}", *options))

    def wait(self, mark):
        wait_for(self.tmp, mark, self.qemu)

    def wait_programs(self):
        """Wait until the last recorder has events in a new stream of each program. A
        program that finds no recorder when it registers its classes retries some seconds
        later. If the program ended before the retry, it could not report its
        discards."""
        before = {name for host in self.hosts[:-1] for name in instances(host.dir)}
        deadline = time.monotonic() + DEADLINE
        while sum(name not in before and any(p.events for p in found)
                  for name, found in instances(self.hosts[-1].dir).items()) < PROGRAMS:
            assert self.hosts[-1].process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def kill(self):
        self.qemu.kill()
        self.qemu.wait()
        for host in self.hosts:
            host.process.kill()
            host.process.wait()


Packet = namedtuple("Packet", "discarded events")


def packets(file):
    """Yield the Packet of each packet in a stream's file: its header's counts of
    discarded events and of events up to the end of the packet"""
    data = file.read_bytes()
    at = 0
    while at < len(data):
        fields = HEADER.unpack_from(data, at)
        yield Packet(fields[7], fields[9])
        at += fields[-1] // 8


def instances(recording):
    """{beginning of the file names of one stream instance: [Packet]} of a recording"""
    found = {}
    for file in sorted((recording / "programs").glob("stream-*")):
        found.setdefault(file.name.rsplit("-", 1)[0], []).extend(packets(file))
    return found


def discarded(recording):
    total = 0
    for name, found in instances(recording).items():
        counts = [p.discarded for p in found]
        assert counts == sorted(counts), name
        total += counts[-1] - counts[0]
    return total


def lines(recording):
    if (recording / "programs").exists():
        with subprocess.Popen(["babeltrace2", recording / "programs"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            yield from p.stdout


def steps(recording, seen):
    """Count each event (thread, n) of a recording in the Counter `seen`. Fail if the events
    of a thread are not in order."""
    last = {}
    for line in lines(recording):
        m = re.search(r"tracetest\.step: .*thread = (\d+), n = (\d+)", line)
        if m:
            event = int(m[1]), int(m[2])
            assert last.get(event[0], -1) < event[1], "out of order"
            last[event[0]] = event[1]
            seen[event] += 1


def count(run):
    """Return ({(thread, n) of an event: 1}, number of discarded events) of all recordings.
    Fail if an event is in the recordings twice."""
    seen = Counter()
    for host in run.hosts:
        steps(host.dir, seen)
    twice = [e for e, n in seen.items() if n > 1]
    assert not twice, f"{len(twice)} events twice: {sorted(twice)[:5]}; seed {SEED}"
    return seen, sum(discarded(host.dir) for host in run.hosts)


def kill_recorders(tmp, environment, kills, burst):
    """End recorders under load, most of them by SIGKILL. Return the Run, and the number of
    events that the programs emitted."""
    rng = random.Random(SEED)
    run = Run(tmp, environment, burst)
    try:
        run.wait("UNDER WAY")
        run.wait_programs()
        for _ in range(kills):
            time.sleep(rng.random())
            # End the recorder by SIGTERM in one of ten cases on average, else by SIGKILL.
            run.hosts[-1].end(kill=rng.random() < 0.9)
            time.sleep(rng.random() * rng.choice([0, 0.1, 1]))
            run.attach()
        run.wait_programs()
        with socket.socket(socket.AF_UNIX) as job:
            job.connect(f"{tmp}/job")
            job.send(b"end\n")
            run.wait("THE END")
        run.hosts[-1].end()
    finally:
        run.kill()
    return run, sum(map(int, re.findall(r"emitted (\d+)", console(tmp))))


# The case with full rings takes a minute: only a run with HT_MEMORY_KILLS has it.
@pytest.mark.parametrize("burst", [60, 2000] if KILLS else [60])
def test_recorders(tmp_path, env, burst):  # noqa: F811
    """Each event is in one recording, or counted as discarded once, both with
    room in the rings and with full rings."""
    kills = KILLS or 4
    run, emitted = kill_recorders(tmp_path, env, kills, burst)
    seen, lost = count(run)
    print(f"{kills} kills of recorders: {emitted} events emitted, {len(seen)} found, "
          f"{lost} counted as discarded; seed {SEED}")
    assert len(seen) + lost == emitted, (SEED, [host.errors for host in run.hosts])


def test_qemus(tmp_path, env):  # noqa: F811
    """After QEMU is killed, its recorder reads all events that the guest has committed: a
    recorder that attaches afterwards finds no further one. No more numbers are missing
    among the recorded events than were counted as discarded."""
    rng = random.Random(SEED)
    for kill in range(KILLS or 2):
        tmp = tmp_path / str(kill)
        tmp.mkdir()
        run = Run(tmp, env, 60)
        try:
            run.wait("UNDER WAY")
            run.wait_programs()
            time.sleep(rng.random())
            run.qemu.kill()
            run.qemu.wait()
            run.hosts[-1].end()
            found, lost = count(run)
            run.attach()
            run.hosts[-1].end()
        finally:
            run.kill()
        assert count(run) == (found, lost), SEED
        last = Counter()
        for thread, n in found:
            last[thread] = max(last[thread], n + 1)
        missing = sum(last.values()) - len(found)
        print(f"kill {kill}: {len(found)} events found, {missing} missing, {lost} counted"
              " as discarded")
        assert len(last) == PROGRAMS and missing <= lost, SEED
