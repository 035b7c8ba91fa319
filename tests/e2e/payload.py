# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the bare-metal payload of tests/guest in QEMU.

The environment is scripts/env.sh's: HT_QEMU, HT_QEMU_L, HT_BUILD.
"""

import collections
import fcntl
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import bt2

KVM_CREATE_VM = 0xAE01

OK, FAILED, USAGE = 33, 35, 37      # see tests/guest/console.h


def kvm_problem():
    """Why KVM cannot be used here; None if it can."""
    try:
        kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError as e:
        return f"/dev/kvm: {e.strerror}"
    try:
        os.close(fcntl.ioctl(kvm, KVM_CREATE_VM, 0))
    except OSError as e:
        return f"/dev/kvm creates no VM: {e.strerror}"
    finally:
        os.close(kvm)
    return None


def payload_path():
    return Path(os.environ["HT_BUILD"]) / "tests/guest/hypertrace-payload"


class Run:
    """What a run of the payload said."""

    def __init__(self, status, output, stderr, log):
        self.status = status
        self.output = output
        self.stderr = stderr
        self.log = log
        self.rows = []
        for line in output.splitlines():
            if line.startswith("{"):
                self.rows.append(json.loads(line))

    def named(self, **match):
        """The rows that have these values."""
        return [r for r in self.rows
                if all(r.get(k) == v for k, v in match.items())]

    def __str__(self):
        return (f"exit status {self.status}\n--- payload\n{self.output}"
                f"--- stderr\n{self.stderr}--- guest errors\n{self.log}")


def command(accel, append, args, machine="pc", memory="256M"):
    accels = {
        # ring 0 of the KVMs that emulate it fails on the MSR of this one
        "kvm": ["-accel", "kvm", "-cpu", "host,arch-capabilities=off"],
        "tcg": ["-accel", "tcg"],
    }
    return [os.environ["HT_QEMU"],
            *shlex.split(os.environ.get("HT_QEMU_L", "")),
            "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-machine", machine, "-m", memory,
            *accels[accel],
            "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
            "-kernel", str(payload_path()), "-append", append, *args]


def run(workdir, accel, append, args=(), timeout=180, **kwargs):
    """Run the payload with a command line; raises on a timeout."""
    workdir = Path(workdir)
    out, log = workdir / "payload.out", workdir / "qemu.log"
    argv = command(accel, append, args, **kwargs)
    argv += ["-debugcon", f"file:{out}", "-d", "guest_errors", "-D", str(log)]
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=timeout, check=False)
    return Run(p.returncode, out.read_text(errors="replace"), p.stderr,
               log.read_text(errors="replace") if log.exists() else "")


class Stream:
    """A stream instance of a CTF trace: [(name, {field: value})], lost."""

    def __init__(self):
        self.events = []
        self.ns = []
        self.discarded = 0


def plain(field):
    """A babeltrace field as numbers, text, lists and dicts."""
    if isinstance(field, bt2._StructureFieldConst):
        return {k: plain(v) for k, v in field.items()
                if not re.fullmatch(r"_\w+_length", k)}
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(v) for v in field]
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    if isinstance(field, bt2._RealFieldConst):
        return float(field)
    return int(field)


def read_ctf(trace):
    """{stream instance id: Stream} of a CTF directory."""
    streams = collections.defaultdict(Stream)
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(msg, bt2._EventMessageConst):
            s = streams[msg.event.stream.id]
            fields = msg.event.payload_field
            s.events.append((msg.event.name, plain(fields) if fields else {}))
            s.ns.append(msg.default_clock_snapshot.ns_from_origin)
        elif isinstance(msg, bt2._DiscardedEventsMessageConst):
            streams[msg.stream.id].discarded += msg.count
    return dict(streams)
