# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the events of a Linux guest.

While a session or a CTF trace records: events that ht-bench emitted = recorded + discarded by
the guest or the device + discarded by LTTng. ht-verify checks that each recorded event is
in its place and unaltered. With ./run check --long a guest emits a million events.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from demo.rounds import Run, stats
from demo.rows import Counted
from scale import LONG
from vm.lttng_session import missing_programs
from vm.machine import VM

EVENTS = 1000000 if LONG else 40000
THREADS = 2
TIMEOUT = 120 + EVENTS // 2000
CHANNELS = ["hypercall", "shm", "virtio"]


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


def ht_verify(*args):
    program = Path(os.environ["HT_BUILD"]) / "tools/ht-verify/ht-verify"
    if not program.exists():
        pytest.skip("ht-verify was not built: no libbabeltrace2")
    p = subprocess.run([program, "--json", *args], check=False, text=True,
                       capture_output=True, stdin=subprocess.DEVNULL)
    return json.loads(p.stdout or "null"), p.stderr, p.returncode


def job(arguments, threads=THREADS):
    """Script of a guest: run ht-bench, then wait for a line, which the test sends
    when it has read the device's statistics."""
    return (f"ht-bench -j -b -t {threads} -n {EVENTS // threads}"
            f" {arguments} >&3 || echo FAILED >&3\nread -r line <&3\n")


def finished(vm):
    m = vm.out.expect(r'^(\{"tool": "ht-bench".*\}|FAILED)\n', TIMEOUT)
    after = stats(vm, "ht0")
    vm.say("go on")
    vm.wait(60)
    assert m[1] != b"FAILED" and not vm.oops() and not vm.guest_errors, str(vm)
    bench = json.loads(m[1])
    assert not bench["gave_up"] and len(bench["streams"]) == THREADS
    return bench, after


def bench(tmp_path, device, arguments, **kwargs):
    with VM(devices=[dict(device, id="ht0")], job=job(arguments),
            workdir=tmp_path, **kwargs) as vm:
        return finished(vm)


def counted(result, after, trace):
    nothing = dict.fromkeys(("events", "lost", "dropped", "errors"), 0)
    run = Run({"id": "ht0"}, "tcg", "linux", "mix", "", result, nothing,
              after)
    run.trace = trace["inputs"][0]
    return Counted(run)


def all_of(result):
    return result["sent"] + result["discarded"]


# The guest emits as fast as it can, so the rings and LTTng's buffers may overflow: each
# event is recorded, or counted as discarded by the guest, the device or LTTng.
def test_flat_out(tmp_path, session, channel):
    # The session records only events of ht0, so all events that LTTng discarded are of
    # ht0.
    s = session(events=["ht0:*"], subbuf_size="256k", num_subbuf=4)
    result, after = bench(tmp_path, {"channel": channel, "backend": "lttng"},
                          "-p mix")
    s.finish()
    trace, complaints, status = ht_verify(tmp_path / "lttng")
    trace["inputs"][0]["lttng_channels"] = {
        "ht0": trace["inputs"][0]["lttng_discarded"]}
    c = counted(result, after, trace)
    print(f"{channel}: sent {c.sent}, recorded {c.recorded}, discarded "
          f"{c.discarded}, LTTng {c.lttng_discarded}")
    assert all_of(result) == EVENTS == c.sent
    assert c.recorded + c.discarded + c.lttng_discarded == EVENTS
    assert c.problems == [], complaints
    assert (status, complaints) == (0, "")
    assert len(c.streams) == THREADS
    # Each class was recorded in at least one stream; perhaps not in both, because the
    # guest or LTTng may have discarded all events of a class in one stream.
    classes = [k for stream in c.streams for k in stream["classes"]]
    assert {k["class"] for k in classes} == {
        "bench.e256", "bench.e32", "bench.e64", "bench.e8"}
    assert all(k["checked"] for k in classes)


# If ht-bench waits for the ring, and QEMU for LTTng's buffers, no event is
# discarded.
@pytest.mark.each_channel
def test_lossless(tmp_path, session, channel):
    s = session(events=["ht0:*"], blocking=True, subbuf_size="256k",
                num_subbuf=4)
    result, after = bench(tmp_path, {"channel": channel, "backend": "lttng"},
                          "-p mix -l")
    s.finish()
    trace, complaints, status = ht_verify("--lossless", tmp_path / "lttng")
    c = counted(result, after, trace)
    assert (status, complaints) == (0, "")
    assert c.problems == []
    assert (c.sent, c.recorded) == (EVENTS, EVENTS)
    assert [st["last_seq"] for st in c.streams] == [
        EVENTS // THREADS - 1] * THREADS


def two_args(tmp_path):
    return ["-object", f"hypertrace-backend-ctf,id=c,dir={tmp_path}/ctf",
            "-object", "hypertrace-backend-lttng,id=l"]


# Two backends get the same events if the queue of each may hold all of them.
def test_two(tmp_path, session, channel):
    s = session(events=["ht0:*"], blocking=True)
    result, _ = bench(tmp_path, {"channel": channel, "backend": "c:l",
                                 "backlog": f"{EVENTS}k"},
                      "-p mix -l", args=two_args(tmp_path))
    s.finish()
    both, complaints, status = ht_verify(
        "--lossless", "--compare", tmp_path / "lttng", tmp_path / "ctf")
    assert (status, complaints) == (0, "")
    assert result["sent"] == EVENTS
    assert sum(d["same"] for d in both["differences"]) == EVENTS
    assert not any(d["only_first"] or d["only_second"]
                   for d in both["differences"])


# If the queue of one of two backends exceeds its budget, the device discards events
# for that backend, and the backend's trace counts them.
def test_two_budgets(tmp_path, session):
    s = session(events=["ht0:*"], blocking=True, subbuf_size="64k",
                num_subbuf=2)
    result, _ = bench(tmp_path, {"channel": "shm", "backend": "c:l",
                                 "backlog": "1M"},
                      "-p mix -l", args=two_args(tmp_path))
    s.finish()
    both, complaints, status = ht_verify(
        "--compare", tmp_path / "lttng", tmp_path / "ctf")
    assert (status, complaints) == (0, "")
    assert result["sent"] == EVENTS
    told = {i["path"].rsplit("/", 1)[1]:
            sum(st["discarded"] for st in i["streams"])
            for i in both["inputs"]}
    recorded = {i["path"].rsplit("/", 1)[1]:
                sum(st["recorded"] for st in i["streams"])
                for i in both["inputs"]}
    assert {t: told[t] + recorded[t] for t in told} == dict.fromkeys(
        ("lttng", "ctf"), EVENTS)
    # the queue of at least one backend exceeded its budget
    assert told["ctf"] or told["lttng"]


# If the guest emits as fast as it can, the CTF backend's trace counts the discarded
# events.
def test_ctf_flat_out(tmp_path, channel):
    result, after = bench(tmp_path, {"channel": channel, "backend": "ctf",
                                     "packets": 2, "packet_size": "8k"},
                          "-p mix")
    trace, complaints, status = ht_verify(tmp_path / "trace-ht0")
    c = counted(result, after, trace)
    assert (status, complaints) == (0, "")
    assert c.problems == []
    assert c.recorded + c.discarded == EVENTS == c.sent
    assert sum(st["discarded"] for st in c.streams) == c.discarded
    if channel != "hypercall":
        assert c.discarded > 0          # 16 KiB of ring must overflow


def default_backend(channel):
    """QEMU's arguments for a device without the option "backend"."""
    return ["-device", f"hypertrace,id=ht0,channel={channel}"]


def without_daemon(monkeypatch, home):
    home.mkdir()
    monkeypatch.setenv("LTTNG_HOME", str(home))


# If no session daemon runs for QEMU's LTTNG_HOME, the guest loses no event, and the
# device counts each event.
def test_no_daemon(tmp_path, monkeypatch, channel):
    without_daemon(monkeypatch, tmp_path / "home")
    with VM(job=job("-p mix -l"), workdir=tmp_path,
            args=default_backend(channel)) as vm:
        result, after = finished(vm)
    assert (result["sent"], result["discarded"]) == (EVENTS, 0)
    assert (after["events"], after["lost"], after["dropped"]) == (EVENTS, 0, 0)


# An LTTng session that is started while the VM runs, and finished before the VM ends,
# has (or counts as discarded) all events from the session's start on.
def test_session_later(tmp_path, session):
    s = session(events=(), start=False)
    twice = (job("-p mix -l") + "echo AGAIN >&3\n" + job("-p mix -l"))
    with VM(job=twice, workdir=tmp_path,
            args=default_backend("shm")) as vm:
        pattern = r'^(\{"tool": "ht-bench".*\}|FAILED)\n'
        assert vm.out.expect(pattern, TIMEOUT)[1] != b"FAILED", str(vm)
        # no event was recorded before the session is started here
        s.enable("ht0:*")
        s.start()
        vm.say("go on")
        vm.out.expect("^AGAIN\n", TIMEOUT)
        m = vm.out.expect(pattern, TIMEOUT)
        assert m[1] != b"FAILED", str(vm)
        s.finish()
        vm.say("go on")
        vm.wait(60)
    trace, complaints, status = ht_verify(tmp_path / "lttng")
    i = trace["inputs"][0]
    assert (status, complaints) == (0, "")
    assert (sum(st["recorded"] for st in i["streams"])
            + i["lttng_discarded"]) == json.loads(m[1])["sent"] == EVENTS


# If the first session daemon starts after the VM, QEMU registers its events with the
# daemon.
def test_daemon_later(tmp_path, monkeypatch):
    if os.geteuid() == 0:
        pytest.skip("LTTng wakes programs of the daemon's own user, and"
                    " root's daemon may be in use")
    if missing_programs():
        pytest.skip("LTTng is not installed")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:   # a short path
        monkeypatch.setenv("LTTNG_HOME", home)
        with VM(job=job("-p mix -l"), workdir=tmp_path,
                args=default_backend("shm")) as vm:
            vm.out.expect(r"^(\{.*\}|FAILED)\n", TIMEOUT)
            daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"],
                                      stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                wait_listed("ht0:bench.e256")
                vm.say("go on")
                vm.wait(60)
            finally:
                daemon.terminate()
                daemon.wait(30)


def wait_listed(event):
    deadline = time.monotonic() + 30
    while True:
        p = subprocess.run(["lttng", "--no-sessiond", "list", "-u"],
                           check=False, capture_output=True, text=True)
        if event in p.stdout:
            return
        assert time.monotonic() < deadline, p.stdout + p.stderr
        time.sleep(0.1)
