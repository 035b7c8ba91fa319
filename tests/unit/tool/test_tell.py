# SPDX-License-Identifier: GPL-2.0-or-later
"""--tell-guest: the guest reads what its host does with its vCPUs.

The guest is the program programs-guest: it reads the memory that QEMU's ivshmem-plain
would map, with the library.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from hosttrace import (  # noqa: F401
    DEADLINE, DIES, ENTRY, EXIT, IDLE, RUNS, USER, WAITS, WAKING, can_trace, event, free_host,
    make_part, piece, switch)
from hypertrace import ENV, TOOL, run
from test_host import REAL
from test_programs import GUEST, Attach, Guest

ENODATA = 61
VCPU, OTHER, OWN = ("CPU 0/KVM", 11), ("CPU 0/KVM", 31), ("worker", 13)
RIVAL = ("rival", 2**22)        # above all thread IDs, so this host has no such thread
THREADS = "11 10 CPU 0/KVM\n12 10 CPU 1/KVM\n13 10 worker\n31 30 CPU 0/KVM\n"

# Each cause of stolen time, a halt, and more reasons of exits than the page has room for
EVENTS = [
    (1000, event(ENTRY, 11, 0)), (1100, event(EXIT, 11, 0x78, 0)),
    (1110, switch(VCPU, WAITS, IDLE)), (1400, event(WAKING, 12, "CPU 0/KVM", 11, 120, 0)),
    (1450, switch(IDLE, RUNS, VCPU)), (1500, event(ENTRY, 11, 0)),
    (1600, event(EXIT, 11, 0x7b, 0)), (1620, switch(VCPU, RUNS, OTHER)),
    (1720, switch(OTHER, RUNS, RIVAL)), (1760, switch(RIVAL, RUNS, OWN)),
    (1790, switch(OWN, RUNS, VCPU)), (1800, event(ENTRY, 11, 0)),
] + [e for n in range(20) for e in ((1810 + 20 * n, event(EXIT, 11, n, 0)),
                                    (1815 + 20 * n + n // 2, event(ENTRY, 11, 0)))]


def recording(path, pieces, pid=10, info=""):
    """Make a recording as "record --host" has it while it runs. pieces: of CPU 0 of the host.
    pid: process of the virtual machine. info: more lines of the file info"""
    part = make_part(path / "host", [pieces])
    (part / "threads").write_text(THREADS)
    (path / "info").write_text(f"[recording]\nversion=1\nprocess={pid}\n{info}")
    return path


class Teller(Attach):
    def __init__(self, tmp, *options):
        self.file = tmp / "memory"
        create = () if self.file.exists() else ("--create=16M",)
        super().__init__(self.file, tmp / f"out{time.monotonic_ns()}", *create, *options)


def ask(process, vcpu=0):
    process.stdin.write(f"host {vcpu}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def wait_for(process, accept, vcpu=0):
    """Ask the guest for the data of the vCPU until accept(answer) is true; return that answer."""
    deadline = time.monotonic() + DEADLINE
    while True:
        answer = ask(process, vcpu)
        if accept(answer):
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)


def vcpus(path):
    return json.loads(run("vcpus", "--json", path).stdout)["vcpus"]


def same(told, v):
    """Assert that the sums that the guest was told (@told) are those that vcpus
    prints (@v)."""
    for name, other in (("vmm_ns", "qemu_ns"), *((k, k) for k in (
            "guest_ns", "exits_ns", "preempted_ns", "woken_ns", "halted_ns", "waiting_ns",
            "unknown_ns"))):
        assert told[name] == v[other], name
    first = [[e["reason"], e["name"][:19], e["number"], e["ns"]] for e in v["exits"]]
    assert told["exits"] == first[:16]
    rest = v["exits"][16:]
    assert told["other_exits"] == sum(e["number"] for e in rest)
    assert told["other_exits_ns"] == sum(e["ns"] for e in rest)


def test_sums_and_causes(tmp_path):
    """Promise: the guest gets the sums that `vcpus` prints for its vCPU 0, not those of vCPU 0 of
    another process, and the causes of stolen time. For a vCPU without events it gets no data."""
    rec = recording(tmp_path / "rec", [piece(EVENTS)])
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        told = wait_for(guest.process, lambda a: not a["error"])
        (mine,) = [v for v in vcpus(rec) if v["process"] == 10]
        same(told, mine)
        assert (told["vcpu"], told["from_ns"], told["to_ns"]) == (0, 1000, EVENTS[-1][0])
        assert told["other_exits"] == 22 - 16
        causes = {"machines_ns": 100, "tasks_ns": 40, "own_ns": 30, "idle_ns": 50}
        assert {k: told[k] for k in causes} == causes
        assert ask(guest.process, 1)["error"] == ENODATA


def test_real_host(tmp_path):
    """Promise: for the recording of a real host, the guest gets the sums that `vcpus` prints, to
    the nanosecond."""
    rec = recording(tmp_path / "rec", [], 176)
    for name in ("formats", "cpu0", "cpu1"):
        shutil.copy(REAL / name, rec / "host")
    (rec / "host/threads").write_text("178 176 CPU 0/KVM\n179 176 CPU 1/KVM\n")
    want = {v["vcpu"]: v for v in vcpus(rec)}
    assert set(want) == {0, 1}
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        for n, v in want.items():
            same(wait_for(guest.process, lambda a: not a["error"], n), v)


def test_host_that_is_being_recorded(tmp_path):
    """Promise: while the recording grows, also by files of further CPUs, the sums that the guest
    gets grow with it. In the end they are those that `vcpus` prints."""
    rec = recording(tmp_path / "rec", [])
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        assert ask(guest.process)["error"] == ENODATA
        for step in range(6):
            events = [(t + 10000 * step, e) for t, e in EVENTS]
            for part in (events[:6], events[6:8], events[8:]):
                with open(rec / f"host/cpu{step % 3}", "ab") as f:
                    f.write(piece(part))
                told = wait_for(guest.process, lambda a, end=part[-1][0]: a.get("to_ns") == end)
        same(told, *(v for v in vcpus(rec) if v["process"] == 10))
        assert told["machines_ns"] == 6 * 100 and told["own_ns"] == 6 * 30


def test_without_consent(tmp_path):
    """Promise: while attach runs without --tell-guest, the guest gets no data, also if an attach
    with --tell-guest ran before and was killed. If SIGTERM ends attach, the guest loses
    the data."""
    rec = recording(tmp_path / "rec", [piece(EVENTS)])
    tell = f"--tell-guest={rec}"
    with Teller(tmp_path) as host, Guest(host.file) as guest:
        assert ask(guest.process)["error"] == ENODATA
        host.end()
        with Teller(tmp_path, tell) as killed:
            old = wait_for(guest.process, lambda a: not a["error"])
            killed.process.kill()
            killed.process.wait(timeout=DEADLINE)
            assert ask(guest.process) == old
        with Teller(tmp_path) as silent:
            wait_for(guest.process, lambda a: a["error"] == ENODATA)
            silent.end()
        with Teller(tmp_path, tell) as host:
            wait_for(guest.process, lambda a: not a["error"])
            host.end()
            assert ask(guest.process)["error"] == ENODATA


def test_errors(tmp_path):
    """record and attach refuse --tell-guest with the reason, if --host, --programs or a recording
    of this host that still runs is missing."""
    for options in ((), ("--host",), ("--programs",)):
        err = run("record", "--tell-guest", *options, "--", "true", status=2).stderr
        assert b"--host" in err and b"--programs" in err
    memory = tmp_path / "memory"
    for n, (info, why) in enumerate((("", b"--host"), ("end=ended\n", b"has ended"),
                                     ("host-boot=another\n", b"booted"))):
        path = recording(tmp_path / f"rec{n}", [], info=info)
        if not info:
            shutil.rmtree(path / "host")
        err = run("attach", f"--tell-guest={path}", "--create=8M", memory, status=1).stderr
        assert str(path).encode() in err and why in err
        assert not memory.exists()


def wait_for_polls(process):
    """Wait until a process that polls has waited twice more."""
    def waits():
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    deadline = time.monotonic() + DEADLINE
    end = waits() + 2
    while waits() < end:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


def test_attach_before_the_recorder(tmp_path):
    """Promise: attach --tell-guest waits until the recording exists and its file info has the PID
    of the virtual machine."""
    rec = tmp_path / "rec"
    with Teller(tmp_path) as host:
        host.end()
    with Teller(tmp_path, f"--tell-guest={rec}") as host:
        wait_for_polls(host.process)
        recording(rec, [piece(EVENTS)], pid=0)
        wait_for_polls(host.process)
        recording(rec, [piece(EVENTS)])
        with Guest(host.file) as guest:
            wait_for(guest.process, lambda a: not a["error"])


def told_after(tmp_path, events, end):
    """Record events. When the guest's data of vCPU 0 reach the time @end, return
    them, and those of vCPU 1."""
    rec = recording(tmp_path / "rec", [piece(events)])
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        told = wait_for(guest.process, lambda a: a.get("to_ns") == end)
        return told, ask(guest.process, 1)


def test_replugged_vcpu(tmp_path):
    """Promise: after a vCPU was unplugged and plugged in again, the guest gets
    the sums of its new thread, whose from_ns is later. If the first event of a
    thread does not tell its vCPU, a later event does."""
    told, other = told_after(tmp_path, [
        (1000, event(ENTRY, 11, 0)), (1100, event(EXIT, 11, 0x7b, 0)),
        (1200, event(USER, 12, 2)), (1210, event(ENTRY, 12, 1)),
        (1300, switch(VCPU, DIES, IDLE)), (1400, event(ENTRY, 13, 0)),
        (1450, event(EXIT, 13, 0x7b, 0)), (1460, event(ENTRY, 13, 0))], 1460)
    assert (told["from_ns"], told["guest_ns"]) == (1400, 50)
    assert (other["vcpu"], other["from_ns"], other["guest_ns"]) == (1, 1210, 250)


def test_reused_thread_id(tmp_path):
    """Promise: a vCPU's thread of the guest's QEMU ends, and a vCPU of another process
    gets its thread ID: the guest gets no data of that vCPU."""
    tid = RIVAL[1]
    first = [(1000, event(ENTRY, tid, 1)), (1100, switch(("CPU 1/KVM", tid), DIES, IDLE))]
    then = [(1200, event(ENTRY, tid, 1)), (1300, event(EXIT, tid, 0x7b, 1)),
            (1400, event(ENTRY, 11, 0)), (1500, event(EXIT, 11, 0x7b, 0))]
    rec = recording(tmp_path / "rec", [piece(first + then)])
    with open(rec / "host/threads", "a", encoding="ascii") as threads:
        threads.write(f"{tid} 10 CPU 1/KVM\n")
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        wait_for(guest.process, lambda a: a.get("to_ns") == 1500)
        assert ask(guest.process, 1)["error"] == ENODATA


def test_full_table_of_exits(tmp_path):
    """Promise: exits with more reasons than the host's table of reasons holds are counted in
    other_exits."""
    count = 8200
    events = [e for n in range(count) for e in (
        (1000 + 10 * n, event(EXIT, 11, n, 0)), (1005 + 10 * n, event(ENTRY, 11, 0)))]
    rec = recording(tmp_path / "rec", [])
    (rec / "host/cpu0").write_bytes(b"".join(piece(events[n:n + 100])
                                             for n in range(0, 2 * count, 100)))
    with Teller(tmp_path, f"--tell-guest={rec}") as host, Guest(host.file) as guest:
        told = wait_for(guest.process, lambda a: a.get("to_ns") == events[-1][0])
        assert told["other_exits"] == count - 16
        assert told["other_exits_ns"] == 5 * (count - 16)


def test_messages_after_ten_seconds(tmp_path):
    """Promise: after some seconds, attach reports once that the recorded process has no vCPU.
    Another attach reports that its recording does not exist, and returns 1."""
    rec = recording(tmp_path / "rec", [piece(EVENTS)], pid=77)
    with Teller(tmp_path, f"--tell-guest={rec}") as host, subprocess.Popen(
            [TOOL, "attach", f"--tell-guest={tmp_path / 'none'}", host.file], env=ENV,
            stderr=subprocess.PIPE, text=True) as other:
        assert "process 77 has no vCPU" in host.process.stderr.readline()
        assert "process 77" not in host.end()[1]
        assert "none" in other.communicate(timeout=DEADLINE)[1]
        assert other.returncode == 1


@pytest.mark.skipif(not can_trace(), reason="tracefs needs root and a kernel with it")
@pytest.mark.xdist_group("record")
@pytest.mark.usefixtures("host")
def test_live(tmp_path):
    """Promise: a guest gets data while its host records. A thread of the guest's
    process takes the name of a vCPU; the data are the times of this thread."""
    qemu = tmp_path / "qemu-system-x86_64"
    qemu.symlink_to(GUEST)
    p = subprocess.Popen([TOOL, "record", "--host", "--programs=16M", "--tell-guest", "-o",
                          tmp_path / "rec", "--", qemu, "-m", "64"], env=ENV, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert p.stdout.readline() == "0\n", p.stderr.read()
        p.stdin.write("name CPU 0/TCG\n")
        p.stdin.flush()
        assert p.stdout.readline() == "named\n"
        first = wait_for(p, lambda a: not a["error"] and a["waiting_ns"])
        begin = time.monotonic_ns()
        # Wait for data that are newer than begin, and have at least 0.5 s more than the first.
        told = wait_for(p, lambda a: a["to_ns"] > max(begin, first["to_ns"] + 500_000_000))
        assert told["from_ns"] == first["from_ns"]
        assert told["to_ns"] < time.monotonic_ns()
        assert told["waiting_ns"] > first["waiting_ns"]
        assert told["vmm_ns"] > first["vmm_ns"]
        assert told["guest_ns"] == told["halted_ns"] == 0 and told["exits"] == []
        children = Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        _, err = p.communicate(timeout=DEADLINE)
    finally:
        p.kill()
        p.communicate()
    assert "events of the host" in err
    (one,) = [v for v in vcpus(tmp_path / "rec") if str(v["thread"]) in children]
    assert one["vcpu"] == 0
    assert one["qemu_ns"] >= told["vmm_ns"] and one["waiting_ns"] >= told["waiting_ns"]
