# SPDX-License-Identifier: GPL-2.0-or-later
"""record --programs --lttng and attach --lttng: LTTng gets the events of a guest's
programs, and switches them on and off in the guest.

The guest is the program programs-guest, as in test_programs.py. The session daemon is
real. tests/e2e/test_lttng_programs.py tests this with Linux in QEMU.
"""

import os
import re
import signal
import subprocess
import time

import pytest

from built import need
from directories import session_directory  # noqa: F401
from test_programs import DEADLINE, STREAMS, TOOL, Attach, Guest, Recorder, numbers
from vm.lttng_session import PrivateSession, missing_programs

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"missing: {' '.join(missing_programs())}")
STEP, TEXT = 1, 2           # ids of the classes app.step and app.text
# Tolerated time in seconds from the end of the lttng command to the change of the guest's enable
# byte; without load the change takes some 25 ms
SWITCH_MAX = 1.0


def lttng_numbers(trace, provider):
    """Return the numbers of each stream's events in LTTng's trace; assert the
    events' other fields."""
    need("babeltrace2")
    p = subprocess.run(["babeltrace2", trace], capture_output=True, text=True,
                       check=True, timeout=DEADLINE)
    assert "discarded" not in p.stdout + p.stderr
    seen = [[] for _ in range(STREAMS)]
    for line in p.stdout.splitlines():
        m = re.search(r" (\S+):app\.(\w+): .*\{ stream = (\d+), vcpu = (\d+), "
                      r"guest_ns = \d+, n = (\d+), (.*) \}$", line)
        stream, n = int(m[3]), int(m[5])
        assert m[1] == provider and int(m[4]) == stream, line
        assert (m[2], m[6]) == (("step", f"source = {stream}") if n % 3 else
                                ("text", '_what_length = 5, what = "third"')), line
        seen[stream].append(n)
    return seen


def wait_switch(recorder, on, event):
    """Wait until the guest sees that a class is on, or off; return the time by
    CLOCK_MONOTONIC in seconds."""
    recorder.process.stdin.write(f"{'on' if on else 'off'} {event}\n")
    recorder.process.stdin.flush()
    return int(recorder.process.stdout.readline()) / 1e9


def change(session, recorder, on, event):
    """Switch an event on or off with the lttng command. Return the times in ms
    from the command's start, and from its end, until the guest sees the change."""
    name = f"vm-programs:app.{'step' if event == STEP else 'text'}"
    start = time.monotonic()
    if on:
        session.enable(name)
    else:
        session.lttng("disable-event", "--userspace", f"--session={session.name}",
                      "--channel=main", name)
    end = time.monotonic()
    seen = wait_switch(recorder, on, event)
    assert seen - end < SWITCH_MAX
    return (seen - start) * 1e3, (seen - end) * 1e3


def is_step(n):
    return n % 3 != 0


def test_switch(tmp, monkeypatch):
    """Promise: programs emit exactly the events that a session has enabled, also after
    changes; LTTng and the recording have the same events with the same fields."""
    with PrivateSession(str(tmp / "trace"), events=["vm-programs:app.step"],
                        blocking=True) as s:
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        with Recorder(tmp, "--programs=16M", "--lttng=vm") as r:
            wait_switch(r, False, TEXT)
            wait_switch(r, True, STEP)
            r.emit(3000)
            times = [change(s, r, True, TEXT)]
            r.emit(3000)
            times += [change(s, r, False, STEP)]
            r.emit(3000)
            for _ in range(5):
                times += [change(s, r, False, TEXT), change(s, r, True, TEXT)]
            status, err = r.end()
        s.finish()
    assert status == 0, err
    for from_start, from_end in times:
        print(f"seen {from_start:.1f} ms after lttng's start, {from_end:.1f} ms "
              "after its end")
    wanted = [n for n in range(9000) if
              (is_step(n) if n < 3000 else n < 6000 or not is_step(n))]
    assert r.numbers() == [wanted] * STREAMS
    assert lttng_numbers(tmp / "trace", "vm-programs") == [wanted] * STREAMS
    assert f"{STREAMS * len(wanted)} of them are LTTng's, as 'vm-programs:*'; " \
        "none lost" in err, err


def test_nobody(tmp, monkeypatch):
    """Promise: if no LTTng session enables the programs' events, programs emit none, and the
    recorder reports 0 events."""
    with PrivateSession(str(tmp / "trace"), events=["other:*"]) as s:
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        with Recorder(tmp, "--programs=16M", "--lttng=vm") as r:
            wait_switch(r, False, STEP)
            wait_switch(r, False, TEXT)
            r.emit(3000)
            status, err = r.end()
    assert status == 3, err
    assert "0 events of programs" in err and "0 of them are LTTng's" in err, err


def test_no_daemon(tmp, monkeypatch):
    """Promise: without a session daemon, all classes are off, and programs emit no events."""
    monkeypatch.setenv("LTTNG_HOME", str(tmp))
    with Recorder(tmp, "--programs=16M", "--lttng=vm") as r:
        wait_switch(r, False, STEP)
        wait_switch(r, False, TEXT)
        r.emit(300)
        err = r.end()[1]
    assert "0 events of programs" in err, err


def test_attach(tmp, monkeypatch):
    """Promise: attach --lttng delivers events to LTTng. If --lttng has no value, the provider is
    named after the memory's file. If SIGTERM ends a recorder, the next recorder of the memory
    delivers to the same session."""
    memory = tmp / "vm 1"
    with PrivateSession(str(tmp / "trace"), events=["vm_1-programs:*"],
                        blocking=True) as s:
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        with Attach(memory, tmp / "first", "--create=16M", "--lttng") as first:
            with Guest(memory) as g:
                g.emit(1000)
            s.wait_listed("vm_1-programs:app.text")
            first.process.send_signal(signal.SIGTERM)
            err = first.process.communicate(timeout=DEADLINE)[1]
        assert f"{STREAMS * 1000} of them are LTTng's" in err, err
        with Attach(memory, tmp / "second", "--lttng=vm_1") as second:
            with Guest(memory) as g:
                g.emit(2000)
            status, err = second.end()
        s.finish()
    assert status == 0, err
    assert numbers(tmp / "second/programs") == [list(range(2000))] * STREAMS
    assert lttng_numbers(tmp / "trace", "vm_1-programs") == \
        [list(range(1000)) + list(range(2000))] * STREAMS


def test_hangs(tmp, monkeypatch):
    """Promise: if LTTng's processes are stopped, the recording has all events, the recorder
    ends, and the summary counts the events that LTTng lacks."""
    with PrivateSession(str(tmp / "trace"), events=["vm-programs:*"], blocking=True,
                        subbuf_size="16K", num_subbuf=2) as s:
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        with Recorder(tmp, "--programs=16M", "--lttng=vm") as r:
            s.wait_listed("vm-programs:app.text")
            r.emit(1000)
            stopped = [s.pid, *s.consumers()]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                r.emit(100_000)
                _, err = r.end()
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
        s.finish()
    assert "LTTng does not accept events" in err, err
    taken, lost = map(int, re.search(r"(\d+) of them are LTTng's, .*; (\d+) lost",
                                     err).groups())
    assert taken + lost == STREAMS * r.events and lost > r.events / 2, err
    assert r.numbers() == [list(range(r.events))] * STREAMS
