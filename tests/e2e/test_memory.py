# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the memory-only transport: the driver in a Linux guest, an ivshmem device of the
distribution's QEMU, and recorders on the host.

The recorder starts before or after the guest, is stopped, or is killed and followed by another.
"""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

from built import need
from hosttrace import can_trace, free_host  # noqa: F401
from linux_guest import sources_module
from test_record import (  # noqa: F401
    BUILD, DEADLINE, HYPERTRACE, console, env, guest, initrd, record_until,
    wait_for)

TRACETEST = BUILD / "tests/e2e/programs/ht-tracetest"
INFO = BUILD / "tools/ht-info"

pytestmark = [
    pytest.mark.xdist_group("record"),
    pytest.mark.skipif(not os.environ.get("HT_MODULE"),
                       reason="the kernel module was not built")]


def memory_image(tmp, job, *more):
    """Build an initrd with the driver's modules, the program ht-tracetest, and more files;
    return its path."""
    return initrd(tmp / "initrd", "PATH=$PATH:/ht\n" + job,
                  os.environ["HT_MODULE"], *sources_module().values(),
                  TRACETEST, *more)


def events(trace):
    """Return (babeltrace2's lines, one for each event; number of discarded events).  There
    are no lines if babeltrace2 cannot read the trace, such as one that has just begun."""
    p = subprocess.run(["babeltrace2", trace], capture_output=True, text=True)
    lost = sum(map(int, re.findall(r"discarded (\d+) event", p.stderr)))
    return p.stdout.splitlines(), lost


def numbers(lines):
    return [int(re.search(r"tracetest\.tick:.*\{ n = (\d+)", line)[1])
            for line in lines if "tracetest.tick" in line]


THREADS_JOB = """
while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done
cat /sys/class/misc/hypertrace0/channel >/dev/console
insmod /ht/hypertrace-sources.ko events=sched
ht-tracetest threads 4 3000 >/dev/console
rmmod hypertrace-sources
"""
# The guest's program ht-info prints the times of the guest's vCPUs, which a recorder
# with --tell-guest writes into the guest's memory.
TOLD_JOB = """
until ht-info | grep -q stolen; do usleep 100000; done
ht-info >/dev/console
"""
READY_JOB = """
rmmod hypertrace && echo READY >/dev/console
sleep 1000
"""


@pytest.mark.usefixtures("host")
def test_record(tmp_path, env):  # noqa: F811
    """Each event of eight threads, four at a time, is in the recording or was counted as
    discarded; those of a thread are there once and in order. If none was discarded,
    each task switch of a processor begins with the task with which the previous switch
    ended. The modules can be unloaded. If the host can trace the vCPUs, the guest's program
    ht-info reads their times."""
    need("babeltrace2")
    tells = can_trace()
    job = THREADS_JOB + (TOLD_JOB if tells else "") + READY_JOB
    command = guest(tmp_path, memory_image(tmp_path, job, INFO))
    recorder = record_until(tmp_path, env, "READY", command, "--programs",
                            *(("--host", "--tell-guest") if tells else ()))
    recorder.terminate()
    recorder.communicate(timeout=DEADLINE)
    if tells:
        # The columns are guest, exits, VMM, halted, waiting, ... With TCG, the thread of QEMU
        # that emulates both vCPUs counts as VMM: guest, exits and halted are 0.
        told = re.search(r"^ +all +0 +0 +(\d+) +0 +\d+ ", console(tmp_path), re.M)
        assert told and int(told[1]) > 100, console(tmp_path)
    assert "\nmemory" in console(tmp_path)
    emitted = int(re.search(r"emitted (\d+)", console(tmp_path))[1])
    lines, lost = events(tmp_path / "rec/programs")
    steps = [re.search(r"thread = (\d+), n = (\d+)", line)
             for line in lines if "tracetest.step" in line]
    assert len(steps) + lost == emitted, console(tmp_path)
    for thread in range(8):
        seen = [int(m[2]) for m in steps if int(m[1]) == thread]
        assert seen == sorted(set(seen))
    running = {}
    for line in lines:
        m = re.search(r" sched_switch: .*stream_index = (\d+) .*"
                      r"prev_pid = (\d+),.*next_pid = (\d+)", line)
        if m:
            assert lost or running.get(m[1], m[2]) == m[2], line
            running[m[1]] = m[3]
    assert len(running) == 2, console(tmp_path)


HOSTS_JOB = """
ls -d /sys/bus/pci/drivers/hypertrace/0* | sed "s/.*/BOUND/"
[ ! -e /dev/hypertrace0 ] || echo EARLY
ht-tracetest emit 500
echo ABSENT
while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done
ht-tracetest switched &
read -r line <$JOB_OUT
touch /tmp/end
wait
read -r line <$JOB_OUT
rmmod hypertrace && echo REMOVED
"""


class Host:
    """A recorder that is attached to the file tmp/memory.  With --create, the file is
    complete when the constructor returns."""

    def __init__(self, tmp, env, name, *options):
        self.dir = tmp / name
        self.process = subprocess.Popen(
            [HYPERTRACE, "attach", *options, "-o", self.dir, tmp / "memory"],
            env=env, stderr=subprocess.PIPE, text=True)
        self.errors = ""
        if any(option.startswith("--create") for option in options):
            while "-device" not in self.process.stderr.readline():
                assert self.process.poll() is None

    def count(self):
        return len(events(self.dir / "programs")[0])

    def wait_events(self, count):
        deadline = time.monotonic() + DEADLINE
        while self.count() < count:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def end(self, kill=False):
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.errors = self.process.communicate(timeout=DEADLINE)[1]


def test_hosts(tmp_path, env):  # noqa: F811
    """A recorder that starts after the guest's boot gets events. If it is killed and another
    recorder attaches, each event from the first one's start on is in one of the two
    recordings, in order, or counted as discarded. The driver does not write to another
    ivshmem device."""
    need("babeltrace2")
    (tmp_path / "other").write_bytes(bytes(1 << 20))
    first = Host(tmp_path, env, "first", "--create=64M")
    first.end(kill=True)
    qemu = subprocess.Popen(
        [*guest(tmp_path, memory_image(tmp_path, HOSTS_JOB)),
         "-serial", f"unix:{tmp_path}/job,server=on,wait=off",
         "-object", "memory-backend-file,id=m,share=on,size=64M,"
         f"mem-path={tmp_path}/memory", "-device", "ivshmem-plain,memdev=m",
         "-object", "memory-backend-file,id=o,share=on,size=1M,"
         f"mem-path={tmp_path}/other", "-device", "ivshmem-plain,memdev=o"],
        stdin=subprocess.DEVNULL)
    try:
        wait_for(tmp_path, "ABSENT", qemu)
        assert "emitted 500" in console(tmp_path)
        assert "EARLY" not in console(tmp_path)
        assert console(tmp_path).count("BOUND") == 1
        a = Host(tmp_path, env, "a")
        a.wait_events(300)
        a.end(kill=True)
        b = Host(tmp_path, env, "b")
        b.wait_events(300)
        with socket.socket(socket.AF_UNIX) as job:
            job.connect(f"{tmp_path}/job")
            job.send(b"end\n")
            wait_for(tmp_path, r"emitted (?!500)\d+", qemu)
            # The driver is unloaded while no recorder runs.
            b.end()
            job.send(b"end\n")
            wait_for(tmp_path, "REMOVED", qemu)
    finally:
        qemu.kill()
        qemu.wait()
    emitted = int(re.search(r"emitted (?!500)(\d+)", console(tmp_path))[1])
    lines, lost = events(a.dir / "programs")
    more, more_lost = events(b.dir / "programs")
    seen = numbers(lines) + numbers(more)
    assert seen == sorted(set(seen))
    assert len(seen) + lost + more_lost == emitted
    assert "WARNING: CPU" not in console(tmp_path)
    assert not any((tmp_path / "other").read_bytes())


STOPPED_JOB = """
while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done
ht-tracetest switched &
program=$!
read -r line <$JOB_OUT
seconds() { cut -d. -f1 /proc/uptime; }
begun=$(seconds)
kill -9 $program
wait $program
echo "EXIT $(($(seconds) - begun))"
insmod /ht/hypertrace-sources.ko events=sched && echo LOADED
read -r line <$JOB_OUT
rmmod hypertrace-sources && rmmod hypertrace && echo REMOVED
"""


def test_stopped_host(tmp_path, env):  # noqa: F811
    """While the recorder is stopped by SIGSTOP, a process of the guest with an open stream
    ends within 5 s of its kill. The classes of the kernel's events cannot be registered
    meanwhile; after the recorder continues, it records these events."""
    need("babeltrace2")
    host = Host(tmp_path, env, "host", "--create=64M")
    qemu = subprocess.Popen(
        [*guest(tmp_path, memory_image(tmp_path, STOPPED_JOB)),
         "-serial", f"unix:{tmp_path}/job,server=on,wait=off",
         "-object", "memory-backend-file,id=m,share=on,size=64M,"
         f"mem-path={tmp_path}/memory", "-device", "ivshmem-plain,memdev=m"],
        stdin=subprocess.DEVNULL)
    try:
        host.wait_events(100)
        with socket.socket(socket.AF_UNIX) as job:
            job.connect(f"{tmp_path}/job")
            host.process.send_signal(signal.SIGSTOP)
            job.send(b"stopped\n")
            wait_for(tmp_path, "LOADED", qemu)
            host.process.send_signal(signal.SIGCONT)
            deadline = time.monotonic() + DEADLINE
            while not any("sched_switch" in line for line in
                          events(host.dir / "programs")[0]):
                assert host.process.poll() is None
                assert time.monotonic() < deadline, console(tmp_path)[-2000:]
                time.sleep(0.2)
            job.send(b"end\n")
            wait_for(tmp_path, "REMOVED", qemu)
    finally:
        host.process.send_signal(signal.SIGCONT)
        host.end()
        qemu.kill()
        qemu.wait()
    assert int(re.search(r"EXIT (\d+)", console(tmp_path))[1]) < 5
    assert "WARNING: CPU" not in console(tmp_path)
