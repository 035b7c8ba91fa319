# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace export, read back by other programs.

The recordings are described in tests/unit/recording/story.c.
"""

import collections
import contextlib
import json
import os
import re
import signal
import struct
import subprocess

import pytest

import perfetto_text
from built import need
from hypertrace import HOSTILE, TOOL, lines, run, story


def marked_losses(path):
    """Return the number of pages of a file trace.dat that are marked as following a loss."""
    data = path.read_bytes()
    at = data.index(b"flyrecord\0") + len(b"flyrecord\0")
    cpus, = struct.unpack_from("<I", data, data.index(b"options  \0") - 4)
    pages = [page for n in range(cpus) for begin, size in
             [struct.unpack_from("<QQ", data, at + 16 * n)]
             for page in range(begin, begin + size, 4096)]
    return sum(struct.unpack_from("<Q", data, page + 8)[0] >> 31 & 1 for page in pages)


def has_bytes(folder):
    """Check whether a file in the folder, at any depth, is not empty."""
    # The export may rename a file or a folder during this search. The search then fails.
    with contextlib.suppress(FileNotFoundError):
        return any(f.is_file() and f.stat().st_size for f in folder.rglob("*"))
    return False


class TestExport:
    @pytest.fixture(autouse=True, scope="class")
    def prepare(self, request, tmp_path_factory):
        cls, tmp = request.cls, tmp_path_factory.mktemp("export")
        cls.tmp = tmp
        cls.story = story("story", tmp / "story")
        cls.report = [json.loads(line) for line in
                       run("report", "--json", cls.story).stdout.splitlines()]
        cls.first = [e for e in cls.report if e["boot"] == 1]

    def export(self, name, *args):
        out = self.tmp / name
        return out, run("export", self.story, "-o", out, *args)

    def test_perfetto(self):
        need("protoc")
        out, p = self.export("boot.pftrace", "--boot", "1")
        said = p.stderr.decode()
        assert "the process of 1 thread is not known" in said, said
        packets = perfetto_text.packets(out)
        assert not [f for p in packets for f in perfetto_text.unknown(p)]
        # the first packet has the clocks, the second the system
        clocks = packets[0]["clock_snapshot"][0]
        assert clocks["primary_trace_clock"] == [6]
        assert [c["clock_id"] for c in clocks["clocks"]] == [[6], [1]]
        wall = clocks["clocks"][1]["timestamp"][0]
        assert abs(wall - 1_700_000_000_000_000_000) < 100_000, wall
        assert packets[0]["sequence_flags"] == [1]
        assert not [p for p in packets[1:] if "sequence_flags" in p]
        system = packets[1]["system_info"][0]
        assert system["utsname"][0] == {"sysname": ["Linux"],
                                        "release": ["6.12.1-test"],
                                        "machine": ["x86_64"]}
        events = list(perfetto_text.events(packets))
        assert all("pid" in e for _, e in events)
        slices = [p["track_event"][0] for p in packets if "track_event" in p]
        assert len(events) + len(slices) == len(self.first)
        # the TrackEvents are the begins and ends of initcalls
        assert [(s["type"], s.get("name")) for s in slices] == [
            ([1], ["first_init"]), ([2], None), ([1], ["slow_init"]),
            ([2], None)]
        assert slices[3]["debug_annotations"] == [
            {"name": ["ret"], "int_value": [-19]}]
        switches = [(cpu, e["timestamp"][0], s["prev_pid"][0],
                     s["prev_comm"][0], s["prev_state"][0],
                     s["next_pid"][0], s["next_comm"][0])
                    for cpu, e in events for s in e.get("sched_switch", [])]
        f = [(e["cpu"], e["ns"], *(e["fields"][k] for k in (
            "prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm")))
            for e in self.first if e["event"] == "sched_switch"]
        assert sorted(switches) == sorted(f) and len(f) == 6
        # the first bundle after a gap reports the lost events
        lost = [p["ftrace_events"][0] for p in packets
                if "lost_events" in p.get("ftrace_events", [{}])[0]]
        assert [(b["cpu"], b["event"][0]["timestamp"]) for b in lost] == [
            ([1], [400_000_000])]
        odd, = [e["odd_names"][0] for _, e in events if "odd_names" in e]
        assert odd == {"event": [HOSTILE], "event_length": [1], "int": [2],
                       "bytes": ["{170,187,204}"]}
        described = {d["field_id"][0]: d for p in packets
                     for b in p.get("ftrace_events", [])
                     for d in b.get("generic_event_descriptors", [])}
        d = described[65851]
        assert d["group_name"] == ["odd"]
        assert d["event_descriptor"][0]["name"] == ["odd_names"]
        assert [(x["name"], x["number"], x["type"]) for x in
                d["event_descriptor"][0]["field"]] == [
            (["event"], [1], [9]), (["_event_length"], [2], [3]),
            (["int"], [3], [4]), (["bytes"], [4], [9])]
        generic, = [e["generic"][0] for _, e in events if "generic" in e]
        assert generic["event_name"] == ["type-4000"]
        symbols = {s["iid"][0]: s["str"][0] for p in packets
                   for i in p.get("interned_data", [])
                   for s in i["kernel_symbols"]}
        entry, = [e["funcgraph_entry"][0] for _, e in events
                  if "funcgraph_entry" in e]
        assert symbols[entry["func"][0]] == "vfs_read"
        # Perfetto's schema says that actual traces do not have common_flags
        assert not [e for _, e in events if "common_flags" in e]
        sys_enter, = [e["sys_enter"][0] for _, e in events
                      if "sys_enter" in e]
        assert sys_enter["id"] == [39] and len(sys_enter["args"]) == 6

    def test_perfetto_syscalls(self):
        need("protoc")
        out = self.tmp / "calls.pftrace"
        run("export", story("stacks", self.tmp / "stacks"), "-o", out)
        events = list(perfetto_text.events(perfetto_text.packets(out)))
        assert [e["sys_enter"][0] for _, e in events if "sys_enter" in e] == [
            {"id": [0], "args": [3, 0x7f0000001000]}]
        assert [e["sys_exit"][0] for _, e in events if "sys_exit" in e] == [
            {"id": [0], "ret": [100]}]

    @pytest.mark.parametrize("with_pid", (True, False))
    def test_renamed(self, tmp_path, with_pid):
        """A task_rename event gives the new name to the task that is renamed, not to the running
        one. In kernels whose event has no PID, the renamed task is not known if its old name is not
        the running task's."""
        need("protoc")
        path = story("threads", tmp_path / "threads")
        if not with_pid:
            before, format_ = (path / "formats").read_text().split("task_rename")
            (path / "formats").write_text(f"{before}task_rename" + re.sub(
                r"\tfield:pid_t pid;.*\n", "", format_, count=1))
        events = lines("report", path)
        assert [e["task"] for e in events if e["pid"] == 7] == ["main"] * 4
        assert [e["task"] for e in events if e["pid"] == 8] == ["main", "helper"]
        assert [p["name"] for p in lines("boot", path)[0]["processes"]] == ["/proc/self/exe"]
        run("export", path, "-o", tmp_path / "out.pftrace")
        packets = perfetto_text.packets(tmp_path / "out.pftrace")
        assert {(r["pid"][0], r["newcomm"][0]) for _, e in perfetto_text.events(packets)
                for r in e.get("task_rename", [])} == {
            (8, "worker"), *([(8, "helper")] if with_pid else [])}

    def test_wall(self):
        """Each segment of the guest's clock has its own offset to the wall clock."""
        need("protoc")
        out = self.tmp / "wall.pftrace"
        run("export", story("steps", self.tmp / "steps"), "-o", out)
        walls = []
        for path in sorted(self.tmp.glob("wall*.pftrace")):
            clocks = perfetto_text.packets(path)[0]["clock_snapshot"][0]
            guest, wall = [c["timestamp"][0] for c in clocks["clocks"]]
            walls.append(wall - guest - 1_700_000_000_000_000_000)
        # the poll that read a segment's last event ended 2 ms after this event in one segment,
        # and 20 ms in the other
        assert sorted(walls) == [2_000_000, 20_000_000], walls

    def test_perfetto_later(self):
        need("protoc")
        # threads that were named before the first exported event have names
        out, _ = self.export("late.pftrace", "--boot=1", "--from", "0.2")
        tree = [p["process_tree"][0] for p in perfetto_text.packets(out)
                if "process_tree" in p][0]
        assert {t["tid"][0]: (t["tgid"][0], t["name"][0])
                for t in tree["threads"]} == {
            1: (1, "init"), 7: (7, "\033[2J</script>"), 8: (7, "worker")}
        assert {p["pid"][0]: p["ppid"][0] for p in tree["processes"]} == {
            1: 0, 7: 1}

    def test_parts(self):
        out, p = self.export("all.dat")
        names = sorted(p.name for p in self.tmp.glob("all*.dat"))
        assert names == ["all-2.dat", "all-3.dat", "all.dat"], names
        said = p.stderr.decode().splitlines()
        assert len(said) == 3, said
        assert "boot 1: 34 events" in said[0]
        assert "before the guest's clock went back: 12 events" in said[1]
        assert "boot 2: 1 event in" in said[2]

    @pytest.mark.parametrize("suffix", ("pftrace", "ctf", "lttng"))
    def test_selected(self, suffix):
        """The command prints the number of events that it has exported, not the
        number that the recording has."""
        _, p = self.export(f"selected.{suffix}", "--event=sched", "--cpu=0")
        said = re.findall(r"^hypertrace export: boot (\d).*: (\d+) events in",
                          p.stderr.decode(), re.M)
        chosen = lines("report", self.story, "--event=sched", "--cpu=0")
        assert chosen and said == [
            (str(boot), str(sum(e["boot"] == boot for e in chosen))) for boot in (1, 2)]

    def test_dat(self):
        need("trace-cmd")
        out, _ = self.export("boot.dat", "--boot", "1")
        # -N: without trace-cmd's plugins, which format some events differently
        p = subprocess.run(["trace-cmd", "report", "-N", "-t", out],
                           capture_output=True, check=True, timeout=60,
                           env={**os.environ, "LC_ALL": "C"})
        text = p.stdout.decode("latin1")
        assert text.startswith("cpus=2\n"), text
        assert text.count("EVENTS DROPPED") == 1
        seen = re.findall(r"^ *(.*)-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\w+):"
                          r" *(.*)$", text, re.M)
        # events without a format are printed without fields
        known = [e for e in self.first if e["system"]]
        assert text.count("[UNKNOWN EVENT] (NULL)") == 1
        assert len(known) == len(self.first) - 1
        assert [(int(pid), int(cpu), int(s) * 10**9 + int(ns), name)
                for _, pid, cpu, s, ns, name, _ in seen] == [
            (e["pid"], e["cpu"], e["ns"], e["event"]) for e in known]
        # trace-cmd and hypertrace both follow the kernel's print format
        for (*_, fields), e in zip(seen, known):
            if e["text"].isprintable():
                assert fields == e["text"].strip(), (fields, e)
        # the exported file has one name for each thread: the last one
        assert {comm for comm, pid, *_ in seen if pid == "1"} == {"init"}
        assert {comm for comm, pid, *_ in seen if pid == "7"} == {
            "?[2J</script>"}
        assert "--> vfs_read (0)" in text
        assert "func=slow_init+0x0" in text

    def test_dat_lost(self, tmp_path):
        """The file of a boot, or of a segment of the clock, marks as many losses of events as
        report shows in this boot or segment, also if earlier boots or segments are not
        exported."""
        for seed in range(4):
            path = story("random", tmp_path / f"random{seed}", seed)
            events = lines("report", path)
            for boot in sorted({e["boot"] for e in events}):
                out = tmp_path / f"{seed}-{boot}"
                out.mkdir()
                run("export", f"--boot={boot}", path, "-o", out / "x.dat")
                losses = collections.Counter()
                for e in events:
                    if e["boot"] == boot:
                        losses[e["segment"]] += "lost_estimate" in e
                assert sorted(map(marked_losses, out.iterdir())) == sorted(losses.values())

    def test_ctf(self):
        need("babeltrace2")
        out, _ = self.export("boot.ctf", "--boot=1", "--format", "ctf")
        p = subprocess.run(["babeltrace2", "--clock-seconds", out],
                           capture_output=True, check=True, timeout=60)
        lines = p.stdout.decode().splitlines()
        assert len(lines) == len(self.first)
        assert "discarded 123 events" in p.stderr.decode(), p.stderr
        seen = {}
        for line, e in zip(lines, self.first):
            assert f" {e['event']}: " in line, (line, e)
            assert f"cpu_id = {e['cpu']}" in line
            assert f"common_pid = {e['pid']}" in line
            seen[e["event"]] = line
        # a field with a function's address is followed by a field with the
        # function's name
        for e in "initcall_start", "initcall_finish":
            assert 'function = "slow_init"' in seen[e], seen[e]
        assert 'prev_comm = "late"' in seen["sched_switch"]
        # The field "_event_length" gets another name, because the length of the text "event" has
        # that name in CTF.
        odd = seen["odd_names"]
        assert "field__event_length = 1" in odd and " int = 2" in odd, odd
        assert "[0] = 170, [1] = 187, [2] = 204" in odd
        assert not list(self.tmp.glob(".*"))
        p = run("export", self.story, "-f", "ctf", "-o", out, status=1)
        assert "exists; give the name" in p.stderr.decode()

    def test_lttng(self):
        """Format lttng gives the trace of format ctf with the names of events and fields that
        Trace Compass expects."""
        need("babeltrace2")
        texts = []
        for f in "ctf", "lttng":
            out, _ = self.export(f"names.{f}", "--boot=1", "--format", f)
            p = subprocess.run(["babeltrace2", out], capture_output=True,
                               check=True, timeout=60)
            texts.append(p.stdout.decode())
        own, lttng = texts
        assert re.search(r" sched_switch: .* prev_tid = \d+, .* next_tid = ",
                         lttng)
        assert own != lttng
        for kernel, name in (("prev_pid", "prev_tid"),
                             ("next_pid", "next_tid"),
                             (" sys_enter_", " syscall_entry_"),
                             (" sys_exit_", " syscall_exit_"),
                             (" softirq_", " irq_softirq_")):
            own = own.replace(kernel, name)
        lttng = re.sub("( sched_(?!switch).*, )tid = ", r"\1pid = ", lttng)
        lttng = re.sub("( sched_.*(child|parent|old)_)tid", r"\1pid", lttng)
        assert own == lttng

    def test_errors(self):
        for args, status, said in (
                ((self.story,), 2, "-o FILE"),
                ((self.story, "-o", "x"), 2, "give --format"),
                ((self.story, "-o", "x", "-f", "csv"), 2,
                 "dat, perfetto, ctf or lttng"),
                ((self.story, "-o", "x.dat", "--cpu=0"), 2, "--boot"),
                ((self.story, "-o", self.tmp / "a/b.dat"), 1, "a/b.dat"),
                ((self.story, "-o", self.tmp, "-f", "dat"), 1,
                 "neither a regular file"),
                # one output cannot hold the files of several boots
                ((self.story, "-o", "-", "-f", "perfetto"), 1, "takes one file"),
                ((self.story, "-o", "/dev/null", "-f", "dat"), 1,
                 "takes one file"),
                ((self.story, "-o", "-", "-f", "ctf"), 2, "directory")):
            p = run("export", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)

    def test_standard_output(self):
        """'-o -' writes the bytes that '-o FILE' writes."""
        path = story("slower", self.tmp / "one")
        for format_ in "dat", "perfetto":
            file = self.tmp / f"same.{format_}"
            run("export", path, "-f", format_, "-o", file)
            p = run("export", path, "-f", format_, "-o", "-", cwd=self.tmp)
            assert p.stdout == file.read_bytes() and p.stdout
        assert not list(self.tmp.glob("-*"))

    @pytest.mark.parametrize("format_", ("ctf", "lttng", "perfetto", "dat"))
    def test_signal(self, tmp_path, format_):
        """An export that a signal ends leaves no file, and no directory."""
        bulk = story("bulk", tmp_path / "bulk", 1_500_000)
        for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            out = tmp_path / sig.name
            out.mkdir()
            with subprocess.Popen([TOOL, "export", "-f", format_, "-o", out / "x",
                                   *[bulk] * (1 + (format_ in ("ctf", "lttng")))],
                                  stderr=subprocess.PIPE) as p:
                while not os.listdir(out):
                    assert p.poll() is None
                p.send_signal(sig)
                err = p.stderr.read()
                status = p.wait(60)
            # An export may have been complete before the signal.
            assert (status, err, os.listdir(out)) == (-sig, b"", []) or (
                status == 0 and os.listdir(out) == ["x"]), (status, err)

    @pytest.mark.parametrize("options", (["ctf"], ["lttng"], ["dat"], ["perfetto"],
                                         ["perfetto", "--clock=host"]), ids=" ".join)
    def test_growing(self, tmp_path, options):
        """If the guest boots while its growing recording is exported, the export succeeds, and has
        only the boots that the recording had before."""
        path, out = story("bulk", tmp_path / "bulk", 1_500_000), tmp_path / "out"
        out.mkdir()
        args = [TOOL, "export", "-f", *options, path, "-o"]
        subprocess.run([*args, tmp_path / "before"], check=True, capture_output=True, timeout=60)
        head = (path / "cpu0").read_bytes()[:8192]
        size, = struct.unpack_from("<I", head, 4)
        with subprocess.Popen([*args, out / "x"], stderr=subprocess.PIPE) as p:
            while not has_bytes(out):
                assert p.poll() is None
            p.send_signal(signal.SIGSTOP)
            _, status = os.waitpid(p.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), "the export ended before the guest booted"
            with open(path / "cpu0", "ab") as f:
                f.write(head[:32] + struct.pack("<I", 1) + head[36:64 + size])
            p.send_signal(signal.SIGCONT)
            err = p.stderr.read()
            assert p.wait(60) == 0, err
        assert os.listdir(out) == ["x"]
        sizes = [[f.stat().st_size for f in (whole, *sorted(whole.rglob("*"))) if f.is_file()]
                 for whole in (out / "x", tmp_path / "before")]
        assert sizes[0] == sizes[1] != []

    def test_whole_or_nothing(self):
        # a file size limit stands for a full disk
        before = sorted(os.listdir(self.tmp))
        for name in "full.dat", "full.pftrace":
            p = subprocess.run(
                ["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh",
                 TOOL, "export", self.story, "-o", self.tmp / name],
                capture_output=True, timeout=60)
            assert p.returncode == 1, p
            assert b"File too large" in p.stderr, p.stderr
        assert sorted(os.listdir(self.tmp)) == before
