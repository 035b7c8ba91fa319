# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace interference: how long the machines of a host waited for each other, and what it
advises."""

import json
import struct

import pytest

from hosttrace import (ENTRY, IDLE, RUNS, WAITS, WAKING, event, make, make_part, piece, switch)
from hypertrace import run

MS = 1_000_000
A, B, COMPILER = ("CPU 0/KVM", 11), ("CPU 0/KVM", 21), ("cc1", 31)
THREADS = "10 10 qemu-a\n11 10 CPU 0/KVM\n20 20 qemu-b\n21 20 CPU 0/KVM\n30 30 make\n31 30 cc1\n"
OTHER_IDLE = ("swapper/1", 0)
OTHER = ("other", 99)


def interference(*args, **kwargs):
    return json.loads(run("interference", "--json", *args, **kwargs).stdout)


def turns(pattern, rounds, start=1000 * MS):
    """Events of a processor on which tasks run in turn.

    pattern: pairs of a task and the length of its turns in nanoseconds
    rounds: how many times the tasks run through the pattern
    """
    events, t = [], start
    for n in range(rounds):
        for k, (task, ns) in enumerate(pattern):
            before = pattern[k - 1][0] if n or k else IDLE
            events.append((t, switch(before, RUNS, task)))
            t += ns
    return [*events, (t, switch(pattern[-1][0], RUNS, pattern[0][0]))]


def busy(begin, end):
    """Events of a processor that runs the task OTHER from begin to end, in ns"""
    times = [begin, *range(begin + 100 * MS, end, 100 * MS), end]
    return [(t, switch(OTHER, RUNS, OTHER)) for t in times]


def idle(begin, end):
    return [(t, switch(OTHER_IDLE, RUNS, OTHER_IDLE))
            for t in [begin, *range(begin + 100 * MS, end, 100 * MS), end]]


def half_idle(begin, end):
    half = (begin + end) // 2
    return [*idle(begin, half), (half, switch(OTHER_IDLE, RUNS, OTHER)), *busy(half, end)]


def waits(trace, process):
    (machine,) = [m for m in trace["machines"] if m["process"] == process]
    return {w["process"]: w for w in machine["waited_for"] if w["ns"]}


def pairs(tmp_path, pattern, rounds, other):
    events = turns(pattern, rounds)
    end = events[-1][0]
    rec = make(tmp_path / "rec", [[piece(events)], [piece(other(1000 * MS, end))]], THREADS)
    return interference(rec), rec


def test_two_machines_on_one_processor(tmp_path):
    """For two machines that wait for each other, the sums, the numbers and the longest of the
    waits are exact."""
    trace, rec = pairs(tmp_path, [(A, 3 * MS), (B, 2 * MS)], 100, busy)
    one, two = waits(trace, 10), waits(trace, 20)
    # A waits during each turn of B. B is first seen when it runs, after A's first turn.
    assert set(one) == {20} and set(two) == {10}
    assert (one[20]["ns"], one[20]["waits"], one[20]["longest_ns"]) == (200 * MS, 100, 2 * MS)
    assert (two[10]["ns"], two[10]["waits"], two[10]["longest_ns"]) == (297 * MS, 99, 3 * MS)
    assert one[20]["cpus"] == [{"cpu": 0, "ns": 200 * MS}]
    assert one[20]["name"] == "qemu-b" and one[20]["machine"]
    assert trace["processors"] == [
        {"cpu": 0, "idle_ns": 0, "busy_ns": 500 * MS},
        {"cpu": 1, "idle_ns": 0, "busy_ns": 500 * MS}]
    (v,) = [v for v in trace["vcpus"] if v["process"] == 10]
    assert [(w["pid"], w["process"], w["vcpu"], w["ns"]) for w in v["waited_for"]] == [
        (21, 20, 0, 200 * MS)]
    # A ran for 300 ms, B for 200 ms, so B waits more, and A has to be limited.
    assert trace["advice"] == [{"kind": "quota", "process": 20, "waited_for": 10,
                                "ns": 297 * MS, "idle_known": True, "percent": 50}]
    text = run("interference", rec).stdout.decode()
    assert "Machine 20 waited 297 ms (59.8%) for machine 10" in text
    assert "CPUQuota=50%" in text


def advice(tmp_path, pattern, other, rounds=50):
    return pairs(tmp_path, pattern, rounds, other)[0]["advice"]


# Pattern of CPU 0, function that makes the events of CPU 1, and members of the expected advice
ADVICE = {
    "an idle processor": (
        [(A, 2 * MS), (B, 2 * MS)], idle,
        {"kind": "pin", "process": 10, "waited_for": 20, "cpu": 1, "idle_ns": 200 * MS}),
    "a processor that is less idle than the one where the machine waited": (
        [(A, 1 * MS), (B, 1 * MS), (IDLE, 6 * MS)], half_idle,
        {"kind": "pin", "process": 10, "waited_for": 20, "cpu": 1, "idle_ns": 200 * MS}),
    "equal machines and no idle processor": (
        [(A, 2 * MS), (B, 2 * MS)], busy,
        {"kind": "processors", "process": 10, "waited_for": 20}),
    "one machine runs for longer": (
        [(A, 1 * MS), (B, 4 * MS)], busy,
        {"kind": "quota", "process": 10, "waited_for": 20, "percent": 50}),
    "a process of the host": (
        [(A, 4 * MS), (COMPILER, 1 * MS)], busy,
        {"kind": "weight", "process": 10, "waited_for": 30}),
    "a wait below 5 %": (
        [(A, 97 * MS), (B, 3 * MS)], busy, None),
    "a machine that halts waits for nothing": ([(A, 4 * MS), (IDLE, 2 * MS)], busy, None),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_follows_from_the_data(tmp_path, name):
    """In each case of ADVICE, the command gives the expected advice and no other."""
    pattern, other, expected = ADVICE[name]
    found = advice(tmp_path, pattern, other)
    if name == "a wait below 5 %":
        # A waits for B for 3 % of the time, and gets no advice. B waits for A for 97 %.
        assert [(a["process"], a["waited_for"]) for a in found] == [(20, 10)]
    elif expected is None:
        assert found == []
    else:
        (one,) = found
        assert {k: one[k] for k in expected} == expected


def test_longer_wait_without_advice(tmp_path):
    """B waits longer for A than A waits for B. B's wait is less than 5 % of B's time, so B gets
    no advice. A does."""
    events = turns([(A, 3 * MS), (B, 2 * MS)], 10)
    t = events[-1][0]
    events += [(t + MS, switch(A, WAITS, B)),
               *((t + n * 100 * MS, switch(B, RUNS, B)) for n in range(1, 11))]
    rec = make(tmp_path / "rec", [[piece(events)], [piece(busy(1000 * MS, events[-1][0]))]],
               THREADS)
    trace = interference(rec)
    assert waits(trace, 20)[10]["ns"] > waits(trace, 10)[20]["ns"]
    assert [(a["process"], a["waited_for"]) for a in trace["advice"]] == [(10, 20)]


def lossy(begin, end):
    """Pieces of a busy processor. The events of the middle half of the time are lost."""
    events = busy(begin, end)
    quarter = len(events) // 4
    return [piece(events[:quarter]), piece(events[-quarter:], lost=True)]


# Function that makes the pieces of CPU 1 (None: CPU 1 has no events, CPU 2 is busy), the number of
# CPUs in the host's file info (0: info has none), and words of the advice
NO_PIN = {
    "all times are known": (lambda *t: [piece(busy(*t))], 2, "No other CPU was idle for as long"),
    "a CPU without events": (lambda *t: [piece(busy(*t))], 3, "not all"),
    "a CPU without events of an older recording": (None, 0, "not all"),
    "a gap": (lossy, 2, "not all"),
}


@pytest.mark.parametrize("name", NO_PIN)
@pytest.mark.parametrize("kind", ("quota", "weight", "processors"))
def test_idle_processors_must_be_known(tmp_path, name, kind):
    """If another CPU may have been idle for long enough while it was not recorded, the advice
    says that not all times are recorded, and not that the other CPUs were busy."""
    other, cpus, said = NO_PIN[name]
    pattern = {"quota": [(A, 1 * MS), (B, 4 * MS)], "weight": [(A, 4 * MS), (COMPILER, 2 * MS)],
               "processors": [(A, 2 * MS), (B, 2 * MS)]}[kind]
    events = turns(pattern, 100)
    times = 1000 * MS, events[-1][0]
    pieces = [other(*times)] if other else [[], [piece(busy(*times))]]
    rec = make(tmp_path / "rec", [[piece(events)], *pieces], THREADS)
    if cpus:
        make_part(rec / "host", [], f"[host]\ncpus={cpus}\n")
    found = interference(rec)["advice"]
    assert [(a["kind"], a["idle_known"]) for a in found] == [(kind, said != "not all")]
    assert said in run("interference", rec).stdout.decode()


def test_wait_on_idle_processor(tmp_path):
    """CPU 1 was idle for longer than machine A waited for machine B, but A waited for B on CPU 1,
    too. The advice names this reason, and does not say that CPU 1 was busy."""
    zero, one = [], []
    for t in range(1000 * MS, 2000 * MS, 20 * MS):
        zero += [(t, switch(OTHER, RUNS, A)), (t + 4 * MS, switch(A, RUNS, B)),
                 (t + 8 * MS, switch(B, WAITS, A)), (t + 10 * MS, switch(A, WAITS, OTHER))]
        one += [(t + 12 * MS, switch(OTHER_IDLE, RUNS, B)),
                (t + 13 * MS, event(WAKING, 99, "CPU 0/KVM", 11, 120, 1)),
                (t + 14 * MS, switch(B, WAITS, A)), (t + 15 * MS, switch(A, WAITS, OTHER_IDLE))]
    rec = make(tmp_path / "rec", [[piece(zero)], [piece(one)]], THREADS)
    (found,) = interference(rec)["advice"]
    assert found["kind"] == "processors" and found["idle_known"]
    text = run("interference", rec).stdout.decode()
    assert "It waited on each CPU that was idle for as long. The host may have" in text


def test_interrupted_turn_is_one_wait(tmp_path):
    """A vCPU waits while B runs, a compiler interrupts B, and B runs on: this is one wait for B."""
    trace, _ = pairs(tmp_path, [(A, 2 * MS), (B, 1 * MS), (COMPILER, MS // 2), (B, 2 * MS)], 10,
                     busy)
    one = waits(trace, 10)
    assert (one[20]["ns"], one[20]["waits"], one[20]["longest_ns"]) == (30 * MS, 10, 3 * MS)
    assert (one[30]["ns"], one[30]["waits"], one[30]["name"]) == (5 * MS, 10, "make")


def test_woken_vcpu_waits_where_it_ran(tmp_path):
    """A woken vCPU waits for the task on the CPU that the event sched_waking names, not for the
    task on the waker's CPU."""
    rec = make(tmp_path / "rec", [
        [piece([(1000, switch(IDLE, RUNS, A)), (2000, switch(A, WAITS, B)),
                (9000, switch(B, RUNS, A))])],
        [piece([(1000, switch(OTHER_IDLE, RUNS, OTHER)),
                (5000, event(WAKING, 99, "CPU 0/KVM", 11, 120, 0)),
                (9500, switch(OTHER, RUNS, OTHER_IDLE))])]], THREADS)
    assert {p: w["ns"] for p, w in waits(interference(rec), 10).items()} == {20: 4000}


def test_window(tmp_path):
    """--from and --to count the part of a wait that is within the window, also if the wait began
    before it."""
    _, rec = pairs(tmp_path, [(A, 3 * MS), (B, 2 * MS)], 100, busy)
    # The window: 1 ms of a turn of B, a turn of A (3 ms), one of B (2 ms), and 1 ms of A's next
    trace = interference(rec, "--from=1.004", "--to=1.011")
    assert trace["ns"] == 7 * MS
    assert waits(trace, 10)[20]["ns"] == 3 * MS
    assert (waits(trace, 20)[10]["ns"], waits(trace, 20)[10]["waits"]) == (4 * MS, 2)
    ends = interference(rec, "--from=-1ms")
    assert ends["ns"] == MS and waits(ends, 10)[20]["ns"] == MS
    assert trace["processors"][1] == {"cpu": 1, "idle_ns": 0, "busy_ns": 7 * MS}
    beyond = interference(rec, "--from=9")
    assert beyond["ns"] == 0 and not any(waits(beyond, p) for p in (10, 20))
    (v,) = [v for v in json.loads(run("vcpus", "--json", rec, "--from=1.004",
                                      "--to=1.011").stdout)["vcpus"] if v["process"] == 10]
    assert (v["runnable"]["ns"], v["running"]["ns"]) == (3 * MS, 4 * MS)


def test_lost_events_give_no_pairs(tmp_path):
    """The time of a gap belongs to no pair.  If most of the time is unknown, no advice
    is given."""
    rec = make(tmp_path / "rec", [
        [piece([(1 * MS, switch(IDLE, RUNS, A)), (2 * MS, switch(A, RUNS, B))]),
         piece([(90 * MS, switch(B, RUNS, A)), (91 * MS, switch(A, RUNS, B)),
                (99 * MS, switch(B, RUNS, A))], lost=True)]], THREADS)
    trace = interference(rec)
    assert waits(trace, 10)[20]["ns"] == 8 * MS
    assert trace["advice"] == []


GUEST_TASKS = {"a": [("init", 1), ("postgres", 7)], "b": [("stress", 9), ("sh", 8)]}


def guest(path, process, tasks, begin, end, period):
    """Make the recording of a guest that runs two tasks in turn on one processor, from begin to
    end. A turn has period ns. The guest's clock equals the host's."""
    events, t, n = [], begin, 0
    while t < end:
        events.append((t, switch(tasks[n % 2], RUNS, tasks[(n + 1) % 2])))
        t, n = t + period, n + 1
    # A poll reads two events. It dates the second one between two times of the host.
    pieces = [piece(events[n:n + 2], polled=(events[n + 1][0] - 1, events[n + 1][0] + 1))
              for n in range(0, len(events) - 1, 2)]
    return make_part(path, [pieces], f"process={process}\n[guest]\ncpus=1\n")


def test_tasks_of_the_guests(tmp_path):
    """A wait is attributed to the task that waits in one guest and the tasks that run meanwhile
    in the other guest."""
    rounds, second = 50, 1000 * MS
    events = turns([(A, 4 * MS), (B, 4 * MS)], rounds)
    end = events[-1][0]
    rec = make(tmp_path / "a", [[piece(events)], [piece(busy(second, end))]], THREADS)
    # Each guest switches tasks in the middle of each of its turns.
    guest(rec, 10, GUEST_TASKS["a"], second + 2 * MS, end, 8 * MS)
    other = guest(tmp_path / "b", 20, GUEST_TASKS["b"], second + 6 * MS, end, 8 * MS)
    (other / "host").symlink_to(rec / "host")
    trace = interference(rec, other)
    assert {m["recording"] for m in trace["machines"]} == {str(rec), str(other)}
    found = {(t["process"], t["task"], t["waited_for_task"]): t["ns"] for t in trace["tasks"]}
    # Machine A first switches to postgres. Each task of A waits half of the time for each
    # task of B.
    for task in ("postgres-7", "init-1"):
        for rival in ("stress-9", "sh-8"):
            assert found[10, task, rival] == pytest.approx(rounds / 2 * 2 * MS, rel=0.05)
    assert sum(t for (p, _, _), t in found.items() if p == 10) == rounds * 4 * MS
    text = run("interference", rec, other).stdout.decode()
    assert "postgres-7" in text and "stress-9" in text
    part = interference(rec, other, "--from=1.1", "--to=1.2")
    assert sum(t["ns"] for t in part["tasks"] if t["process"] == 10) == \
        waits(part, 10)[20]["ns"] < 60 * MS
    # Without the recording of B, its vCPU is named instead of its task.
    alone = interference(rec)
    assert {t["waited_for_task"] for t in alone["tasks"] if t["process"] == 10} == {"20 v0"}
    assert {t["task"] for t in alone["tasks"] if t["process"] == 20} == {"?"}


def test_recordings_of_different_hosts_are_refused(tmp_path):
    first = make(tmp_path / "a", [[piece(turns([(A, MS), (B, MS)], 2))]], THREADS)
    second = make(tmp_path / "b", [[piece(turns([(A, MS), (B, MS)], 2))]], THREADS)
    message = run("interference", first, second, status=1).stderr
    assert b"different recordings of a host" in message
    (tmp_path / "none").mkdir()
    (tmp_path / "none/info").write_text("[recording]\nversion=1\n")
    assert b"record --host" in run("interference", tmp_path / "none", status=1).stderr


def test_threads_of_unknown_processes(tmp_path):
    """If the processes of the vCPUs' threads are not known, each such thread is a machine of its
    own, with the thread ID as its number."""
    rec = make(tmp_path / "rec", [[piece(turns([(A, 3 * MS), (B, 2 * MS)], 10))]])
    trace = interference(rec)
    assert {m["process"] for m in trace["machines"]} == {11, 21}
    assert waits(trace, 11)[21]["ns"] == 20 * MS


def test_events_of_kvm_alone(tmp_path):
    """Threads without a vCPU's name are recognized as vCPUs by their events of KVM."""
    a, b = ("x", 11), ("y", 21)
    events = [(MS, switch(IDLE, RUNS, a)), (MS + 10, event(ENTRY, 11, 0)),
              (2 * MS, switch(a, RUNS, b)), (2 * MS + 10, event(ENTRY, 21, 0)),
              (5 * MS, switch(b, RUNS, a)), (6 * MS, switch(a, RUNS, b))]
    trace = interference(make(tmp_path / "rec", [[piece(events)]], THREADS))
    assert waits(trace, 10)[20]["ns"] == 3 * MS
    assert waits(trace, 20)[10]["ns"] == MS


# ---- Xen

def xen_record(event_, tsc, *words):
    return struct.pack(f"<IQ{len(words)}I", 1 << 31 | len(words) << 28 | event_, tsc, *words)


def xen_state(vcpu, before, after, tsc):
    return xen_record(0x21001 | before << 8 | after << 4, tsc, vcpu)


def test_xen_domains(tmp_path):
    """Two domains that share a CPU of Xen wait for each other for the expected times. A third
    domain, alone on its CPU, waits for none."""
    one, two, t, data = 1 << 16, 2 << 16, 1_000_000, b""
    data += xen_state(one, 1, 0, t) + xen_state(two, 2, 1, t + 10)
    for _ in range(100):
        data += xen_state(one, 0, 1, t + 3_000_000) + xen_state(two, 1, 0, t + 3_000_500)
        data += xen_state(two, 0, 1, t + 5_000_000) + xen_state(one, 1, 0, t + 5_000_500)
        t += 5_000_000
    three = b"".join(xen_state(3 << 16, *s, 1_000_000 + n * 1_000_000)
                     for n, s in enumerate([(2, 0), (0, 2)] * 250))
    path = tmp_path / "trace"
    path.write_bytes(struct.pack("<III", 0x2001f003, 0, len(data)) + data +
                     struct.pack("<III", 0x2001f003, 1, len(three)) + three)
    trace = interference("--xentrace", "--cpu-hz=1G", path)
    found = {m["domain"]: {w["domain"]: w for w in m["waited_for"]} for m in trace["machines"]}
    assert found[3] == {}
    # A vCPU waits during the turn of the other domain, and during the switches before and after
    # it, of 500 cycles each.
    assert found[1][2]["ns"] == pytest.approx(100 * 2_000_500, abs=100)
    assert found[2][1]["ns"] == pytest.approx(100 * 3_000_000, rel=0.001)
    assert found[1][2]["waits"] == 100 and list(found[1]) == [2]
    assert found[1][2]["cpus"] == [{"cpu": 0, "ns": found[1][2]["ns"]}]
    part = interference("--xentrace", "--cpu-hz=1G", "--from=0.1", "--to=0.3", path)
    (wait,) = [m for m in part["machines"] if m["domain"] == 1][0]["waited_for"]
    assert part["ns"] == 200 * MS
    assert wait["ns"] == pytest.approx(40 * 2_000_500, rel=0.01)
