# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace report, log, top, boot and other views on small recordings: output, selection of
events, damaged recordings, mistakes on the command line, and completion in shells.

The recordings are described in tests/unit/recording/story.c.
"""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from built import need
from hypertrace import ESCAPED, TOOL, lines, run, story, text

SVG = "{http://www.w3.org/2000/svg}"
# Command lines of views and of the formats of export, without the recording
VIEWS = [("report",), ("report", "--json"), ("log",), ("top",), ("boot",),
         ("boot", "--json"), ("last",), ("callgraph",), ("flame",),
         ("latency", "sched_waking", "sched_switch"),
         *(("export", "-o", f"out.{suffix}")
           for suffix in ("pftrace", "ctf", "lttng", "dat"))]


class TestViews:
    @pytest.fixture(autouse=True, scope="class")
    def prepare(self, request, tmp_path_factory):
        cls, tmp = request.cls, tmp_path_factory.mktemp("view")
        cls.tmp = tmp
        cls.story = story("story", tmp / "story")
        cls.slower = story("slower", tmp / "slower")

    def test_report_lines(self):
        out = text("report", "--fields", self.story)
        assert out[0] == ("     0.000000000 +0.000000000 [000] <idle>-0     "
                          "          console: msg=Linux version 6.12.1-test")
        assert (f"     0.102000000 +0.001000000 [000] init-7               "
                f"  sched_process_exec: filename=/usr/bin/{ESCAPED} pid=7"
                " old_pid=7") in out
        # PID 1 is shown with the name that it had at the time of each event.
        assert [line for line in out if "init-1 " in line]
        assert [line for line in out if "swapper/0-1 " in line]
        assert ("-- CPU 1 lost about 123 events between 0.200009000 and"
                " 0.400000000 --") in out
        assert out.count("-- boot 2 --") == 1
        assert out.count("-- the guest's clock went back --") == 1
        assert len(out) == 47 + 3
        assert [line for line in out
                if line.endswith("type-4000: 01020304")]
        assert [line for line in out if "func=0xffffffff91003000" in line]
        # texts follow the kernel's own print format, and have the symbols of
        # the kernel of each boot
        out = text("report", self.story)
        assert len([line for line in out if line.endswith(
            "initcall_finish: func=slow_init+0x0 ret=-19")]) == 2
        assert out[22].endswith("irq_handler_exit: irq=11 ret=handled"), out[22]

    def test_report_kept_ring(self):
        """If the recording lacks the kernel's address of a boot, report finds it from the addresses
        of initcalls. If it cannot, it shows functions as numbers."""
        out = lines("report", story("kept", self.tmp / "kept"))
        for boot, known in (3, False), (4, True), (5, False):
            start = next(e for e in out if e["boot"] == boot
                         and e["fields"]["func"] % 0x10000 == 0x2000)
            assert start["text"] == ("func=slow_init+0x0" if known else
                                     f"func={start['fields']['func']:#x}")

    def test_report_other_kernel(self):
        """If the recorded symbols belong to another kernel, report warns and shows functions
        as numbers."""
        path = story("slower", self.tmp / "other")
        info = (path / "info").read_text()
        assert not run("report", path).stderr
        (path / "info").write_text(info.replace("text-0=ffffffff91000000",
                                                "text-0=ffffffff91000450"))
        p = run("report", path)
        assert b"symbols of another kernel" in p.stderr
        assert b"func=0xffffffff91001000" in p.stdout
        assert b"first_init" not in p.stdout

    def test_json_version(self):
        """The JSON objects of top, last, boot and latency have a member "version", which is 1."""
        for args in (("top",), ("last",), ("boot",),
                     ("latency", "sched_waking", "sched_switch")):
            p = run(*args, "--json", self.story)
            for line in p.stdout.splitlines():
                assert json.loads(line)["version"] == 1, args

    def test_report_json(self):
        out = lines("report", self.story)
        assert len(out) == 47
        switch = next(e for e in out if e["event"] == "sched_switch"
                      and e["cpu"] == 1)
        assert switch["fields"] == {
            "prev_comm": "swapper/1", "prev_pid": 0, "prev_prio": 120,
            "prev_state": 0, "next_comm": "worker", "next_pid": 8,
            "next_prio": 120}
        odd = next(e for e in out if e["event"] == "odd_names")
        assert odd["fields"] == {
            "event": "\033[2J</script>\"'&\001\ufffdx", "_event_length": 1,
            "int": 2, "bytes": [170, 187, 204]}
        worker = [e for e in out if e["pid"] == 8]
        assert [(e["tgid"], e["task"]) for e in worker] == [(7, "worker")]
        lost = [e for e in out if "lost_estimate" in e]
        assert [(e["cpu"], e["lost_estimate"], e["lost_from_ns"])
                for e in lost] == [(1, 123, 200009000)]
        assert [e["boot"] for e in out] == [1] * 34 + [2] * 13
        raw = run("report", self.story, "--json").stdout
        assert b"<" not in raw and b"\033" not in raw

    def test_report_filters(self):
        def events(*args):
            return [(e["ns"], e["cpu"], e["event"])
                    for e in lines("report", self.story, *args)]

        every = events()
        assert events("--boot", "2") == every[34:]
        assert events("--boot=1", "--from", "0.2", "--to", "201ms") == [
            e for e in every[:34] if 200_000_000 <= e[0] <= 201_000_000]
        assert events("--cpu", "1") == [e for e in every if e[1] == 1]
        assert events("--cpu", "0-1,7") == every
        assert events("--event", "irq_*,sys_enter") == [
            e for e in every if e[2].startswith("irq_") or e[2] == "sys_enter"]
        # If an option with a list is given several times, the lists are joined.
        assert events("--event", "irq_*", "--cpu=0", "--event=sys_enter", "--cpu",
                      "1", "--task=0", "--task", "1") == events(
            "--event=irq_*,sys_enter", "--task=0,1")
        assert events("--event", "irq:*") == [
            e for e in every if "irq_" in e[2]]
        assert events("--boot=1", "--from=-1ms") == [
            e for e in every[:34] if e[0] >= 400_000_000]
        assert {e["task"] for e in lines("report", self.story, "--task",
                                         "worker,99")} == {
            "worker", "late", "<...>"}

    def test_report_stacks(self):
        path = story("stacks", self.tmp / "frames")
        out = text("report", path)
        assert out[0].endswith("kernel_stack: <stack trace>")
        assert out[1].endswith("kernel_stack: <stack trace>")
        assert out[2:4] == [" => first_init", out[3]]
        assert out[3].endswith("kernel_stack: <stack trace>")
        assert out[4:18] == [" => first_init"] + [
            f" => first_init+0x{n:x}" for n in range(1, 14)]
        assert out[18].endswith("sys_enter_read: fd: 0x00000003, buf:"
                                " 0x7f0000001000")
        assert len(lines("report", path)) == 5

    def test_log(self):
        assert text("log", self.story) == [
            "[    0.000000] Linux version 6.12.1-test",
            "[    0.027000] Run /sbin/init as init process",
            "[    0.300000] two",
            f"[    0.300000] lines\twith{ESCAPED}",
            "-- boot 2 --",
            "[    0.000000] Linux version 6.12.1-test",
            "[    0.024000] Run /sbin/init as init process",
            "[    0.003000] after a step back"]
        assert text("log", self.story, "--grep=^(two|after)") == [
            "[    0.300000] two",
            f"[    0.300000] lines\twith{ESCAPED}",
            "-- boot 2 --",
            "[    0.003000] after a step back"]
        assert [e["text"] for e in lines("log", self.story, "--boot=2")] == [
            "Linux version 6.12.1-test\n", "Run /sbin/init as init process",
            "after a step back"]

    def test_log_and_events(self):
        """log prints the lines of the file "log", and then the lines of later events
        printk:console."""
        events = lines("log", self.story)
        for n in range(1, len(events) + 1):
            dir_ = story("story", self.tmp / f"log{n}")
            seq = {1: 0, 2: 0}
            with open(dir_ / "log", "wb") as f:
                for e in events[:n]:
                    # In the JSON text, U+FFFD stands for the byte 0xff, which is no UTF-8.
                    raw = "".join(f"\\x{b:02x}" for b in e["text"].rstrip(
                        "\n").encode().replace(b"\xef\xbf\xbd", b"\xff"))
                    f.write(f"{8 + 4},{seq[e['boot']]},"
                            f"{max(e['ns'] - 1000, 0)},{e['boot'] - 1},C1;"
                            f"{raw}\n".encode())
                    seq[e["boot"]] += 1
            out = lines("log", dir_)
            assert [e["text"].rstrip("\n") for e in out] == [
                e["text"].rstrip("\n") for e in events]
            assert [e["boot"] for e in out] == [e["boot"] for e in events]
            records = [e for e in out if "level" in e]
            assert len(records) == n
            assert {(e["level"], e["facility"], e["cpu"]) for e in records
                    } == {(4, 1, 1)}
            last = lines("last", dir_, "-n", "2")[0]
            assert [e["text"].rstrip("\n") for e in last["log"]] == [
                e["text"].rstrip("\n") for e in events[-2:]]

    def test_log_damaged(self, tmp_path):
        """log reports the number of damaged lines of the file "log", and prints the others."""
        path = story("kept", tmp_path / "kept")
        before = text("log", path)
        with open(path / "log", "ab") as f:
            f.write(b"damage\n6,1\n\0\xff\n")
        p = run("log", path)
        assert p.stdout.decode().splitlines() == before
        assert "log has 3 damaged lines" in p.stderr.decode()

    def test_log_repeats(self):
        """`log` continues after the log's last record with the events
        printk:console, even if a later line has the same text as that record."""
        dir_ = story("repeats", self.tmp / "repeats")
        (dir_ / "log").write_text("6,0,10000,0,T1;first\n6,1,20000,0,T1;same\n")
        assert [e["text"] for e in lines("log", dir_)] == [
            "first", "same", "between", "same", "late", "end"]

    def test_log_stamped(self):
        """The texts of Linux 5.10's console events begin with the times of the log's records, and
        the events may be seconds later: each line is printed once, with its record's time. A text
        without such a time gets its event's time."""
        lines_ = ["[    0.010000] first", "[    0.020000] second", "[    1.500000] third",
                  "[    1.600000] first", "[    1.610000] second", "[    2.700000] [1.2] no time"]
        dir_ = story("stamped", self.tmp / "stamped")
        assert text("log", dir_) == lines_
        (dir_ / "log").write_text("6,0,10000900,0,T1;first\n6,1,20000900,0,T1;second\n")
        assert text("log", dir_) == lines_

    def test_log_toggled(self):
        """A line with a time later than the log's last record is printed, also if events without
        such a time are seconds later than their records."""
        dir_ = story("toggled", self.tmp / "toggled")
        (dir_ / "log").write_text("6,0,10000000,0,T1;first\n6,1,20000000,0,T1;second\n"
                                  "6,2,30000000,0,T1;third\n")
        assert text("log", dir_) == ["[    0.010000] first", "[    0.020000] second",
                                     "[    0.030000] third", "[    0.040000] fourth"]

    @pytest.mark.parametrize("records, shift_ms", (
        ([(10, "first"), (20, "same"), (30, "between")], 5000),
        ([(10, "first"), (20, "same"), (30, "between"), (5000, "same"),
          (5050, "late"), (5100, "end")], -4500),
    ))
    def test_log_clocks(self, records, shift_ms):
        """If the clocks of the log and of the events differ by seconds, each line
        is still printed once."""
        dir_ = story("repeats", self.tmp / f"clocks{len(records)}")
        (dir_ / "log").write_text("".join(
            f"6,{n},{max(ms + shift_ms, ms // 100) * 1000000},0,T1;{line}\n"
            for n, (ms, line) in enumerate(records)))
        assert [e["text"] for e in lines("log", dir_)] == [
            "first", "same", "between", "same", "late", "end"]

    @pytest.mark.parametrize("name, records, tail", (
        ("repeats", [(10, "first"), (15, "late"), (20, "same"), (30, "between"),
                     (4000, "other")], ["same", "late", "end"]),
        ("repeats", [(10, "first"), (15, "late"), (16, "end"), (20, "same"),
                     (30, "between"), (4000, "other")], ["same", "late", "end"]),
        ("oops", [(100000, "Call Trace:"), (100001, " <TASK>"), (4999999, "other")],
         ["Call Trace:", " <TASK>", "end"]),
    ))
    def test_log_old_lines(self, name, records, tail):
        """Events after the last record of the file "log" are printed, even if an earlier record has
        the same text and no event of its own in the recording."""
        dir_ = story(name, self.tmp / f"old{len(records)}")
        (dir_ / "log").write_text("".join(
            f"6,{n},{ms * 1000},0,T1;{line}\n" for n, (ms, line) in enumerate(records)))
        assert [e["text"] for e in lines("log", dir_)] == [
            line for _, line in records] + tail

    def test_log_gap(self):
        """log counts the records that are missing between the numbers of the records in the file
        "log", and before the first: the guest had overwritten them before they were read."""
        dir_ = story("story", self.tmp / "log-gap")
        (dir_ / "log").write_text("6,3,1000000,0,T1;a\n6,4,2000000,0,T1;b\n"
                                  "6,9,3000000,0,T1;c\n")
        assert text("log", dir_, "--to=4ms", "--boot=1") == [
            "-- 3 records were overwritten before they were read --",
            "[    0.001000] a", "[    0.002000] b",
            "-- 4 records were overwritten before they were read --",
            "[    0.003000] c"]

    @pytest.mark.parametrize("options, printed", (
        ([], ["a", "--", "b", "-- boot 2 --", "c", "d", "-- boot 3 --", "--", "e"]),
        (["--from=1.5ms"], ["--", "b", "-- boot 2 --", "d"]),
        (["--to=1.5ms"], ["a", "-- boot 2 --", "c", "-- boot 3 --", "--", "e"]),
        (["--from=1.5ms", "--to=2.5ms"], ["--", "b", "-- boot 2 --", "d"]),
    ))
    def test_log_gap_boots(self, options, printed):
        """Each boot numbers its records from 0. Records of boots and times that the
        options leave out do not count as overwritten."""
        dir_ = story("story", self.tmp / f"log-boots{len(options)}{len(printed)}")
        for file in dir_.glob("cpu*"):
            file.unlink()
        (dir_ / "log").write_text(
            "6,0,1000000,0,T1;a\n6,2,2000000,0,T1;b\n6,0,1000000,1,T1;c\n"
            "6,1,2000000,1,T1;d\n6,4,1000000,2,T1;e\n")
        assert [line if "boot" in line else
                "--" if "overwritten" in line else line.split("] ")[1]
                for line in text("log", dir_, *options)] == printed

    @pytest.mark.parametrize("cpu, said", (
        ("2", "has CPUs 0 to 1"), ("1023", "has CPUs 0 to 1"),
        ("1024", "from 0 to 1023"), ("0-1024", "from 0 to 1023"),
        ("2000", "from 0 to 1023"), ("-1", "from 0 to 1023"),
    ))
    def test_cpu_limit(self, cpu, said):
        """--cpu refuses a number that no recording can have, and a processor that
        this recording does not have."""
        p = run("report", f"--cpu={cpu}", self.story, status=1 if "has" in said
                else 2)
        assert said in p.stderr.decode() and not p.stdout

    def test_cpus_left_out(self):
        """Files of processors with numbers above the limit are left out, with a message."""
        dir_ = story("story", self.tmp / "left-out")
        shutil.copy(dir_ / "cpu0", dir_ / "cpu1024")
        shutil.copy(dir_ / "cpu0", dir_ / "cpu2000")
        p = run("report", dir_)
        assert b"2 processors with numbers from 1024 on" in p.stderr
        assert p.stdout == run("report", self.story).stdout

    def test_log_follow(self):
        """log --follow prints each line once, as soon as all of it is written, until the recording
        ends."""
        dir_ = story("story", self.tmp / "log-follow")
        log = subprocess.Popen([TOOL, "log", "--follow", dir_], text=True,
                               stdout=subprocess.PIPE)
        with open(dir_ / "log", "w", buffering=1) as f, log:
            f.write("6,0,1000000,0,T1;a\n6,1,2000000,0,T1;b")
            f.flush()
            assert log.stdout.readline() == "[    0.001000] a\n"
            f.write("c\n")
            assert log.stdout.readline() == "[    0.002000] bc\n"
            f.write("6,2,3000000,1,T1;d\n")
            assert log.stdout.readline() == "-- boot 2 --\n"
            f.write("6,3,4000000,1,T1;e\n")
            info = (dir_ / "info").read_text()
            (dir_ / "new").write_text(info.replace(
                "[recording]\n", "[recording]\nend=the test\n"))
            (dir_ / "new").rename(dir_ / "info")
            out = log.stdout.read()
        assert log.returncode == 0
        assert "[    0.003000] d\n" in out
        assert out.endswith("[    0.004000] e\n")
        p = subprocess.run([TOOL, "log", "-F", "--from=1", dir_], text=True,
                           stderr=subprocess.PIPE)
        assert p.returncode == 2 and "--from" in p.stderr

    def test_boot_steps(self):
        """boot handles a clock that goes back within an initcall, and gaps that
        hide ends of initcalls."""
        path = story("steps", self.tmp / "clock")
        boot = lines("boot", path)[0]
        assert [(c["name"], c["duration_ns"], c["ended"])
                for c in boot["initcalls"]] == [
            ("first_init", 4_000_000, True), ("slow_init", None, False),
            ("walk", 1_000_000, True), ("first_init", None, False)]
        assert boot["clock_back_ns"] == 7_000_000
        assert boot["end_ns"] == 67_000_000
        out = text("boot", path)
        assert [line for line in out if "went back by 7.000 ms" in line]
        assert len([line for line in out if "not known" in line]) == 2

    def test_boot_steps_process(self):
        """A process's CPU time includes time before and after a step of the clock."""
        boot = lines("boot", story("steps-process", self.tmp / "process"))[0]
        assert [p["cpu_ns"] for p in boot["processes"]
                if p["name"] == "/bin/worker"] == [15_000_000]

    def test_boot_functions(self):
        """boot shows the functions that an initcall's task called. Their own times add up to the
        time of the call of the initcall's function, also if the task changes processors. Functions
        without recorded ends have a number of calls, and no time."""
        path = story("inside", self.tmp / "inside")
        first, second, third = lines("boot", path)[0]["initcalls"]
        # The call of first_init takes 13 ms: walk 2 + 3 ms, vfs_read 8 - 3 ms, the rest 3 ms.
        assert first["functions"] == [
            {"name": "walk", "calls": 2, "own_ns": 5_000_000},
            {"name": "vfs_read", "calls": 1, "own_ns": 5_000_000},
            {"name": "first_init", "calls": 1, "own_ns": 3_000_000}]
        assert second["functions"] == [{"name": "leaf", "calls": 2}]
        assert "functions" not in third
        out = text("boot", path)
        at = next(i for i, line in enumerate(out)
                  if line.split()[:1] == ["first_init"])
        assert [line.split() for line in out[at + 1:at + 4]] == [
            ["walk", "5.000", "own,", "2", "calls"],
            ["vfs_read", "5.000", "own,", "1", "call"],
            ["first_init", "3.000", "own,", "1", "call"]]

    def test_random(self):
        """With random events, no time in the views is negative or longer than 4 s, and the times of
        top add up to the time of the CPUs."""
        def durations(x, longest):
            if isinstance(x, dict):
                for key, value in x.items():
                    if key in ("duration_ns", "cpu_ns", "ns", "max_ns",
                               "sum_ns", "own_ns", "unknown_ns", "idle_ns", "after_ns",
                               "self_ns", "total_ns") and value is not None:
                        assert 0 <= value <= longest, (key, value)
                    durations(value, longest)
            elif isinstance(x, list):
                for value in x:
                    durations(value, longest)

        for seed in range(12):
            path = story("random", self.tmp / f"random{seed}", seed)
            span = sum(b["end_ns"] - b["begin_ns"] for n in range(1, 9)
                       if (b := self.boot_of(path, n)))
            assert span > 0
            for args in (("boot",), ("top",), ("last",), ("callgraph",),
                         ("latency", "sched_waking", "sched_switch"),
                         ("latency", "sched_switch", "sched_switch")):
                for x in lines(args[0], *args[1:], path):
                    durations(x, 4 * 10**9)
            top = lines("top", path)[0]
            total = sum(t["cpu_ns"] for t in top["tasks"])
            assert total + top["unknown_ns"] == top["cpu_ns"] <= 4 * span
            for what in "cpu", "off-cpu", "functions":
                p = subprocess.run([TOOL, "flame", "--of", what, "--folded",
                                    path], capture_output=True)
                for line in p.stdout.decode("utf-8", "replace").splitlines():
                    assert int(line.rsplit(" ", 1)[1]) < 4 * 10**9, line

    @staticmethod
    def boot_of(path, number):
        p = subprocess.run([TOOL, "boot", path, "--json",
                            f"--boot={number}"], capture_output=True)
        return json.loads(p.stdout) if p.returncode == 0 else None

    def test_boot(self):
        boot = lines("boot", self.story, "--boot", "1")[0]
        assert boot["release"] == "6.12.1-test"
        assert [(p["name"], p["begin_ns"] // 1000000,
                 p["end_ns"] // 1000000) for p in boot["phases"]] == [
            ("kernel", 0, 10), ("initcalls", 10, 26),
            ("kernel, rest", 26, 35), ("init", 35, 102),
            ("services", 102, 401)]
        assert [(c["name"], c["level"], c["end_ns"] - c["begin_ns"], c["ret"])
                for c in boot["initcalls"]] == [
            ("first_init", "early", 1000000, 0),
            ("slow_init", "late", 5000000, -19)]
        service, = boot["processes"]
        assert service["name"] == ("/usr/bin/\033[2J</script>\"'&\001"
                                   "\ufffdx")
        assert service["service"] and service["ended"]
        # the process's own time since exec, and 2 ms of its thread
        assert service["cpu_ns"] == 48_000_000 + 2_000_000
        # in the second boot the kernel has other addresses
        second = lines("boot", self.story)[0]
        assert second["boot"] == second["boots"] == 2
        assert [c["name"] for c in second["initcalls"]] == ["first_init",
                                                            "slow_init"]
        out = text("boot", self.story, "--boot=1")
        assert [line for line in out if ESCAPED[:20] in line]
        assert lines("boot", self.story, "--boot=1", "--to", "30ms")[0][
            "end_ns"] == 27000000

    def test_boot_compare(self):
        out = text("boot", self.story, self.slower, "--boot", "1")
        assert [line.split() for line in out if "slow_init" in line] == [
            ["slow_init", "5.000", "45.000", "+40.000"]]
        a, b = lines("boot", self.story, self.slower, "--boot", "1")[0]
        assert b["end_ns"] - a["phases"][3]["begin_ns"] == 40001000

    def test_boot_limits(self):
        """With --max or --regression, boot returns 4 for a boot that is too slow or lacks a phase,
        0 for others, and 2 for options that it cannot use."""
        same = [self.story] * 3
        for args, status, said in (
                (("--max=1s", self.story), 0, ""),
                (("--max=300ms", self.story), 4, "the boot took 0.401 s"),
                (("--max=initcalls=16ms", "--max=1s", self.story), 0, ""),
                (("--max=initcalls=15ms", self.story), 4, "initcalls took"),
                (("--max=initramfs=1s", self.story), 4, "no phase 'init"),
                (("--max=soon=1s", self.story), 2, "phases are: kernel;"),
                (("--max=-1s", self.story), 2, "not negative"),
                (("--max=later", self.story), 2, "1.5, 20ms"),
                (("--regression", *same), 2, "at least 3 earlier"),
                (("--regression", *same, self.story), 0, ""),
                (("--regression", *same, self.slower), 4, "initcalls took"),
                (("--regression", *[self.slower] * 4), 0, ""),
                (("--regression", self.story, self.slower, self.story,
                  self.slower), 0, ""),
                (("--junit=x.xml", self.story), 2, "nothing to write")):
            p = subprocess.run([TOOL, "boot", "--boot=1", *args],
                               capture_output=True, text=True)
            assert (p.returncode, said in p.stderr) == (status, True), (
                args, p.stderr)
            assert bool(p.stderr) == bool(status)

    def test_boot_many(self):
        out = text("boot", "--boot=1", *[self.story] * 3, self.slower)
        assert out[0] == "3 earlier boots: median 0.401 s, 0.401 to 0.401 s"
        assert [line.split() for line in out if "slow_init" in line] == [
            ["slow_init", "5.000", "5.000", "5.000", "45.000", "+40.000", "*"]]
        out = text("boot", "--boot=1", *[self.story] * 2, self.slower)
        assert not [line for line in out if "*" in line]

    def test_boot_junit(self):
        xml = self.tmp / "boot.xml"
        subprocess.run([TOOL, "boot", "--boot=1", "--max=initcalls=1ms",
                        "--regression", f"--junit={xml}",
                        *[self.story] * 4], check=False)
        suite = ElementTree.parse(xml).getroot().find("testsuite")
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests")) == 7
        assert [c.get("name") for c in cases if c.find("failure") is not None
                ] == ["--max=initcalls=1ms"] and suite.get("failures") == "1"
        assert cases[0].get("time") == "0.016000"

    def test_svg(self):
        svg = self.tmp / "boot.svg"
        svg.write_text("old")
        run("boot", self.story, "--boot", "1", "--svg", svg)
        root = ElementTree.parse(svg).getroot()
        assert root.tag == SVG + "svg"
        tags = {e.tag.removeprefix(SVG) for e in root.iter()}
        assert tags == {"svg", "style", "text", "rect", "title", "line"}
        words = [e.text or "" for e in root.iter(SVG + "text")]
        assert [w for w in words if w.startswith("late: 1, longest slow_init")]
        assert [w for w in words if w.startswith("script>")]
        for e in root.iter():
            assert "nan" not in str(e.attrib), e.attrib
        assert not list(self.tmp.glob("boot.svg?*"))

    def test_svg_says_what_it_leaves_out(self):
        root = ElementTree.fromstring(run(
            "boot", story("levels", self.tmp / "levels"), "--svg=-").stdout)
        words = [e.text or "" for e in root.iter(SVG + "text")]
        drawn = [w for w in words if w.startswith("level")]
        assert f"and {40 - len(drawn)} of other levels" in words
        assert [w for w in drawn if w.startswith("level0: 209,")
                and w.endswith("; 9 shorter ones are not drawn")]

    @pytest.mark.parametrize("damage", ("append", "overwrite", "hole"))
    @pytest.mark.parametrize("view", VIEWS, ids=" ".join)
    def test_damage(self, tmp_path, view, damage):
        """Each command of VIEWS reports that bytes of the recording are damaged."""
        path = story("story", tmp_path / "damaged")
        with open(path / "info", "a") as f:
            f.write("[recording]\nend=QEMU ended with status 0\n")
        with open(path / "cpu0", "r+b") as f:
            if damage == "append":
                f.seek(0, os.SEEK_END)
            elif damage == "hole":
                f.seek(os.fstat(f.fileno()).st_size // 2)
            f.write(b"damage" * 99)
        p = subprocess.run([TOOL, *view, path], capture_output=True,
                           timeout=60, cwd=tmp_path)
        assert p.returncode in (0, 1), p
        assert b"bytes of the recording are damaged" in p.stderr, p

    @pytest.mark.parametrize("view", VIEWS, ids=" ".join)
    def test_nothing(self, tmp_path, view):
        """If a recording lacks the formats of its events, or has no events, each command of VIEWS
        reports it, except that export as .dat may be silent about missing formats."""
        path = story("story", tmp_path / "nothing")
        formats = (path / "formats").read_bytes()
        (path / "formats").unlink()
        p = subprocess.run([TOOL, *view, path], capture_output=True,
                           timeout=60, cwd=tmp_path)
        assert view[-1] == "out.dat" or b"no formats of events" in p.stderr, p
        (path / "formats").write_bytes(formats)
        for file in path.glob("cpu*"):
            os.truncate(file, 0)
        p = subprocess.run([TOOL, *view, path], capture_output=True,
                           timeout=60, cwd=tmp_path)
        assert p.returncode in (0, 1), p
        assert b"no event" in p.stderr or b"not recorded" in p.stderr or \
            b"no functions" in p.stderr, p

    @pytest.mark.parametrize("content", (b"", bytes(range(256)) * 20), ids=len)
    @pytest.mark.parametrize("view", VIEWS, ids=" ".join)
    def test_damaged_texts(self, tmp_path, view, content):
        """If the formats of a recording are empty or damaged, each command of VIEWS reports it.
        callgraph and latency return 1, the others 0. Damaged symbols are reported, too, but empty
        ones are not."""
        path = story("story", tmp_path / "damaged")
        (path / "formats").write_bytes(content)
        (path / "kallsyms").write_bytes(content)
        p = subprocess.run([TOOL, *view, path], capture_output=True,
                           timeout=60, cwd=tmp_path)
        assert p.returncode == (view[0] in ("callgraph", "latency")), p
        assert b"formats of events are damaged" in p.stderr, p
        assert (b"symbols are damaged" in p.stderr) == bool(content), p

    def test_groups(self):
        """In report --event, the name of a group selects the events of the group. Each other name
        selects the events with that name."""
        def events(names):
            return lines("report", self.story, f"--event={names}")

        every = lines("report", self.story)
        for group in {e["system"] for e in every} - {"", "printk"}:
            assert events(group) == [e for e in every if e["system"] == group]
            assert events(f"!{group}") == [
                e for e in every if e["system"] != group]
        assert events("printk") == events("console")
        assert events("irq,sched_switch") == events("irq:*,sched:sched_switch")

    def test_names_of_any_bytes(self):
        """Names and texts are compared as bytes, independent of the locale."""
        for locale in "C", "C.UTF-8", "POSIX":
            for option in ("--task=na\u00efve*", "--grep=\u00ef",
                           '--where=comm == "\u00ef"'):
                p = run("report", self.story, option, env={"LC_ALL": locale})
                assert b"no event meets all" in p.stderr, (locale, option, p)
            p = subprocess.run([TOOL, "report", self.story, b"--grep=\xff"],
                               capture_output=True, timeout=60,
                               env={**os.environ, "LC_ALL": locale})
            assert p.returncode == 0 and p.stdout.count(b"\n") == 3, p

    def test_errors(self):
        for args, status, said in (
                ((), 2, "usage:"),
                (("report", self.story, "--event", "sched_swich"), 1,
                 "did you mean sched_switch"),
                (("report", self.story, "--event", "sched_switch,nothing*"), 1,
                 "no event or group 'nothing*'"),
                *((("report", self.story, f"--event={name}"), 1,
                   "did you mean sched_switch")
                  for name in ("SCHED_SWITCH", "sched_swtich", "ched_switch",
                               "Sched_Swich")),
                (("report", self.story, "--boot=99"), 1, "has 2 boots"),
                *(((command, self.story, f"--boot={n}"), 2, "from 1")
                  for command in ("report", "log", "top", "last", "boot",
                                  "callgraph", "flame")
                  for n in (0, -1, -2147483648)),
                *((("report", self.story, f"--{option}={names}"), 2,
                   "is empty")
                  for option in ("event", "task", "cpu")
                  for names in ("", "!", ",", "0,", ",0", "0,,1", "0,!")),
                *((("report", self.story, "--where", text), 1, "is a number")
                  for text in ("ret == handled", 'pid == "init"',
                               "cpu != one", 'prev_state ~ "run*"',
                               "prev_state == 0x", "!(prev_pid == init)",
                               "prev_state == D", "prev_state == 1e3",
                               "next_pid == 08", 'next_pid == ""',
                               f"prev_state == {2**64}", "ret !~ 1.5")),
                *((("report", self.story, f"--{name}=cpu", f"--{name}", "ret"), 2,
                   "give it once") for name in ("where", "grep")),
                (("vcpus", self.tmp / "nowhere"), 1, "there is no directory"),
                (("report", self.story, "--where", 'comm == "init'), 2,
                 "a quotation mark after the text at 'init'"),
                (("callgraph", self.story, "--function="), 2, "is empty"),
                (("callgraph", self.story, "--event=sched_swich"), 1,
                 "did you mean sched_switch"),
                (("latency", "sched_waking", "sched_switch", self.story,
                  "--task="), 2, "is empty"),
                (("latency", "sched_waking", "sched_switch", self.story,
                  "--key="), 2, "is empty"),
                (("boot", self.story, "--max=1s", "--svg=-", "--junit=-"), 2,
                 "cannot both"),
                (("events", self.tmp), 1, "it is no recording"),
                (("report", self.story, "--where", "prev_stat == 1"), 1,
                 "did you mean prev_state"),
                (("report", self.story, "--where", "prev_state =="), 2,
                 "a number or a text at the end;"),
                (("report", self.story, "--where", "(pid"), 2, "expected ')'"),
                *((("report", self.story, "--where", f"pid {op} {number}"), 2,
                   "a number of 64 bits")
                  for op in ("<", "<=", ">", ">=", "&")
                  for number in ("18446744073709551616", "-9223372036854775809",
                                 "9" * 40, "0x1" + "0" * 16)),
                (("report", self.story, "--where", "!" * 999), 2, "simpler"),
                (("report", self.story, "--grep", "("), 2, "--grep"),
                (("report", self.story, "--json=no"), 2, "'--json' has no value"),
                (("boot", "--no-pager=1", self.story), 2, "has no value"),
                (("log", self.story, "--grep="), 2, "--grep is empty"),
                (("log", self.story, "--grep=no such line"), 0, "no line meets all"),
                (("log", self.story, "--from=99"), 0, "no line meets all"),
                *(((command, self.tmp / "absent"), 1, "there is no directory '")
                  for command in ("report", "log", "last", "boot", "top", "flame",
                                  "callgraph")),
                (("export", "-o", self.tmp / "x.pftrace", self.tmp / "absent"), 1,
                 "there is no directory '"),
                (("report", self.story / "info"), 1, "this is a file"),
                (("reprot", self.story), 2, "did you mean report"),
                (("latency", "sched_switch"), 2, "give both"),
                (("report", self.tmp), 1, ""),
                (("report", self.tmp / "absent"), 1, "absent"),
                (("report", self.story, "--from", "soon"), 2, "1.5, 20ms"),
                (("report", self.story, "--cpu", "3-1"), 2, "0,2-3"),
                (("report", self.story, "--color=red"), 2, "always"),
                (("report", self.story, "more"), 2, "unexpected argument 'more'"),
                (("boot", self.story, "--boot=3"), 1, "--boot is 1 to 2"),
                (("boot", self.story, "--boot=-1"), 2, "from 1"),
                (("boot", self.story, "--svg", self.tmp), 1, "regular file"),
                (("report", self.story, "--from=3", "--to=1"), 2,
                 "--from=3 is later than --to=1"),
                (("report", self.story, "--from=0.2", "--to=-300s"), 1,
                 "later"),
                (("report", self.story, "--cpu=2,1023"), 1, "CPUs 0 to 1"),
                (("report", self.story, "--cpu="), 2, "--cpu is empty"),
                (("log", self.story, "--boot="), 2, "--boot"),
                (("report", self.story, "--event="), 2, "--event is empty"),
                (("report", self.story, "--task="), 2, "--task is empty"),
                (("report", self.story, "--grep="), 2, "--grep is empty"),
                (("report", self.story, "--task=nosuch"), 0,
                 "no event meets all"),
                (("report", self.story, "--event=console", "--cpu=1"), 0,
                 "no event meets all"),
                (("top", self.story, "--nothing"), 2, "--help")):
            p = run(*args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)
            assert not p.stdout, args

    def test_where(self):
        """Each condition selects the events for which its equivalent in Python
        holds."""
        events = lines("report", self.story)

        def chosen(condition, *more):
            return lines("report", self.story, "--where", condition, *more)

        def expect(condition, holds):
            assert chosen(condition) == [e for e in events if holds(e)], \
                condition

        def field(name):
            return lambda e: e["fields"].get(name)
        state, comm = field("prev_state"), field("next_comm")
        expect("prev_state", lambda e: bool(state(e)))
        expect("prev_state == 0", lambda e: state(e) == 0)
        expect("prev_state != 0", lambda e: state(e) not in (0, None))
        expect("prev_state < 2", lambda e: state(e) is not None
               and state(e) < 2)
        expect("prev_state >= 1", lambda e: state(e) is not None
               and state(e) >= 1)
        expect("prev_state & 1", lambda e: (state(e) or 0) & 1 != 0)
        expect('next_comm ~ "*n*"', lambda e: comm(e) and "n" in comm(e))
        expect('next_comm !~ "*n*"', lambda e: comm(e) and "n" not in comm(e))
        expect('next_pid == "0x8"', lambda e: field("next_pid")(e) == 8)
        expect('!(next_comm ~ "*n*")',
               lambda e: not comm(e) or "n" not in comm(e))
        expect('next_comm == init || cpu == 1',
               lambda e: comm(e) == "init" or e["cpu"] == 1)
        # "pid" is the event's own field if it has one, else the task's
        expect("prev_state == 0 && cpu == 0 || pid == 7",
               lambda e: state(e) == 0 and e["cpu"] == 0 or
               e["fields"].get("pid", e["pid"]) == 7)
        expect("common_pid == 1", lambda e: e["pid"] == 1)
        expect('common_pid ~ "1*"', lambda e: str(e["pid"]).startswith("1"))
        assert len(chosen("cpu == 1", "--event", "!sched_*")) == len(
            [e for e in events if e["cpu"] == 1
             and not e["event"].startswith("sched_")])
        assert [e["event"] for e in lines("report", self.story, "--grep",
                                          "ret=-19$")] == [
            e["event"] for e in events if e["text"].endswith("ret=-19")]

    def test_defaults(self):
        """Without an argument, report reads the newest recording in the working directory and
        prints its name. With -o, it writes a file; if it fails, it makes none."""
        p = run("report", cwd=self.tmp)
        newest = max((d for d in self.tmp.iterdir() if (d / "info").exists()),
                     key=lambda d: (d / "info").stat().st_mtime_ns)
        assert f"reading {newest.name}" in p.stderr.decode()
        assert p.stdout == run("report", newest).stdout
        empty = self.tmp / "empty"
        empty.mkdir()
        p = run("report", cwd=empty, status=2)
        assert "has no recording" in p.stderr.decode()
        out = self.tmp / "out.txt"
        run("report", self.story, "-o", out)
        assert out.read_bytes() == run("report", self.story, "-o", "-").stdout
        run("report", self.story, "--boot=99", "-o", self.tmp / "no",
            status=1)
        assert not list(self.tmp.glob("no*"))
        # -o writes into a device or a pipe, and does not replace it by a file
        run("report", self.story, "-o", "/dev/null")
        assert not os.path.isfile("/dev/null")
        p = run("report", self.story, "-o", "/dev/full", status=1)
        assert b"No space left" in p.stderr
        expected = out.read_bytes()
        for name in "/dev/stdout", "/proc/self/fd/1":
            with open(self.tmp / "redirected", "wb") as f:
                f.write(b"before\n")
                f.flush()
                subprocess.run([TOOL, "report", self.story, "-o", name],
                               stdout=f, check=True, timeout=60)
            assert (self.tmp / "redirected").read_bytes() == \
                b"before\n" + expected
            assert run("report", self.story, "-o", name).stdout == expected
        fifo = self.tmp / "fifo"
        os.mkfifo(fifo)
        with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as cat:
            run("report", self.story, "-o", fifo)
            assert cat.stdout.read() == expected
        # a picture on standard output is not mixed with the page
        for command in "boot", "flame":
            args = command, self.story, *(
                ["--boot=1"] if command == "boot" else [])
            svg = run(*args, "--svg=-").stdout
            assert ElementTree.fromstring(svg).tag == SVG + "svg"
        assert not (self.tmp / "-").exists()
        run("flame", self.story, "-o", self.tmp / "f.svg")
        assert ElementTree.parse(self.tmp / "f.svg").getroot().tag == \
            SVG + "svg"

    def test_flame_tree(self):
        """Without an option, flame prints parts of the time as a tree, the largest part first."""
        out = text("flame", self.story)
        assert out[0].endswith("Linux 6.12.1-test")
        parts = [float(line.split()[0]) for line in out[1:]
                 if line[27:28] != " "]
        assert parts == sorted(parts, reverse=True)
        assert 99 < sum(parts) <= 100.5 or len(parts) > 1, out

    def test_help(self):
        overview = run("help").stdout.decode()
        commands = [line.split()[0] for line in overview.splitlines()
                    if line.startswith("  ")]
        assert len(commands) > 20
        for command in commands:
            assert run("help", command).stdout == \
                run(command, "--help").stdout != b""
        for words in (("help", "help"), ("help", "--help"), ("help", "-h"), ("-h",)):
            assert run(*words).stdout == run("--help").stdout
        assert b"sched:sched_switch" in run("events", self.story).stdout
        every = text("events", self.story)
        for names in "sched", "irq_*,initcall", "!sched", "*:sys_*,printk":
            chosen = {f"{e['system']}:{e['event']}" for e in lines(
                "report", self.story, f"--event={names}") if e["system"]}
            listed = text("events", self.story, names)
            assert chosen <= set(listed) < set(every), names
        assert b"did you mean sched_switch" in run(
            "events", self.story, "sched_swich", status=1).stderr
        assert b"prev_state" in run("events", "--fields", self.story,
                                    "sched_switch").stdout
        run("report", self.story, "--task", "na\u00efve*", env={
            **os.environ, "LC_ALL": "C.UTF-8"})

    def test_mistyped_options(self):
        """For a mistyped option, each command asks whether the correct option was meant."""
        commands = [line.split()[0] for line in text("help")
                    if line.startswith("  ")]
        for command in commands:
            options = set(re.findall(r"^ *(?:-\w, )?(--[a-z-]+)", "\n".join(
                text("help", command)), re.MULTILINE))
            assert options
            for option in options:
                for wrong in option[:-1] + "q", option[:3] + option[4:]:
                    if wrong in options or len(option) < 6:
                        continue
                    p = run(command, wrong, status=2)
                    assert option in p.stderr.decode().split("did you mean")[
                        1], (command, wrong, p)

    @pytest.mark.skipif(not shutil.which("localedef"),
                        reason="localedef is not installed")
    def test_locale(self):
        """The output of these commands is the same with a German locale, in which a number has a
        comma instead of a point."""
        made = subprocess.run(
            ["localedef", "-i", "de_DE", "-f", "UTF-8",
             self.tmp / "de_DE.UTF-8"], capture_output=True)
        if made.returncode > 1:     # 1: warnings
            pytest.skip("no source of the locale de_DE")
        german = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8",
                  "LOCPATH": str(self.tmp)}
        for args in (("report",), ("report", "--json"), ("log",), ("top",),
                     ("top", "--json"), ("boot",), ("boot", "--svg=-"),
                     ("last",), ("last", "--json"), ("flame",),
                     ("flame", "--folded"), ("report", "--from=0.2", "--to",
                                             "0.21"),
                     ("latency", "sched_waking", "sched_switch"),
                     ("boot", "--max=0.1ms", "--json")):
            command, *options = args
            german_, plain = (subprocess.run(
                [TOOL, command, *options, self.slower], capture_output=True,
                timeout=60, env={**os.environ, "COLUMNS": "100", **env})
                for env in (german, {"LC_ALL": "C.UTF-8"}))
            assert german_.stdout == plain.stdout, args
            assert german_.returncode == plain.returncode, args

    def test_cut(self):
        """If a file of a recording is truncated, these commands read what is left, or refuse the
        recording with a reason. None crashes."""
        source = story("story", self.tmp / "whole")
        path = self.tmp / "cut"
        for name in sorted(os.listdir(source)):
            size = (source / name).stat().st_size
            for at in sorted({0, 1, 7, size // 7, size // 3, size // 2,
                              size - 9, size - 1}):
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(source, path)
                os.truncate(path / name, max(at, 0))
                for args in (("report",), ("last",), ("boot",), ("top",),
                             ("log",), ("export", "-f", "perfetto", "-o",
                                        self.tmp / "cut.pftrace")):
                    p = subprocess.run([TOOL, *args, path],
                                       capture_output=True, timeout=60)
                    assert p.returncode in (0, 1), (name, at, args, p)
                    if p.returncode:
                        assert p.stderr.startswith(b"hypertrace "), p

    def test_completion(self):
        script = Path(__file__).parents[3] / "tools/hypertrace/hypertrace.bash"

        def complete(*words):
            p = subprocess.run(
                ["bash", "-c", 'source "$1"; shift; compopt() { :; }; '
                 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hypertrace; '
                 'printf "%s\\n" "${COMPREPLY[@]}"', "bash", script,
                 "hypertrace", *words], capture_output=True, check=True,
                env={**os.environ, "PATH": f"{Path(TOOL).resolve().parent}:"
                     + os.environ["PATH"]}, cwd=self.tmp)
            return p.stdout.decode().split()

        assert {"report", "boot", "log", "top"} <= set(complete(""))
        assert complete("rep") == ["report"]
        assert complete("report", "--ev") == ["--event="]
        assert complete("report", "--color", "=", "al") == ["always"]
        assert complete("report", "sto") == ["story"]
        assert complete("record", "--po") == ["--poll-us"]
        assert "bash" in complete("record", "-o", "x", "--", "bas")

    def complete(self, *command):
        p = subprocess.run(command, capture_output=True, timeout=60, cwd=self.tmp,
                           env={**os.environ, "PATH": f"{Path(TOOL).parent}:"
                                + os.environ["PATH"], "HOME": str(self.tmp)})
        assert p.returncode == 0, p
        return p.stdout.decode()

    def test_completion_fish(self):
        need("fish")
        script = Path(__file__).parents[3] / "tools/hypertrace/hypertrace.fish"

        def complete(line):
            return self.complete("fish", "--no-config", "-c",
                                 f"source {script}; complete -C '{line}'")

        assert complete("hypertrace rep").startswith("report\t")
        assert complete("hypertrace report --ev") == "--event=\n"
        assert "latency\t" in complete("hypertrace help la")
        assert "story/\n" in complete("hypertrace report st")
        assert "--poll-us" in complete("hypertrace record --po")

    def test_completion_zsh(self):
        """zsh completes names of commands, options and files, and after -- another command's
        line."""
        need("zsh")
        script = Path(__file__).parents[3] / "tools/hypertrace/hypertrace.zsh"

        def complete(*words):
            return self.complete(
                "zsh", "-f", "-c", "compadd() { print -l -- ${(P)@[-1]} }; "
                "_describe() { print -l -- ${(P)2} }; _files() { print FILES }; "
                "_normal() { print NORMAL $words }; script=$1; shift; "
                "words=(hypertrace \"$@\"); CURRENT=$#words; source $script",
                "zsh", script, *words).splitlines()

        assert any(line.startswith("report:print ") for line in complete("rep"))
        assert {"--event=", "--json", "-o"} <= set(complete("report", "--ev"))
        assert "latency" in complete("help", "la")
        assert complete("report", "st") == ["FILES"]
        assert complete("record", "-o", "x", "--", "qemu-system-x86_64", "-m") == [
            "NORMAL qemu-system-x86_64 -m"]

    def test_manners(self):
        out = run("report", self.story, "--color=always").stdout
        assert b"\033[36m" in out and b"\033[2J" not in out
        # the reader of standard output has ended; SIGPIPE has its default action, or is ignored
        for restore in True, False:
            p = subprocess.Popen([TOOL, "report", self.story],
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE,
                                 restore_signals=restore)
            p.stdout.close()
            assert p.stderr.read() == b""
            p.stderr.close()
            assert p.wait(60) == 0
        with open("/dev/full", "wb") as full:
            p = subprocess.run([TOOL, "report", self.story], stdout=full,
                               stderr=subprocess.PIPE, timeout=60)
        assert p.returncode == 1 and b"No space left" in p.stderr
