# SPDX-License-Identifier: GPL-2.0-or-later
"""Test the backends as QEMU objects: their errors, their use by several devices, and a session
daemon that does not run or hangs. Compare the LTTng backend's trace of a guest with the CTF
backend's."""

import collections
import os
import re
import signal
import time
from pathlib import Path

import bt2
import pytest

import ctf_events
from vm.machine import VM, Failure
from vm.payload import Payload

CHANNELS = ["hypercall", "shm", "virtio"]


class Machine(VM):
    """A QEMU without a guest."""

    def _initrd(self):
        return None

    def command(self, initrd, fds):
        argv = [self.qemu, "-M", "q35", "-S", "-nodefaults",
                "-no-user-config", "-display", "none", "-accel", "tcg",
                *os.environ.get("HT_QEMU_L", "").split(),
                "-chardev", f"socket,id=qmp,fd={fds['qmp']}",
                "-mon", "chardev=qmp,mode=control"] + self.args
        for d in self.devices:
            argv += self.device_args(d)
        return argv

    def refuses(self, what, /, **arguments):
        """Add a QEMU object; QEMU must refuse it with an error that
        matches @what."""
        with pytest.raises(Failure, match=what):
            self.add(**arguments)

    def add(self, kind, **arguments):
        self.qmp.command("object-add", qom_type=f"hypertrace-backend-{kind}",
                         **arguments)

    def end(self):
        self.qmp.command("quit")
        self.process.wait(30)
        assert self.process.returncode == 0, self.stderr


@pytest.fixture
def machine(tmp_path):
    with Machine(workdir=tmp_path) as vm:
        yield vm


def qmp_object(kind, **properties):
    return ["-object", ",".join([f"hypertrace-backend-{kind}",
                                 *(f"{k}={v}" for k, v in
                                   properties.items())])]


def test_ctf_directory(machine, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    machine.refuses("is not empty", kind="ctf", id="c", dir=str(full))
    machine.refuses("cannot create directory", kind="ctf", id="c",
                    dir=str(full / "file" / "x"))
    machine.refuses("dir.* is missing", kind="ctf", id="c")
    machine.refuses("dir.* is missing", kind="ctf", id="c", dir="")

    # the backend creates a missing folder and its parents, or uses an empty one
    machine.add("ctf", id="c", dir=str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(Failure, match="cannot change"):
        machine.qmp.command("qom-set", path="/objects/c", property="dir",
                            value="elsewhere")
    assert machine.qmp.command("qom-get", path="/objects/c",
                               property="dropped") == 0
    machine.qmp.command("object-del", id="c")
    machine.add("ctf", id="c", dir=str(tmp_path / "a" / "b"))
    machine.end()


def test_log_file(machine, tmp_path):
    machine.refuses("No such file", kind="log", id="l",
                    file=str(tmp_path / "no" / "file"))
    machine.add("log", id="l", file=str(tmp_path / "log"))
    machine.add("log", id="stderr")
    machine.end()


def test_used_by_devices(tmp_path):
    """Two devices share backends, which cannot be deleted while in use."""
    args = (qmp_object("ctf", id="c", dir=tmp_path / "trace")
            + qmp_object("log", id="l", file=tmp_path / "log"))
    devices = [{"channel": "shm", "backend": "c:l"},
               {"channel": "virtio", "backend": "l:c"}]
    with Machine(devices=devices, args=args, workdir=tmp_path) as vm:
        for used in ("c", "l"):
            with pytest.raises(Failure, match="in use"):
                vm.qmp.command("object-del", id=used)
        # Before the device's first event, its trace can be read, and is empty.
        assert sorted(p.name for p in (tmp_path / "trace").iterdir()) == [
            "ht0", "ht1"]
        assert ctf_events.read(tmp_path / "trace" / "ht0") == {}
        vm.end()


def needs_lttng(tmp_path):
    with Machine(workdir=tmp_path) as vm:
        types = {t["name"] for t in vm.qmp.command(
            "qom-list-types", implements="hypertrace-backend")}
        vm.end()
    if "hypertrace-backend-lttng" not in types:
        pytest.skip("QEMU was built without lttng-ust")


def started(tmp_path):
    begin = time.monotonic()
    with Machine(workdir=tmp_path, devices=[{"channel": "shm",
                                             "backend": "lttng"}]) as vm:
        end = time.monotonic()
        vm.end()
    return end - begin


def test_lttng_without_daemon(tmp_path, monkeypatch):
    needs_lttng(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("LTTNG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LTTNG_UST_REGISTER_TIMEOUT", raising=False)
    started(tmp_path)
    if not list(Path("/var/run/lttng").glob("lttng-ust-sock-*")):
        said = (tmp_path / "stderr").read_text()
        assert "no LTTng session daemon is running" in said


def test_lttng_daemon_hangs(tmp_path, session, monkeypatch):
    """If the session daemon hangs, QEMU starts only after LTTng has waited for the daemon:
    for ten seconds, or for the time in LTTNG_UST_REGISTER_TIMEOUT."""
    needs_lttng(tmp_path)
    s = session(events=["ht0:*"])
    monkeypatch.delenv("LTTNG_UST_REGISTER_TIMEOUT", raising=False)
    os.kill(s.pid, signal.SIGSTOP)
    try:
        assert started(tmp_path) >= 10
        monkeypatch.setenv("LTTNG_UST_REGISTER_TIMEOUT", "0")
        assert min(started(tmp_path) for _ in range(3)) < 3
    finally:
        os.kill(s.pid, signal.SIGCONT)


def lttng_events(trace):
    """[(stream, vcpu, ns, name, fields)] of the LTTng backend's events, in the order of the
    recording; ns is the field guest_ns, a date by the host's monotonic clock"""
    found = []
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        assert not isinstance(msg, bt2._DiscardedEventsMessageConst)
        if isinstance(msg, bt2._EventMessageConst):
            fields = ctf_events.plain(msg.event.payload_field)
            provider, _, name = msg.event.name.partition(":")
            assert provider == "ht0"
            # the backend's own event, which counts events that the guest
            # discarded
            if name == "discarded":
                continue
            found.append((fields.pop("stream"), fields.pop("vcpu"),
                          fields.pop("guest_ns"), name, fields))
    return found


def ctf_trace_events(trace):
    """Like lttng_events(), from the trace of the CTF backend, but ns are since the
    Epoch."""
    found = []
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(msg, bt2._EventMessageConst):
            context = msg.event.packet.context_field
            fields = msg.event.payload_field
            found.append((int(context["stream_index"]),
                          int(context["cpu_id"]),
                          msg.default_clock_snapshot.ns_from_origin,
                          msg.event.name,
                          ctf_events.plain(fields) if fields else {}))
    return found


def countable(events, offset):
    return collections.Counter(
        (stream, vcpu, ns - offset, name, repr(sorted(fields.items())))
        for stream, vcpu, ns, name, fields in events)


@pytest.mark.parametrize("channel", CHANNELS)
def test_lttng_and_ctf_agree(tmp_path, session, channel):
    """The traces of two backends have the same events of a guest."""
    needs_lttng(tmp_path)
    s = session(events=["ht0:*"])
    args = (qmp_object("ctf", id="c", dir=tmp_path / "ctf")
            + qmp_object("lttng", id="l"))
    with Payload("selftest", workdir=tmp_path, args=args,
                 devices=[{"channel": channel,
                           "backend": "c:l"}]) as vm:
        vm.wait(120)
    s.finish()

    ours = ctf_trace_events(tmp_path / "ctf")
    theirs = lttng_events(tmp_path / "lttng")
    offset = int(re.search(r"offset_s = (\d+)", (
        tmp_path / "ctf" / "ht0" / "metadata").read_text())[1])
    part = int(re.search(r"\boffset = (\d+)", (
        tmp_path / "ctf" / "ht0" / "metadata").read_text())[1])
    assert len(ours) > 5000
    assert countable(ours, offset * 10**9 + part) == countable(theirs, 0)
    last = {}
    for stream, _, ns, _, _ in theirs:
        assert ns >= last.get(stream, 0)
        last[stream] = ns
