# SPDX-License-Identifier: GPL-2.0-or-later
"""Test record --host and its views on a real KVM host on an emulated AMD processor.

The guest's TSC is the host's TSC plus an offset, which the recording has. So the dates of
the guest's events can be converted to the host's clock. There, each event of a vCPU must lie
between an entry of this vCPU and the following exit.
"""

import bisect
import json
import os
import subprocess
import time

import hosts
import pytest
import stock

# test_guest_events_lie_between_entry_and_exit() fails if the converted dates have an error of
# more than this, in nanoseconds.
BOUND = 20_000

BUSY = """#!/bin/busybox sh
/bin/busybox mkdir -p /dev
/bin/busybox mount -t devtmpfs none /dev
echo "the guest is busy" >/dev/ttyS0
while :; do :; done
"""

# Script of the KVM host: the vCPUs of two guests, a and b, compete for CPU 1. The script,
# the recorders and QEMU's other threads run on CPU 0. The vCPU of a has the weight 1024, that
# of b 335 (nice 5). The files begin and end have the host's uptime, and the running and
# waiting times of both vCPUs by the scheduler.
COMPETE = hosts.KVM_SCRIPT + """
start() {
    hypertrace record --host -o /run/out/$1 --buffer main --kernel /run/job/vmlinuz \
        -- $linux -no-reboot -serial file:/run/out/console-$1 \
        -pidfile /run/pid-$1 -append "console=ttyS0 $words" \
        </dev/null >/run/out/log-$1 2>&1 &
    recorder=$!
    until grep -q "the guest is busy" /run/out/console-$1; do
        kill -0 $recorder || return 1
        sleep 0.2
    done
    vcpu=$(grep -l "CPU 0/KVM" /proc/$(cat /run/pid-$1)/task/*/comm)
    vcpu=${vcpu%/comm}
    taskset -pc 1 ${vcpu##*/}
    ln -s $vcpu/schedstat /run/sched-$1
}
note() {
    cat /proc/uptime /run/sched-a /run/sched-b /proc/uptime
}
waited() {
    read -r _ delay _ </run/sched-$1
    echo $delay
}
taskset -pc 0 $$
start a && start b && {
    renice -n 5 -p ${vcpu##*/}
    note >/run/out/begin
    from=$(waited a)
    until [ $(($(waited a) - from)) -gt 3000000000 ]; do
        sleep 1
    done
    note >/run/out/end
} >/run/out/log 2>&1
kill $(cat /run/pid-a /run/pid-b)
wait
echo "status $?" >>/run/out/log
""" + hosts.END


def events(path, *args):
    out = subprocess.run([stock.TOOL, "report", "--json", *args, path], env=stock.ENV,
                         capture_output=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def clock(part):
    """Return a function that converts the host's TSC to its CLOCK_MONOTONIC in ns. A
    row of the file clocks has a TSC, and the CLOCK_MONOTONIC before and after the TSC was
    read; the conversion is a line through two rows."""
    rows = [tuple(map(int, line.split())) for line in
            (part / "clocks").read_text().splitlines()]
    # Take the first and the last row of the half with the shortest times between the
    # two readings of CLOCK_MONOTONIC, because their errors are the smallest.
    rows.sort(key=lambda r: r[2] - r[1])
    half = sorted(rows[:max(2, len(rows) // 2)])
    (a, a0, a1), (b, b0, b1) = half[0], half[-1]
    rate = ((b0 + b1) - (a0 + a1)) / 2 / (b - a)
    return lambda tsc: (a0 + a1) / 2 + (tsc - a) * rate


def intervals(part):
    found, entry = {}, {}
    for e in events(part, "--event", "kvm_entry,kvm_exit"):
        vcpu = e["fields"]["vcpu_id"]
        if e["event"] == "kvm_entry":
            entry[vcpu] = e["ns"]
        elif vcpu in entry:
            found.setdefault(vcpu, []).append((entry.pop(vcpu), e["ns"]))
    return found


def margins(rec):
    """Return a tuple (minimum of the next two numbers, time since the last entry of its vCPU,
    time until the next exit), in ns, for each event of the guest; and a list of the events
    that do not lie between an entry and an exit."""
    part, written = rec / "host", {}
    # The offset of a vCPU can be written more than once before the guest starts: take
    # the last value.
    offsets = {int(line[1]): int(line[2]) for line in
               map(str.split, (part / "offsets").read_text().splitlines())}
    for e in events(part, "--event", "kvm_write_tsc_offset"):
        value = e["fields"]["next_tsc_offset"]
        written[e["fields"]["vcpu_id"]] = value - (value >> 63 << 64)
    assert offsets == written
    to_ns, runs = clock(part), intervals(part)
    begins = {v: [r[0] for r in rows] for v, rows in runs.items()}
    result, outside = [], []
    for e in events(rec):
        vcpu = e["cpu"]
        # Ignore the guest's first events: until the kernel chooses x86-tsc as its trace
        # clock, their times are not TSC values.
        if e["ns"] < 1_000_000 or vcpu not in runs:
            continue
        ns = to_ns(e["ns"] - offsets[vcpu])
        n = bisect.bisect_right(begins[vcpu], ns + BOUND) - 1
        best = max((min(ns - r[0], r[1] - ns), ns - r[0], r[1] - ns)
                   for r in runs[vcpu][max(n - 1, 0):n + 1])
        result.append(best)
        if best[0] < 0:
            outside.append((best[0], e["event"], e["ns"]))
    return result, outside


@pytest.mark.parametrize("smp", [1, 2])
def test_guest_events_lie_between_entry_and_exit(tmp_path, smp):
    """By the recorded TSC offset, each event of a vCPU lies between an entry and an exit of
    this vCPU. Only this test checks the recorded TSC offsets with a real guest."""
    start = time.monotonic()
    script = hosts.KVM_RECORD.replace("SMP", str(smp)).replace("WORDS", "trace_clock=x86-tsc")
    rec = hosts.kvm_linux(tmp_path, hosts.SHORT_INIT, script) / "rec"
    found, outside = margins(rec)
    low = min(m[1] for m in found)
    high = min(m[2] for m in found)
    print(f"{len(found)} events in {time.monotonic() - start:.0f} s; {len(outside)} outside; "
          f"all fit if the guest's clock is shifted by {-low:.0f} to {high:.0f} ns")
    assert len(found) >= 2000
    assert not outside, outside[:5]
    # Shifted back by more than `low`, or forward by more than `high`, the guest's clock
    # would move an event out of its interval.
    assert low <= BOUND and high <= BOUND
    text = subprocess.run([stock.TOOL, "vcpus", "--json", rec], env=stock.ENV,
                          capture_output=True, check=True).stdout
    trace = json.loads(text)
    assert [v["vcpu"] for v in trace["vcpus"]] == list(range(smp))
    assert trace["gaps"] == 0
    for v in trace["vcpus"]:
        assert v["guest_ns"] > 0 and v["qemu_ns"] > 0
        assert "hlt" in {e["name"] for e in v["exits"]}


def test_dates_without_offsets(tmp_path):
    """Without the file of the vCPUs' offsets, too, the errors of a guest's dates on the host's
    clock are within the bounds that `hypertrace report` gives. Only this test compares dates
    by `report --clock=host` with the entries and exits of a guest under KVM."""
    script = hosts.KVM_RECORD.replace("SMP", "1").replace("WORDS", "")
    rec = hosts.kvm_linux(tmp_path, hosts.SHORT_INIT, script) / "rec"
    (rec / "host/offsets").unlink()
    runs = intervals(rec / "host")[0]
    begins = [r[0] for r in runs]
    dates = [(e["ns"], e["bound_ns"]) for e in events(rec, "--clock=host")
             if e.get("bound_ns")]

    def outside(shift):
        """Number of events that lie before the first entry, or between an exit and
        the next entry, by more than their bound, if each date is shifted by `shift`
        times its bound"""
        n = 0
        for ns, bound in dates:
            ns += shift * bound
            last = bisect.bisect_right(begins, ns + bound) - 1
            n += last < 0 or runs[last][1] < ns - bound
        return n

    bounds = sorted(bound for _, bound in dates)
    print(f"{len(dates)} events; bounds: median {bounds[len(bounds) // 2] / 1000:.1f} us, at "
          f"most {bounds[-1] / 1000:.1f} us; {outside(0)} outside, shifted by two bounds "
          f"{outside(-2)} and {outside(2)}")
    assert len(dates) >= 2000
    assert outside(0) == 0
    assert outside(-2) > 0 and outside(2) > 0


def sums(path):
    """[host's uptime, running time of a, waiting time of a, running time of b,
    waiting time of b], in ns, from a file that the script's function note() wrote"""
    before, a, b, after = [line.split() for line in path.read_text().splitlines()]
    clock_ns = (float(before[0]) + float(after[0])) / 2 * 1e9
    return [clock_ns, *map(int, a[:2] + b[:2])]


def test_two_guests_compete_for_a_processor(tmp_path):
    """Only this test compares how long real virtual machines waited for a processor, by
    `hypertrace interference`, with the sums of the host's scheduler (schedstat)."""
    result = hosts.kvm_linux(tmp_path, BUSY, COMPETE)
    begin, end = sums(result / "begin"), sums(result / "end")
    wall, ran_a, waited_a, ran_b, waited_b = [y - x for x, y in zip(begin, end, strict=True)]
    window = [f"--from={begin[0]:.0f}ns", f"--to={end[0]:.0f}ns"]
    text, lines = [subprocess.run(
        [stock.TOOL, "interference", *form, *window, result / "a", result / "b"],
        env=stock.ENV, capture_output=True, check=True, text=True).stdout
        for form in ([], ["--json"])]
    print(text)
    trace = json.loads(lines)
    assert trace["gaps"] == 0
    machines = {os.path.basename(m["recording"]): m for m in trace["machines"]}
    a, b = machines["a"], machines["b"]
    for_b, for_a = [[w for w in m["waited_for"] if w["process"] == other["process"]][0]
                    for m, other in ((a, b), (b, a))]
    print(f"{wall / 1e9:.1f} s; a waited {waited_a / 1e9:.3f} s by its schedstat, "
          f"{a['runnable_ns'] / 1e9:.3f} s by the trace, {for_b['ns'] / 1e9:.3f} s for b; "
          f"b {waited_b / 1e9:.3f}, {b['runnable_ns'] / 1e9:.3f}, {for_a['ns'] / 1e9:.3f}; "
          f"a ran {ran_a / 1e9:.3f} s, b {ran_b / 1e9:.3f} s")
    assert a["runnable_ns"] == pytest.approx(waited_a, rel=0.05)
    assert b["runnable_ns"] == pytest.approx(waited_b, rel=0.05)
    # The time that a guest waited for the other one is about the time that the other
    # one ran.
    assert for_b["ns"] == pytest.approx(ran_b, rel=0.05)
    assert for_a["ns"] == pytest.approx(ran_a, rel=0.05)
    assert for_a["ns"] / for_b["ns"] == pytest.approx(1024 / 335, rel=0.05)
    assert for_a["machine"] and for_a["waits"] > 10
    assert max(for_a["cpus"], key=lambda c: c["ns"])["cpu"] == 1
    named = sum(t["ns"] for t in trace["tasks"] if t["process"] == a["process"] and
                t["task"] == t["waited_for_task"] == "init-1")
    assert named == pytest.approx(for_b["ns"], rel=0.05)
    assert (b["process"], a["process"]) in [(x["process"], x["waited_for"])
                                            for x in trace["advice"]]
