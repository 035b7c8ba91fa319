# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of two guests, and a device's trace, on one timeline: no effect comes before its
cause by more than the stated errors. A guest's clock that is off by 50 us would be detected.

tests/unit/recording/talk.c makes the two recordings, ping and pong. Each of their events contains
its true time.
"""

import re
import shutil
import statistics
import subprocess

import pytest

import perfetto_text
from built import need
from hypertrace import HOSTILE, lines, run, story, text

SHIFT = 50_000      # ns
ORDER = ("send", "receive", "think", "reply", "done")
GUESTS = ("ping", "pong")


class TestMerge:
    @pytest.fixture(autouse=True, scope="class")
    def prepare(self, request, tmp_path_factory):
        cls, tmp = request.cls, tmp_path_factory.mktemp("merge")
        cls.tmp = tmp
        talk = story("talk", tmp / "talk")
        cls.dirs = [talk / name for name in GUESTS]
        cls.device = talk / "device"
        cls.packets = None
        cls.guests = {d.name: lines("report", "--clock=host", d)
                       for d in cls.dirs}

    def test_bound(self):
        """Each date is within its bound of the true time."""
        for events in self.guests.values():
            assert len(events) == 20_000
            for e in events:
                truth = int(e["fields"]["msg"].split()[2])
                assert abs(e["ns"] - truth) <= e["bound_ns"], e
            assert statistics.median(e["bound_ns"] for e in events) < 15_000

    def talk(self, shift=0):
        """Return (date, bound) in ns of all events, in the order in which the events happened.
        Increase the dates of the guest pong by @shift."""
        order = []
        for guest, events in self.guests.items():
            for e in events:
                what, n, _ = e["fields"]["msg"].split()
                order.append((int(n), ORDER.index(what),
                              e["ns"] + (shift if guest == "pong" else 0),
                              e["bound_ns"]))
        return [e[2:] for e in sorted(order)]

    @staticmethod
    def too_early(order):
        """Number of events with a date before that of their cause, the previous event in order,
        by more than the sum of the two bounds"""
        return sum(b + b_bound < a - a_bound for (a, a_bound), (b, b_bound)
                   in zip(order, order[1:]))

    def test_order(self):
        assert self.too_early(self.talk()) == 0

    def test_shifted(self):
        """Dates that are 50 us wrong are detected, in either direction."""
        for shift in (SHIFT, -SHIFT):
            assert self.too_early(self.talk(shift)) > 5000

    def with_programs(self):
        """A copy of the recording "pong" with a folder "programs", for which the test
        takes the trace of a QEMU device"""
        need("babeltrace2")
        both = self.tmp / "programs"
        if not both.exists():
            shutil.copytree(self.dirs[1], both)
            shutil.copytree(next(self.device.rglob("metadata")).parent,
                            both / "programs")
        return both

    def test_programs(self):
        """report shows the events of programs and of the kernel together, each
        once, in the order of the host's time."""
        events = lines("report", self.with_programs())
        dates = [e["ns"] for e in events]
        assert dates == sorted(dates)
        kernel = [e for e in events if e["system"] != "programs"]
        think = [e for e in events if e["event"] == "think"]
        assert kernel == self.guests["pong"]
        assert len(think) == 10_000
        assert [e["fields"]["n"] for e in think] == list(range(10_000))
        for e in think:
            assert abs(e["ns"] - e["fields"]["truth"]) <= 3000
        order = [(int(n), ORDER.index(what), e["ns"], e["bound_ns"])
                 for e in kernel for what, n, _ in [e["fields"]["msg"].split()]]
        order += [(e["fields"]["n"], ORDER.index("think"), e["ns"], 3000)
                  for e in think]
        assert self.too_early([e[2:] for e in sorted(order)]) == 0

    def test_programs_text(self):
        """report prints the events of programs as text, with their fields, and the number of
        discarded events."""
        out = text("report", self.with_programs())
        assert sum(" think: n=" in line for line in out) == 10_000
        assert not [line for line in out if line.endswith(" think: ...")]
        assert sum("lost 5 events" in line for line in out) == 1
        assert len(text("report", "--event=think", self.with_programs())) \
            >= 10_000

    def test_programs_perfetto(self):
        """export to Perfetto writes the events of programs and those of the kernel."""
        need("protoc")
        out = self.tmp / "programs.pftrace"
        run("export", self.with_programs(), "-o", out)
        packets = perfetto_text.packets(out)
        think = [(fields["n"], ns) for _, _, ns, name, fields in
                 perfetto_text.instants(packets) if name == "think"]
        assert sorted(n for n, _ in think) == list(range(10_000))
        kernel = sum(len(b["event"]) for p in packets
                     for b in p.get("ftrace_events", []))
        assert kernel == 20_000

    def test_programs_left_out(self):
        """With options for the guest's clock, boots, CPUs or tasks, report leaves out the events of
        programs."""
        for option in ("--clock=guest", "--boot=1", "--cpu=0-63", "--task=*"):
            assert not [e for e in lines("report", option, self.with_programs())
                        if e["system"] == "programs"], option

    def dates(self):
        return sorted((e["ns"], name) for name, events in self.guests.items()
                      for e in events)

    def test_ctf(self):
        """babeltrace2 opens the exported traces of both guests together and
        sorts their events by date."""
        need("babeltrace2")
        out = self.tmp / "both"
        p = run("export", *self.dirs, "-f", "ctf", "-o", out)
        said = p.stderr.decode().splitlines()
        assert [re.match(r".*: '(\w+)': 20000 events; .* at most ", s)[1]
                for s in said] == list(GUESTS), said
        assert sorted(d.name for d in out.iterdir()) == list(GUESTS)
        p = subprocess.run(["babeltrace2", "--clock-cycles", "--names=none",
                            "--fields=trace:hostname", out],
                           capture_output=True, check=True, timeout=120)
        assert not p.stderr, p.stderr
        seen = [(int(m[1]), m[2]) for m in re.finditer(
            r"^\[(\d+)\].*? (ping|pong) ", p.stdout.decode(), re.M)]
        assert [ns for ns, _ in seen] == sorted(ns for ns, _ in seen)
        assert sorted(seen) == self.dates()
        meta = {name: (out / name / "metadata").read_text()
                for name in GUESTS}
        clocks = {re.search(r"clock \{.*?uuid = (\S+);.*?offset_s = (\d+);"
                            r"\s+offset = (\d+);", m, re.S).groups()
                  for m in meta.values()}
        assert len(clocks) == 1, clocks
        for name, events in self.guests.items():
            precision = int(re.search(r"precision = (\d+)", meta[name])[1])
            assert precision >= max(e["bound_ns"] for e in events)
            assert precision < 1_000_000

    def test_perfetto(self):
        """The Perfetto file has a machine for the host and one for each guest. The dates of the
        guests' events are those that report prints for the host's clock."""
        need("protoc")
        out = self.tmp / "both.pftrace"
        run("export", *self.dirs, "-o", out)
        packets = perfetto_text.packets(out)
        assert not [f for p in packets for f in perfetto_text.unknown(p)]
        snapshots = [p for p in packets if "clock_snapshot" in p]
        assert snapshots == packets[:1]
        assert "machine_id" not in packets[0]
        clocks = {c["clock_id"][0]: c["timestamp"][0] for c in
                  packets[0]["clock_snapshot"][0]["clocks"]}
        assert clocks[6] == clocks[3] == clocks[1] - 1_699_999_995_000_000_000
        names = perfetto_text.machines(packets)
        assert names == {0: "host", 1: "ping", 2: "pong"}
        assert all("machine_id" in p for p in packets[2:])
        seen = sorted((e["timestamp"][0], names[p["machine_id"][0]])
                      for p in packets for b in p.get("ftrace_events", [])
                      for e in b["event"])
        assert seen == self.dates()
        # each machine has one packet sequence, with interned data of its own
        sequences = {(p["trusted_packet_sequence_id"][0],
                      p.get("machine_id", [0])[0]) for p in packets}
        assert len(sequences) == 3

    def with_trace(self):
        """Packets of a Perfetto file of both guests and the device"""
        need("protoc")
        if self.packets:
            return self.packets
        out = self.tmp / "trace.pftrace"
        p = run("export", self.device, *self.dirs, "-o", out)
        said = p.stderr.decode()
        if "without libbabeltrace2" in said:
            pytest.skip("hypertrace was built without libbabeltrace2")
        assert ("10002 events, 5 were discarded; on the host's clock, their"
                " error is at most 3.00 us") in said, said
        assert "wall clocks" not in said
        type(self).packets = perfetto_text.packets(out)
        assert not [f for p in self.packets for f in perfetto_text.unknown(p)]
        return self.packets

    def test_trace(self):
        """A Perfetto file of the guests' recordings and the trace of pong's device: no effect comes
        before its cause by more than the stated errors. If the device's dates were wrong by
        100 us, this would be detected."""
        packets = self.with_trace()
        names = perfetto_text.machines(packets)
        assert list(names.values()) == ["host", "ping", "pong", 'pong"?, ht0']
        bounds = {names[m]: b for m, b in
                  perfetto_text.bounds(packets).items()}
        assert bounds['pong"?, ht0'] == 3000
        order = []
        for p in packets:
            for b in p.get("ftrace_events", []):
                for e in b["event"]:
                    what, n, truth = e["console"][0]["msg"][0].split()
                    order.append((int(n), ORDER.index(what), e["timestamp"][0],
                                  int(truth), names[p["machine_id"][0]]))
        for m, track, ns, name, fields in perfetto_text.instants(packets):
            if name == "think":
                assert track == "stream 0"
                order.append((fields["n"], ORDER.index(name), ns,
                              fields["truth"], names[m]))
        assert len(order) == 50_000
        order.sort()
        for _, _, ns, truth, who in order:
            assert abs(ns - truth) <= bounds[who]

        def early(shift):
            return self.too_early([
                (ns + (0 if who in GUESTS else shift), bounds[who])
                for _, _, ns, _, who in order])

        assert early(0) == 0
        assert early(2 * SHIFT) > 5000 and early(-2 * SHIFT) > 5000

    def test_trace_fields(self):
        """Text from a guest's program becomes valid UTF-8, and is cut if it is long."""
        packets = self.with_trace()
        lost, odd, again = [i for i in perfetto_text.instants(packets)
                     if i[1] == "stream 1, CPU 1"]
        assert lost[3:] == ("discarded events", {"count": 5})
        assert odd[3] == "odd"
        assert odd[4].pop("some") == "some" and again[4].pop("some") == ""
        for event in odd, again:
            long = event[4].pop("long")
            assert 60_000 < len(long) <= 65536 and set(long) == {"x"}
        assert odd[3:] == again[3:]
        assert odd[4] == {"what": HOSTILE, "minus": -2, "half": 0.5,
                          "bytes": [170, 187, 204], "hypertrace.cut": 1}
        tracks = [d for p in packets for d in p.get("track_descriptor", [])]
        root, *rest = tracks
        assert "parent_uuid" not in root
        assert {t["parent_uuid"][0] for t in rest} == {root["uuid"][0]}
        assert len({t["uuid"][0] for t in tracks}) == 3

    def test_trace_last(self):
        """`last` shows the number of events of a device's trace, and the last events of each
        stream. It does not shorten a text of 65535 bytes."""
        self.with_trace()
        trace, = lines("last", self.device)
        assert (trace["vm"], trace["device"]) == ('pong"?', "ht0")
        assert trace["events"] == 10002
        main_stream, second = trace["streams"]
        assert (second["stream"], second["vcpu"], second["events"],
                second["missing"]) == (1, 1, 2, 5)
        assert [(e["event"], e["fields"].pop("some")) for e in second["last"]
                ] == [("odd", "some"), ("odd", "")]
        for e in second["last"]:
            assert e["fields"] == {
                "what": HOSTILE, "minus": -2, "half": 0.5,
                "bytes": [170, 187, 204], "long": "x" * 65535,
                "pair": [-1, 1], "last": 0}
        assert len(main_stream["last"]) == 15
        assert main_stream["events"] == 10_000
        assert not lines("last", "-n", "0", self.device)[0]["streams"][1][
            "last"]

    def test_trace_alone(self):
        """--event also selects events of a trace. A Perfetto file can be made of
        a trace alone, without a recording."""
        need("protoc")
        out = self.tmp / "alone.pftrace"
        run("export", self.device / "ht0", "--event=od?,ht1:*", "-o", out)
        packets = perfetto_text.packets(out)
        assert [i[3] for i in perfetto_text.instants(packets)] == [
            "discarded events", "odd", "odd"]
        clocks = {c["clock_id"][0]: c["timestamp"][0] for c in
                  packets[0]["clock_snapshot"][0]["clocks"]}
        assert clocks[6] == clocks[3] == clocks[1] - 1_699_999_995_000_000_000
        p = run("export", self.device, "--event=none", "-o", out, status=1)
        assert "no events are selected" in p.stderr.decode(), p.stderr

    def test_trace_losses_only(self):
        """If a trace has no event, only a count of discarded ones, export shows that count."""
        need("protoc")
        quiet = story("losses", self.tmp / "losses")
        out = self.tmp / "losses.pftrace"
        run("export", quiet / "ht0", "-o", out)
        assert [i[3:] for i in perfetto_text.instants(
            perfetto_text.packets(out))] == [("discarded events", {"count": 5})]

    def test_trace_elsewhere(self):
        """export converts the times of a trace from another boot of a host, or from an unknown one,
        by the wall clocks. It refuses a trace with the guest's clock, with an unknown clock, or
        from before the boot of the first recording's host."""
        def device(name, *changes):
            copy = shutil.copytree(self.device,
                                   self.tmp / f"trace-{name}") / "ht0"
            meta = copy / "metadata"
            text = meta.read_text()
            for a, b in changes:
                assert a in text
                text = text.replace(a, b)
            meta.write_text(text)
            return copy

        need("protoc")
        out = self.tmp / "elsewhere.pftrace"
        later = ("offset_s = 1699999995", "offset_s = 1700000005")
        for other in (device("other", ('host_boot = "test"',
                                       'host_boot = "another"'), later),
                      device("none", ('\thost_boot = "test";\n', ""), later)):
            p = run("export", self.dirs[0], other, "--event=odd", "-o", out)
            assert "wall clocks" in p.stderr.decode(), p.stderr
            packets = perfetto_text.packets(out)
            assert 2 not in perfetto_text.bounds(packets)
            first = next(perfetto_text.instants(packets))
            assert abs(first[2] - 30_450_000_000) < 100_000_000, first
        clock = "guest counter converted to the host's CLOCK_MONOTONIC"
        for name, changes, said in (
                ("guest", [(clock, "the guest's trace clock")],
                 "has its guest's clock"),
                ("foreign", [('tracer_name = "hypertrace"',
                             'tracer_name = "mine"')],
                 "no clock that is known"),
                ("before", [('host_boot = "test"', 'host_boot = "x"'),
                            ("offset_s = 1699999995", "offset_s = 99999995")],
                 "before the host of the first")):
            p = run("export", self.dirs[0], device(name, *changes), "-o",
                    self.tmp / "no.pftrace", status=1)
            assert said in p.stderr.decode(), p.stderr
        assert not list(self.tmp.glob("*no.pftrace*"))

    def test_boots(self):
        """A Perfetto file on the host's clock has a machine for each boot of a guest. An event
        without a known host time is left out with a message."""
        need("protoc")
        recording = story("story", self.tmp / "story")
        out = self.tmp / "boots.pftrace"
        p = run("export", "--clock=host", recording, "-o", out)
        assert "1 event was left out" in p.stderr.decode(), p.stderr
        packets = perfetto_text.packets(out)
        assert [p["system_info"][0]["machine_name"][0] for p in packets
                if "system_info" in p] == ["host", "story", "story, boot 2"]
        assert not list(self.tmp.glob("boots-*"))

    def test_other_host(self):
        other = story("talk", self.tmp / "other") / "pong"
        info = (other / "info").read_text()
        (other / "info").write_text(
            info.replace("host-boot=test", "host-boot=another")
            .replace("started-realtime=17", "started-realtime=18"))
        p = run("export", other, self.dirs[0], "-f", "ctf", "-o",
                self.tmp / "no", status=1)
        assert "name the oldest recording first" in p.stderr.decode(), p.stderr
        p = run("export", self.dirs[0], other, "-f", "ctf", "-o",
                self.tmp / "hosts")
        assert "from another host" in p.stderr.decode(), p.stderr
        need("babeltrace2")
        p = subprocess.run(["babeltrace2", "--clock-seconds",
                            self.tmp / "hosts" / "pong"],
                           capture_output=True, check=True, timeout=60)
        assert p.stdout.startswith(b"[18000000"), p.stdout[:100]

    def test_memory(self):
        """If no piece of a recording has host times, report prints it by the guest's clock, and
        refuses --clock=host. An export with another recording is refused, too."""
        dead = story("talk", self.tmp / "dead") / "ping"
        for path in dead.glob("cpu*"):
            data, at = bytearray(path.read_bytes()), 0
            while at < len(data):
                data[at + 48:at + 64] = bytes(16)   # host_before, host_after
                at += 64 + int.from_bytes(data[at + 4:at + 8], "little")
            path.write_bytes(data)
        assert len(lines("report", dead)) == 20_000
        for args in (("report", "--clock=host", dead),
                     ("export", self.dirs[1], dead, "-o",
                      self.tmp / "dead.pftrace")):
            p = run(*args, status=1)
            assert "host time is not known" in p.stderr.decode(), p.stderr
        assert not list(self.tmp.glob("*dead.pftrace*"))

    def test_errors(self):
        a, b = self.dirs
        for args, status, said in (
                ((a, b, "-o", "x.dat"), 2, "clock of one guest"),
                ((a, "--clock=host", "-o", "x.dat"), 2, "clock of one guest"),
                ((a, b, "--clock=guest", "-o", "x.pftrace"), 2,
                 "--clock=host"),
                ((a, "--clock=wall", "-o", "x.pftrace"), 2, "guest or host"),
                ((a, b, "--from=1", "-o", "x.pftrace"), 2, "one guest's"),
                ((self.device, "--to=1", "-o", "x.pftrace"), 2,
                 "one guest's"),
                ((self.device, a, "--clock=guest", "-o", "x.pftrace"), 2,
                 "--clock=host"),
                ((a, self.tmp / "none", "-o", self.tmp / "no.pftrace"), 1,
                 "none"),
                ((a, b / "texts", "-o", self.tmp / "no.pftrace"), 1,
                 "texts"),
                ((self.device, a, "-f", "ctf", "-o", self.tmp / "no"), 1,
                 "is no recording"),
                ((a, b, "-f", "ctf", "-o", self.tmp), 1, "exists; give the name"),
                ((a, self.tmp, "-f", "ctf", "-o", self.tmp / "no"), 1,
                 "is no recording")):
            p = run("export", *args, status=status)
            assert said in p.stderr.decode(), (args, p.stderr)
        assert not list(self.tmp.glob(".no*"))
