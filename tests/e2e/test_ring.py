# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the program ring-follow, which follows the ftrace ring of a stock kernel under the
distribution's QEMU.

The number of its events is compared with the guest's own counts of entries, overrun and read
events, summed over the processors.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from linux_guest import RING_LOOP
from scale import LONG
from vm.machine import VM

QEMU = "/usr/bin/qemu-system-x86_64"
MEMORY = 256
RESETS = 5 if LONG else 1
WORDS = ("reserve_mem=1M:2M:ht trace_instance=boot_map@ht,"
         "sched,irq,initcall,task,module,printk")

JOB = r"""
total() {
    cat $T/per_cpu/cpu*/stats | awk '
        $1 == "entries:" { e += $2 }
        $1 == "overrun:" { o += $2 }
        $1 == "read" { r += $3 }
        END { print "{\"now\":", e + 0, ",\"all\":", e + o + r + 0,
              ",\"overrun\":", o + 0, ",\"read\":", r + 0, "}" }' >&3
}
trace() { echo $1 >$T/tracing_on; }
clear() { echo >$T/trace; }
text() {
    grep -Fw rb_meta_init_text_addr /proc/kallsyms |
        sed -n 's/ . rb_meta_init_text_addr$//p' | sed 's/.*/{"text": "&"}/' >&3
}
reading() {
    cat $T/trace_pipe >/dev/null &
    reader=$!
    "$@"
    kill $reader
    wait $reader
}
# work until the ring of each processor has overwritten events
wrap() {
    while grep -qhx 'overrun: 0' $T/per_cpu/cpu*/stats; do work 50; done
}
""" + RING_LOOP


class Ring:
    """A guest with its RAM in a memfd of this process, and the programs ring-follow
    that follow its ring"""

    def __init__(self, tmp):
        self.tmp = tmp
        self.fd = os.memfd_create("ram")
        os.ftruncate(self.fd, MEMORY << 20)
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"
        self.vm = VM(job=JOB, module=False, qemu=QEMU, memory=MEMORY,
                     kernel_args=WORDS, args=[
                         # this QEMU executes cmpxchg16b wrongly with several
                         # threads: guests crashed
                         "-cpu", "max,cx16=off",
                         "-object", "memory-backend-file,id=ram,share=on,"
                         f"size={MEMORY}M,mem-path={self.path}",
                         "-machine", "memory-backend=ram"])
        self.vm.start()
        self.followers = []

    def up(self):
        self.vm.out.expect(r'\{"up": 1\}', 300)

    def run(self, commands, timeout=60):
        self.vm.say(commands)
        self.vm.out.expect(r'\{"done": 1\}', timeout)

    def ask(self, question, answer):
        self.vm.say(question)
        found = self.vm.out.expect(answer, 120)
        self.vm.out.expect(r'\{"done": 1\}', 120)
        return json.loads(found[0])

    def total(self):
        return self.ask("total", r'\{"now".*\}')

    def text(self):
        return int(self.ask("text", r'\{"text".*\}')["text"], 16)

    def follow(self, poll_us, source=None, *more):
        self.followers.append(
            Follower([source or self.path, str(poll_us), *more]))
        return self.followers[-1]

    def close(self):
        for follower in self.followers:
            follower.close()
        self.vm.close()
        os.close(self.fd)


class Follower:
    def __init__(self, args):
        program = Path(os.environ["HT_BUILD"]) / "tests/e2e/programs/ring-follow"
        self.process = subprocess.Popen(
            [program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)

    def found(self):
        assert self.process.stdout.readline() == "found\n"
        return self

    def look(self):
        """Make the follower poll now, so that it reads all committed events."""
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "looked\n"
        return self

    def end(self):
        out = self.process.communicate("\n", timeout=120)[0]
        assert self.process.returncode == 0
        seen = json.loads(out.splitlines()[-1])
        assert seen["doubled"] == seen["errors"] == seen["bad"] == 0, seen
        return seen

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


one_guest = pytest.mark.xdist_group("ring")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    if not shutil.which(QEMU):
        pytest.skip("the distribution's qemu-system-x86 is not installed")
    patch = pytest.MonkeyPatch()
    patch.setenv("HT_QEMU_L", "")       # this QEMU has its own firmware
    ring = Ring(tmp_path_factory.mktemp("ring"))
    # Start the follower `boot` before the kernel makes its ring.
    ring.boot = ring.follow(500)
    ring.up()
    yield ring
    ring.close()
    patch.undo()


def phase(ring, commands, poll_us, source=None):
    """Clear the ring, and follow it while the guest runs the commands.  Return the counts
    of the follower and those of the guest."""
    ring.run("trace 0; clear")
    before = ring.total()
    assert before["all"] == 0, before
    follower = ring.follow(poll_us, source).found().look()
    ring.run(f"trace 1; {commands}; trace 0", 300)
    after = ring.total()
    seen = follower.end()
    return seen, after


def check(seen, counted):
    """Check the follower's counts `seen` with `counted`, the guest's number of events. If the
    follower reports no gap, it has exactly this number.  Otherwise the sum of its
    events and of its estimate of lost events is between half and twice this number.
    The estimate for a short gap may be 0."""
    if seen["gaps"] == 0:
        assert seen["events"] == counted, (seen, counted)
    else:
        # The estimate may be too high: the follower also reports a gap where a reader
        # in the guest took a page, or where the guest had almost overwritten the whole
        # ring.
        assert seen["events"] <= counted, (seen, counted)
        assert counted / 2 < seen["events"] + seen["lost"] < counted * 2, (
            seen, counted)


@one_guest
def test_boot(shared):
    """A follower that starts before the kernel makes its ring gets all events from the
    first on."""
    shared.run("work 100; trace 0")
    total = shared.total()
    seen = shared.boot.found().end()
    assert seen["layout"] == "6.12" and len(seen["cpus"]) >= 2
    assert seen["events"] == total["all"], (seen, total)
    assert seen["gaps"] == 0 and seen["epochs"] == 1 and seen["alive"]
    assert seen["text"] >> 32 == 0xffffffff


@one_guest
@pytest.mark.parametrize("poll_us", [
    500, pytest.param(20000, marks=pytest.mark.long), 300000])
def test_wraps(shared, poll_us):
    """The ring wraps while it is followed: the follower has all events, or reports
    its losses."""
    first = poll_us * 1000
    seen, total = phase(
        shared, f"marks {first} {first + 500}; wrap; "
        f"marks {first + 500} {first + 999}", poll_us)
    assert total["overrun"] > 0, total
    check(seen, total["all"])
    assert seen["disorder"] == 0 and seen["last"] == first + 999


@one_guest
def test_seldom(shared):
    """The ring wraps between two polls: the follower reports lost events, and its
    estimate is right within the factor of two that check() allows."""
    shared.run("trace 0; clear; trace 1; work 10")
    follower = shared.follow(600000000).found().look()
    shared.run("wrap; work 100; trace 0", 300)
    total = shared.total()
    seen = follower.end()
    assert seen["lost"] > 0 and seen["events"] < total["all"], (seen, total)
    check(seen, total["all"])


@one_guest
def test_toggled(shared):
    """The guest switches recording off and on while the ring is followed: the follower
    has all events, or reports its losses."""
    seen, total = phase(
        shared, "for n in 1 2 3; do work 20; trace 0; trace 1; done", 500)
    check(seen, total["all"])


@one_guest
def test_trace_pipe(shared):
    """A reader of trace_pipe in the guest takes pages out of the followed ring: the
    follower has all events, or reports its losses."""
    seen, total = phase(shared, "reading work 60; work 10", 500)
    assert total["read"] > 0, total
    check(seen, total["all"])


@one_guest
def test_cleared(shared):
    """A guest that clears its ring (echo > trace) takes no event from the follower that
    an earlier poll has read."""
    shared.run("trace 0; clear")
    follower = shared.follow(500).found().look()
    counted = overrun = 0
    for n in range(4):
        first = 7000000 + n * 100
        shared.run(f"trace 1; work 20; marks {first} {first + 100}; trace 0")
        total = shared.total()
        counted += total["all"]
        overrun += total["overrun"]
        follower.look()
        shared.run("clear")
    seen = follower.end()
    if not overrun:
        assert seen["events"] == counted, (seen, counted)
        assert seen["markers"] == 400 and seen["last"] == 7000400, seen
    assert seen["events"] <= counted and seen["disorder"] == 0, seen
    assert seen["epochs"] == 1, seen


@one_guest
def test_process(shared):
    """The follower reads the memory of the QEMU process instead of a shared
    file."""
    seen, total = phase(shared, "work 100", 500,
                        f"pid:{shared.vm.process.pid}")
    check(seen, total["all"])


@one_guest
def test_core_and_kill(shared):
    """A core dump of the guest, and the memory file after kill -9 of QEMU, give as
    many events as the memory of the stopped guest, and recordings of each processor that
    agree in bytes 64 to 127."""
    shared.run("trace 0; clear; trace 1; work 10; marks 9000000 9000100; "
               "trace 0")
    total = shared.total()
    qmp = shared.vm.qmp
    qmp.command("stop")
    stopped = shared.follow(0, None, str(shared.tmp / "stopped"),
                            "core").end()
    core = shared.tmp / "core"
    qmp.command("dump-guest-memory", paging=False, protocol=f"file:{core}")
    dumped = shared.follow(0, str(core), str(shared.tmp / "dumped"),
                           "core").end()
    shared.vm.process.kill()
    shared.vm.process.wait()
    killed = shared.follow(0, None, str(shared.tmp / "killed"),
                           "core").end()
    assert stopped["events"] == total["now"] > 500, (stopped, total)
    assert stopped["last"] == 9000100, stopped
    for other, name in ((dumped, "dumped"), (killed, "killed")):
        assert other["events"] == stopped["events"]
        for cpu in ("cpu0", "cpu1"):
            assert ((shared.tmp / name / cpu).read_bytes()[64:128] ==
                    (shared.tmp / "stopped" / cpu).read_bytes()[64:128])


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    if not shutil.which(QEMU):
        pytest.skip("the distribution's qemu-system-x86 is not installed")
    monkeypatch.setenv("HT_QEMU_L", "")
    ring = Ring(tmp_path)
    yield ring
    ring.close()


def test_resets_and_crash(fresh):
    """The follower finds all boots, and each marker is in the epoch of its boot. After
    the guest's kernel has crashed, its ring in memory still has the events before."""
    fresh.vm.qmp.command("set-action", reboot="reset")
    follower = fresh.follow(500)
    texts = []
    for boot in range(RESETS + 1):
        fresh.up()
        texts.append(fresh.text())
        first = boot * 1000000
        fresh.run(f"marks {first} {first + 100}")
        if boot < RESETS:
            fresh.vm.qmp.command("system_reset")
    seen = follower.found().end()
    # On a busy machine, TCG sometimes corrupts a boot: the guest panics and boots
    # again.
    boots = RESETS + 1 + fresh.vm.console.text.count("Kernel panic")
    assert seen["epochs"] == boots and seen["disorder"] == 0, (
        str(seen) + fresh.vm.console.text)
    assert seen["mixed"] == 0 and seen["markers"] == 100 * (RESETS + 1), seen
    # No gap is reported when a boot clears or replaces the ring of the previous boot.
    assert seen["gaps"] == 0, seen
    # KASLR moves the kernel's text in each boot. For each epoch, the follower reports
    # the address of the text, or 0 if it does not know it.
    if boots == RESETS + 1:
        assert texts[0] == seen["texts"][0], (texts, seen)
        assert set(seen["texts"]) <= {0, *texts}, (texts, seen)
    # the follower has each event up to the panic, here the last marker
    fresh.vm.qmp.command("set-action", reboot="shutdown")
    fresh.vm.say(f"marks {first + 100} {first + 200}; "
                 "echo c >/proc/sysrq-trigger")
    fresh.vm.process.wait(timeout=300)
    crashed = fresh.follow(0, None, str(fresh.tmp / "crashed"), "core").end()
    assert crashed["last"] == first + 200, crashed
