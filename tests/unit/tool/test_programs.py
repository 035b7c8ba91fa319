# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace record --programs: events of a guest's programs in a recording.

The guest is the program programs-guest, under the name of QEMU: it maps the memory
that QEMU's ivshmem-plain would map, and emits events with the library.
"""

import os
import re
import signal
import subprocess

import pytest

from built import built, need
from hypertrace import TOOL, run, text

GUEST = built("tests/unit/tool/programs-guest")
DEADLINE = 120
STREAMS = 2


def numbers(trace, lost=0):
    """Return the numbers of each stream's events as babeltrace2 prints them;
    assert that it reports @lost discarded events."""
    need("babeltrace2")
    p = subprocess.run(["babeltrace2", trace], capture_output=True, text=True,
                       check=True, timeout=DEADLINE)
    assert sum(map(int, re.findall(r"discarded (\d+) event", p.stderr))) == lost, \
        p.stderr
    seen = [[] for _ in range(STREAMS)]
    for line in p.stdout.splitlines():
        m = re.search(r"cpu_id = (\d+).*\{ n = (\d+)(?:, source = (\d+))?", line)
        stream, n = int(m[1]), int(m[2])
        if n % 3:
            assert int(m[3]) == stream, line
        else:
            assert 'what = "third"' in line, line
        seen[stream].append(n)
    return seen


class Guest:
    """A simulated guest that emits. Its device's memory is the file @path, which
    "hypertrace attach" serves."""

    def __init__(self, path):
        self.events = 0
        self.process = subprocess.Popen(
            [GUEST, "-object", f"memory-backend-file,id=ht-programs,mem-path={path}",
             "-device", "ivshmem-plain,memdev=ht-programs"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "0\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def emit(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        self.events += count
        assert self.process.stdout.readline() == f"{self.events}\n"

    def overflow(self, count):
        self.process.stdin.write(f"full {count}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


class Attach:
    """A running "hypertrace attach".  With --create=16M, the memory exists when
    the constructor returns."""

    def __init__(self, path, out, *options):
        self.dir = out
        self.process = subprocess.Popen(
            [TOOL, "attach", "-o", out, *options, path],
            stderr=subprocess.PIPE, text=True)
        if "--create=16M" in options:
            while "-device" not in self.process.stderr.readline():
                assert self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.terminate()
        err = self.process.communicate(timeout=DEADLINE)[1]
        return self.process.returncode, err


class Recorder:
    def __init__(self, tmp, *options):
        self.dir = tmp / "recording"
        self.qemu = tmp / "qemu-system-x86_64"
        if not self.qemu.exists():
            self.qemu.symlink_to(GUEST)
        self.events = 0
        self.process = subprocess.Popen(
            [TOOL, "record", "-o", self.dir, *options, "--", self.qemu,
             "-m", "64"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "0\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def emit(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        self.events += count
        assert self.process.stdout.readline() == f"{self.events}\n"

    def end(self):
        err = self.process.communicate(timeout=DEADLINE)[1]
        return self.process.returncode, err

    def numbers(self, lost=0):
        return numbers(self.dir / "programs", lost)


def test_each_event(tmp_path):
    """Promise: although rings fill up many times, each event is in the recording
    once, in order, with its fields; the summary counts the events; a guest that
    ends without closing its streams loses nothing."""
    with Recorder(tmp_path, "--programs=16M") as r:
        for count in (1, 100, 200_000):
            r.emit(count)
        status, err = r.end()
    assert status == 0, err
    assert f"{STREAMS * r.events} events of programs in " in err
    assert "none lost" in err
    assert r.numbers() == [list(range(r.events))] * STREAMS


def test_recorder_is_killed(tmp_path):
    """Promise: if the recorder is killed, the events that the guest had flushed are in the trace,
    which can be read."""
    with Recorder(tmp_path, "--programs=16M") as r:
        r.emit(5000)
        r.process.send_signal(signal.SIGKILL)
        r.process.wait(timeout=DEADLINE)
    assert r.numbers() == [list(range(5000))] * STREAMS


def test_max_size(tmp_path):
    """Promise: --max-size limits the events of programs, too. The events before the limit can be
    read. The summary and the trace state the number of the others."""
    with Recorder(tmp_path, "--programs=16M", "--max-size=1M") as r:
        r.emit(100_000)
        status, err = r.end()
    assert status == 3, err
    assert "--max-size" in err
    dropped = int(re.search(r"(\d+) not written", err)[1])
    seen = r.numbers(dropped)
    assert sum(map(len, seen)) == STREAMS * r.events - dropped
    assert seen == [list(range(len(s))) for s in seen]


def test_attach(tmp_path):
    """Promise: a recorder makes the memory and is killed, and a second one follows. Each
    recording has the events flushed to its recorder, once. A third recorder is refused
    while the second one runs."""
    memory = tmp_path / "memory"
    with Attach(memory, tmp_path / "first", "--create=16M") as first:
        with Guest(memory) as g:
            g.emit(1000)
        first.process.kill()
        first.process.wait(timeout=DEADLINE)
    with Attach(memory, tmp_path / "second") as second:
        with Guest(memory) as g:
            g.emit(2000)
            p = run("attach", "-o", tmp_path / "third", memory, status=1)
            assert "another host serves this memory" in p.stderr.decode()
        status, err = second.end()
    assert status == 0, err
    assert f"{STREAMS * 2000} events of programs in " in err and "none lost" in err
    assert numbers(tmp_path / "first/programs") == [list(range(1000))] * STREAMS
    assert numbers(tmp_path / "second/programs") == [list(range(2000))] * STREAMS
    assert not (tmp_path / "third").exists()
    assert len(text("report", tmp_path / "second")) == STREAMS * 2000


def test_attach_full(tmp_path):
    """Promise: the summary counts the events that a full ring has discarded, also of
    a stream that is left open for the next recorder."""
    memory = tmp_path / "memory"
    with Attach(memory, tmp_path / "out", "--create=16M") as a, Guest(memory) as g:
        emitted = g.overflow(3_000_000)
        status, err = a.end()
    assert status == 0, err
    recorded = int(re.search(r"(\d+) events of programs", err)[1])
    lost = int(re.search(r"(\d+) lost in the guest", err)[1])
    assert lost and recorded + lost == emitted, err


def test_truncated(tmp_path):
    """Promise: if the memory's file is truncated, attach ends with a message, and the events that
    it recorded before can be read."""
    memory = tmp_path / "memory"
    with Attach(memory, tmp_path / "out", "--create=16M") as a:
        with Guest(memory) as g:
            g.emit(1000)
            g.process.kill()
            g.process.wait(timeout=DEADLINE)
        os.truncate(memory, 0)
        err = a.process.communicate(timeout=DEADLINE)[1]
        assert a.process.returncode == 3, err
    assert "truncated" in err
    assert numbers(tmp_path / "out/programs") == [list(range(1000))] * STREAMS


def test_attach_refused(tmp_path):
    """Promise: attach refuses a file that does not exist, a file that is no memory of hypertrace,
    and with --create a file that exists. It names the reason, and makes no folder."""
    other = tmp_path / "other"
    other.write_bytes(bytes(2 << 20))
    for args, why in ((["missing"], "--create makes it"),
                      (["other"], "not made by hypertrace"),
                      (["--create", "other"], "File exists")):
        p = run("attach", "-o", tmp_path / "out", *args, status=1, cwd=tmp_path)
        assert why in p.stderr.decode()
        assert not (tmp_path / "out").exists()
    run("attach", status=2)
    run("attach", "--create=9M", "x", status=2)


@pytest.mark.parametrize("args, why", [
    (["-incoming", "defer"], "saved state"),
    (["-loadvm", "x"], "saved state"),
    (["-M", "microvm"], "no PCI"),
    (["-M", "isapc"], "nothing is known"),
])
def test_refused(args, why):
    """Promise: a machine that cannot have the device is refused, with a reason."""
    p = run("record", "--print", "--programs", "--", "qemu-system-x86_64", *args,
            status=1)
    assert "--programs: " in p.stderr.decode()
    assert why in p.stderr.decode()


def test_plan_without_guest():
    """Promise: for a QEMU that runs no guest, --print says that nothing is recorded, and
    describes no memory."""
    printed = run("record", "--print", "--programs", "--", "qemu-system-x86_64", "-version",
                  status=0).stdout.decode()
    assert printed == "qemu-system-x86_64 -version\n# QEMU runs no guest: nothing is recorded\n"


@pytest.mark.parametrize("args", [["-M", "microvm,pcie=on"], ["-M", "q35"], []])
def test_plan(args):
    """Promise: the device is the last one of the command line, and only the
    options that make it are added for it."""
    with_it, without = (
        run("record", "--print", *option, "--", "qemu-system-x86_64", *args,
            "-device", "virtio-rng-pci", status=0).stdout.decode().split("\n")[0]
        for option in (["--programs"], []))
    device = re.search(r" -object memory-backend-file,id=ht-programs,size=256M,"
                       r"mem-path=/proc/self/fd/\d+,share=on -device "
                       r"ivshmem-plain,memdev=ht-programs,master=on", with_it)
    assert with_it.replace(device[0], "") == without
    assert with_it.rindex("-device ") == with_it.index(" -device ivshmem") + 1


def test_usage():
    for args in (["--programs=9M", "--", "qemu-system-x86_64"],
                 ["--programs=0", "--", "qemu-system-x86_64"],
                 ["--programs", "--pid", "1"]):
        run("record", *args, status=2)
