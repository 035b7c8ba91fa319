# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace status, list, enable, disable, set: their exact output, and the
properties that they set.  In place of QEMU there is a QMP server with replies that
are rare in QEMU; tests/e2e runs the commands with QEMU.
"""

import json
import socket
import threading

import pytest

from hypertrace import ESCAPED, HOSTILE, run

FOREVER = 2**64 - 1

DEVICE = {
    "channel": "shm", "mode": "overwrite", "unread": True,
    "events": "*,!noise", "settings": "a.b=1 c=2",
    "stats": {
        "events": 1234567, "lost": 5, "dropped": 6, "errors": 1,
        "clock-bound-ns": 1500,
        "streams": [
            {"stream": 0, "open": True, "stopped": False, "events": 1000000,
             "lost": 5, "dropped": 0, "errors": 0},
            {"stream": 1, "open": False, "stopped": False, "events": 7,
             "lost": 0, "dropped": 0, "errors": 0},
            {"stream": 2, "open": True, "stopped": True, "events": 234567,
             "lost": 0, "dropped": 6, "errors": 1}],
        "backends": [
            {"backend": "ctf0", "events": 1234000, "discarded": 0,
             "idle": False, "queued": 65536},
            {"backend": "log0", "events": 1234567, "discarded": 3,
             "idle": True, "queued": 0}]},
    "classes": {"classes": [{"id": 1, "name": "sched_switch", "on": True},
                            {"id": 2, "name": "noise", "on": False}]}}

QUIET = {
    "channel": "virtio", "mode": "discard", "unread": False, "events": "*",
    "settings": None,
    "stats": {"events": 0, "lost": 0, "dropped": 0, "errors": 0,
              "clock-bound-ns": FOREVER, "streams": [], "backends": []},
    "classes": {"classes": []}}

STATUS = """\
ht0: device, channel=shm mode=overwrite unread=on events=*,!noise settings=a.b=1 c=2
  1234567 events, 5 lost, 6 dropped, 1 error; dates within 1.50 us
  stream 0: 1000000 events, 5 lost, 0 dropped, 0 errors
  stream 2: 234567 events, 0 lost, 6 dropped, 1 error; stopped by a fault
  backend ctf0: 1234000 events, 0 discarded, 65536 bytes queued
  backend log0: 1234567 events, 3 discarded, idle
ht1: device, channel=virtio mode=discard events=*
  0 events, 0 lost, 0 dropped, 0 errors; dates not known yet
"""


class Qemu(threading.Thread):
    """A QMP server that serves one client after another. self.set lists the
    properties that clients have set."""

    def __init__(self, path, things):
        super().__init__(daemon=True)
        self.things = things
        self.set = []
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self.start()

    def children(self, path):
        return [{"name": name, "type": "child<hypertrace>"}
                for name in self.things if path == "/machine/peripheral"]

    def answer(self, command, path=None, property=None, value=None,
               object=None):
        if command == "qmp_capabilities":
            return {}
        if command == "qom-list":
            return self.children(path) + [{"name": "type", "type": "string"}]
        if command == "query-hypertrace":
            return [self.things[object.rpartition("/")[2]]["stats"]]
        thing = self.things[path.rpartition("/")[2]]
        if command == "qom-set":
            self.set.append((path, property, value))
            thing[property] = value
            return {}
        assert command == "qom-get", command
        return thing[property]

    def run(self):
        while True:
            one, _ = self.socket.accept()
            with one, one.makefile("rw") as f:
                print(json.dumps({"QMP": {"version": {}, "capabilities": []}}),
                      file=f, flush=True)
                for line in f:
                    m = json.loads(line)
                    # the client must ignore an event before the reply
                    print(json.dumps({"event": "RESUME", "timestamp": {}}),
                          file=f)
                    reply = self.answer(m["execute"],
                                        **m.get("arguments", {}))
                    print(json.dumps({"return": reply}), file=f, flush=True)


class TestControl:
    @pytest.fixture(autouse=True)
    def prepare(self, tmp_path):
        self.tmp = tmp_path
        self.number = 0

    def qemu(self, **things):
        self.number += 1
        return Qemu(self.tmp / f"qmp{self.number}",
                    {k: dict(v) for k, v in things.items()})

    def out(self, qemu, command, *args, **kwargs):
        return run(command, qemu.path, *args, **kwargs).stdout.decode()

    def test_status(self):
        q = self.qemu(ht0=DEVICE, ht1=QUIET)
        assert self.out(q, "status") == STATUS, self.out(q, "status")
        one = STATUS[STATUS.index("ht1:"):]
        assert self.out(q, "status", "--device=ht1") == one
        both = [json.loads(line) for line in
                self.out(q, "status", "--json").splitlines()]
        assert [b["id"] for b in both] == ["ht0", "ht1"]
        assert both[0]["stats"] == DEVICE["stats"]
        assert both[1]["stats"]["clock-bound-ns"] == -1

    def test_list(self):
        q = self.qemu(ht0=DEVICE, ht1={**QUIET, "classes": {
            "classes": [{"id": 7, "name": HOSTILE, "on": True}]}})
        assert self.out(q, "list") == (
            "on   ht0:sched_switch\noff  ht0:noise\n"
            f"on   ht1:{ESCAPED}\n".replace(r"\xff", "\ufffd"))
        assert [json.loads(line) for line in
                self.out(q, "list", "--json").splitlines()] == [
            {"device": "ht0", "id": 1, "class": "sched_switch", "on": True},
            {"device": "ht0", "id": 2, "class": "noise", "on": False},
            {"device": "ht1", "id": 7, "class": HOSTILE, "on": True}]

    def test_enable(self):
        q = self.qemu(ht0=DEVICE, ht1=QUIET)
        for command, word, first, second in (
                ("enable", "noise", "*,noise", "*,noise"),
                ("disable", "sched_*", "*,noise,!sched_*",
                 "*,noise,!sched_*"),
                ("enable", "sched_*", "*,noise,sched_*", "*,noise,sched_*"),
                ("disable", "*", "!*", "!*"),
                ("enable", "irq_?", "!*,irq_?", "!*,irq_?")):
            q.set.clear()
            assert self.out(q, command, word) == ""
            assert q.set == [
                ("/machine/peripheral/ht0", "events", first),
                ("/machine/peripheral/ht1", "events", second)], q.set

    def test_set(self):
        q = self.qemu(ht0=DEVICE, ht1=QUIET)
        for word, first, second in (
                ("a.b=5", "a.b=5 c=2", "a.b=5"),
                ("c=", "a.b=5 c=", "a.b=5 c="),
                ("d=x,y*", "a.b=5 c= d=x,y*", "a.b=5 c= d=x,y*")):
            q.set.clear()
            assert self.out(q, "set", word) == ""
            assert [v for _, _, v in q.set] == [first, second], q.set
            assert {p for _, p, _ in q.set} == {"settings"}

    def test_nothing(self):
        q = self.qemu()
        assert b"there is no hypertrace device" in run("list", q.path,
                                                       status=1).stderr
        assert b"No such file" in run("status", self.tmp / "none",
                                      status=1).stderr
