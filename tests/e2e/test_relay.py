# SPDX-License-Identifier: GPL-2.0-or-later
"""Test `hypertrace record --net --live` with two guests and one relay daemon of LTTng.

Each recorder sends the events of its guest in an LTTng session of its own. The test reads them
live from the relay daemon, and from the files that the relay daemon writes.
"""

import collections
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("bt2")
import test_record as recording
from own_machine import own_run
from test_record import DEADLINE, HYPERTRACE, env  # noqa: F401
from vm.lttng_session import PrivateSession
from vm.machine import Qmp

HOST = "127.0.0.1"


# Program that counts a trace's events by provider. It is a separate process, because
# libbabeltrace2 may abort while a trace is being written.
READER = """
import bt2, collections, json, sys
found = collections.Counter()
for msg in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if isinstance(msg, bt2._EventMessageConst):
        found[msg.event.name.partition(":")[0]] += 1
    elif isinstance(msg, bt2._DiscardedEventsMessageConst):
        found["discarded"] += msg.count
print(json.dumps(found))
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0)))
                   for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


class Relay:
    def __init__(self, output, daemon):
        self.output = output
        control, data, self.live = free_ports(3)
        self.url = f"net://{HOST}:{control}:{data}"
        self.process = subprocess.Popen(
            ["lttng-relayd", f"--control-port=tcp://{HOST}:{control}",
             f"--data-port=tcp://{HOST}:{data}",
             f"--live-port=tcp://{HOST}:{self.live}", f"--output={output}"],
            env=daemon.env(), stdin=subprocess.DEVNULL)
        daemon.wait_for(self._answers, "lttng-relayd does not answer")

    def _answers(self):
        assert self.process.poll() is None
        try:
            socket.create_connection((HOST, self.live)).close()
        except ConnectionRefusedError:
            return False
        return True

    def kept(self):
        """Return {provider: number of events} of the complete packets that the relay daemon has
        written, or None if they cannot be read."""
        p = subprocess.run([sys.executable, "-B", "-c", READER, self.output],
                           check=False, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        return json.loads(p.stdout) if p.returncode == 0 else None

    def sessions(self):
        """Return {URL of a live session: number of its viewers}."""
        p = subprocess.run(["babeltrace2", "-i", "lttng-live",
                            f"net://{HOST}:{self.live}"], check=False,
                           stdin=subprocess.DEVNULL, capture_output=True,
                           text=True)
        return {url: int(clients) for url, clients in re.findall(
            r"^(net://\S+) .* (\d+) client\(s\) connected", p.stdout, re.M)}

    def declared(self):
        """Return for each trace whether its metadata describe streams. babeltrace crashes on a
        trace with metadata that describe none."""
        return [b"stream {" in path.read_bytes()
                for path in self.output.rglob("metadata")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class LiveReader:
    """A process of babeltrace (version 1) that prints a session's events live.  babeltrace2
    2.0.4 crashes when a session gets new classes."""

    def __init__(self, url, path):
        self.path = path
        self.complaints = path.with_suffix(".err")
        with open(path, "wb") as out, open(self.complaints, "wb") as err:
            self.process = subprocess.Popen(
                ["babeltrace", "-i", "lttng-live", url], stdin=subprocess.DEVNULL,
                stdout=out, stderr=err)

    def read(self):
        """Return {provider: number of events that babeltrace has printed so far}."""
        assert self.process.poll() is None, \
            self.complaints.read_text(errors="replace")[-2000:]
        return collections.Counter(re.findall(
            r" (vm\d):\w+: \{", self.path.read_text(
                errors="replace")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def command(tmp, n, memory):
    """Return the command line of a guest that does not run before the QMP command cont."""
    _, *args = recording.guest(
        tmp, recording.initrd(tmp / "initrd", recording.KILLED_JOB), memory)
    return [recording.QEMU, *args, "-name", f"guest=vm{n}", "-S",
            "-qmp", f"unix:{tmp}/qmp,server=on,wait=off"]


class Guest:
    def __init__(self, tmp, n, relay, memory, env):
        self.tmp = tmp / f"vm{n}"
        self.tmp.mkdir()
        self.name = f"vm{n}"
        self.env = env
        self.qmp = None
        self.recorder = subprocess.Popen(
            [HYPERTRACE, "record", "-o", self.tmp / "rec", "--net", relay.url,
             "--live", "--", *command(self.tmp, n, memory)],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)

    def answers(self):
        """Return whether QEMU's QMP socket accepts a connection. LTTng may list the recorder's
        session earlier."""
        if not self.qmp:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.qmp = Qmp(self.tmp / "qmp")
        return self.qmp is not None

    def run(self):
        self.qmp.start()
        self.qmp.command("cont")
        self.qmp.close()

    def qemu(self):
        pid, = recording.children(self.recorder.pid)
        return pid

    def kill(self):
        os.kill(self.qemu(), signal.SIGKILL)
        _, err = self.recorder.communicate(timeout=DEADLINE)
        assert self.recorder.returncode == 128 + signal.SIGKILL, err
        return err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.recorder.poll() is None:
            for pid in recording.children(self.recorder.pid):
                os.kill(pid, signal.SIGKILL)
            self.recorder.kill()
            self.recorder.wait()


def wait_until(condition, guests, found=lambda: ""):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, found()
        assert all(g.recorder.poll() is None for g in guests), \
            [g.recorder.stderr.read() for g in guests
             if g.recorder.poll() is not None]
        time.sleep(0.05)


# QEMU's options for the memory of both guests: some memory of the first guest is shared
# with the recorder; the second guest's memory is private to QEMU, and is read through
# its process
MEMORY = [recording.MEMORY,
          ["-m", "512", "-smp", "2", "-object",
           "memory-backend-ram,id=m,size=512M", "-numa", "node,memdev=m"]]


def declared(daemon, relay, traces):
    """Return whether there are @traces traces, and the metadata of each describe its streams.
    LTTng may write this part of the metadata only with the first event, or when the
    session stops: if it is missing, stop and start the sessions."""
    found = relay.declared()
    if len(found) == traces and not all(found):
        for url in relay.sessions():
            name = url.rpartition("/")[2]
            daemon.lttng("stop", name)
            daemon.lttng("start", name)
    return len(found) == traces and all(found)


def record_two(daemon, relay, guests):
    """Run the guests, then kill them. Return two lists: the number of each guest's events, and the
    messages of each recorder."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(g()) for g in guests]
        def wait(condition):
            wait_until(lambda: all(map(condition, running)), running)

        wait_until(lambda: len(relay.sessions()) == len(guests), running)
        wait(Guest.answers)
        # Start the readers only after the metadata of all traces describe streams:
        # babeltrace may also crash when a trace is added while it reads.
        wait_until(lambda: declared(daemon, relay, len(guests)), running,
                   lambda: str(relay.declared()))
        readers = [stack.enter_context(LiveReader(
            url, running[0].tmp.parent / f"live{n}"))
            for n, url in enumerate(relay.sessions())]
        # Wait until each session has one viewer: from then on babeltrace reads events.
        wait_until(lambda: set(relay.sessions().values()) == {1}, running)

        for g in running:
            g.run()
        wait(lambda g: "READY" in recording.console(g.tmp))
        counts = [sum(recording.counted(g.tmp)) for g in running]
        expected = {f"vm{n}": count for n, count in enumerate(counts)}
        # the relay daemon's files have all events while the guests run
        wait_until(lambda: relay.kept() == expected, running)
        # Check the recordings and the live readers before QEMU is killed.
        wait(lambda g: recording.recorded(g.tmp, g.env) ==
             recording.counted(g.tmp))
        wait_until(lambda: sum((r.read() for r in readers),
                               collections.Counter()) == expected, running,
                   lambda: f"{[r.read() for r in readers]}, not {expected}")
        said = [g.kill() for g in running]
        assert relay.kept() == expected
    return counts, said


@own_run
def test_two_guests(tmp_path, env):  # noqa: F811
    if not shutil.which("lttng-relayd"):
        pytest.skip("lttng-relayd is not installed")
    if not shutil.which("babeltrace"):
        pytest.skip("babeltrace is not installed")
    with PrivateSession(
            str(tmp_path / "unused"), own_run=os.geteuid() == 0) as daemon, \
            Relay(tmp_path / "relay", daemon) as relay:
        traced = daemon.env({**env, "LTTNG_UST_REGISTER_TIMEOUT": "60000"})
        counts, said = record_two(daemon, relay, [
            functools.partial(Guest, tmp_path, n, relay, memory, traced)
            for n, memory in enumerate(MEMORY)])

    for n, count in enumerate(counts):
        recording.assert_all_events(tmp_path / f"vm{n}", env)
        assert f"{count} of them are LTTng's, as 'vm{n}:*'; none lost" \
            in said[n]
    sources = [recording.info(tmp_path / f"vm{n}")["recording"]["source"]
               for n in range(2)]
    assert "shared NUMA node" in sources[0]
    assert "private memory" in sources[1]
