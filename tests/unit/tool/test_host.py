# SPDX-License-Identifier: GPL-2.0-or-later
"""record --host and vcpus: the work of a host for the vCPUs of a guest."""

import collections
import configparser
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from hosttrace import (  # noqa: F401
    DIES, ENTRY, EXIT, IDLE, RUNS, USER, WAITS, WAKING, can_trace, event, free_host, make, piece,
    switch)
from hypertrace import ENV, TOOL, run

# A host's part of a KVM host with a guest of two vCPUs (Debian 13 on AMD's SVM, emulated). The
# host's clock was x86-tsc: the dates are cycles, which the tests take for nanoseconds.
REAL = Path(__file__).parent / "kvm-host"
DEADLINE = 120

def vcpus(path):
    return json.loads(run("vcpus", "--json", path).stdout)


VCPU, RIVAL = ("CPU 0/KVM", 11), ("rival", 12)

# Events of a processor, and what vcpus must compute from them: sums in ns, {reason of exits:
# (number, sum and maximum in ns)}, and {PID for which the vCPU waited: ns}
STORIES = {
    "an exit excludes the time off the processor": (
        [(1000, switch(IDLE, RUNS, VCPU)), (1010, event(ENTRY, 11, 0)),
         (1100, event(EXIT, 11, 0x7b, 0)), (1130, switch(VCPU, RUNS, RIVAL)),
         (1630, switch(RIVAL, RUNS, VCPU)), (1650, event(ENTRY, 11, 0)),
         (1700, event(EXIT, 11, 0x7b, 0)), (1710, event(ENTRY, 11, 0)),
         (1800, switch(VCPU, RUNS, IDLE))],
        {"guest_ns": 90 + 50 + 90, "exits_ns": 30 + 20 + 10, "qemu_ns": 10,
         "preempted_ns": 500, "halted_ns": 0, "waiting_ns": 0, "unknown_ns": 0},
        {"io": (2, 60, 50)}, {12: 500}),
    "time in QEMU is a part of the exit": (
        [(1000, event(ENTRY, 11, 0)), (1100, event(EXIT, 11, 0x7b, 0)),
         (1120, event(USER, 11, 2)), (1170, event(ENTRY, 11, 0)),
         (1200, event(EXIT, 11, 0x7b, 0))],
        {"guest_ns": 130, "exits_ns": 20, "qemu_ns": 50, "preempted_ns": 0,
         "unknown_ns": 0},
        {"io": (1, 70, 70)}, {}),
    "a halted vCPU is blocked until it is woken": (
        [(1000, event(ENTRY, 11, 0)), (1100, event(EXIT, 11, 0x78, 0)),
         (1110, switch(VCPU, WAITS, RIVAL)), (1400, event(WAKING, 12, "CPU 0/KVM", 11, 120, 0)),
         (1500, switch(RIVAL, RUNS, VCPU)), (1520, event(ENTRY, 11, 0)),
         (1530, switch(VCPU, WAITS, IDLE)), (1600, switch(IDLE, RUNS, VCPU)),
         (1610, event(EXIT, 11, 0x7b, 0))],
        {"guest_ns": 100 + 10 + 10, "exits_ns": 30, "halted_ns": 290, "woken_ns": 100,
         "waiting_ns": 70, "preempted_ns": 0, "unknown_ns": 0},
        {"hlt": (1, 30, 30)}, {12: 100}),
    "a thread of TCG has no exits": (
        [(1000, switch(IDLE, RUNS, ("CPU 0/TCG", 11))),
         (1400, switch(("CPU 0/TCG", 11), WAITS, IDLE)),
         (1900, switch(IDLE, RUNS, ("CPU 0/TCG", 11))),
         (2000, switch(("CPU 0/TCG", 11), DIES, IDLE)), (9000, switch(IDLE, RUNS, RIVAL))],
        {"guest_ns": 0, "exits_ns": 0, "qemu_ns": 500, "halted_ns": 0, "waiting_ns": 500,
         "unknown_ns": 0},
        {}, {}),
    "a thread of KVM without events of KVM has unknown modes": (
        [(1000, switch(IDLE, RUNS, VCPU)), (1400, switch(VCPU, WAITS, IDLE)),
         (1900, switch(IDLE, RUNS, VCPU)), (2000, switch(VCPU, RUNS, IDLE))],
        {"guest_ns": 0, "exits_ns": 0, "qemu_ns": 0, "halted_ns": 0, "waiting_ns": 500,
         "unknown_ns": 500},
        {}, {}),
    "states that contradict each other are unknown": (
        [(1000, switch(IDLE, RUNS, VCPU)), (1010, event(ENTRY, 11, 0)),
         (1500, switch(IDLE, RUNS, VCPU)), (1600, switch(VCPU, RUNS, IDLE))],
        {"unknown_ns": 490, "guest_ns": 100, "qemu_ns": 10},
        {}, {}),
}


@pytest.mark.parametrize("name", STORIES)
def test_story(tmp_path, name):
    """The sums of each kind of interval are those that were computed by hand."""
    events, sums, exits, takers = STORIES[name]
    trace = vcpus(make(tmp_path / "rec", [[piece(events)]], "11 10 CPU 0/KVM\n"))
    (one,) = trace["vcpus"]
    assert (one["process"], one["vcpu"], one["thread"]) == (10, 0, 11)
    assert {k: one[k] for k in sums} == sums
    assert {e["name"]: (e["number"], e["ns"], e["max_ns"]) for e in one["exits"]} == exits
    assert {t["pid"]: t["ns"] for t in one["waited_for"] if t["pid"]} == takers


def test_lost_events_are_unknown_time(tmp_path):
    """From the start of a gap on any processor, the state of each vCPU is unknown
    until its next change."""
    path = make(tmp_path / "rec", [
        [piece([(1000, switch(IDLE, RUNS, VCPU)), (1010, event(ENTRY, 11, 0))]),
         piece([(1900, switch(VCPU, RUNS, IDLE))])],
        [piece([(1200, switch(IDLE, RUNS, RIVAL))]),
         piece([(1500, switch(RIVAL, RUNS, IDLE))], lost=True)]])
    trace = vcpus(path)
    (one,) = trace["vcpus"]
    assert trace["gaps"] == 1
    assert one["running"]["ns"] == 200
    assert one["unknown_ns"] == 700


def test_modes_before_a_gap_stay_unknown(tmp_path):
    """The first change of a vCPU's mode after a gap shows the mode since the gap only."""
    (one,) = vcpus(make(tmp_path / "rec", [[
        piece([(1000, switch(IDLE, RUNS, VCPU)), (1300, switch(VCPU, WAITS, IDLE))]),
        piece([(2000, switch(IDLE, RUNS, VCPU)), (2050, event(EXIT, 11, 0x7b, 0)),
               (2060, switch(VCPU, RUNS, IDLE))], lost=True)]], "11 10 CPU 0/KVM\n"))["vcpus"]
    assert (one["running"]["ns"], one["guest_ns"], one["exits_ns"]) == (360, 50, 10)
    assert one["unknown_ns"] == 300 + 700


def expected(path):
    """Compute the sums that vcpus must print, from the text of report."""
    sums = collections.defaultdict(collections.Counter)
    state, mode, since, ends = {}, {}, {}, {}
    vcpu, exits, opened = {}, collections.Counter(), {}
    text = run("report", path).stdout.decode()
    for line in text.splitlines():
        m = re.match(r" *(\d+)\.(\d{9}) \S+ \[\d+\] .*-(\d+) +(\w+): (.*)", line)
        assert m, line
        t, tid, what, rest = int(m[1] + m[2]), int(m[3]), m[4], m[5]
        if what in ("kvm_entry", "kvm_exit"):
            vcpu.setdefault(tid, t)
        changes = []
        if what == "sched_switch":
            s = re.search(r"prev_pid=(\d+) .* prev_state=(\S+) ==> .* next_pid=(\d+)", rest)
            changes = [(int(s[1]), "preempted" if s[2][0] == "R" else "blocked"),
                       (int(s[3]), "running")]
        elif what in ("kvm_entry", "kvm_exit"):
            changes = [(tid, "running")]
        for pid, new in changes:
            old = state.get(pid)
            if pid in vcpu and old:
                was = mode[pid] if old == "running" else old
                sums[pid][was] += t - since[pid]
                if pid in opened and old == "running":
                    opened[pid][1] += t - since[pid]
            state[pid], since[pid] = new, t
            mode.setdefault(pid, None)
        if what == "kvm_entry":
            mode[tid] = "guest"
            if tid in opened:
                reason, ns = opened.pop(tid)
                exits[tid, reason, "number"] += 1
                exits[tid, reason, "ns"] += ns
        elif what == "kvm_exit":
            if mode[tid] is None and tid in sums:
                sums[tid]["guest"] += sums[tid].pop(None, 0)
            mode[tid] = "exits"
            opened[tid] = [re.search(r"reason (\w+)", rest)[1], 0]
        ends["all"] = t
    for tid in vcpu:
        was = mode[tid] if state[tid] == "running" else state[tid]
        sums[tid][was] += ends["all"] - since[tid]
    return sums, exits


def test_real_kvm_host():
    """The times by state and by reason of exits of a real trace equal those of a second
    implementation. The sum of the times by taker is within 2 % of the time waited."""
    sums, exits = expected(REAL)
    trace = vcpus(REAL)
    assert [v["vcpu"] for v in trace["vcpus"]] == [0, 1]
    assert trace["gaps"] == trace["damaged_bytes"] == trace["left_out"] == 0
    for v in trace["vcpus"]:
        tid = v["thread"]
        other = sums[tid]
        assert v["guest_ns"] == other["guest"]
        assert v["exits_ns"] + v["qemu_ns"] == other["exits"]
        assert v["preempted_ns"] == other["preempted"]
        assert v["halted_ns"] + v["waiting_ns"] == other["blocked"]
        found = {(tid, e["name"], k): e[k] for e in v["exits"] for k in ("number", "ns")}
        assert found == {k: n for k, n in exits.items() if k[0] == tid}
        assert sum(t["ns"] for t in v["waited_for"]) == pytest.approx(
            v["runnable"]["ns"], rel=0.02)


def test_text_and_its_errors(tmp_path):
    """The table names reasons of exits; a folder without a host's part is refused."""
    text = run("vcpus", REAL).stdout.decode()
    assert "hlt" in text and "hypertrace" in text
    (tmp_path / "info").write_text("[recording]\nversion=1\n")
    assert b"record --host" in run("vcpus", tmp_path, status=1).stderr
    assert b"no directory" in run("vcpus", tmp_path / "none", status=1).stderr
    assert b"--xentrace" in run("vcpus", "--cpu-hz=1G", REAL, status=2).stderr


def test_damaged_parts_are_read(tmp_path):
    """Random damage in a host's files, except info, gives sums or an error, and the
    times are consistent."""
    rng = random.Random(36)
    original = {n: (REAL / n).read_bytes() for n in ("cpu0", "cpu1", "formats", "info")}
    original["threads"] = b"178 176 CPU 0/KVM\n179 176 CPU 1/KVM\n"
    for turn in range(40):
        part = tmp_path / str(turn) / "host"
        part.mkdir(parents=True)
        for name, data in original.items():
            damaged = bytearray(data)
            if name in ("cpu0", "cpu1", "threads") or turn % 4 == 0:
                for _ in range(rng.randrange(30)):
                    damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            if name != "info" and turn % 5 == 0:
                damaged = damaged[:rng.randrange(len(damaged))]
            (part / name).write_bytes(data if name == "info" else damaged)
        p = subprocess.run([TOOL, "vcpus", "--json", part.parent], env=ENV,
                           capture_output=True, timeout=DEADLINE, check=False)
        assert p.returncode in (0, 1), p.stderr
        if p.returncode == 0:
            trace = json.loads(p.stdout)
            for v in trace["vcpus"]:
                parts = sum(v[s]["ns"] for s in ("running", "runnable", "blocked", "offline"))
                assert parts <= trace["ns"], turn
                assert v["guest_ns"] + v["exits_ns"] + v["qemu_ns"] <= v["running"]["ns"]
                assert sum(t["ns"] for t in v["waited_for"]) <= \
                    v["runnable"]["ns"] + v["unknown_ns"]


# ---- record --host, on this machine

live = [pytest.mark.skipif(not can_trace(), reason="tracefs needs root and a kernel with it"),
        pytest.mark.xdist_group("record")]


# A thread with the name of a vCPU competes with another process for one processor, then sleeps.
# The program prints four times in nanoseconds (the thread's CPU time, the sleep, the whole time,
# and the time stolen from all processors of this machine), the other process's PID and its own.
PROGRAM = """
import ctypes, os, subprocess, sys, time
stolen = lambda: int(open("/proc/stat").readline().split()[8]) * 10**9 // os.sysconf("SC_CLK_TCK")
name = lambda s: ctypes.CDLL(None).prctl(15, s, 0, 0, 0)
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
rival = subprocess.Popen([sys.executable, "-c", "import ctypes\\n"
    "ctypes.CDLL(None).prctl(15, b'rival', 0, 0, 0)\\nprint(flush=True)\\nwhile True: pass"],
    stdout=subprocess.PIPE)
rival.stdout.readline()
name(b"CPU 0/TCG")
stolen_before = stolen()
begin, wall = time.thread_time_ns(), time.monotonic_ns()
while time.thread_time_ns() - begin < 400_000_000:
    pass
rival.kill()
asleep = time.monotonic_ns()
time.sleep(0.3)
asleep = time.monotonic_ns() - asleep
print(time.thread_time_ns() - begin, asleep, time.monotonic_ns() - wall, stolen() - stolen_before,
      rival.pid, os.getpid(), flush=True)
# The end of the interpreter takes time that the program cannot print.
os._exit(0)
"""


# A process that maps as much memory as a small guest, and ends when its parent does
GUEST = """
import ctypes, mmap, os, time
ctypes.CDLL(None).prctl(1, 9)
memory = mmap.mmap(-1, 64 << 20)
memory.write(bytes(64 << 20))
print(os.getpid(), flush=True)
time.sleep(1000)
"""


def record(path, *command, **kwargs):
    return subprocess.Popen([TOOL, "record", "--host", "-o", path, "--", *command], env=ENV,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


@pytest.mark.usefixtures("host")
class TestLive:
    pytestmark = live

    def test_thread_that_competes(self, tmp_path):
        """The recorded times agree with those that the thread measured itself, within
        some percent and some 10 ms."""
        p = record(tmp_path / "rec", sys.executable, "-c", PROGRAM)
        out, err = p.communicate(timeout=DEADLINE)
        number = re.search(r"(\d+) events of the host", err)[1]
        assert run("report", tmp_path / "rec/host").stdout.count(b"\n") == int(number)
        cpu, asleep, wall, stolen, rival, pid = map(int, out.split())
        # The recording may also have machines of other users of this host.
        (one,) = [v for v in vcpus(tmp_path / "rec")["vcpus"] if v["process"] == pid]
        assert (one["vcpu"], one["thread"]) == (0, pid)
        # The thread's own clock stands still while the machine that runs this
        # test is not running on its own host (stolen time).
        assert cpu * 0.95 - 20_000_000 < one["qemu_ns"] < cpu * 1.05 + stolen + 20_000_000
        # After its sleep, the thread may have to wait for a processor.
        assert 290_000_000 < one["waiting_ns"] < asleep + 20_000_000
        assert sum(one[k]["ns"] for k in ("running", "runnable", "blocked")) + \
            one["unknown_ns"] == pytest.approx(wall, rel=0.05, abs=30_000_000)
        takers = {t["pid"]: t for t in one["waited_for"]}
        assert takers[rival]["ns"] > 50_000_000
        assert takers[rival]["name"] == "rival"

    def test_wrapper_that_starts_qemu(self, tmp_path):
        """If a program starts QEMU and waits for it, the host's part names the
        process of QEMU, not that of the program."""
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(f"#!/bin/sh\n{sys.executable} -c '{GUEST}' &\nwait\n")
        wrapper.chmod(0o755)
        p = record(tmp_path / "rec", wrapper, "-m", "128", "-nodefaults")
        info = configparser.ConfigParser(interpolation=None)
        pid = p.stdout.readline().strip()
        deadline = time.monotonic() + DEADLINE
        while info.get("host", "pid", fallback="") != pid:
            assert time.monotonic() < deadline, (pid, dict(info["host"]))
            # The recorder writes the file every 10 s.
            info.read(tmp_path / "rec/host/info")
            time.sleep(0.1)
        p.terminate()
        p.communicate(timeout=DEADLINE)

    def test_second_recorder_shares_and_dead_owner_is_replaced(self, tmp_path):
        """All recorders share one tracing instance of the host. After its owner is killed, the
        next recorder takes the instance over."""
        first = record(tmp_path / "a", "sleep", "1000")
        try:
            self.wait(tmp_path / "a/host/formats", first)
            second = record(tmp_path / "b", "sleep", "0.1")
            _, err = second.communicate(timeout=DEADLINE)
            assert "another recorder" in err
            assert os.readlink(tmp_path / "b/host") == str(tmp_path / "a/host")
        finally:
            children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
            first.kill()
            for pid in children:
                os.kill(int(pid), signal.SIGKILL)
            first.communicate()
        third = record(tmp_path / "c", "sleep", "0.1")
        _, err = third.communicate(timeout=DEADLINE)
        assert "events of the host" in err, err
        assert not (tmp_path / "c/host").is_symlink()
        assert run("report", tmp_path / "c/host").stdout.count(b"sched_switch") > 1

    @staticmethod
    def wait(path, process):
        deadline = time.monotonic() + DEADLINE
        while not path.exists():
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def test_without_permission_the_guest_runs(self):
        """Without permission to trace the host, one line gives the reason, and the guest runs."""
        with tempfile.TemporaryDirectory() as folder:
            # The other user may be unable to enter the folders of the build and of the tests.
            tool = shutil.copy(TOOL, folder)
            os.chmod(folder, 0o777)
            p = subprocess.run([tool, "record", "--host", "-o", f"{folder}/rec", "--", "echo",
                                "guest"], user=65534, group=65534, extra_groups=[], cwd="/",
                               env=ENV, capture_output=True, text=True, timeout=DEADLINE,
                               check=False)
            assert p.stdout == "guest\n"
            reasons = re.findall("--host: only the guest is recorded: .*root", p.stderr)
            assert len(reasons) == 1, p.stderr
            assert not os.path.exists(f"{folder}/rec/host")
