# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace's latency, callgraph, flame and last, which pair events, and `recover`.

The recordings are described in story.c, calls.c and dead.c in tests/unit/recording.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from hypertrace import ESCAPED, TOOL, lines, run, story, text

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"

GRAPH = """\
 0.010000000 [000] reader-7                         | vfs_read() {
 0.010001000 [000] reader-7                         |   walk() {
 0.010002000 [001] <idle>-0                         | do_idle() {
 0.010003000 [000] reader-7                         |     walk() {
 0.010004000 [001] <idle>-0                 2.00 us |   leaf();
 0.010005000 [000] reader-7                 2.00 us |       leaf();
 0.010008000 [000] reader-7                 5.00 us |     } walk
 0.010009000 [001] <idle>-0                 7.00 us | } do_idle
 0.010010000 [000] reader-7                 9.00 us |   } walk
 0.010020000 [000] reader-7                 20.0 us | } vfs_read
 0.020000000 [000] reader-7                         | vfs_read() {
 0.020001000 [000] reader-7                         |   walk() {
 0.020002000 [000] reader-7                         |     leaf() {
PU 0 lost about 4 events between 0.020003000 and 0.020009000 --
 0.020009000 [000] reader-7                         |     } leaf, its end was not recorded
 0.020009000 [000] reader-7                         |   } walk, its end was not recorded
 0.020009000 [000] reader-7                 9.00 us | } vfs_read
PU 0 lost events between 0.020009000 and 0.030004000 --
 0.030004000 [000] reader-7                 2.00 us |     } leaf, from 0.030002000
 0.030005000 [000] reader-7                 4.00 us |   } walk, from 0.030001000
 0.030009000 [000] reader-7                 9.00 us | } vfs_read, from 0.030000000
 0.040000000 [000] reader-7                         | vfs_read <- _text
 0.040001000 [000] reader-7                         |   walk <- vfs_read
 0.040002000 [000] reader-7                         |     leaf <- walk
 0.040003000 [000] reader-7                         |   leaf <- vfs_read
oot 2 --
 0.005000000 [000] <...>-7                  2.00 us | vfs_read();
 0.006000000 [000] <...>-7                          | vfs_read() {
 0.006001000 [000] <...>-7                  3.00 us |   leaf();
""".splitlines()

LAST = f"""\
The end of Linux 6.12.1-test at 0.401000000 s, after 34 events; boot 1 of 2
about 123 events were lost in 1 gap; the longest is of CPU 1: 200 ms, from\
 0.200009000 to 0.400000000
longest time without any event: 96.0 ms, from 0.204000000 to 0.300000000
longest on a CPU that was not idle: CPU 0, 96.0 ms, from 0.204000000 to\
 0.300000000, in init-1

end of the kernel's log
[    0.300000] two
[    0.300000] lines\twith{ESCAPED}

 CPU   silent at end     ran for  task
   0         101 ms      149 ms  init-1                 after console
   1           0 ns        0 ns  <idle>-0               after sched_switch

tasks in uninterruptible sleep
    289 ms  worker-8
""".splitlines()
HANG = """\
   0           0 ns     7.00 ms  reader-7               after softirq_entry,\
 in system call 0, in irq 5 nic, in softirq NET_RX
      did not return from vfs_read > walk
""".splitlines()


class TestCalls:
    @pytest.fixture(autouse=True, scope="class")
    def prepare(self, request, tmp_path_factory):
        cls, tmp = request.cls, tmp_path_factory.mktemp("calls")
        cls.tmp = tmp
        cls.pairs = story("pairs", tmp / "pairs")
        cls.functions = story("functions", tmp / "functions")
        cls.hang = story("hang", tmp / "hang")
        cls.naps = story("naps", tmp / "naps")
        cls.story = story("story", tmp / "story")

    def latency(self, *args):
        return lines("latency", *args, self.pairs)[0]

    def test_latency_wakeups(self):
        out = self.latency("sched_waking", "sched_switch", "-n", "100")
        assert out["key"] == "pid=next_pid"
        # expected waits: 1 to 4 ms of tasks 11 to 14, 2 ms of the task
        # "twice", and 50 ms of a task of the second boot
        assert [(w["ns"] // MS, w["boot"], w["from_cpu"], w["to_cpu"],
                 w["pid"], w["task"]) for w in out["worst"]] == [
            (50, 2, 0, 0, 51, "second"), (4, 1, 0, 1, 14, "worker"),
            (3, 1, 0, 1, 13, "worker"), (2, 1, 0, 1, 12, "worker"),
            (2, 1, 0, 1, 20, "twice"), (1, 1, 0, 1, 11, "worker")]
        assert out["pairs"] == 6 and out["across_gaps"] == 1
        # four wakeups without a switch: the task was woken again, was running,
        # or was switched in only in another boot or segment of the clock
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
        # one pair is not counted: the gap of its CPU lies between its events
        assert sorted(w["ns"] for w in out["worst"]) == [
            2000, 3000, 7000, 10000]
        assert out["across_gaps"] == 1 and out["from_alone"] == 0
        # without the CPU in the key, an entry of interrupt 5 on one CPU replaces the
        # earlier entry on the other CPU, and the second exit has no start
        out = self.latency("irq_handler_entry", "irq_handler_exit", "--key",
                           "irq")
        assert out["from_alone"] == 2 and out["to_alone"] == 2
        # each pair: from the switch of the task "twice" off its CPU to its next
        # switch onto a CPU
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
            "not counted: 4 starts without an end, 10 ends without a start",
            "not counted: 1 pair with a gap in the recording between the events",
            ""], out
        assert out[5].split()[:4] == ["1.00", "ms", "10.3", "ms"]
        assert [line.split()[:5] for line in out if "\u2588" in line] == [
            ["1.00", "ms", "2.00", "ms", "1"],
            ["2.00", "ms", "5.00", "ms", "4"],
            ["50.0", "ms", "100", "ms", "1"]]
        assert not [line for line in out if line.endswith(" ")]
        assert out[-1].split() == ["50.0", "ms", "2", "0.020000000",
                                   "0.070000000", "0", "second-51"]

    def test_latency_errors(self):
        for args, status, said in (
                (("sched_waking", self.pairs), 2, "give both"),
                (("absent", "sched_switch", self.pairs), 1,
                 "no event or group 'absent'"),
                (("sched_wakin", "sched_switch", self.pairs), 1,
                 "did you mean sched_waking"),
                (("", "sched_switch", self.pairs), 2, "is empty"),
                (("sched_waking", "", self.pairs), 2, "is empty"),
                (("sched_waking", "sched_switch", self.pairs, "--key=pid"), 1,
                 "prev_pid"),
                (("sched_waking", "sched_switch", self.pairs, "--key=a=,b"),
                 1, "FIELD=FIELD"),
                (("sched_waking", "sched_switch", self.pairs, "--worst=-1"),
                 2, "0 to 10000")):
            p = run("latency", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)
            assert not p.stdout, args

    def test_callgraph(self):
        out = text("callgraph", self.functions)
        # columns: time, CPU, task; duration, call
        assert [line[4:] for line in out] == GRAPH, "\n".join(out)

    @pytest.mark.parametrize("view", (
        ["callgraph"], ["callgraph", "--json"], ["boot", "--json"],
        ["flame", "--folded"], ["top", "--json"],
        ["latency", "funcgraph_entry", "funcgraph_exit"],
    ))
    def test_retaddr(self, view):
        """With options/funcgraph-retaddr, the event of a call is
        fgraph_retaddr_entry instead of funcgraph_entry (from Linux 6.13 on); apart
        from this name, the views show the same text."""
        path = self.tmp / "retaddr"
        if not path.exists():
            shutil.copytree(self.functions, path)
            formats = (path / "formats").read_bytes()
            assert b"funcgraph_entry" in formats
            (path / "formats").write_bytes(
                formats.replace(b"funcgraph_entry", b"fgraph_retaddr_entry"))
        def renamed(out):
            return out.replace(b"funcgraph_entry", b"fgraph_retaddr_entry")
        old = run(*view, self.functions).stdout
        new = run(*(renamed(arg.encode()).decode() for arg in view), path).stdout
        assert [b" ".join(line.split()) for line in renamed(old).splitlines()] == \
            [b" ".join(line.split()) for line in new.splitlines()]

    def test_callgraph_choice(self):
        def calls(*args):
            return [line.split("| ")[1] for line in text(
                "callgraph", self.functions, "--boot=1", "--to", "11ms",
                *args)]

        assert calls("--cpu", "1") == ["do_idle() {", "  leaf();",
                                       "} do_idle"]
        assert calls("--task", "reader", "--depth", "2") == [
            "vfs_read() {", "  walk() { ... }", "} vfs_read"]
        for args in (("-f", "wal*,nothing"), ("-fwal*", "-fnothing"),
                     ("-f", "wal*", "--function=nothing")):
            assert calls(*args) == [
                "  walk() {", "    walk() {", "      leaf();",
                "    } walk", "  } walk"]
        assert calls("--cpu=0", "--depth=1", "--event", "sched:*") == [
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120"
            " prev_state=0 ==> next_comm=reader next_pid=7 next_prio=120",
            "vfs_read() { ... }"]

    def test_callgraph_depth(self):
        """Depth counts from each call of the requested function, not from the
        outermost call."""
        for depth in range(1, 5):
            out = [line.split("| ")[1] for line in text(
                "callgraph", self.functions, "--boot=1", "--to", "11ms",
                "-f", "walk", "-d", depth)]
            # walk calls walk, which calls leaf
            assert out == [
                "  walk() {", "    walk() { ... }", "  } walk"] if (
                depth == 1) else [
                "  walk() {", "    walk() {", "      leaf();",
                "    } walk", "  } walk"], (depth, out)
        assert [line.split("| ")[1] for line in text(
            "callgraph", self.functions, "--boot=1", "--to", "11ms", "-f",
            "leaf", "-d", 1)] == ["  leaf();", "      leaf();"]

    def test_callgraph_hidden(self):
        """{ ... } stands for the hidden calls within a call: not for those of another task on the
        same CPU, but also for those on another CPU."""
        path = story("inside", self.tmp / "inside")
        for args, shown in ((("-f", "do_idle"), "do_idle();"),
                            (("-f", "vfs_read", "-d", 1, "--from=36ms"), "vfs_read() { ... }")):
            assert [line.split("| ")[1] for line in text("callgraph", path, *args)] == [shown]

    def test_callgraph_json(self):
        out = lines("callgraph", self.functions)
        assert [(c["func"], c["depth"], c["begin_ns"] % MS,
                 c.get("end_ns", -1) % MS, c["begin_recorded"])
                for c in out if c["boot"] == 1] == [
            ("leaf", 1, 4000, 6000, True), ("leaf", 3, 5000, 7000, True),
            ("walk", 2, 3000, 8000, True), ("do_idle", 0, 2000, 9000, True),
            ("walk", 1, 1000, 10000, True), ("vfs_read", 0, 0, 20000, True),
            # the ends of leaf and walk are lost
            ("leaf", 2, 2000, MS - 1, True), ("walk", 1, 1000, MS - 1, True),
            ("vfs_read", 0, 0, 9000, True),
            # the starts of these three are lost
            ("leaf", 2, 2000, 4000, False), ("walk", 1, 1000, 5000, False),
            ("vfs_read", 0, 0, 9000, False),
            # the function tracer records no ends
            ("vfs_read", 0, 0, MS - 1, True), ("walk", 1, 1000, MS - 1, True),
            ("leaf", 2, 2000, MS - 1, True), ("leaf", 1, 3000, MS - 1, True)]
        assert [c["func"] for c in out if c["boot"] == 2] == ["vfs_read",
                                                              "leaf"]

    def test_callgraph_errors(self):
        for args, status, said in (
                ((self.pairs,), 1, "no functions were recorded"),
                ((self.functions, "--depth", "0"), 2, "1 or more")):
            p = run("callgraph", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)

    def folded(self, of, recording, *args):
        out = text("flame", "--folded", f"--of={of}", recording, *args)
        return {stack: int(ns) for stack, ns in
                (line.rsplit(" ", 1) for line in out)}

    def test_flame_functions(self):
        # the recording has recursion, lost ends and lost starts; if the end of a
        # call is not recorded, the calls within it keep their places in the stack
        assert self.folded("functions", self.functions) == {
            "<...>;vfs_read": 2000, "<...>;vfs_read;leaf": 3000,
            "<idle>;do_idle": 5000, "<idle>;do_idle;leaf": 2000,
            "reader;vfs_read": 25000, "reader;vfs_read;walk": 6000,
            "reader;vfs_read;walk;leaf": 2000,
            "reader;vfs_read;walk;walk": 3000,
            "reader;vfs_read;walk;walk;leaf": 2000}
        assert self.folded("functions", self.functions, "--boot=1", "--cpu=1"
                           ) == {"<idle>;do_idle": 5000,
                                 "<idle>;do_idle;leaf": 2000}
        # without --of, flame shows functions if the recording has any
        out = text("flame", "--folded", self.functions, "--boot=2")
        assert out == ["<...>;vfs_read 2000", "<...>;vfs_read;leaf 3000"]

    @pytest.mark.parametrize("single", [0, 1])
    def test_flame_full_tree(self, single, tmp_path):
        """If flame's tree is full, further calls get no node: their time counts
        once, for their callers."""
        full = story("full", tmp_path / "full", single)
        # the time of the two outermost calls and of 62 tasks with 4096 calls of 1 us
        first = 63 * 4096 + single + 2100 * 3
        last = single + 2100 * 3 + 5
        assert sum(self.folded("functions", full).values()) == 1000 * (
            first + last + 62 * 4096)

    def test_flame_says_what_it_leaves_out(self, tmp_path):
        """If flame's tree or picture lacks deeply nested calls, it has a line about that."""
        deep = story("deep", tmp_path / "deep")
        said = "names within more than 24 others were left out; --folded prints all"
        assert text("flame", deep)[-1] == said
        assert said not in text("flame", self.functions)
        for recording, cut in (deep, True), (self.functions, False):
            root = ElementTree.fromstring(run("flame", recording, "--svg=-").stdout)
            words = [e.text for e in root.iter(SVG + "text")]
            assert ("higher levels are not drawn; --folded prints all" in words) == cut

    def test_flame_cpu(self):
        out = self.folded("cpu", self.story, "--boot=1")
        assert out == {
            ESCAPED[:16]: 48_999_000, "(idle)": 90_001_000,
            "(idle);irq 11 virtio0": 5000, "(idle);softirq TIMER": 3000,
            # the gap hides the switch to the task "late": no task is known in the gap
            "(not known)": 199_991_000, "late": 1_000_000,
            "init": 215_999_000, "init;system call 39": 1000,
            "swapper/0": 27_001_000,
            "swapper/0;initcall first_init": MS,
            "swapper/0;initcall slow_init": 5 * MS,
            "worker": 2 * MS}, out
        # the sums are those of top
        top = lines("top", self.story, "--boot=1")[0]
        assert sum(out.values()) == top["cpu_ns"]
        assert out["(not known)"] == top["unknown_ns"]

    def test_flame_off_cpu(self):
        assert self.folded("off-cpu", self.pairs) == {
            "twice;waiting for a CPU;preempted": MS}
        out = self.folded("off-cpu", self.naps)
        assert out == {
            "napper;sleeping;(interrupt)": 6 * MS,
            "napper;uninterruptible;disk": 2 * MS,
            "napper;waiting for a CPU;woken": 3 * MS}, out

    def test_flame_svg(self):
        for of, recording in (("functions", self.functions),
                              ("cpu", self.story)):
            svg = self.tmp / f"{of}.svg"
            run("flame", f"--of={of}", "--svg", svg, recording)
            folded = self.folded(of, recording)
            root = ElementTree.parse(svg).getroot()
            assert not [a for e in root.iter() for a in e.attrib
                        if "href" in a or a.startswith("on")]
            frames = [(int(g.get("data-d")), int(g.get("data-x")),
                       int(g.get("data-w")), g.get("data-name"),
                       g.find(SVG + "rect")) for g in root.iter(SVG + "g")]
            # all frames except those too narrow to be drawn
            paths = [tuple(s.split(";")[:n + 1]) for s, ns in folded.items()
                     for n in range(s.count(";") + 1)
                     if ns > sum(folded.values()) / 20000]
            assert len(frames) == len(set(paths)) + 1
            # the width of a frame is the sum of the stacks that begin with its path, and the
            # frame lies within the frame below it
            assert frames[0][:3] == (0, 0, sum(folded.values()))
            stack = []
            for d, x, w, name, rect in frames:
                del stack[d:]
                if d:
                    assert stack[-1][0] <= x
                    assert x + w <= stack[-1][1]
                    path = ";".join([n for *_, n in stack[1:]] + [name])
                    assert w == sum(
                        ns for s, ns in folded.items()
                        if (s + ";").startswith(path + ";")), path
                stack.append((x, x + w, name))
                assert abs(float(rect.get("width"))
                           - w * 1180 / frames[0][2]) < .01
                assert abs(float(rect.get("x"))
                           - 10 - x * 1180 / frames[0][2]) < .01

    def test_flame_speedscope(self):
        out = self.tmp / "calls.json"
        run("flame", "--speedscope", out, self.functions)
        doc = json.loads(out.read_text())
        names = [f["name"] for f in doc["shared"]["frames"]]
        profile, = doc["profiles"]
        assert {";".join(names[i] for i in stack): ns for stack, ns in
                zip(profile["samples"], profile["weights"], strict=True)
                } == self.folded("functions", self.functions)
        assert profile["endValue"] == sum(profile["weights"])

    def test_flame_tree(self):
        """Without an option, flame prints a tree with the sums of the folded stacks."""
        out = text("flame", self.functions)[1:]
        folded = self.folded("functions", self.functions)
        stack, sums = [], {}
        for line in out:
            part, ms, name = re.match(
                r" *([\d.]+) % +([\d.]+) ms  ( *\S.*)", line).groups()
            depth = (len(name) - len(name.lstrip())) // 2
            stack[depth:] = [name.strip()]
            sums[";".join(stack)] = float(ms)
            assert float(part) == pytest.approx(
                100 * float(ms) * MS / sum(folded.values()), abs=0.1)
        assert len(sums) == len(out) > 3
        for path, ms in sums.items():
            assert ms * MS == pytest.approx(sum(
                ns for calls, ns in folded.items()
                if f"{calls};".startswith(f"{path};")), abs=1000)

    def test_flame_errors(self):
        for args, status, said in (
                ((self.pairs, "--folded", "--of=heat"), 2, "off-cpu"),
                ((self.pairs, "--folded", "--of=functions"), 1, "--of=cpu"),
                ((self.pairs, "--svg", self.tmp), 1, "regular file")):
            p = run("flame", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)
            assert not p.stdout, args

    def test_last(self):
        end = lines("last", self.story, "--boot=1", "-n", "2")[0]
        assert (end["boot"], end["boots"], end["events"], end["end_ns"]) == (
            1, 2, 34, 401 * MS)
        assert end["longest_gap"] == {"from_ns": 200_009_000,
                                      "to_ns": 400 * MS, "cpu": 1}
        assert end["gaps"] == 1 and end["lost_estimate"] == 123
        assert end["longest_silence"] == {"from_ns": 204 * MS,
                                          "to_ns": 300 * MS}
        assert end["longest_busy_silence"] == {
            "from_ns": 204 * MS, "to_ns": 300 * MS, "cpu": 0, "pid": 1,
            "task": "init"}
        assert [e["ns"] // MS for e in end["log"]] == [27, 300]
        assert [(c["cpu"], c["last_ns"] // MS, c["event"], c["pid"],
                 c["task"], c["since_ns"] // MS, c["in"])
                for c in end["cpus"]] == [
            (0, 300, "console", 1, "init", 151, []),
            (1, 401, "sched_switch", 0, "<idle>", 401, [])]
        assert end["blocked"] == [{"pid": 8, "task": "worker",
                                   "since_ns": 112 * MS}]
        # without --boot: the last boot. Times, CPUs and blocked tasks are those after the last
        # step of the guest's clock; the log is that of the whole boot.
        end = lines("last", self.story)[0]
        assert (end["boot"], end["end_ns"]) == (2, 3 * MS)
        assert len(end["log"]) == 3 and not end["blocked"]

    def test_last_in(self):
        end = lines("last", self.pairs, "--boot=1")[0]
        assert [(c["cpu"], c["in"]) for c in end["cpus"]] == [(0, []),
                                                              (1, [])]
        # a system call, an interrupt, a softirq and two calls that did not end
        end = lines("last", self.hang)[0]
        assert [(c["pid"], c["task"], c["in"], c["calls"])
                for c in end["cpus"]] == [
            (7, "reader", ["system call 0", "irq 5 nic", "softirq NET_RX"],
             ["vfs_read", "walk"])]

    def test_last_text(self):
        out = text("last", self.story, "--boot", "1", "--log=1")
        assert out == LAST, "\n".join(out)
        out = text("last", self.hang)
        assert out[-2:] == HANG, "\n".join(out)

    def test_last_ends(self):
        """`last` reports the guest's end only if the recording is whole and says how
        the guest ended."""
        def last(name, info="", damage=None):
            path = story("story", self.tmp / f"ends-{name}")
            with open(path / "info") as f:
                old = f.read()
            (path / "info").write_text(old.replace(
                "[guest]", f"poll-us=1000\n{info}\n[guest]"))
            if damage:
                with open(path / "cpu0", "r+b") as f:
                    damage(f)
            p = run("last", path)
            end = lines("last", path)[0]
            assert end["guest_ended"] == (b"The end of Linux" in p.stdout)
            assert end["guest_ended"] != (b"The recording of" in p.stdout)
            return end["guest_ended"], p.stderr.decode()

        quit_ = "end=QEMU ended with status 0\nended-monotonic=9000000000"
        assert last("quit", quit_) == (True, "")
        assert last("stopped", "end=the recorder was stopped") == (False, "")
        assert last("killed") == (
            False, "hypertrace last: the recorder was killed or still"
            " records: later events of the guest may be missing\n")
        # other views print this message, too; "log" needs a recording with a log
        (self.tmp / "ends-killed/log").write_text("6,0,10000,0,T1;a\n")
        for view in "log", "report", "top":
            assert b"was killed or still records" in run(
                view, self.tmp / "ends-killed").stderr
        ended, said = last("full", "cut=No space left on device")
        assert not ended and "No space left on device" in said

        def append(f):
            f.seek(0, 2)
            f.write(bytes(range(100)))

        def truncate(f):
            f.truncate(f.seek(0, 2) - 10)

        def overwrite(f):
            f.seek(0)
            f.write(b"damage")

        def enlarge(f):
            # the size in the first piece's header
            f.seek(4)
            f.write((60000).to_bytes(4, "little"))

        for name, damage in ("append", append), ("truncate", truncate):
            ended, said = last(name, quit_, damage)
            assert not ended and "bytes of the recording are damaged" in said
        for damage in overwrite, enlarge:
            path = story("story", self.tmp / f"ends-{damage.__name__}")
            with open(path / "info", "a") as f:
                f.write("[recording]\nend=QEMU ended with status 0\n")
            with open(path / "cpu0", "r+b") as f:
                damage(f)
            p = run("report", path)
            assert b"are damaged" in p.stderr, (damage, p.stderr)

    @pytest.mark.parametrize("rows, reasons", (
        # a panic after an error; 60 lines of registers follow both
        ([(0, "Run /sbin/init"), (0, "BUG: kernel NULL pointer"),
          (0, "RIP: 0010:first+0x1/0x2"), *[(0, "Code: 90")] * 60,
          (0, "Kernel panic - not syncing: Fatal exception"),
          *[(0, "RIP: 0010:other+0x1/0x2")] * 60],
         ["BUG: kernel NULL pointer", "RIP: 0010:first+0x1/0x2",
          "Kernel panic - not syncing: Fatal exception"]),
        # without a panic, the newest error is shown
        ([(0, "BUG: scheduling while atomic"), (0, "pc : old"),
          (0, "Unable to handle kernel paging request"), (0, "pc : new"),
          *[(0, "x28: 0")] * 60],
         ["Unable to handle kernel paging request", "pc : new"]),
        # only the first panic counts, and no error after it
        ([(0, "Kernel panic - not syncing: VFS"), (0, "BUG: late"),
          (0, "Kernel panic - not syncing: late"), *[(0, "x")] * 60],
         ["Kernel panic - not syncing: VFS"]),
        # lines that a program wrote do not count; nor does a kernel's line with the place
        # of an error, without a line of the error before it
        ([(1, "Kernel panic - not syncing: joke"), (1, "BUG: joke"),
          (0, "RIP: alone"), (0, "panic")], []),
    ))
    def test_last_reason(self, tmp_path, rows, reasons):
        """`last` shows the reason of a panic, however many lines follow it."""
        path = story("story", tmp_path / "rec")
        (path / "log").write_text("".join(
            f"{8 * facility + 4},{n},{20_000_000_000 + n * 1000},1,T1;{line}\n"
            for n, (facility, line) in enumerate(rows)))
        end = lines("last", path)[0]
        assert [end[name]["text"] for name in ("fault", "place", "panic")
                if name in end] == reasons
        assert len(end["log"]) == min(15, len(rows))
        out = text("last", "--log=0", path)
        if reasons:
            at = out.index("errors in the kernel's log") + 1
            assert [line.split("] ")[1] for line in
                    out[at:at + len(reasons)]] == reasons
        else:
            assert "errors in the kernel's log" not in out

    def kernel(self, name, formats, kallsyms):
        """Make a kernel image, and the files that the cache of kernels has for it."""
        image = self.tmp / name
        image.write_bytes(bytes(0x202) + b"HdrS" + bytes(512) + name.encode())
        cache = self.tmp / "cache/hypertrace/kernels" / hashlib.sha256(
            image.read_bytes()).hexdigest()
        cache.mkdir(parents=True)
        for file, content in (("info", "[kernel]\nrelease=6.12.1-test\n"
                                       "machine=x86_64\nversion=#1\n"),
                              ("formats", formats), ("kallsyms", kallsyms)):
            (cache / file).write_text(content)
        return image

    def test_last_kernel(self):
        whole, bare = text("last", self.hang), self.tmp / "bare"
        shutil.copytree(self.hang, bare)
        formats = (bare / "formats").read_text()
        kallsyms = (bare / "kallsyms").read_text()
        (bare / "kallsyms").unlink()
        info = [line for line in (bare / "info").read_text().splitlines()
                if not line.startswith(("release=", "machine=", "text="))]
        (bare / "info").write_text("\n".join(info) + "\n")
        assert "vfs_read" not in "".join(text("last", bare))
        env = {**os.environ, "XDG_CACHE_HOME": str(self.tmp / "cache")}

        other = self.kernel("other", formats.replace("sched_switch", "sw"),
                            kallsyms)
        p = run("last", "--kernel", other, bare, status=1, env=env)
        assert "is of another kernel" in p.stderr.decode(), p.stderr
        assert (bare / "info").read_text().splitlines() == info
        assert not (bare / "kallsyms").exists()

        own = self.kernel("own", formats, kallsyms)
        run("last", "--kernel", own, bare, env=env)
        assert text("last", bare) == whole
        # a recording that has only events and the file info
        for name in ("kallsyms", "formats"):
            (bare / name).unlink()
        run("last", "--kernel", own, bare, env=env)
        assert text("last", bare) == whole

    def test_recover(self):
        for name, said in (("absent", "absent"), ("empty", "empty"),
                           ("nothing", "no ring of events")):
            ram = self.tmp / f"ram-{name}"
            if name != "absent":
                with open(ram, "wb") as f:
                    f.truncate(64 << 20 if name == "nothing" else 0)
            p = run("recover", "-o", self.tmp / "recovered", ram, status=1)
            assert said in p.stderr.decode(), (name, p.stderr)
            assert not (self.tmp / "recovered").exists()
        run("recover", status=2)

    @staticmethod
    def last_streams(page, out):
        """`last` shows the recovered trace @out as `recover` has printed it (@page), but without
        the streams' names, and with one sum of the events before the trace and the lost ones."""
        p = run("last", out, "--boot=1", status=2)
        assert "need a recording" in p.stderr.decode(), p.stderr
        if b"without libbabeltrace2" in subprocess.run(
                [TOOL, "last", out], capture_output=True).stderr:
            return
        p = run("last", out.parent / "dead", status=1)
        assert "neither a recording nor" in p.stderr.decode(), p.stderr
        without = [re.sub(
            r' "\w+"(.*?), (\d+) before them, (\d+) lost',
            lambda m: f"{m[1]}, {int(m[2]) + int(m[3])} missing",
            line) for line in page]
        without[0] = without[0].replace("of ht0 in", "of ht0 of ht0 in")
        assert text("last", "-n", "2", out) == without
        assert len(text("last", "-n", "0", out / "ht0")) == len(page) - 4
        trace, = lines("last", "-n", "2", out)
        events = int(page[0].split()[0])
        missing = trace["streams"][0].pop("missing")
        assert missing == 10020 - events, trace
        assert trace == {
            "version": 1, "trace": f"{out}/ht0", "device": "ht0", "vm": "ht0",
            "events": events, "end_ns": 2_009_999_000, "streams": [
                {"stream": 0, "vcpu": -1, "events": events - 20,
                 "end_ns": 2_009_999_000, "last": [
                     {"ns": 2_009_998_000, "event": "number",
                      "fields": {"n": 9998}},
                     {"ns": 2_009_999_000, "event": "number",
                      "fields": {"n": 9999}}]},
                {"stream": 2, "vcpu": 1, "events": 20, "missing": 0,
                 "end_ns": 2_000_019_000, "last": [
                     {"ns": 2_000_018_000, "event": "number",
                      "fields": {"n": 18}},
                     {"ns": 2_000_019_000, "event": "number",
                      "fields": {"n": 19}}]}]}

    def test_recover_streams(self):
        dead, out = story("dead", self.tmp / "dead"), self.tmp / "streams"
        ram = dead / "ht0"
        page = text("recover", "-o", out, "-n", "2", ram)
        events = int(page[0].split()[0])
        assert page == [
            f"{events} events of ht0 in {out}/ht0",
            "",
            f'stream 0 "main": {events - 20} events, {10020 - events} before'
            " them, 0 lost; silent for 0 ns",
            "  2.009998000 ht0 stream 0 vcpu -1 number n=9998",
            "  2.009999000 ht0 stream 0 vcpu -1 number n=9999",
            "",
            'stream 2 "late", vCPU 1: 20 events, 0 before them, 0 lost; silent'
            " for 9.98 ms",
            "  2.000018000 ht0 stream 2 vcpu 1 number n=18",
            "  2.000019000 ht0 stream 2 vcpu 1 number n=19"], page
        assert events > 3 * 4096 // 12
        if shutil.which("babeltrace2"):
            trace = subprocess.run(["babeltrace2", out / "ht0"], check=True,
                                   capture_output=True, text=True).stdout
            assert trace.count(" number: ") == events, trace[:1000]
        self.last_streams(page, out)
        p = run("recover", "-q", "-o", self.tmp / "no", dead / "short", status=1)
        assert "contradicts itself" in p.stderr.decode(), p.stderr
        assert not (self.tmp / "no").exists()
        run("recover", "--kernel", ram, ram, status=2)
        run("recover", ram, ram, status=2)


@pytest.mark.parametrize("command", (
    ["report"], ["log"], ["top"], ["boot"], ["last"], ["callgraph"], ["flame"], ["events"],
    ["latency", "sched_waking", "sched_switch"], ["export", "-o", "out.dat"]))
@pytest.mark.parametrize("name", ("info", "formats", "cpu0"))
def test_pipe_in_a_recording(tmp_path, command, name):
    """If a FIFO is in place of a recording's file, the command does not wait for a
    writer of the FIFO."""
    path = story("functions", tmp_path / "rec")
    (path / name).unlink()
    os.mkfifo(path / name)
    if command == ["events"] and name != "formats":
        run(*command, path)
    else:
        p = run(*command, path, status=1, cwd=tmp_path)
        assert b"it is no regular file" in p.stderr and not p.stdout
