# SPDX-License-Identifier: GPL-2.0-or-later
"""Record a Debian with systemd on a disk, booted by its own GRUB.

The fixture crashed() logs in on the guest's console, a socket, and crashes the guest.
All tests of this file use that recording.
"""

import json
import re
import select
import shutil
import socket
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
import stock

DISK = stock.GUESTS / "disk"


class Console:
    def __init__(self, path, process):
        self.all = b""
        self.seen = 0
        self.socket = socket.socket(socket.AF_UNIX)
        stock.wait_for(lambda: self.connect(path), process)

    def connect(self, path):
        try:
            self.socket.connect(str(path))
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def expect(self, mark, seconds=stock.DEADLINE):
        """Wait for text on the console that matches mark; return False if it does not
        appear in time.  The next call searches after this text."""
        deadline = time.monotonic() + seconds
        while not (m := re.compile(mark).search(self.all, self.seen)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return False
            data = self.socket.recv(65536)
            assert data, self.all[-2000:]
            self.all += data
        self.seen = m.end()
        return True

    def log_in(self):
        """Log in; input during the terminal's setup is lost, so retry."""
        assert self.expect(b"login: "), self.all[-2000:]
        for _ in range(100):
            self.say("root\n")
            if self.expect(b"# ", 20):
                return
        raise AssertionError(self.all[-2000:])

    def say(self, text):
        self.socket.sendall(text.encode())


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    tmp = tmp_path_factory.mktemp("disk")
    recorder = subprocess.Popen(
        [stock.TOOL, "record", "-o", tmp / "rec", "--size", "64M",
         "--kernel", DISK / "vmlinuz", "--", *stock.X86, *stock.PLAIN,
         "-m", "1G", "-serial", f"unix:{tmp}/console,server=on,wait=on",
         "-drive", f"file={DISK}/disk.img,if=virtio,format=raw,snapshot=on",
         "-nic", "user,model=virtio"], env=stock.ENV,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        console = Console(tmp / "console", recorder)
        console.log_in()
        console.say("echo 1 >/proc/sys/kernel/panic; /usr/bin/true; "
                    "echo c >/proc/sysrq-trigger\n")
        _, err = recorder.communicate(timeout=stock.DEADLINE)
    finally:
        stock.kill(recorder)
    assert recorder.returncode == 0, err
    assert re.search(r"\d+ events, .* none lost", err), err
    return tmp


def test_boot(crashed, tmp_path):
    boot = json.loads(stock.run("boot", "--json", "--svg", tmp_path / "svg",
                                crashed / "rec"))
    names = [p["name"] for p in boot["phases"]]
    assert names[:4] == ["kernel", "initcalls", "kernel, rest", "initramfs"]
    assert names[-1] == "services"
    # "hypertrace boot" names a service after the file that its process executed last.
    processes = {p["name"] for p in boot["processes"] if p["service"]}
    assert {"/usr/lib/systemd/systemd-journald", "/usr/sbin/sshd",
            "/usr/lib/systemd/systemd-random-seed"} <= processes
    modules = {c["name"] for c in boot["initcalls"]
               if c["level"] == "modules"}
    assert {"virtio_blk", "virtio_net"} <= modules
    assert ElementTree.parse(tmp_path / "svg").getroot().tag.endswith("svg")


def test_last_words(crashed):
    """The end of the recording is that of the guest: the log has the panic's
    message, and the last exec is that of the last program started before the panic."""
    log = stock.run("log", crashed / "rec")
    assert "Kernel panic - not syncing: sysrq triggered crash" in log
    ends = stock.run("report", "--event", "sched_process_exec",
                     "--from=-60", crashed / "rec").splitlines()
    assert "filename=/usr/bin/true" in ends[-1], ends[-3:]


def test_trace_cmd(crashed, tmp_path):
    """`hypertrace report` and trace-cmd report the same events of the recording's largest
    part without a step back of the clock: over 50,000."""
    if not shutil.which("trace-cmd"):
        pytest.skip("trace-cmd is not installed")
    assert stock.compare_trace_cmd(crashed, tmp_path / "trace.dat") > 50000
