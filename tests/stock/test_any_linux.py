# SPDX-License-Identifier: GPL-2.0-or-later
"""Follow the main trace buffer and the log from boot, of guests with many kernels, machines
and sizes of memory, and of guests in whose memory several kernels lie.

scripts/vm/stock-guests.sh gets the kernels. docs/any-linux.md has a table of results.
"""

import collections
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import followed
import pytest
import stock

import call_graph
from vm.machine import Qmp

OLDEST = stock.GUESTS / "oldest/vmlinuz"
NEWEST = stock.GUESTS / "newest/vmlinuz"
OLD = os.environ["HT_KERNEL_OLD"]
STOCK = os.environ["HT_KERNEL"]
APPEND = os.environ["HT_KERNEL_ARGS"].replace("ttyS0", "ttyS1") + " oops=panic"

# A guest. kernel: path of its kernel; memory: QEMU's option -m; machine: first words of
# QEMU's command; more: further options of QEMU; words: further words for the kernel's
# command line
Row = collections.namedtuple("Row", "kernel memory machine more words",
                             defaults=("513", stock.X86, (), ""))
LEVELS_5 = [*stock.X86[:-1], "qemu64,-cx16,+la57"]
ROWS = {
    "5.10": Row(OLDEST),
    "7.x": Row(NEWEST),
    "rt": Row(stock.GUESTS / "rt/vmlinuz"),
    "arm64": Row(stock.GUESTS / "arm64/vmlinuz", "513", stock.ARM64),
    "6.1, 5 levels": Row(OLD, "513", LEVELS_5),
    "6.12, 5 levels": Row(STOCK, "513", LEVELS_5),
    "7.x, 5 levels": Row(NEWEST, "513", LEVELS_5),
    "6.1, 5 GiB": Row(OLD, "5G"),
    "6.12, 16 GiB": Row(STOCK, "16G"),
    "6.12, 16 GiB, q35": Row(STOCK, "16G", more=("-M", "q35")),
    "7.x, 16 GiB, 5 levels": Row(NEWEST, "16G", LEVELS_5),
}


def needs(row):
    if not shutil.which(row.machine[0]):
        pytest.skip(f"{row.machine[0]} is not installed")
    if not Path(row.kernel).exists():
        pytest.skip(f"scripts/vm/stock-guests.sh could not get {row.kernel}")


def command(tmp, row, init, port="file,path={}/dmesg"):
    """QEMU's command for a guest with @init, whose port ttyS0 is the chardev @port, by default
    the file dmesg"""
    arm64 = row.machine is stock.ARM64
    busybox = stock.GUESTS / "arm64/usr/bin/busybox" if arm64 else "/bin/busybox"
    # stock.start() adds another port, which is the guest's console.
    append = "console=ttyAMA0 panic=-1 oops=panic" if arm64 else APPEND
    return [*map(str, [
        *row.machine, *stock.PLAIN, "-m", row.memory, *row.more, "-kernel",
        row.kernel, "-initrd", stock.initrd(tmp, busybox, init), "-append",
        append + row.words, "-chardev", port.format(tmp) + ",id=port",
        *(["-device", "pci-serial,chardev=port"] if arm64 else
          ["-serial", "chardev:port"])])]


@pytest.mark.parametrize("name", ROWS)
def test_followed(tmp_path, name):
    """The recording of each guest in ROWS passes followed.assert_all()."""
    needs(ROWS[name])
    err = stock.record(tmp_path, command(tmp_path, ROWS[name], followed.INIT),
                       "--buffer", "main")
    assert ("5 levels" in stock.console(tmp_path)) == ("5 levels" in name)
    followed.assert_all(tmp_path, err)


GRAPH_INIT = stock.MOUNTS + f"""$b --install -s /bin
export PATH=/bin
{call_graph.shell("/trace", "/dev/ttyS0")}
poweroff -f
sleep 1000
"""


@pytest.mark.parametrize("name, function", [
    ("5.10", "acpi_init"), ("7.x", "acpi_init"),
    ("arm64", "of_platform_default_populate_init")])
def test_graph(tmp_path, name, function):
    """The recorded call graph of an initcall equals the call graph in the guest's file
    `trace`."""
    needs(ROWS[name])
    stock.record(tmp_path, command(tmp_path, ROWS[name], GRAPH_INIT), "--event",
                 "initcall", "--graph", f"{function},depth=3")
    call_graph.assert_same((tmp_path / "dmesg").read_text(errors="replace"),
                           stock.run("callgraph", "--json", tmp_path / "rec"),
                           function)


class Boots:
    """A guest with BOOTS_INIT that boots repeatedly while a recorder follows it"""

    def __init__(self, tmp, row, recorders):
        needs(row)
        self.tmp = tmp
        # Dump the memory only if it has at most 1 GiB: a dump also contains memory that
        # was never written.
        self.dumps = not row.memory.endswith("G") or row.memory == "1G"
        self.boots = []         # (random number, number of processors) of each boot
        root = tmp / "root"
        root.mkdir()
        shutil.copy(row.kernel, root / "vmlinuz")
        shutil.copy(Path(os.environ["HT_BUILD"]) / "tests/stock/stock-kexec",
                    root / "kexec")
        line = command(tmp, row, followed.BOOTS_INIT,
                       "socket,path={}/talk,server=on,wait=off")
        line.remove("-no-reboot")
        self.recorder = stock.start(tmp, [
            *line, "-qmp", f"unix:{tmp}/qmp,server=on,wait=off"], "--buffer", "main")
        recorders.append(self.recorder)
        self.wait()
        self.qmp = Qmp(tmp / "qmp")
        self.qmp.start()
        self.talk = socket.socket(socket.AF_UNIX)
        self.talk.connect(str(tmp / "talk"))

    def ready(self):
        return followed.ready(stock.console(self.tmp))

    def wait(self, done=0):
        """If @done is not 0, wait until the guest has run @done of the lines that it
        was sent; else wait until its next boot has printed READY."""
        if done:
            stock.wait_for(lambda: stock.console(self.tmp).count("DONE") >= done,
                           self.recorder)
            return
        stock.wait_for(lambda: len(self.ready()) > len(self.boots), self.recorder)
        self.boots = self.ready()

    def say(self, line):
        self.talk.sendall(line.encode() + b"\n")

    def look(self):
        """Record the guest by another recorder, which knows nothing about earlier
        boots. If the memory has at most 1 GiB, also dump it, and let `hypertrace recover`
        read the dump without the kernel's file. Assert that each recording has only the
        data of the kernel that runs now."""
        rec = self.tmp / f"look-{len(self.boots)}"
        recorder = subprocess.Popen(
            [stock.TOOL, "record", "-o", rec, "--pid",
             str(stock.qemu_of(self.recorder))], env=stock.ENV,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            stock.wait_for(lambda: (rec / "log").exists() and re.search(
                rb"boot [0-9a-f-]{36}", (rec / "log").read_bytes()), recorder)
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate(timeout=stock.DEADLINE)
        finally:
            recorder.kill()
        assert recorder.returncode == 0, err
        followed.assert_living(rec, self.boots, err)
        if not self.dumps:
            return
        core = self.tmp / "core"
        self.qmp.command("dump-guest-memory", paging=False, protocol=f"file:{core}")
        again = self.tmp / f"core-{len(self.boots)}"
        stock.run("recover", "-o", again, core)
        core.unlink()
        followed.assert_living(again, self.boots, err)

    def end(self):
        """Kill the guest; assert that the first recorder's recording has each boot with its own
        markers and log."""
        os.kill(stock.qemu_of(self.recorder), signal.SIGKILL)
        _, err = self.recorder.communicate(timeout=stock.DEADLINE)
        followed.assert_each_boot(self.tmp / "rec", self.boots, err)


@pytest.fixture(name="boots")
def make_boots(tmp_path):
    recorders = []
    yield lambda row: Boots(tmp_path, row, recorders)
    for recorder in recorders:
        stock.kill(recorder)


@pytest.mark.parametrize("row, resets", [
    (Row(STOCK), 10),
    # With nokaslr, the kernel is at the same address after each reset.
    (Row(STOCK, words=" nokaslr"), 10),
    (Row(STOCK, "16G"), 3),
    (Row(OLDEST), 3),
    (Row(NEWEST), 3),
    (Row(stock.GUESTS / "arm64/vmlinuz", "513", stock.ARM64), 3),
], ids=["6.12", "6.12 nokaslr", "6.12 16 GiB", "5.10", "7.x", "arm64"])
def test_resets(boots, row, resets):
    """Reset the guest, in turn by itself and by QEMU. With real kernels, only this test,
    test_kexec(), test_kdump() and test_kvm_followed.py prove that data of a previous kernel is
    not taken for data of the running kernel: neither by a recorder that followed all boots, nor
    by commands that find data of both kernels in the memory."""
    guest = boots(row)
    for n in range(resets):
        guest.look()
        if n % 2:
            guest.qmp.command("system_reset")
        else:
            guest.say("echo b >/proc/sysrq-trigger")
        guest.wait()
    guest.look()
    guest.end()


KERNELS = pytest.mark.parametrize(
    "row", [Row(STOCK), Row(STOCK, words=" nokaslr"), Row(OLDEST), Row(NEWEST)],
    ids=["6.12", "6.12 nokaslr", "5.10", "7.x"])


@KERNELS
def test_kexec(boots, row):
    """A kernel starts a second one, and that a third one, by kexec without a reset."""
    guest = boots(row)
    for _ in range(2):
        guest.look()
        guest.say("kexec")
        guest.wait()
    guest.look()
    guest.end()


@KERNELS
def test_kdump(boots, row):
    """A kernel crashes, and its kdump kernel runs beside it in the memory."""
    guest = boots(row._replace(memory="1G", words=row.words + " crashkernel=256M"))
    guest.look()
    guest.say("kexec ' nr_cpus=1 irqpoll reset_devices' crash")
    guest.wait(done=1)
    guest.say("echo c >/proc/sysrq-trigger")
    guest.wait()
    guest.look()
    guest.end()
