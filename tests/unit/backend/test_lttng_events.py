# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that LTTng records events that a program defines at run time, by a session daemon of
its own. The program, backend-lttng-emit, uses host-lib's lttng-ust-event.c. babeltrace2 reads
the traces.
"""

import glob
import os
import re
import signal
import subprocess
import time
from collections import Counter

import pytest

from built import built, need
from directories import public_directory
from vm.lttng_session import PrivateSession, missing_programs

EMITTER = built("tests/unit/backend/backend-lttng-emit")
pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"missing: {' '.join(missing_programs())}")

ALL = ("u8:int u16:event u32:string u64:struct x8:a x16:b x32:c x64:d s8:e "
       "s16:f s32:g s64:h f32:i f64:j text:k seq-u8:l seq-u16:m seq-x32:n "
       "seq-u64:o seq-s8:p seq-s64:q arr-u8-1:r arr-x16-3:s arr-u32-2:t "
       "arr-s64-2:u arr-s16-5:_v text:w chars-16:comm label-u8:state "
       "label-s64:_error")


@pytest.fixture(name="directory")
def session_directory():
    """A directory that the session daemon can enter; if root runs the tests, the daemon runs
    as another user"""
    need("babeltrace2")
    with public_directory() as path:
        yield str(path)


def wait_state(pid, state, looks=1):
    """Wait until all threads of a process have @state in @looks consecutive
    checks."""
    deadline = time.monotonic() + 60
    seen = 0
    while seen < looks:
        states = []
        for stat in glob.glob(f"/proc/{pid}/task/*/stat"):
            with open(stat, encoding="ascii") as file:
                states.append(file.read().rsplit(")", 1)[1].split()[0])
        seen = seen + 1 if set(states) == {state} else 0
        assert time.monotonic() < deadline, states
        time.sleep(0.02)


class Emitter:
    """The program that emits events on command."""

    def __init__(self, session, **env):
        self.expected = []
        self._child = subprocess.Popen([EMITTER],
                                       env={**session.env(), **env},
                                       stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()

    def end(self, milliseconds):
        """Send "exit" to the program while its threads emit; return its exit
        status."""
        self._child.stdin.write(f"exit {milliseconds}\n")
        self._child.stdin.flush()
        return self._child.wait(60)

    def wait_asleep(self):
        """Wait until all threads sleep: the threads that emit wait for space in LTTng's
        buffers."""
        wait_state(self._child.pid, "S", 5)

    def tell(self, command):
        """Run one command; returns {first word of a line of its reply: the rest}."""
        self._child.stdin.write(command + "\n")
        self._child.stdin.flush()
        answers = {}
        for line in self._child.stdout:
            kind, _, text = line.rstrip("\n").partition(" ")
            if kind == "error":
                raise RuntimeError(text)
            if kind == "expect":
                self.expected.append(text)
            answers[kind] = text
            if kind == "ok":
                return answers
        raise RuntimeError(f"emitter ended at: {command}")


def read(trace):
    """(the trace's events, in the emitter's text form; babeltrace2's warnings)"""
    done = subprocess.run(["babeltrace2", "--no-delta", trace], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 0, done.stderr
    events = []
    for line in done.stdout.splitlines():
        found = re.match(r"\[[0-9:.]*\] \S+ ([^ :]+:[^ :]+): "
                         r"\{ cpu_id = \d+ \}, (\{.*\})$", line)
        assert found, f"cannot read {line}"
        events.append(f"{found[1]} {found[2]}")
    return events, done.stderr


def compare(trace, expected):
    """Assert that a trace has exactly the events @expected, in this order."""
    events, warnings = read(trace)
    assert not warnings, warnings
    for got, want in zip(events, expected):
        assert got == want, f"\ngot  {got}\nwant {want}"
    assert len(events) == len(expected), f"{len(events)}, {len(expected)}"


def test_kinds(directory):
    """Fields of each kind are recorded, for events that are registered before or after the
    start of the session."""
    with PrivateSession(f"{directory}/t", ["ht0:*"], start=False) as session:
        with Emitter(session) as emitter:
            emitter.tell("class ht0 early " + ALL)
            emitter.tell("class ht0 nothing")
            emitter.tell("emit ht0 early 10 3")
            emitter.expected.clear()
            session.start()
            emitter.tell("emit ht0 early 20 0")
            for i in range(1, 30):
                emitter.tell(f"emit ht0 early 20 {i * 5}")
                emitter.tell("emit ht0 nothing 2 0")
            emitter.tell("class ht0 sub.sys-tem_late " + ALL)
            emitter.tell("class ht0 late2 text:_a text:__b seq-u8:c")
            emitter.tell("emit ht0 sub.sys-tem_late 50 7")
            emitter.tell("emit ht0 late2 50 2")
    compare(f"{directory}/t", emitter.expected)


def test_again(directory):
    """A device is created again: an event with the same fields keeps its name; an
    event with other fields gets a name with a version, such as "other.v2"."""
    with PrivateSession(f"{directory}/t", ["ht0:*"]) as session:
        with Emitter(session) as emitter:
            emitter.tell("class ht0 same u32:x")
            emitter.tell("class ht0 other u32:x")
            emitter.tell("emit ht0 same 5 0")
            emitter.tell("emit ht0 other 5 0")
            emitter.tell("forget ht0")
            name = emitter.tell("class ht0 same u32:x")["registered"]
            assert name == "same", name
            name = emitter.tell("class ht0 other text:y u64:x")["registered"]
            assert name == "other.v2", name
            name = emitter.tell("class ht0 other.v2 u8:z")["registered"]
            assert name == "other.v2.v2", name
            emitter.tell("emit ht0 same 5 0")
            emitter.tell("emit ht0 other 5 4")
            emitter.tell("emit ht0 other.v2 5 4")
    compare(f"{directory}/t", emitter.expected)


def test_together(directory):
    """62 events are registered together. One is refused, because its name is too
    long; one becomes a new version, because it had other fields before."""
    with PrivateSession(f"{directory}/t", ["d*"]) as session:
        with Emitter(session) as emitter:
            device = "d" * 200
            names = ["old"] + [f"c{i}" for i in range(60)] + ["n" * 100]
            emitter.tell(f"class {device} old text:t")
            emitter.tell("forget " + device)
            emitter.tell(f"prepare {device} {' '.join(names)}")
            for name in names[:-1]:
                got = emitter.tell(f"class {device} {name} u32:x")["registered"]
                assert got == ("old.v2" if name == "old" else name), got
                emitter.tell(f"emit {device} {name} 1 0")
            try:
                emitter.tell(f"class {device} {names[-1]} u32:x")
            except RuntimeError as error:
                assert "255 bytes" in str(error), error
            else:
                raise AssertionError("a name of 301 bytes was taken")
    compare(f"{directory}/t", emitter.expected)


def test_providers(directory):
    """Of three devices in one process, the session records one."""
    with PrivateSession(f"{directory}/t", ["ht1:*"]) as session:
        with Emitter(session) as emitter:
            for device in ("ht0", "ht1", "ht2"):
                emitter.tell(f"class {device} event u32:{device} text:t")
            for device in ("ht0", "ht1", "ht2"):
                emitter.tell(f"emit {device} event 10 3")
            offered = {e for e in session.listed() if e.startswith("ht")}
            assert offered == {f"ht{i}:event" for i in range(3)}, offered
    compare(f"{directory}/t",
            [e for e in emitter.expected if e.startswith("ht1:")])


def value(event, field):
    """The number in a field of an event's text"""
    return float(re.search(rf"[ {{]{field} = ([^ ,]+)", event)[1])


def test_filter(directory):
    """Filters of LTTng read fields of several kinds, also after fields of variable size."""
    spec = "s8:a text:t f32:f seq-u16:q arr-u32-4:r u16:b f64:g s64:z"
    filters = {
        "stream == 3 && vcpu == -1": lambda e: True,
        "vcpu > 0": lambda e: False,
        "guest_ns > 50000": lambda e: value(e, "guest_ns") > 50000,
        "a < -3": lambda e: value(e, "a") < -3,
        "f > 5000.0": lambda e: value(e, "f") > 5000,
        "q[2] > 30000": lambda e: value(e, r"\[2\]") > 30000,
        "b > 32767": lambda e: value(e, "b") > 32767,
        "g < 6000.5": lambda e: value(e, "g") < 6000.5,
        "z < 0": lambda e: value(e, "z") < 0,
        't == "a*"': lambda e: ' t = "a' in e,
    }
    traces = f"{directory}/traces"
    os.mkdir(traces)
    os.chmod(traces, 0o777)
    # a session for each filter, all of one daemon
    with PrivateSession(f"{directory}/t", ["none:*"]) as session:
        for number, text in enumerate(filters):
            session.lttng("create", f"s{number}", f"--output={traces}/{number}")
            session.make_channels({"main": ("64k", 4)}, f"s{number}")
            session.enable("ht0:*", text, session=f"s{number}")
            session.lttng("start", f"s{number}")
        with Emitter(session) as emitter:
            emitter.tell("class ht0 event " + spec)
            emitter.tell("emit ht0 event 200 3")
        for number in range(len(filters)):
            session.lttng("stop", f"s{number}")
    for number, (text, accept) in enumerate(filters.items()):
        try:
            compare(f"{traces}/{number}", [e for e in emitter.expected if accept(e)])
        except AssertionError as error:
            raise AssertionError(f"filter {text}: {error}") from error


def burst(directory, threads, **options):
    """Emit 100,000 events as fast as possible; assert that none is lost."""
    with PrivateSession(f"{directory}/t", ["ht0:*"], **options) as session:
        with Emitter(session) as emitter:
            each = 100000 // threads
            emitter.tell("class ht0 event u32:x u64:y text:t")
            took = emitter.tell(f"burst ht0 event {each} 18 {threads}")["took"]
    events, warnings = read(f"{directory}/t")
    assert not warnings, warnings
    count = Counter((value(e, "stream"), value(e, "guest_ns"))
                    for e in events)
    assert len(events) == 100000, len(events)
    assert set(count) == {(t, i) for t in range(threads) for i in range(each)}
    print(f"# {took} ns an event")


def test_threads(directory):
    """LTTng records 100,000 events of four threads without loss in large buffers."""
    burst(directory, 4, subbuf_size="8M")


def test_blocking(directory):
    """In blocking mode, LTTng records 100,000 events without loss through small buffers."""
    burst(directory, 1, blocking=True, subbuf_size="64k", num_subbuf=4)


def test_too_large(directory):
    """Events that are larger than a sub-buffer are reported as discarded."""
    with PrivateSession(f"{directory}/t", ["ht0:*"], subbuf_size="4k",
                        num_subbuf=2) as session:
        with Emitter(session) as emitter:
            emitter.tell("class ht0 event u32:x text:t")
            emitter.tell("emit ht0 event 1 10")
            emitter.tell("burst ht0 event 7 5000 1")
            emitter.tell("emit ht0 event 1 10")
    events, warnings = read(f"{directory}/t")
    assert len(events) == 2, events
    # Do not compare the number: babeltrace2 does not always print it.
    assert "discarded" in warnings, warnings


def test_names(directory):
    """A name "PROVIDER:NAME" of more than 255 bytes is refused; the error gives
    the limit."""
    with PrivateSession(f"{directory}/t", ["d*"]) as session:
        with Emitter(session) as emitter:
            emitter.tell("class " + "d" * 63 + " " + "n" * 127 + " u8:x")
            emitter.tell("emit " + "d" * 63 + " " + "n" * 127 + " 3 0")
            try:
                emitter.tell("class " + "d" * 200 + " " + "n" * 100)
            except RuntimeError as error:
                assert "255 bytes" in str(error), error
            else:
                raise AssertionError("a name of 301 bytes was taken")
    compare(f"{directory}/t", emitter.expected)


def test_trigger(directory):
    """A trigger of LTTng on a guest event takes a snapshot of the session."""
    with PrivateSession(f"{directory}/t", ["ht0:*"],
                        snapshot=True) as session:
        with Emitter(session) as emitter:
            emitter.tell("class ht0 calm u32:x")
            emitter.tell("class ht0 crash u32:x text:why")
            session.lttng("add-trigger", "--name=crash",
                          "--condition=event-rule-matches",
                          "--type=user:tracepoint", "--name=ht0:crash",
                          "--filter=vcpu == -1", "--action=snapshot-session",
                          session.name)
            emitter.tell("emit ht0 calm 100 0")
            emitter.tell("emit ht0 crash 1 6")
            # LTTng makes the directory of a snapshot first, and writes its
            # metadata last
            session.wait_for(lambda: [f for f in glob.glob(
                f"{session.output}/**/metadata", recursive=True)
                if os.path.getsize(f)], "no snapshot was taken")
            emitter.tell("emit ht0 calm 1 0")
    events, _ = read(f"{directory}/t")
    assert events == emitter.expected[:len(events)]
    assert len(events) >= 100, len(events)


def test_quit(directory):
    """While its threads emit at full rate, the emitter can call exit(), after ht_ust_end() has
    returned true."""
    with PrivateSession(f"{directory}/t", ["ht0:*"]) as session:
        for _ in range(10):
            with Emitter(session) as emitter:
                emitter.tell("class ht0 number u64:n")
                emitter.tell("forever ht0 number 0 2")
                status = emitter.end(60000)
                assert status == 0, f"ended with {status}"


def test_quit_stuck(directory):
    """If a thread is stuck in a tracepoint, ht_ust_end() returns false: the emitter ends with
    status 3."""
    with PrivateSession(f"{directory}/t", ["ht0:*"], blocking=True,
                        subbuf_size="4k", num_subbuf=2) as session:
        with Emitter(session) as emitter:
            emitter.tell("class ht0 number u64:n")
            emitter.tell("emit ht0 number 1 0")
            consumers = session.consumers()
            for pid in consumers:
                os.kill(pid, signal.SIGSTOP)
            try:
                emitter.tell("forever ht0 number 0 2")
                # wait until the buffers are full: before that, no thread is stuck
                emitter.wait_asleep()
                status = emitter.end(200)
            finally:
                for pid in consumers:
                    os.kill(pid, signal.SIGCONT)
            assert status == 3, f"ended with {status}"


def test_timeout(directory):
    """If the session daemon does not answer a registration in time, the reply to
    "class" says that it is not reachable."""
    with PrivateSession(f"{directory}/t", ["ht0:*"]) as session:
        with Emitter(session, LTTNG_UST_REGISTER_TIMEOUT="300") as emitter:
            assert emitter.tell("class ht0 a u64:n")["reachable"] == "yes"
            session.wait_for(lambda: emitter.tell("enabled ht0 a")["enabled"] ==
                             "yes", "the event was not enabled")
            os.kill(session.pid, signal.SIGSTOP)
            try:
                wait_state(session.pid, "T")
                answer = emitter.tell("class ht0 b u64:n")
            finally:
                os.kill(session.pid, signal.SIGCONT)
            assert answer["reachable"] == "no", answer
