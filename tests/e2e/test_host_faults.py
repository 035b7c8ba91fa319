# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the host: daemons that die or hang, full disks, deleted files, a
thread that does not run.

In most tests the guest emits during the fault, and QEMU still answers. Each test says which
events must then be recorded, or counted as discarded or dropped.
"""

import collections
import contextlib
import os
import shutil
import signal
import subprocess
import time

import bt2
import pytest

import ctf_events
from bench.guest import StoppedThread, Study
from own_machine import mounting, own_run
from vm.lttng_session import PrivateSession
from vm.machine import VM, Failure
from vm.payload import kvm_problem

CHANNELS = ["hypercall", "shm", "virtio"]
EVENTS = 20000
RINGS = CHANNELS[:2]    # an IOThread reads their events; the main loop reads virtio's
END = 5                 # seconds; END_MS in hw/hypertrace/sink.c


def session(output, **kwargs):
    return PrivateSession(
        str(output), events=["ht0:*", "ht1:*", "ht2:*"],
        own_run=os.geteuid() == 0, **kwargs)


def study(workdir, backend, channels=CHANNELS, env=None, accel="tcg",
          **properties):
    return Study([dict(properties, id=f"ht{n}", channel=c, backend=backend)
                  for n, c in enumerate(channels)],
                 peers=False, env=env, accel=accel, workdir=workdir)


def emit(vm, device, events=EVENTS, timeout=60, **options):
    """Let the guest emit on a device. Return the numbers of (sent, discarded)
    events."""
    row = vm.tell("run", timeout, device=vm.index[device], events=events,
                  mode="flat", **options)
    assert row["sent"] + row["discarded"] == events and not row["gave_up"]
    return row["sent"], row["discarded"]


def trace_counts(trace):
    """Return ({provider: number of events}, LTTng's total of discarded events) of a trace.
    Events with the name "discarded", which QEMU's LTTng backend adds, do not count."""
    found = collections.Counter()
    discarded = 0
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(msg, bt2._EventMessageConst):
            provider, _, name = msg.event.name.partition(":")
            found[provider] += name != "discarded"
        elif isinstance(msg, bt2._DiscardedEventsMessageConst):
            discarded += msg.count
    return found, discarded


def devices(vm):
    return sorted(vm.index)


def emit_on_all(vm, **kwargs):
    sent = {d: emit(vm, d, **kwargs)[0] for d in devices(vm)}
    for d in sent:
        vm.settle(d)
    return sent


def records_again(s, vm, trace):
    """Start a new session daemon, and check that each event emitted from now on is in its trace, or
    counted there as discarded."""
    s.restart(trace)
    for d in devices(vm):
        s.wait_listed(f"{d}:bench_32")
    sent = emit_on_all(vm)
    s.finish()
    vm.quit()
    recorded, discarded = trace_counts(trace)
    assert sum(recorded.values()) + discarded == sum(sent.values())
    assert discarded or recorded == sent


@own_run
def test_daemon_killed(tmp_path):
    """The session daemon and its consumers are killed; a new session daemon
    records."""
    with session(tmp_path / "first") as s, \
            study(tmp_path, "lttng", env=s.env()) as vm:
        emit_on_all(vm)
        s.kill()
        during = emit_on_all(vm)
        assert sum(during.values()) > 0
        assert vm.qmp.command("query-status")["running"]
        records_again(s, vm, tmp_path / "second")


@own_run
def test_daemon_hangs(tmp_path):
    """While the session daemon is stopped by SIGSTOP, the guest emits on ht0, of which
    LTTng knows the classes, and on ht1, of which LTTng must register them. After SIGCONT, the trace
    has the events of both, or counts them as discarded."""
    with session(tmp_path / "trace") as s, \
            study(tmp_path, "lttng", env=s.env()) as vm:
        sent = {"ht0": emit(vm, "ht0")[0], "ht1": 0, "ht2": 0}
        os.kill(s.pid, signal.SIGSTOP)
        try:
            # ht0 needs no reply of the stopped daemon: LTTng already has its
            # classes
            sent["ht0"] += emit(vm, "ht0")[0]
            # To register ht1's classes, the backend's thread waits for the stopped
            # daemon. QEMU answers meanwhile.
            vm.console.send("run device=1 event=32 events=1 mode=flat\n")
            assert vm.qmp.command("query-status")["running"]
        finally:
            os.kill(s.pid, signal.SIGCONT)
        row = vm.answer(60)
        sent["ht1"] = row["sent"]
        vm.settle("ht1")
        s.finish()
        vm.quit()
    recorded, discarded = trace_counts(tmp_path / "trace")
    assert sum(recorded.values()) + discarded == sum(sent.values())
    assert recorded["ht1"] == sent["ht1"] == 1


@own_run
def test_daemon_too_slow(tmp_path):
    """If the daemon does not answer a registration in time, LTTng-UST gives up
    the daemon; QEMU reports that once."""
    said = "the LTTng session daemon did not answer in time: 'ht"
    with session(tmp_path / "trace") as s, \
            study(tmp_path, "lttng", env={
                **s.env(), "LTTNG_UST_REGISTER_TIMEOUT": "500"}) as vm:
        emit(vm, "ht0")
        # Wait until the daemon has added QEMU to the session, which may happen after
        # the guest has emitted.
        s.wait_listed("ht0:bench_32")
        s.wait_for(lambda: any((tmp_path / "trace").rglob("main_*")),
                   "QEMU has no channel")
        os.kill(s.pid, signal.SIGSTOP)
        try:
            for n in (1, 2):
                emit(vm, f"ht{n}", events=1)
            deadline = time.monotonic() + 60
            while said not in vm.stderr:
                assert time.monotonic() < deadline, vm.stderr
                time.sleep(0.1)
        finally:
            os.kill(s.pid, signal.SIGCONT)
        vm.quit()
    assert vm.stderr.count("did not answer in time") == 1, vm.stderr


@own_run
def test_consumer_killed(tmp_path):
    """LTTng's consumers are killed, so its buffers fill, and no process empties them. The guest
    still emits, and a new session daemon records."""
    with session(tmp_path / "first") as s, \
            study(tmp_path, "lttng", env=s.env()) as vm:
        emit_on_all(vm)
        consumers = s.consumers()
        assert consumers
        for pid in consumers:
            os.kill(pid, signal.SIGKILL)
        during = emit_on_all(vm, events=10 * EVENTS)
        assert sum(during.values()) > 0
        s.kill()
        records_again(s, vm, tmp_path / "second")


@contextlib.contextmanager
def stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@own_run
@pytest.mark.parametrize("channel", CHANNELS)
def test_blocking_consumer_hangs(tmp_path, channel):
    """In blocking mode the backend's thread in QEMU waits for buffer space that the stopped
    consumer does not free.  Meanwhile the guest's emits return, and the VM can be
    stopped and continued."""
    with session(tmp_path / "trace", blocking=True, subbuf_size="128k",
                 num_subbuf=4) as s, \
            study(tmp_path, "lttng", [channel], env=s.env()) as vm:
        opened = vm.tell("run", device=0, events=10 * EVENTS, mode="flat",
                         hold=1)
        assert opened["function"] == "opened"
        with stopped(s.consumers()):
            assert vm.tell("go", 60)["function"] == "emitted"
            vm.qmp.command("stop")
            vm.qmp.command("cont")
            assert not vm.backends("ht0")[0]["idle"]
        row = vm.tell("go")
        assert row["sent"] + row["discarded"] == 10 * EVENTS
        vm.settle("ht0")
        stats = vm.stats("ht0")
        s.finish()
        vm.quit()
    assert stats["events"] == row["sent"]
    recorded, discarded = trace_counts(tmp_path / "trace")
    assert (recorded["ht0"], discarded) == (row["sent"], 0)


@own_run
def test_quit_while_blocked(tmp_path):
    """LTTng's exit handler would wait for a thread that is blocked in LTTng. QEMU
    exits nevertheless, and it removes its pid file."""
    pid = tmp_path / "pid"
    with session(tmp_path / "trace", blocking=True, subbuf_size="4k",
                 num_subbuf=2) as s:
        vm = study(tmp_path, "lttng", ["shm"], env=s.env())
        vm.args += ["-pidfile", str(pid)]
        with vm:
            vm.tell("run", device=0, events=10 * EVENTS, mode="flat", hold=1)
            with stopped(s.consumers()):
                vm.tell("go", 60)
                assert int(pid.read_text()) == vm.process.pid
                vm.qmp.command("quit")
                assert vm.process.wait(12 * END) == 0, vm.stderr
            assert "a thread hangs in LTTng-UST" in vm.stderr
    assert not pid.exists()


@own_run
@pytest.mark.parametrize("channel", CHANNELS)
def test_quit_at_full_rate(tmp_path, channel):
    """QEMU exits while the thread of the LTTng backend records event after event."""
    with session(tmp_path / "trace") as s:
        for _ in range(3):
            with study(tmp_path, "lttng", [channel], env=s.env()) as vm:
                vm.console.send("run device=0 event=8 events=2000000000"
                                " mode=flat\n")
                deadline = time.monotonic() + 60
                while vm.stats("ht0")["events"] < EVENTS:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                vm.qmp.command("quit")
                assert vm.process.wait(12 * END) == 0, vm.stderr
                assert "hangs" not in vm.stderr
        s.finish()
    recorded, discarded = trace_counts(tmp_path / "trace")
    assert recorded["ht0"] + discarded >= 3 * EVENTS


@pytest.mark.parametrize("channel", RINGS)
def test_thread_does_not_run(tmp_path, channel):
    """While the IOThread is stopped, each emit of the guest still returns: the
    event is committed to the ring or counted as discarded."""
    with study(tmp_path, "ctf", [channel]) as vm:
        opened = vm.tell("run", device=0, events=10 * EVENTS, mode="flat",
                         hold=1)
        assert opened["function"] == "opened"
        with StoppedThread(vm.tids["io-ht0"]):
            assert vm.tell("go", 60)["function"] == "emitted"
            assert vm.qmp.command("query-status")["running"]
        row = vm.tell("go")
        stats = vm.stats("ht0")
        vm.quit()
    assert row["sent"] + row["discarded"] == 10 * EVENTS
    assert (stats["events"], stats["lost"] + stats["dropped"]) == (
        row["sent"], row["discarded"])
    (stream,) = ctf_events.read(vm.trace("ht0")).values()
    assert len(stream.events) == row["sent"]
    assert stream.discarded == row["discarded"]


@pytest.mark.skipif(bool(kvm_problem()),
                    reason=str(kvm_problem()))
@pytest.mark.parametrize("channel", RINGS)
def test_reset_before_dating(tmp_path, channel):
    """Under KVM, a reset restarts the guest's time-stamp counter. Events that the guest
    committed before the reset, but that the device reads only after it, get dates before the
    reset."""
    log = tmp_path / "log"
    # With channel=hypercall, let the guest ring the doorbell only after 4096 events: so none of
    # the 100 events makes a vCPU read the ring.
    rare = {"batch": 4096} if channel == "hypercall" else {}
    vm = study(tmp_path, "log", [channel], accel="kvm",
               backend_options={"file": log}, **rare)
    vm.args += ["-action", "reboot=reset", "-trace", "hypertrace_control"]
    with vm:
        begin = time.monotonic_ns()
        vm.tell("run", device=0, events=100, mode="flat", hold=1)
        with StoppedThread(vm.tids["io-ht0"]):
            assert vm.tell("go", 60)["function"] == "emitted"
            end = time.monotonic_ns()
            before = len(vm.traced("hypertrace_control"))
            vm.qmp.command("system_reset")
            deadline = time.monotonic() + 60
            # wait until the device answers the guest's clock message with BUSY
            while not any(line.startswith("ht0 message type 6 ")
                          and line.endswith(" status 1") for line in
                          vm.traced("hypertrace_control")[before:]):
                assert time.monotonic() < deadline, vm
                time.sleep(0.01)
        assert vm.answer(60)["function"] == "study"
        again = time.monotonic_ns()
        assert emit(vm, "ht0", events=100) == (100, 0)
        vm.settle("ht0")
        vm.quit()
    dates = [round(float(line.split()[0]) * 1e9)
             for line in log.read_text().splitlines() if " bench_32 " in line]
    assert len(dates) == 200 and dates == sorted(dates)
    # Tolerate 100 us: the log rounds the dates, and each date has an error.
    assert begin - 1e5 < dates[0] and dates[99] < end + 1e5
    assert again - 1e5 < dates[100]


def mirrored(vm):
    (job,) = vm.qmp.command("query-block-jobs")
    return job["offset"]


@pytest.mark.parametrize("channel", RINGS)
def test_thread_is_shared(tmp_path, channel):
    """An IOThread that a copy between two disks keeps busy still reads the events."""
    with study(tmp_path, "ctf", [channel]) as vm:
        for node in ("disk", "other"):
            vm.qmp.command("blockdev-add", node_name=node, driver="null-co",
                           size=1 << 36)
            vm.qmp.command("x-blockdev-set-iothread", node_name=node,
                           iothread="io-ht0")
        vm.qmp.command("blockdev-mirror", job_id="busy", device="disk",
                       target="other", sync="full")
        before = mirrored(vm)
        sent, discarded = emit(vm, "ht0", 10 * EVENTS)
        assert mirrored(vm) > before
        vm.qmp.command("block-job-cancel", device="busy", force=True)
        stats = vm.stats("ht0")
        vm.quit()
    assert (stats["events"], stats["lost"] + stats["dropped"]) == (
        sent, discarded)


def small_disk(path, size):
    path.mkdir()
    path.chmod(0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none",
                    path], check=True)


def accounted(trace, rows):
    """Check that the first and the last stream instance have a file, and that in each instance
    with a file the recorded and the discarded events together are as many as the guest emitted.
    Return the number of recorded events."""
    streams = ctf_events.read(trace)
    assert {1, len(rows)} <= set(streams) <= set(range(1, len(rows) + 1))
    for instance, s in streams.items():
        assert len(s.events) + s.discarded == sum(rows[instance - 1])
    return sum(len(s.events) for s in streams.values())


def dropped(vm, device="ht0"):
    vm.settle(device)
    return vm.qmp.command("qom-get", path=f"/objects/{device}-backend",
                          property="dropped")


@mounting
def test_ctf_disk_full(tmp_path):
    """Events for which the disk has no space are counted as dropped; once
    there is space, events are recorded."""
    disk = tmp_path / "disk"
    small_disk(disk, "6m")
    for channel in CHANNELS:
        ballast = disk / "ballast"
        work = tmp_path / channel
        work.mkdir()
        with study(work, "ctf", [channel],
                   backend_options={"dir": disk / "trace"}) as vm:
            rows = [emit(vm, "ht0")]
            assert dropped(vm) == 0
            # The close of the file `ballast` fails, because it tries again to write the bytes that
            # did not fit on the disk.
            with contextlib.suppress(OSError), open(ballast, "wb") as f:
                while f.write(bytes(65536)):
                    f.flush()
            rows += [emit(vm, "ht0")]
            lost = dropped(vm)
            assert lost > 0
            ballast.unlink()
            rows += [emit(vm, "ht0")]
            assert dropped(vm) == lost
            stats = vm.stats("ht0")
            assert "No space left" in vm.stderr
            vm.quit()
        assert stats["events"] == sum(sent for sent, _ in rows)
        assert accounted(disk / "trace" / "ht0", rows) == \
            stats["events"] - lost
        shutil.rmtree(disk / "trace")


@mounting
def test_log_disk_full(tmp_path):
    """If the disk is full, each event is a complete line of the log file or is
    counted as dropped."""
    disk = tmp_path / "disk"
    small_disk(disk, "1m")
    log = disk / "log"
    with study(tmp_path, "log", ["shm"],
               backend_options={"file": log}) as vm:
        sent = lost = 0
        # Emit until the backend drops events because the disk is full; on a busy host,
        # one run may fill the ring before it fills the disk.
        while not lost:
            sent += emit(vm, "ht0")[0]
            lost = dropped(vm)
        assert lost < sent
        lines = [line for line in log.read_text().splitlines()
                 if " bench_32 " in line]
        names = [f.split("=")[0] for f in lines[0].split()]
        whole = [line for line in lines
                 if [f.split("=")[0] for f in line.split()][4:] == names[4:]]
        # The disk may have become full within the last number of a line: this line
        # looks whole here, but its event was dropped.
        assert len(whole) - (sent - lost) in (0, 1)
        with open(log, "w", encoding="ascii"):
            pass                        # free the space
        assert emit(vm, "ht0", 100) == (100, 0)
        assert dropped(vm) == lost
        assert log.read_text().count(" bench_32 ") == 100
        vm.quit()


def test_ctf_directory_deleted(tmp_path):
    """If the directory of a trace is deleted, the backend counts the events
    that it cannot write as dropped."""
    with study(tmp_path, "ctf") as vm:
        for d in devices(vm):
            emit(vm, d)
            assert dropped(vm, d) == 0
            shutil.rmtree(vm.trace(d))
            # Each emit() opens a new instance of the stream, which needs a new file in
            # the deleted directory.
            for _ in range(2):
                before = dropped(vm, d)
                sent, _ = emit(vm, d)
                assert dropped(vm, d) - before == sent > 0
        assert "No such file or directory" in vm.stderr
        vm.quit()


@own_run
def test_lttng_disk_full(tmp_path):
    """LTTng's consumer finds the disk full.  The guest is not affected, and
    events emitted after a new session has begun are recorded."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    small_disk(disk, "3m")
    with session(disk / "trace", subbuf_size="64k", num_subbuf=4) as s, \
            study(tmp_path, "lttng", env=s.env()) as vm:
        full = emit_on_all(vm, events=10 * EVENTS)
        stats = {d: vm.stats(d) for d in devices(vm)}
        assert {d: stats[d]["events"] for d in full} == full
        s.wait_for(lambda: shutil.disk_usage(disk).free < 65536,
                   "the disk is not full")
        # LTTng does not continue a trace whose disk was full: begin a new trace
        # on another disk
        s.kill()
        s.restart(tmp_path / "second")
        for d in devices(vm):
            s.wait_listed(f"{d}:bench_32")
        after = emit_on_all(vm)
        s.finish()
        vm.quit()
    recorded, discarded = trace_counts(tmp_path / "second")
    assert sum(recorded.values()) + discarded == sum(after.values())


PACE_JOB = """
ht-devtest /dev/hypertrace0 pace 20000 >&3 &
read -r line <&3
"""


def paces(vm, want, timeout=90):
    """Wait until the guest's ht-devtest has printed numbers of emitted and of discarded
    events for which want(emitted, discarded) is true."""
    deadline = time.monotonic() + timeout
    while True:
        m = vm.out.expect(r"^pace /dev/hypertrace0 (\d+) (\d+)$",
                          deadline - time.monotonic())
        if want(int(m[1]), int(m[2])):
            return


def deleted(vm, backend):
    try:
        vm.qmp.command("object-del", id=backend)
    except Failure:
        return False
    return True


@own_run
@pytest.mark.parametrize("channel", CHANNELS)
def test_unplug_while_blocked(tmp_path, channel):
    """A device is unplugged while a program emits and the thread of the device's backend waits in
    LTTng. The device is gone within a limited time. QEMU refuses to delete the backend until
    LTTng goes on, and deletes it then.

    The test does not compare the number of recorded events with the guest's: on a busy
    machine LTTng discarded some of them, even in blocking mode with eight sub-buffers.
    """
    with session(tmp_path / "trace", blocking=True, subbuf_size="16k",
                 num_subbuf=8) as s, pytest.MonkeyPatch.context() as patch:
        for name, value in s.env().items():
            patch.setenv(name, value)
        with VM(devices=[{"channel": channel, "backend": "lttng",
                          "packets": 4, "packet_size": 4096,
                          "backlog": "1M"}],
                job=PACE_JOB, workdir=tmp_path) as vm:
            paces(vm, lambda emitted, discarded: emitted > 1000)
            with stopped(s.consumers()):
                # The backend's thread waits in LTTng. When its backlog is full, the device stops
                # reading the ring: the ring fills, and the guest's program discards events.
                paces(vm, lambda emitted, discarded: discarded > 1000)
                vm.qmp.command("device_del", id="ht0")
                s.wait_for(lambda: "ht0" not in [c["name"] for c in vm.qmp.command(
                    "qom-list", path="/machine/peripheral")], "it is not unplugged", 180)
                paces(vm, lambda emitted, discarded: discarded > 3000)
                vm.qmp.wait_event("DEVICE_DELETED", 60, device="ht0")
                with pytest.raises(Failure, match="in use"):
                    vm.qmp.command("object-del", id="ht0-backend")
            s.wait_for(lambda: deleted(vm, "ht0-backend"), "it is still in use")
            vm.say("end")
            vm.process.wait(60)
            assert not vm.oops(), str(vm)
        s.finish()
    recorded, _ = trace_counts(tmp_path / "trace")
    assert recorded["ht0"] > 1000
