# SPDX-License-Identifier: GPL-2.0-or-later
"""The host switches a running guest's events on and off, through LTTng and with
the commands enable and disable.  list shows them, and set chooses functions."""

import re
import statistics
import time

import pytest

bt2 = pytest.importorskip("bt2")

from linux_guest import Control, assert_sound, sources_module, stats
from vm.machine import VM, Failure

CHANNELS = ["hypercall", "shm", "virtio"]

JOB = """
set -e
rm -f /tmp/end
insmod /ht/hypertrace-sources.ko \
    functions='entry:vfs_read*,entry:vfs_wr*,!vfs_writev'
ht-tracetest switched >&3 &
while read answer <&3; do
    case $answer in
    end) break ;;
    functions) echo "traced:" $(cut -d' ' -f1 \
        /sys/kernel/tracing/enabled_functions | sort) >&3 ;;
    log) echo "logged: $(dmesg | grep "the host's setting" | tail -n 1)" >&3 ;;
    *) usleep 50000; echo "again $answer" >&3 ;;
    esac
done
touch /tmp/end
wait $!
rmmod hypertrace-sources
"""


class Guest:
    """A VM that runs JOB; its device counts the guest's events"""

    def __init__(self, vm):
        self.vm = vm
        self.turn = 0

    def events(self):
        return stats(self.vm)["events"]

    def grown(self):
        """Let the guest sleep for 50 ms, which switches tasks; return the number of events
        that the device has counted meanwhile."""
        self.turn += 1
        before = self.events()
        self.vm.say(str(self.turn))
        self.vm.out.expect(f"^again {self.turn}$", 120)
        return self.events() - before

    def wait_silence(self):
        deadline = time.monotonic() + 240
        while self.grown():
            if time.monotonic() > deadline:
                raise Failure(f"events do not end\n{self.vm}")

    def wait_events(self, count=20):
        deadline = time.monotonic() + 240
        begin = self.events()
        while self.events() < begin + count:
            self.grown()
            if time.monotonic() > deadline:
                raise Failure(f"no events come\n{self.vm}")

    def program(self, state):
        self.vm.out.expect(f"^{state} ", 240)

    def wait_functions(self, wanted):
        """Wait until wanted() accepts the names of the functions that ftrace
        traces."""
        deadline = time.monotonic() + 240
        while True:
            self.vm.say("functions")
            match = self.vm.out.expect("^traced:(.*)$", 120)
            names = match.group(1).decode().split()
            if wanted(names):
                return names
            if time.monotonic() > deadline:
                raise Failure(f"functions {names}\n{self.vm}")

    def wait_log(self, text):
        deadline = time.monotonic() + 240
        while True:
            self.vm.say("log")
            match = self.vm.out.expect("^logged: (.*)$", 120)
            line = match.group(1).decode()
            if text in line:
                return
            if time.monotonic() > deadline:
                raise Failure(f"{line} without {text}\n{self.vm}")

    def events_property(self):
        return self.vm.qmp.command("qom-get", path="/machine/peripheral/ht0",
                                   property="events")


def check_control(control, channel):
    one, = control.json("status")
    assert one["id"] == "ht0" and one["channel"] == channel, one
    assert one["stats"]["events"] and not one["stats"]["errors"], one
    text = control("status")
    assert f"ht0: device, channel={channel} mode=discard events=*," in text
    assert re.search(r"^  stream 0: [1-9]\d* events, \d+ lost, 0 dropped, "
                     r"0 errors$", text, re.M), text
    assert re.search(r"^  backend \S+: [1-9]\d* events, ", text, re.M), text
    classes = {c["class"]: c for c in control.json("list")}
    assert classes["tracetest.tick"]["on"], classes
    assert not classes["sched_switch"]["on"], classes
    assert control("enable", "a b", status=1).startswith(
        "hypertrace enable: QEMU: events: ")
    assert "give one" in control("enable", "a,b", status=2)
    assert "there is no hypertrace device 'vm0'" in control(
        "enable", "--device=vm0", "*", status=1)
    assert "give one NAME=VALUE" in control("set", "a.b", status=2)
    assert "is not NAME=VALUE" in control("set", "a,b=c", status=1)
    control("disable", "*")
    control("enable", "*")


def measure(vm, session):
    """Print the time from the end of the command `lttng enable-event` or `disable-event`
    until the device has switched the event; pytest shows the text with -s."""
    def switches():
        return len(vm.traced("hypertrace_enable"))

    took = []
    for _ in range(20):
        for command in ("enable-event", "disable-event"):
            before = switches()
            session.lttng(command, "--userspace",
                          f"--session={session.name}", "--channel=main",
                          "ht0:tracetest.tick")
            begin = time.monotonic()
            while switches() == before:
                if time.monotonic() > begin + 240:
                    raise Failure(f"{command} does nothing\n{vm}")
                time.sleep(0.0005)
            took.append(1000 * (time.monotonic() - begin))
    print(f"\nfrom LTTng to the guest: median {statistics.median(took):.1f} ms"
          f", at most {max(took):.1f} ms of {len(took)}")


def check_settings(control, guest):
    """Check that the guest ignores settings with an unknown name, and that the setting
    "functions" selects some of the functions that the parameter "functions" of
    hypertrace-sources.ko allows. If an item of the setting is not allowed, the module
    refuses the whole setting, and the guest's kernel logs that."""
    control("set", "functions=entry:vfs_read,least_ns=0")
    control("set", "nobody.knows=this,or:that")
    guest.wait_functions(lambda names: names == ["vfs_read"])
    # A function that the module's parameter excludes stays excluded.
    control("set", "functions=entry:vfs_write*")
    assert guest.vm.qmp.command(
        "qom-get", path="/machine/peripheral/ht0", property="settings"
        ) == "functions=entry:vfs_write* nobody.knows=this,or:that"
    assert " settings=functions=entry:vfs_write* nobody" in control("status")
    names = guest.wait_functions(lambda names: "vfs_write" in names)
    assert "vfs_writev" not in names and "vfs_read" not in names, names
    for refused in ["entry:vfs_read,entry:vfs_open", "entry:vfs_*",
                    "entry:vfs_rea[dm]", "calls:vfs_read",
                    "entry:vfs_read,no_limit=1"]:
        control("set", f"functions={refused}")
        guest.wait_log(f"functions={refused} is refused")
        assert guest.wait_functions(bool) == names, refused
    # After an empty setting, the functions are those of the module's parameter.
    control("set", "functions=")
    guest.wait_functions(lambda all_names: {"vfs_read", *names} <=
                         set(all_names))


def recorded(trace):
    return [m.event.name for m in
            bt2.TraceCollectionMessageIterator(str(trace))
            if isinstance(m, bt2._EventMessageConst)]


@pytest.mark.parametrize("channel", CHANNELS)
def test_lttng_switches(channel, session, tmp_path):
    """`lttng enable-event` and `disable-event` switch an event of a program and events of the
    kernel. An event is on only if the device's property `events`, which `hypertrace enable` and
    `disable` set, has it, too."""
    s = session(events=())
    control = Control(tmp_path)
    with VM(devices=[{"channel": channel, "backend": "lttng",
                      "packets": 64}], job=JOB,
            files=sources_module(),
            args=[*control.args, "-trace", "hypertrace_enable"],
            workdir=tmp_path / "vm") as vm:
        guest = Guest(vm)
        guest.program("off")
        s.wait_listed("ht0:tracetest.tick")
        s.wait_listed("ht0:sched_switch")
        guest.wait_silence()
        measure(vm, s)

        s.enable("ht0:tracetest.*")
        guest.program("on")
        guest.wait_events()
        assert "on   ht0:tracetest.tick\n" in control("list")
        control("disable", "tracetest.*")
        assert guest.events_property() == "*,!tracetest.*"
        assert "off  ht0:tracetest.tick\n" in control("list")
        guest.program("off")
        guest.wait_silence()

        s.enable("ht0:sched_switch")
        guest.wait_events()
        s.lttng("disable-event", "--userspace", f"--session={s.name}",
                "--channel=main", "ht0:sched_switch")
        guest.wait_silence()

        control("enable", "tracetest.*")
        assert guest.events_property() == "*,tracetest.*"
        guest.program("on")
        guest.wait_events()
        check_control(control, channel)
        assert guest.events_property() == "*"
        s.enable("ht0:function_entry")
        check_settings(control, guest)
        s.lttng("disable-event", "--userspace", f"--session={s.name}",
                "--channel=main", "ht0:function_entry")
        guest.wait_functions(lambda names: not names)
        s.stop()
        guest.program("off")
        guest.wait_silence()
        vm.say("end")
        vm.wait(240)
        assert_sound(vm)
    s.finish()
    names = recorded(tmp_path / "lttng")
    assert set(names) == {"ht0:tracetest.tick", "ht0:sched_switch",
                          "ht0:function_entry"}
