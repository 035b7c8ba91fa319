# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests are migrated from host to host, or set back to a snapshot, while they emit; each host is
a QEMU of this machine.

After a migration, no sequence number is in the traces of all hosts twice, and each missing one
is counted as discarded. HT_MIGRATION_EVENTS=20000 makes the runs as long as those in
docs/reliability.md; by default they are short.
"""

import json
import os
import time

import pytest

from demo.rounds import stats
from test_accounting import ht_verify
from vm.machine import VM, Failure
from vm.payload import Payload, kvm_problem

# Minimum number of events that a Linux guest emits on each host
EVENTS = int(os.environ.get("HT_MIGRATION_EVENTS", "3000"))
TIMEOUT = 120 + EVENTS // 200
THREADS = 2
CHANNELS = ["hypercall", "shm", "virtio"]
RESULT = r'^(\{"tool": "ht-bench".*\}|FAILED)\n'
# ht-bench runs until the test sends a line. After ht-bench has ended, the guest waits
# for another line, which the test sends when it has read the statistics.
JOB = """
ht-bench -j -b -t {threads} -n 1000000000 {arguments} >&3 &
read -r line <&3
kill $!
wait $! || echo FAILED >&3
read -r line <&3
"""


@pytest.fixture(params=CHANNELS)
def channel(request):
    return request.param


def wait_for(condition, what, timeout=TIMEOUT):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{timeout} s went by: {what}"
        time.sleep(0.02)


def wait_migrated(vm):
    def over():
        m = vm.qmp.command("query-migrate")
        if m.get("status") == "failed":
            raise Failure(f"migration: {m.get('error-desc')}\n{vm}")
        return m.get("status") == "completed"
    wait_for(over, "the migration")


def wait_events(vm, count=EVENTS):
    begin = stats(vm, "ht0")["events"]
    wait_for(lambda: stats(vm, "ht0")["events"] >= begin + count,
             f"{count} events")


def move(here, there, by, tmp_path):
    """Migrate the guest from the VM `here`, which runs it, to the VM `there`, which waits for it.
    Then end the VM `here`."""
    if by == "file":
        uri = f"file:{tmp_path}/state"
        here.qmp.command("migrate", uri=uri)
        wait_migrated(here)
        there.qmp.command("migrate-incoming", uri=uri)
    else:
        uri = f"unix:{tmp_path}/socket"
        there.qmp.command("migrate-incoming", uri=uri)
        here.qmp.command("migrate", uri=uri)
        wait_migrated(here)
    wait_migrated(there)
    wait_for(lambda: there.qmp.command("query-status")["running"],
             "the VM to run")
    if by == "file":
        os.unlink(f"{tmp_path}/state")
    here.stop()


class Journey:
    """A guest and one VM for each host: the first VM runs the guest, the others wait for the
    guest's migration"""

    def __init__(self, make, tmp_path, hops):
        self.tmp_path = tmp_path
        self.hops = hops
        self.vms = []
        for n in range(len(hops) + 1):
            home = tmp_path / f"host{n}"
            home.mkdir()
            self.vms.append(make(
                workdir=home, args=["-incoming", "defer"] if n else []))

    def __enter__(self):
        try:
            for vm in self.vms:
                vm.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for vm in self.vms:
            vm.close()

    def go(self, events=EVENTS):
        here = self.vms[0]
        for there, by in zip(self.vms[1:], self.hops):
            wait_events(here, events)
            move(here, there, by, self.tmp_path)
            here = there
        wait_events(here, events)
        return here

    def joined(self):
        """{instance: figures} of the streams, summed over the traces of all hosts: counts of
        recorded and discarded events and of hosts, and the last sequence number"""
        sums = {}
        for vm in self.vms:
            for s in streams(vm):
                whole = sums.setdefault(s["instance"], {
                    "recorded": 0, "discarded": 0, "hosts": 0,
                    "last_seq": -1})
                if s["recorded"]:
                    assert s["first_seq"] > whole["last_seq"], (s, whole)
                    whole["last_seq"] = s["last_seq"]
                    whole["hosts"] += 1
                whole["recorded"] += s["recorded"]
                whole["discarded"] += s["discarded"]
        print(f"{len(self.vms)} hosts, by {', '.join(self.hops)}: {sums}")
        return sums


def streams(vm):
    """The streams in one host's trace, as ht-verify reports them; fail if events are
    altered, doubled or in disorder"""
    # ignore complaints about missing events: they may be in other hosts' traces
    result, complaints, _ = ht_verify(vm.trace("ht0"))
    assert result["inputs"][0]["traces"] == 1, complaints
    for s in result["inputs"][0]["streams"]:
        assert s["altered"] == s["duplicates"] == 0, s
        assert s["disordered"] == s["backward"] == 0, s
        yield s


def linux(channel, arguments, **device):
    def make(args=(), **kwargs):
        return VM(
            job=JOB.format(threads=THREADS, arguments=arguments),
            devices=[{"id": "ht0", "channel": channel, **device}],
            args=[*args], **kwargs)
    return make


def finish(vm):
    vm.say("enough")
    m = vm.out.expect(RESULT, TIMEOUT)
    after = stats(vm, "ht0")
    vm.say("go on")
    vm.wait(TIMEOUT)
    assert m[1] != b"FAILED" and not vm.oops(), str(vm)
    assert not vm.guest_errors and after["errors"] == 0
    bench = json.loads(m[1])
    assert not bench["gave_up"] and len(bench["streams"]) == THREADS
    return bench, after


def check_linux(tmp_path, channel, hops, arguments, **device):
    with Journey(linux(channel, arguments, **device), tmp_path, hops) as j:
        bench, after = finish(j.go())
    sums = j.joined()
    assert sorted(sums) == sorted(s["instance"] for s in bench["streams"])
    assert all(s["hosts"] == len(j.vms) for s in sums.values())
    recorded = sum(s["recorded"] for s in sums.values())
    discarded = sum(s["discarded"] for s in sums.values())
    assert recorded == after["events"]
    assert discarded == after["lost"] + after["dropped"]
    assert recorded + discarded == bench["sent"] + bench["discarded"]
    return bench, sums


# No event is missing, whichever host it was emitted on.
def test_linux_lossless(tmp_path, channel):
    bench, sums = check_linux(tmp_path, channel, ["file", "socket"],
                              "-p mix -l -r 1000")
    assert bench["discarded"] == 0
    for s in sums.values():
        assert (s["recorded"], s["discarded"]) == (s["last_seq"] + 1, 0)


# The guest emits as fast as it can into small rings. Over shm and virtio, events are discarded
# then; over hypercall, the host takes the events at each doorbell.
def test_linux_flat_out(tmp_path, channel):
    bench, sums = check_linux(tmp_path, channel, ["socket"], "-p 8,32",
                              packets=2, packet_size="4k")
    if channel != "hypercall":
        assert bench["discarded"] > 0       # else the rings were too large for this test
    for s in sums.values():
        # last_seq is the number of the last recorded event; events after it may have
        # been discarded, and these are counted too.
        assert s["recorded"] + s["discarded"] >= s["last_seq"] + 1


# One LTTng session records the QEMUs of all hosts, and has each event of the guest once.
def test_linux_lttng(tmp_path, session, channel):
    s = session(events=["ht0:*"], blocking=True)
    with Journey(linux(channel, "-p mix -l -r 1000", backend="lttng"),
                 tmp_path, ["socket", "file"]) as j:
        bench, after = finish(j.go())
    s.finish()
    trace, complaints, status = ht_verify("--lossless", tmp_path / "lttng")
    assert (status, complaints) == (0, "")
    assert bench["sent"] == after["events"]
    assert (sorted((r["recorded"], r["last_seq"] + 1)
                   for r in trace["inputs"][0]["streams"])
            == sorted((b["sent"], b["sent"]) for b in bench["streams"]))


# Migrate a guest without an operating system. No event is discarded or missing.
@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_baremetal(tmp_path, accel, channel):
    if accel == "kvm" and kvm_problem():
        pytest.skip(kvm_problem())
    n, rate = 8 * EVENTS, EVENTS

    def make(**kwargs):
        return Payload(
            f"bench payload=64 mode=lossless events={n} rate={rate}",
            devices=[{"id": "ht0", "channel": channel}], accel=accel,
            **kwargs)
    with Journey(make, tmp_path, ["socket", "file"]) as j:
        last = j.go(EVENTS // 3)
        last.wait(TIMEOUT)
        assert not any(vm.guest_errors for vm in j.vms)
    [row] = last.named(tool="ht-bench")
    assert (row["sent"], row["discarded"]) == (n, 0)
    [s] = j.joined().values()
    assert (s["recorded"], s["last_seq"], s["hosts"]) == (n, n - 1, 3)


def add_disk(vm):
    """Add a disk in which QEMU can save snapshots, and that no device uses."""
    (vm.dir / "disk").touch()
    vm.qmp.command("blockdev-add", driver="file", node_name="file",
                   filename=str(vm.dir / "disk"))
    job(vm, "blockdev-create", options={"driver": "qcow2", "file": "file",
                                        "size": 1 << 20})
    vm.qmp.command("blockdev-add", driver="qcow2", node_name="disk",
                   file="file")


def job(vm, name, **arguments):
    vm.qmp.command(name, job_id="job", **arguments)

    def over():
        [j] = vm.qmp.command("query-jobs")
        assert "error" not in j, j
        return j["status"] == "concluded"
    wait_for(over, name)
    vm.qmp.command("job-dismiss", id="job")


def snapshot(vm, name):
    job(vm, name, tag="before", vmstate="disk", devices=["disk"])


# A snapshot is loaded twice, so the guest emits the same numbers up to three times. The trace
# has them each time, in other stream instances.
def test_rewind(tmp_path, channel):
    with linux(channel, "-p mix -l -r 1000")(workdir=tmp_path) as vm:
        add_disk(vm)
        wait_events(vm)
        snapshot(vm, "snapshot-save")
        wait_events(vm)
        for _ in range(2):
            snapshot(vm, "snapshot-load")
            wait_events(vm)
        bench, after = finish(vm)
    known = sorted(s["instance"] for s in bench["streams"])
    rows = sorted(streams(vm), key=lambda s: s["instance"])
    print([(s["instance"], s["stream"], s["first_seq"], s["last_seq"],
            s["recorded"]) for s in rows])
    assert len(rows) == 3 * THREADS
    assert [s["instance"] for s in rows[:THREADS]] == known
    for s in rows:
        assert s["recorded"] == s["last_seq"] - s["first_seq"] + 1
        assert s["discarded"] == 0
    for index in range(THREADS):
        first, second, third = [s for s in rows if s["stream"] == index]
        assert first["first_seq"] == 0
        assert (0 < second["first_seq"] == third["first_seq"]
                <= first["last_seq"])
    assert after["events"] == bench["sent"]
