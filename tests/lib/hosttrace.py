# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the host's part of a recording, with events of the scheduler and of KVM, or wait
until this host can be recorded."""

import contextlib
import fcntl
import os
import struct
import time
from pathlib import Path

import pytest

SWITCH, WAKING, ENTRY, EXIT, USER = range(1, 6)
COMMON = """
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
"""
FORMATS = {
    SWITCH: ("sched", "sched_switch", [
        ("char prev_comm[16]", 16), ("pid_t prev_pid", 4), ("int prev_prio", 4),
        ("long prev_state", 8), ("char next_comm[16]", 16), ("pid_t next_pid", 4),
        ("int next_prio", 4)]),
    WAKING: ("sched", "sched_waking", [
        ("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4), ("int target_cpu", 4)]),
    ENTRY: ("kvm", "kvm_entry", [("unsigned int vcpu_id", 4)]),
    EXIT: ("kvm", "kvm_exit", [("unsigned int exit_reason", 4), ("unsigned int vcpu_id", 4)]),
    USER: ("kvm", "kvm_userspace_exit", [("__u32 reason", 4)]),
}
PRINT = {EXIT: '"vcpu %u reason %s", REC->vcpu_id, __print_symbolic(REC->exit_reason, '
               '{ 0x78, "hlt" }, { 0x7b, "io" })'}
RUNS, WAITS, DIES = 0, 1, 0x10
LOCK = "/run/hypertrace-host.lock"
DEADLINE = 120
IDLE = ("swapper/0", 0)


def formats():
    text = ""
    for number, (system, name, fields) in FORMATS.items():
        text += f"system: {system}\nname: {name}\nID: {number}\nformat:{COMMON}"
        at = 8
        for what, size in fields:
            text += f"\tfield:{what};\toffset:{at};\tsize:{size};\tsigned:0;\n"
            at += size
        text += f"\nprint fmt: {PRINT.get(number, chr(34) * 2)}\n"
    return text


def event(number, pid, *values):
    body = struct.pack("<HBBi", number, 0, 0, pid)
    for (_, size), value in zip(FORMATS[number][2], values, strict=True):
        body += value.encode().ljust(16, b"\0") if isinstance(value, str) else \
            value.to_bytes(size, "little")
    return body + bytes(-len(body) % 4)


def switch(prev, state, following):
    return event(SWITCH, prev[1], prev[0], prev[1], 120, state, following[0], following[1], 120)


def piece(events, lost=False, polled=(0, 0)):
    """Make a piece of one processor's file.

    events: pairs of a time in ns and the event's bytes
    lost: whether the piece states that events before it were lost
    polled: host times before and after the poll that read the piece
    """
    base = now = events[0][0]
    data = b""
    for ns, body in events:
        data += struct.pack("<I", (ns - now) << 5 | len(body) // 4) + body
        now = ns
    return struct.pack("<IIIIQQIIIIQQ", 0x70667468, len(data), 0, 0, base, base,
                       0, 0, 2 | lost, 0, *polled) + data


def make_part(part, cpus, info=""):
    """Make a host's part of a recording in the folder `part`.

    cpus: for each processor, a list of pieces
    """
    part.mkdir(parents=True, exist_ok=True)
    (part / "info").write_text("[recording]\nversion=1\npoll-us=1\n" + info)
    (part / "formats").write_text(formats())
    for n, pieces in enumerate(cpus):
        (part / f"cpu{n}").write_bytes(b"".join(pieces))
    return part


def make(path, cpus, threads=""):
    """Make a recording that has a host's part only.

    threads: content of its file threads
    """
    (make_part(path / "host", cpus) / "threads").write_text(threads)
    return path


def can_trace():
    if os.geteuid():
        return False
    if Path("/sys/kernel/tracing/instances").is_dir():
        return True
    with open("/proc/filesystems", encoding="ascii") as f:
        return "nodev\ttracefs\n" in f.readlines()


@pytest.fixture(name="host")
def free_host():
    """Fixture: wait for up to DEADLINE seconds until no process holds LOCK, because a
    recorder of another test run may be recording the host."""
    deadline = time.monotonic() + DEADLINE
    while True:
        with open(LOCK, "a", encoding="ascii") as f, contextlib.suppress(BlockingIOError):
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        assert time.monotonic() < deadline, "another recorder does not end"
        time.sleep(0.1)
