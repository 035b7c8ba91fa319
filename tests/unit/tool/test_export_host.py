# SPDX-License-Identifier: GPL-2.0-or-later
"""export of a recording that has a host's part: guest and host on one timeline.

The guest's recording is "ping" of tests/unit/recording/talk.c, from 20.0 to 20.45 s of
the host's clock.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import perfetto_text
from built import need
from hosttrace import ENTRY, EXIT, IDLE, RUNS, USER, WAITS, WAKING, event, make_part, piece, switch
from hypertrace import lines, run, story

BASE = 20_100_000_000
VCPU, RIVAL = ("CPU 0/KVM", 11), ("cc1", 31)
THREADS = "10 10 qemu-ping\n11 10 CPU 0/KVM\n30 30 make\n31 30 cc1\n"
INFO = ("started-realtime=1700000000000000000\nstarted-monotonic=5000000000\nhost-boot=%s\n"
        "[host]\nclock=mono\n[guest]\nrelease=6.12.9-host\nmachine=x86_64\n")
# Events of the host, in nanoseconds after BASE
EVENTS = [
    (0, switch(IDLE, RUNS, VCPU)), (10, event(ENTRY, 11, 0)), (100, event(EXIT, 11, 0x7b, 0)),
    (130, event(USER, 11, 2)), (150, event(ENTRY, 11, 0)), (200, event(EXIT, 11, 0x78, 0)),
    (210, switch(VCPU, WAITS, RIVAL)), (300, event(WAKING, 31, "CPU 0/KVM", 11, 120, 0)),
    (350, switch(RIVAL, RUNS, VCPU)), (360, event(ENTRY, 11, 0)),
    (400, event(EXIT, 11, 0x7b, 0)), (420, switch(VCPU, RUNS, RIVAL)),
    (900, switch(RIVAL, RUNS, VCPU)), (910, event(ENTRY, 11, 0)),
    (1000, event(EXIT, 11, 0x7b, 0)), (1100, switch(VCPU, RUNS, IDLE))]
SLICES = [
    (0, 10, "QEMU"), (10, 100, "guest"), (100, 130, "exit io"), (130, 150, "QEMU"),
    (150, 200, "guest"), (200, 210, "exit hlt"), (210, 300, "halted"),
    (300, 350, "waits for cc1-31"), (350, 360, "exit hlt"), (360, 400, "guest"),
    (400, 420, "exit io"), (420, 900, "waits for cc1-31"), (900, 910, "exit io"),
    (910, 1000, "guest"), (1000, 1100, "exit io")]


def add_host(rec, boot="test", base=BASE):
    part = make_part(rec / "host", [[piece([(base + t, body) for t, body in EVENTS])]],
                     INFO % boot)
    (part / "threads").write_text(THREADS)
    return part


def slices(packets):
    """{name of the track: [(begin, end, name)]}, and the names of the tracks' parents"""
    tracks = {d["uuid"][0]: d for p in packets for d in p.get("track_descriptor", [])}
    found, begun = {}, {}
    for p in packets:
        for e in p.get("track_event", []):
            track = tracks[e["track_uuid"][0]]["name"][0]
            if e["type"] == [1]:
                assert track not in begun
                begun[track] = p["timestamp"][0], e["name"][0]
            elif e["type"] == [2]:
                begin, name = begun.pop(track)
                found.setdefault(track, []).append((begin, p["timestamp"][0], name))
    assert not begun
    return found, {d["name"][0]: tracks[d["parent_uuid"][0]]["name"][0]
                   for d in tracks.values() if "parent_uuid" in d}


class TestExportHost:
    @pytest.fixture(autouse=True)
    def prepare(self, tmp_path):
        self.tmp = tmp_path
        self.rec = tmp_path / "ping"
        shutil.copytree(story("talk", tmp_path / "talk") / "ping", self.rec)
        self.part = add_host(self.rec)

    def export(self, name, *args):
        out = self.tmp / name
        return out, run("export", "-o", out, *args).stderr.decode()

    def test_perfetto(self):
        """The file has the guest's events, and the host's events, threads and vCPUs.
        The host's events have their exact times."""
        need("protoc")
        out, said = self.export("both.pftrace", self.rec)
        assert "'host': 16 events of the host\n" in said
        packets = perfetto_text.packets(out)
        assert not [f for p in packets if "ftrace_events" not in p
                    for f in perfetto_text.unknown(p)]
        # The file begins with packets of the host, which are those of Perfetto's machine 0.
        assert "machine_id" not in packets[0] and "machine_id" not in packets[1]
        assert len([p for p in packets if "clock_snapshot" in p]) == 1
        names = {p.get("machine_id", [0])[0]: p["system_info"][0]["machine_name"][0]
                 for p in packets if "machine_name" in p.get("system_info", [{}])[0]}
        assert names == {0: "host", 1: "ping"}
        releases = {p.get("machine_id", [0])[0]: p["system_info"][0]["utsname"][0]["release"][0]
                    for p in packets if "utsname" in p.get("system_info", [{}])[0]}
        assert releases == {0: "6.12.9-host", 1: "6.12.1-test"}
        host = [p for p in packets if "machine_id" not in p]
        switches = [(e["timestamp"][0] - BASE, e["sched_switch"][0]["next_pid"][0])
                    for _, e in perfetto_text.events(host) if "sched_switch" in e]
        assert switches == [(0, 11), (210, 31), (350, 11), (420, 31), (900, 11), (1100, 0)]
        guest = list(perfetto_text.events([p for p in packets if "machine_id" in p]))
        assert len(guest) == len(lines("report", "--clock=guest", self.rec))
        tree, = [p["process_tree"][0] for p in host if "process_tree" in p]
        assert {t["tid"][0]: (t["tgid"][0], t["name"][0]) for t in tree["threads"]} == {
            10: (10, "qemu-ping"), 11: (10, "CPU 0/KVM"), 30: (30, "make"), 31: (30, "cc1")}
        found, parents = slices(packets)
        assert parents == {"vCPU 0 (thread 11)": "vCPUs of qemu-ping 10"}
        assert [(b - BASE, e - BASE, name) for b, e, name in found["vCPU 0 (thread 11)"]] == SLICES

    def test_a_part_of_the_time(self):
        """--from and --to select events of the guest. The host's events between
        the guest's first and last selected event are also exported."""
        need("protoc")
        events = lines("report", "--clock=host", self.rec)
        guest = lines("report", "--clock=guest", self.rec)
        inside = [g["ns"] for g, e in zip(guest, events, strict=True)
                  if BASE - 10**6 <= e["ns"] <= BASE + 10**6]
        after = [g["ns"] for g, e in zip(guest, events, strict=True) if e["ns"] > BASE + 10**6]
        for times, count in ((inside, len(EVENTS)), (after, 0)):
            out, _ = self.export(f"part-{count}.pftrace", self.rec, f"--from={times[0]}ns",
                                 f"--to={times[-1]}ns")
            host = [p for p in perfetto_text.packets(out) if "machine_id" not in p]
            assert len(list(perfetto_text.events(host))) == count

    def test_left_out(self):
        """With the guest's clock, or with a selection of events or processors, the host's part is
        not exported."""
        need("protoc")
        for option in "--clock=guest", "--event=console", "--cpu=0":
            out, said = self.export(f"guest{option}.pftrace", self.rec, option)
            assert "of the host" not in said
            assert not [e for _, e in perfetto_text.events(perfetto_text.packets(out))
                        if "sched_switch" in e]

    def test_one_part_of_two_recordings(self):
        """Recordings of guests on the same host share the host's part, and so one machine in the
        file. A host's part of another boot of the host is a machine of its own."""
        need("protoc")
        pong, other = self.tmp / "pong", self.tmp / "other"
        for rec in pong, other:
            shutil.copytree(self.tmp / "talk/pong", rec)
        (pong / "host").symlink_to(self.part)
        add_host(other, boot="another")
        out, said = self.export("three.pftrace", self.rec, pong, other)
        assert said.count("16 events of the host") == 2
        packets = perfetto_text.packets(out)
        names = {p.get("machine_id", [0])[0]: p["system_info"][0]["machine_name"][0]
                 for p in packets if "machine_name" in p.get("system_info", [{}])[0]}
        assert names == {0: "host", 1: "ping", 2: "pong", 3: "other", 4: "other-host"}
        for machine in 0, 4:
            assert len([e for _, e in perfetto_text.events(
                [p for p in packets if p.get("machine_id", [0])[0] == machine])
                if "sched_switch" in e]) == 6

    @pytest.mark.parametrize("form", ["ctf", "lttng"])
    def test_ctf(self, form):
        """The folder has a trace of the guest and one of the host, which readers merge."""
        need("babeltrace2")
        out, _ = self.export(form, self.rec, "-f", form)
        assert sorted(p.name for p in out.iterdir()) == ["host", "ping"]
        text = subprocess.run(["babeltrace2", "--clock-seconds", out], capture_output=True,
                              check=True, text=True).stdout
        times = [float(t) for t in re.findall(r"^\[(\d+\.\d+)\]", text, re.M)]
        assert times == sorted(times)
        host = [line for line in text.splitlines() if " host " in line]
        assert len(host) == len(EVENTS) and len(times) > len(host)
        # 1.7e18 ns of wall time at 5 s of the host's clock
        first = 1_700_000_000 - 5 + BASE // 10**9
        assert f"[{first}.100000000]" in host[0] and "sched_switch: " in host[0]
        kvm = {re.search(r" (kvm\w+): ", line)[1] for line in host if " kvm_" in line}
        prefix = "kvm_x86_" if form == "lttng" else "kvm_"
        assert kvm == {prefix + "entry", prefix + "exit", "kvm_userspace_exit"}
        for name in "host", "ping":
            assert f'hostname = "{name}";' in Path(out / name / "metadata").read_text()
