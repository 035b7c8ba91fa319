# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace record --lttng with a session of LTTng that records the guest's events, with no such
session, and with LTTng's processes stopped.

The guest is the program live-guest, which writes as many events as the test asks for.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import perfetto_text
from built import built
from directories import session_directory  # noqa: F401
from hypertrace import TOOL
from vm.lttng_session import PrivateSession, missing_programs

GUEST = built("tests/unit/tool/live-guest")
pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"missing: {' '.join(missing_programs())}")
DEADLINE = 120
SHIFT = 50_000      # ns


class Recorder:
    """hypertrace record --lttng with the guest. The recording's folder is vm-7, which names the
    provider if --lttng has no value."""

    def __init__(self, tmp, session, *options):
        self.dir = tmp / "vm-7"
        self.ram = tempfile.NamedTemporaryFile(dir="/dev/shm")
        self.events = 0
        self.process = subprocess.Popen(
            [TOOL, "record", "-o", self.dir, *(options or ["--lttng"]),
             "--", GUEST, "-object",
             f"memory-backend-file,id=m,size=32M,share=on,mem-path="
             f"{self.ram.name}", "-machine", "memory-backend=m"], env=session.env(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "0\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.ram.close()

    def write(self, events, traced=""):
        self.process.stdin.write(f"{traced}{events}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"{events}\n"
        self.events += events

    def write_until_listed(self, session, name, traced=""):
        """Write events until LTTng lists the event @name of the recorder."""
        def listed():
            self.write(10, traced)
            return name in session.listed()
        session.wait_for(listed, f"no program offers {name}")

    def recorded(self):
        return sum(f.stat().st_size for f in self.dir.iterdir())

    def end(self):
        """Tell the guest to end; assert that the recording has as many events as were
        written. Return the recorder's messages."""
        _, err = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == 0, err
        assert f"{self.events} events, " in err, err
        report = subprocess.run([TOOL, "report", "--json", self.dir],
                                check=True, stdout=subprocess.PIPE).stdout
        assert report.count(b"\n") == self.events
        return err


def lttng_events(trace):
    text = subprocess.run(["babeltrace2", trace], check=True,
                          capture_output=True, text=True)
    assert "discarded" not in text.stderr, text.stderr
    return text.stdout.splitlines()


def numbers(recorder):
    """Times of the recorded events in ns, by the guest's clock"""
    report = subprocess.run([TOOL, "report", "--json", recorder.dir],
                            check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line)["ns"] for line in report.stdout.splitlines()]


def test_all(tmp):
    """LTTng gets as many events as the guest wrote, with guest_ns in order."""
    with PrivateSession(str(tmp / "trace"), events=["vm-7:*"],
                        blocking=True) as s, Recorder(tmp, s) as r:
        r.write_until_listed(s, "vm-7:ftrace.raw")
        r.write(100000)
        err = r.end()
        s.finish()
    assert f"{r.events} of them are LTTng's, as 'vm-7:*'; none lost" in err, \
        err
    lines = lttng_events(tmp / "trace")
    assert len(lines) == r.events
    dates = [int(re.search(r"guest_ns = (\d+)", line)[1]) for line in lines]
    assert dates == sorted(dates)
    # live-guest writes an event each microsecond of the ring's clock
    first, *_, last = numbers(r)
    assert last - first == (r.events - 1) * 1000


def test_perfetto(tmp):
    """export to Perfetto merges a recording and LTTng's trace of the same events into one file.
    LTTng's events have their guest_ns as their times."""
    with PrivateSession(str(tmp / "trace"), events=["vm-7:*"],
                        blocking=True) as s, Recorder(tmp, s) as recorder:
        recorder.write_until_listed(s, "vm-7:ftrace.raw")
        before = recorder.recorded()
        recorder.write(1000)
        # Dates by the host's clock need two polls that find events: polls relate the guest's clock
        # to the host's.
        s.wait_for(lambda: recorder.recorded() > before + 4096,
                   "the events are not in the recording")
        recorder.write(1000)
        recorder.end()
        s.finish()
    dates = [int(re.search(r"guest_ns = (\d+)", line)[1])
             for line in lttng_events(tmp / "trace")]
    out = tmp / "both.pftrace"
    p = subprocess.run([TOOL, "export", "-o", out, recorder.dir,
                        tmp / "trace"], check=False, capture_output=True,
                       text=True)
    if "without libbabeltrace2" in p.stderr or not shutil.which("protoc"):
        return
    assert p.returncode == 0 and "wall clocks" not in p.stderr, p.stderr
    packets = perfetto_text.packets(out)
    assert perfetto_text.machines(packets) == {0: "host", 1: "vm-7"}
    seen = list(perfetto_text.instants(packets))
    assert {i[0] for i in seen} == {0}
    assert {i[3] for i in seen} == {"ftrace.raw"}
    assert [i[2] for i in seen] == dates
    assert {i[1] for i in seen} == {
        f"vm-7, stream {i[4]['stream']}" for i in seen}
    assert all("delivered_ns" in i[4] for i in seen)
    ring = [e["timestamp"][0] for _, e in perfetto_text.events(packets)]
    assert len(ring) == recorder.events


def test_host_events(tmp):
    """A Perfetto file of a recording and of LTTng's trace of the program that runs the guest: each
    guest event is dated between the host's events "cause" and "effect" around it, apart from the
    stated error."""
    with PrivateSession(str(tmp / "trace"), events=["lttng_ust_tracef:*"],
                        blocking=True) as s, \
            Recorder(tmp, s, "--lttng", "--poll-us=200") as recorder:
        # The first poll sets no lower bound on a guest time. If it read all events,
        # none would have a date: write until the ring is followed, then write more.
        recorder.write_until_listed(s, "vm-7:ftrace.raw", traced="+")
        for _ in range(500):
            recorder.write(10, traced="+")
        recorder.end()
        s.finish()
    out = tmp / "both.pftrace"
    p = subprocess.run([TOOL, "export", "-o", out, tmp / "trace",
                        recorder.dir], check=False, capture_output=True,
                       text=True)
    if "without libbabeltrace2" in p.stderr or not shutil.which("protoc"):
        return
    assert p.returncode == 0 and "wall clocks" not in p.stderr, p.stderr
    packets = perfetto_text.packets(out)
    assert perfetto_text.machines(packets) == {0: "host", 1: "vm-7"}
    bound = perfetto_text.bounds(packets)[1]
    host = {"cause": [], "effect": []}
    for machine, track, ns, name, fields in perfetto_text.instants(packets):
        what, n = fields["msg"].split()
        assert (machine, name, int(n)) == (0, "event", len(host[what]))
        assert re.fullmatch(r"lttng_ust_tracef, CPU \d+", track)
        host[what].append(ns)
    guest = [e["timestamp"][0] for _, e in perfetto_text.events(packets)]
    assert len(guest) == len(host["cause"]) == len(host["effect"]) == \
        recorder.events

    def disorder(shift):
        return sum(not before - bound <= ns + shift <= after + bound
                   for before, ns, after in zip(host["cause"], guest,
                                                host["effect"]))

    assert disorder(0) == 0
    # Shift by more than twice the bound: a date may be wrong by the bound, and disorder()
    # tolerates the bound once more.
    for shift in (2 * bound + SHIFT, -2 * bound - SHIFT):
        assert disorder(shift) > recorder.events / 2, (bound, shift)


def test_nobody(tmp):
    """If no LTTng session enables the guest's events, the recorder reports how many
    events no session wanted."""
    with PrivateSession(str(tmp / "trace"), events=["other:*"]) as s, \
            Recorder(tmp, s, "--lttng=mine") as r:
        r.write_until_listed(s, "mine:ftrace.raw")
        r.write(1000)
        err = r.end()
    assert "0 of them are LTTng's, as 'mine:*'; no session wanted " \
        f"{r.events}; none lost" in err, err


def test_no_daemon(tmp):
    """Without a session daemon of LTTng, the recording still has all events."""
    class Nothing:
        @staticmethod
        def env():
            return {**os.environ, "LTTNG_HOME": str(tmp)}

    with Recorder(tmp, Nothing) as r:
        r.write(1000)
        err = r.end()
    assert "no session wanted 1000; none lost" in err, err


def test_hangs(tmp):
    """If LTTng's processes are stopped, the recording has all events, and the
    events that LTTng did not take are counted."""
    with PrivateSession(str(tmp / "trace"), events=["vm-7:*"], blocking=True,
                        subbuf_size="16K", num_subbuf=2) as s, \
            Recorder(tmp, s) as r:
        r.write_until_listed(s, "vm-7:ftrace.raw")
        stopped = [s.pid, *s.consumers()]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            r.write(150000)
            err = r.end()
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        s.finish()
    assert "LTTng does not accept events" in err, err
    taken, lost = map(int, re.search(
        r"(\d+) of them are LTTng's, .*; (\d+) lost", err).groups())
    assert taken + lost == r.events and lost > r.events / 2, err
    # Events in delivery when LTTng stopped count as lost, but LTTng may still have recorded them.
    assert taken <= len(lttng_events(tmp / "trace")) < r.events


def test_url(tmp):
    """If --net names a relay daemon that does not run, the command fails before the guest
    starts."""
    with PrivateSession(str(tmp / "trace")) as s:
        p = subprocess.run(
            [TOOL, "record", "-o", tmp / "rec", "--net=net://127.0.0.1:1:1",
             "--", GUEST], env=s.env(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=DEADLINE)
    assert p.returncode == 1 and "LTTng cannot" in p.stderr, p
    assert p.stdout == "" and not (tmp / "rec").exists()
