# SPDX-License-Identifier: GPL-2.0-or-later
"""top, latency, flame, boot and last with --host: a guest's times split by what its host did."""

import json
import re
import shutil

import pytest

from hosttrace import ENTRY, EXIT, IDLE, RUNS, WAITS, WAKING, event, make, make_part, piece, switch
from hypertrace import run

MS = 1_000_000
START = 1000 * MS
VCPU, RIVAL = ("CPU 0/KVM", 11), ("cc1", 31)
THREADS = "10 10 qemu\n11 10 CPU 0/KVM\n31 31 cc1\n"
TASKS = [("init", 1), ("postgres", 7)]
PARTS = ("guest", "exits", "stolen", "blocked", "unknown")
# PERIOD: length in ms of a period, which the host repeats ROUNDS times. STATES: the parts of a
# period, each with its begin in ms after the period's begin. The guest's first task switch is FIRST
# ms after START, and a switch follows every TURN ms.
PERIOD, STATES = 11, [(0, "guest"), (4, "exits"), (5, "guest"), (6, "stolen"), (9, "guest"),
                      (10, "blocked")]
ROUNDS, TURN, FIRST = 80, 8, 2


def host_events():
    for n in range(ROUNDS):
        t = START + n * PERIOD * MS
        yield t, switch(IDLE, RUNS, VCPU)
        yield t, event(ENTRY, 11, 0)
        yield t + 4 * MS, event(EXIT, 11, 0x7b, 0)
        yield t + 5 * MS, event(ENTRY, 11, 0)
        yield t + 6 * MS, switch(VCPU, RUNS, RIVAL)
        yield t + 9 * MS, switch(RIVAL, RUNS, VCPU)
        yield t + 10 * MS, switch(VCPU, WAITS, IDLE)


def expected():
    """{task: {part: nanoseconds}} that the views must show, counted in steps of 1
    ms"""
    found = {task: dict.fromkeys(PARTS, 0) for task, _ in TASKS}
    for ms in range(FIRST, FIRST + (turns() - 1) * TURN):
        part = [p for begin, p in STATES if begin <= ms % PERIOD][-1]
        found[TASKS[((ms - FIRST) // TURN + 1) % 2][0]][part] += MS
    return found


def turns():
    """The number of the guest's task switches. It is odd, so that both tasks have the same number
    of turns between them, and the last switch is before the host's last event."""
    return (ROUNDS - 1) * PERIOD // TURN // 2 * 2 - 1


def record(tmp_path, host, threads, cpus):
    path = make(tmp_path / "rec", [[piece(list(host))]], threads)
    pieces = []
    for n in range(turns()):
        t, (name, pid), after = START + (FIRST + n * TURN) * MS, TASKS[n % 2], TASKS[(n + 1) % 2]
        # The poll's times give the second event its date by the host's clock, within 1 ns.
        pieces.append(piece([(t - 2, event(WAKING, pid, *after, 120, 0)),
                             (t, switch((name, pid), RUNS, after))], polled=(t - 1, t + 1)))
    return make_part(path, [pieces], f"process=10\n[guest]\ncpus={cpus}\n")


@pytest.fixture
def rec(tmp_path):
    return record(tmp_path, host_events(), THREADS, 1)


@pytest.mark.parametrize("view", ("vcpus", "interference"))
def test_json_version(rec, view):
    """The JSON objects of vcpus and interference have a version, too."""
    assert json.loads(run(view, "--json", rec).stdout)["version"] == 1


@pytest.mark.parametrize("cpus", (1, 2))
def test_shared_thread(tmp_path, cpus):
    """With TCG, one thread may run all vCPUs in turn. Its times count as those of the
    guest's first processor only if the guest has one processor."""
    thread = ("ALL CPUs/TCG", 11)
    host = [(START + n * PERIOD * MS + ms * MS, switch(old, RUNS, new)) for n in range(ROUNDS)
            for ms, old, new in ((0, RIVAL, thread), (6, thread, RIVAL))]
    rec = record(tmp_path, host, "10 10 qemu\n11 10 ALL CPUs/TCG\n31 31 cc1\n", cpus)
    parts = json.loads(run("top", "--json", "--host", rec).stdout)["host"]
    assert (parts["stolen_ns"] > 0) == (cpus == 1), parts
    assert (parts["unknown_ns"] == sum(parts.values())) == (cpus == 2), parts


def agrees(split, parts, rel=0.001):
    # The sums may differ by 2 ns: expected() counts from the guest's first task switch, but a
    # view may count from the guest's first event, which is 2 ns earlier.
    assert sum(split.values()) == pytest.approx(sum(parts.values()), abs=2)
    for part, ns in parts.items():
        assert split[f"{part}_ns"] == pytest.approx(ns, rel=rel, abs=1000), (part, split, parts)


def test_top(rec):
    """top --host splits the time of each task into the host's parts."""
    trace = json.loads(run("top", "--json", "--host", rec).stdout)
    parts = expected()
    found = {t["task"]: t for t in trace["tasks"] if t["cpu_ns"]}
    assert set(found) == set(parts)
    for task, sums in parts.items():
        assert found[task]["cpu_ns"] == sum(found[task]["host"].values())
        agrees(found[task]["host"], sums)
    agrees(trace["host"], {p: sum(s[p] for s in parts.values()) for p in PARTS})
    text = run("top", "--host", rec).stdout.decode()
    assert "by the host: guest 5" in text and "stolen 27." in text and "unknown" not in text
    assert "host" not in json.loads(run("top", "--json", rec).stdout)


def test_latency(rec):
    """latency --host splits the sum of all pairs, and each of the longest pairs."""
    args = "sched_switch", "sched_switch", "--key=cpu", "--worst=1000", rec
    trace = json.loads(run("latency", "--json", "--host", *args).stdout)
    parts = expected()
    agrees(trace["host"], {p: sum(s[p] for s in parts.values()) for p in PARTS})
    assert len(trace["worst"]) == trace["pairs"] == turns() - 1
    for w in trace["worst"]:
        sums = dict.fromkeys(PARTS, 0)
        for ms in range((w["from_ns"] - START) // MS, (w["to_ns"] - START) // MS):
            sums[[p for begin, p in STATES if begin <= ms % PERIOD][-1]] += MS
        agrees(w["host"], sums)
    text = run("latency", "--host", *args).stdout.decode()
    assert "     exits    stolen       task-PID" in text and "by the host: guest" in text


def test_flame(rec):
    """The host's parts are frames within those of the guest's tasks, except the
    part "guest", which is the task's own time."""
    lines = run("flame", "--host", "--folded", rec).stdout.decode().splitlines()
    found = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
    for task, sums in expected().items():
        agrees({f"{p}_ns": found.get(task if p == "guest" else f"{task};({p})", 0) for p in PARTS},
               sums)


def test_boot(rec):
    """boot --host splits the time of a phase: its parts are the sums of those of the
    tasks that ran in the phase."""
    trace = json.loads(run("boot", "--json", "--host", rec).stdout)
    (phase,) = trace["phases"]
    sums = expected()
    agrees(phase["host"], {p: sum(s[p] for s in sums.values()) for p in PARTS})
    text = run("boot", "--host", rec).stdout.decode()
    assert "     exits    stolen" in text and "by the host: guest" in text
    assert b"one recording" in run("boot", "--host", rec, rec, status=2).stderr
    assert "host" not in json.loads(run("boot", "--json", rec).stdout)["phases"][0]


def parts_between(begin, end):
    """{part: nanoseconds} of the time from begin to end, which are milliseconds
    after START"""
    sums = dict.fromkeys(PARTS, 0)
    for ms in range(begin, end):
        sums[[p for start, p in STATES if start <= ms % PERIOD][-1]] += MS
    return sums


def test_last(rec):
    """last --host splits three times: from the last event to the end of the
    recording by the host's clock, the time for which the last task ran, and the
    longest time without an event of a processor that ran a task."""
    switched = FIRST + (turns() - 1) * TURN
    seen, ended = switched + 3, switched + 9
    t = START + seen * MS
    waking = event(WAKING, 7, *TASKS[0], 120, 0)
    with (rec / "cpu0").open("ab") as file:
        file.write(piece([(t - 2, waking), (t, waking)], polled=(t - 1, t + 1)))
    info = (rec / "info").read_text()
    trace = json.loads(run("last", "--json", "--host", rec).stdout)
    assert "host_silent" not in trace["cpus"][0] and "host_ran" in trace["cpus"][0]
    (rec / "info").write_text(info.replace("process=10", "process=10\nended-monotonic="
                                           f"{START + ended * MS}"))
    trace = json.loads(run("last", "--json", "--host", rec).stdout)
    (cpu,) = trace["cpus"]
    for name, found, begin, end in (("silent", cpu["host_silent"], seen, ended),
                                    ("ran", cpu["host_ran"], switched, seen)):
        assert any(found.values()), name
        agrees(found, parts_between(begin, end))
    busy = trace["longest_busy_silence"]
    begin, end = ((busy[f"{n}_ns"] + 2 - START) // MS for n in ("from", "to"))
    agrees(busy["host"], parts_between(begin, end))
    text = run("last", "--host", rec).stdout.decode()
    for row in (r"CPU  by the host +time +guest +exits +stolen +blocked +unknown",
                r"  0  since last event +6\.0+ ms", r"  0  ran for +3\.0+ ms",
                r"  0  longest silence +8\.00 ms", "error of at most"):
        assert re.search(row, text), text
    assert "host" not in json.loads(run("last", "--json", rec).stdout)["longest_busy_silence"]
    shutil.rmtree(rec / "host")
    assert b"record --host" in run("last", "--host", rec, status=1).stderr


def test_time_that_the_host_does_not_know(rec):
    """What the host did is unknown for the guest's time before the host's part,
    after it, and in a gap in it."""
    events = list(host_events())
    half = len(events) // 2
    gap = [e for e in events if e[0] < events[half][0] - 30 * MS], events[half:-7 * 20]
    make_part(rec / "host", [[piece(gap[0][7 * 3:]), piece(gap[1], lost=True)]])
    (host,) = [json.loads(run("top", "--json", "--host", rec).stdout)["host"]]
    lost = sum(ns for ns in host.values())
    lost -= (gap[0][-1][0] - gap[0][7 * 3][0]) + (gap[1][-1][0] - gap[1][0][0])
    # A vCPU's state is unknown until its first event, and from its last event before a gap.
    assert host["unknown_ns"] == pytest.approx(lost, abs=PERIOD * MS)


def test_time_in_an_unknown_mode(rec):
    """If a vCPU neither enters nor leaves its guest after a gap, its mode is unknown."""
    events, half = list(host_events()), ROUNDS // 2
    with_modes = events[:half * 7]
    switches = [e for i, e in enumerate(events[half * 7:]) if i % 7 not in (1, 2, 3)]
    make_part(rec / "host", [[piece(with_modes), piece(switches, lost=True)]])
    host = json.loads(run("top", "--json", "--host", rec).stdout)["host"]
    guest = sum(p == "guest" for ms in range(FIRST, half * PERIOD)
                for p in [[q for begin, q in STATES if begin <= ms % PERIOD][-1]]) * MS
    assert host["guest_ns"] == pytest.approx(guest, abs=PERIOD * MS)
    assert host["unknown_ns"] == pytest.approx((ROUNDS - half) * 7 * MS, abs=2 * PERIOD * MS)


@pytest.mark.parametrize("name, part", (("CPU 0/TCG", "guest"), ("CPU 0/KVM", "unknown")))
def test_no_modes(tmp_path, name, part):
    """If the host's part has no event of KVM, the time in which a vCPU's thread ran is
    the part "guest" with TCG, and unknown with KVM."""
    thread = name, 11
    host = [(START + n * PERIOD * MS + ms * MS, switch(old, RUNS, new)) for n in range(ROUNDS)
            for ms, old, new in ((0, RIVAL, thread), (6, thread, RIVAL))]
    rec = record(tmp_path, host, f"10 10 qemu\n11 10 {name}\n31 31 cc1\n", 1)
    parts = json.loads(run("top", "--json", "--host", rec).stdout)["host"]
    assert {p for p, ns in parts.items() if ns} == {f"{part}_ns", "stolen_ns"}


def test_refused(rec):
    """With --host, a view has a message if the recording lacks the process of its virtual
    machine or a host's part; flame also for another kind than cpu."""
    for command in (["top"], ["latency", "sched_switch", "sched_switch"], ["flame"]):
        run(*command, "--host", rec)
    assert b"--of=cpu" in run("flame", "--host", "--of=off-cpu", rec, status=2).stderr
    info = (rec / "info").read_text()
    (rec / "info").write_text(info.replace("process=10\n", ""))
    assert b"process of its virtual machine" in run("top", "--host", rec, status=1).stderr
    (rec / "info").write_text(info)
    shutil.rmtree(rec / "host")
    for command in (["top"], ["latency", "sched_switch", "sched_switch"], ["flame"]):
        assert b"record --host" in run(*command, "--host", rec, status=1).stderr


def test_another_machine(rec):
    """The vCPUs of other machines do not count."""
    info = (rec / "info").read_text()
    (rec / "info").write_text(info.replace("process=10\n", "process=12\n"))
    host = json.loads(run("top", "--json", "--host", rec).stdout)["host"]
    assert [p for p in PARTS if host[f"{p}_ns"]] == ["unknown"]
