#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace's commands that put events together; prints TAP.

What the recordings hold is in recording-calls.c.
"""

from tool_tests import lines, main, run, story, text

MS = 1_000_000


class Tests:
    def __init__(self, tmp):
        self.tmp = tmp
        self.pairs = story("pairs", tmp / "pairs")

    def latency(self, *args):
        return lines("latency", *args, self.pairs)[0]

    def test_latency_wakeups(self):
        out = self.latency("sched_waking", "sched_switch", "-n", "100")
        assert out["key"] == "pid=next_pid"
        # 1 to 4 ms of the first ones, 2 of the one that was woken twice, and
        # 50 of the second boot
        assert [(w["ns"] // MS, w["boot"], w["from_cpu"], w["to_cpu"],
                 w["pid"], w["task"]) for w in out["worst"]] == [
            (50, 2, 0, 0, 51, "second"), (4, 1, 0, 1, 14, "worker"),
            (3, 1, 0, 1, 13, "worker"), (2, 1, 0, 1, 12, "worker"),
            (2, 1, 0, 1, 20, "twice"), (1, 1, 0, 1, 11, "worker")]
        assert out["pairs"] == 6 and out["across_gaps"] == 1
        # woken again, woken while it ran, in another boot or segment
        assert out["from_alone"] == 4, out
        assert out["min_ns"] == MS and out["max_ns"] == 50 * MS
        assert out["mean_ns"] == 62 * MS // 6
        assert 2 * MS <= out["p50_ns"] <= 2 * MS * 1.008
        assert out["p99_ns"] == 50 * MS
        assert [(h["from_ns"] // MS, h["pairs"]) for h in out["histogram"]
                ] == [(1, 1), (2, 4), (50, 1)]

    def test_latency_keys(self):
        out = self.latency("irq_handler_entry", "irq_handler_exit")
        assert out["key"] == "cpu,irq"
        # only the CPU with the gap has a pair across it
        assert sorted(w["ns"] for w in out["worst"]) == [
            2000, 3000, 7000, 10000]
        assert out["across_gaps"] == 1 and out["from_alone"] == 0
        # without the CPU, one interrupt takes the other one's place
        out = self.latency("irq_handler_entry", "irq_handler_exit", "--key",
                           "irq")
        assert out["from_alone"] == 2 and out["to_alone"] == 2
        # how long a task was off its CPU
        out = self.latency("sched_switch", "sched_switch", "--task", "twice")
        assert [(w["ns"], w["pid"]) for w in out["worst"]] == [(MS, 20)]

    def test_latency_choice(self):
        out = self.latency("sched:sched_wak*", "sched_switch", "--boot=2")
        assert out["pairs"] == 1 and out["worst"][0]["ns"] == 50 * MS
        out = self.latency("sched_waking", "sched_switch", "--boot=1",
                           "--from", "70ms", "--to", "104ms")
        assert [w["ns"] // MS for w in out["worst"]] == [4, 2]

    def test_latency_text(self):
        out = text("latency", "sched_waking", "sched_switch", self.pairs,
                   "-n", "1")
        assert out[:4] == [
            "from sched_waking to sched_switch, by pid=next_pid: 6 pairs",
            "not counted: 4 of the first without a second, 10 of the second"
            " without a first",
            "not counted: 1 pairs with a gap in the recording between them",
            ""], out
        assert out[5].split()[:4] == ["1.00", "ms", "10.3", "ms"]
        assert [line.split()[:5] for line in out if "###" in line] == [
            ["1.00", "ms", "2.00", "ms", "1"],
            ["2.00", "ms", "5.00", "ms", "4"],
            ["50.0", "ms", "100", "ms", "1"]]
        assert not [line for line in out if line.endswith(" ")]
        assert out[-1].split() == ["50.0", "ms", "2", "0.020000000",
                                   "0.070000000", "0", "second-51"]

    def test_latency_errors(self):
        for args, status, said in (
                (("sched_waking", self.pairs), 2, "all three"),
                (("absent", "sched_switch", self.pairs), 1,
                 "no event 'absent'"),
                (("sched_waking", "sched_switch", self.pairs, "--key=pid"), 1,
                 "prev_pid"),
                (("sched_waking", "sched_switch", self.pairs, "--key=a=,b"),
                 1, "FIELD=FIELD"),
                (("sched_waking", "sched_switch", self.pairs, "--worst=-1"),
                 2, "0 to 10000")):
            p = run("latency", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)
            assert not p.stdout, args


if __name__ == "__main__":
    main(Tests)
