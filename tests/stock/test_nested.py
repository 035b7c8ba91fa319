# SPDX-License-Identifier: GPL-2.0-or-later
"""Record a KVM host that is itself a guest, from outside, while it records its own guest, and
put both recordings on one timeline."""

import re
import shutil
import statistics

import hosts
import pytest
import stock

LINE = re.compile(r"\[(\d+)\.(\d{9})\] \S+ (\S+) sched_switch: .*cpu_id = (\d+),.* "
                  r"prev_pid = (\d+),.* next_pid = (\d+),")


def switches(trace):
    """({processor: [(time in ns, PID before, PID after)]} of the task switches in a CTF trace,
    the set of names in its lines)"""
    found, names = {}, set()
    for line in stock.lines_of(["babeltrace2", "--clock-seconds", trace]):
        if m := LINE.match(line):
            s, ns, name, cpu, before, after = m.groups()
            names.add(name)
            found.setdefault(cpu, []).append(
                (int(s) * 10**9 + int(ns), int(before), int(after)))
    return found, names


def test_two_levels_on_one_timeline(tmp_path):
    """Only this test records a host from outside while the host records itself and its guest.

    The task switches in the host's own recording must be in the same order in the recording
    from outside.
    The two recordings date a switch by two wall clocks: the median difference of the dates
    must be less than 1 s, and the difference must be constant within 1 ms for 98 % of the
    switches."""
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")
    result = hosts.kvm_linux(
        tmp_path, hosts.SHORT_INIT,
        hosts.KVM_RECORD.replace("SMP", "1").replace("WORDS", ""),
        [stock.TOOL, "record", "-o", tmp_path / "outer", "--buffer", "main", "--kernel",
         hosts.KVM / "vmlinuz", "--"])
    stock.run("export", "-f", "ctf", "-o", tmp_path / "ctf", tmp_path / "outer",
              result / "rec")
    traces = {}
    for name in ("outer", "rec", "host"):
        traces[name], names = switches(tmp_path / "ctf" / name)
        assert names == {name}
    shifts = []
    for cpu, inner in traces["host"].items():
        outer = traces["outer"][cpu]
        tasks = [switch[1:] for switch in outer]
        first = next(n for n in range(len(tasks))
                     if tasks[n:n + 40] == [switch[1:] for switch in inner[:40]])
        outer = outer[first:first + len(inner)]
        assert [switch[1:] for switch in inner] == [switch[1:] for switch in outer]
        shifts += [a[0] - b[0] for a, b in zip(inner, outer, strict=True)]
    shifts.sort()
    middle = statistics.median(shifts)
    low, high = (shifts[len(shifts) * n // 100] - middle for n in (1, 99))
    print(f"{len(shifts)} switches in both recordings; the inner one's are later by "
          f"{middle / 1e6:.3f} ms, 98 % of them by {low / 1e3:.0f} to {high / 1e3:+.0f} us "
          "more")
    assert len(traces["host"]) == 2 and len(shifts) > 5000
    # A guest sets its wall clock from an RTC that counts only seconds, so the clocks
    # differ by less than 1 s.
    assert abs(middle) < 1e9
    assert -1e6 < low and high < 1e6
