# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace record --flight: a stock guest that is reset, panics or is killed.

These tests prove that with a stock QEMU and a stock kernel a reset, a panic and the end
of QEMU each make a recording of its own, which has the last events before it.
"""

import configparser
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from linux_guest import HYPERTRACE, kernel_module
from test_record import (DEADLINE, EMULATION, MEMORY, QEMU,  # noqa: F401
                         children, env, initrd, wait_for)

pytestmark = pytest.mark.xdist_group("record")

# Script of the guest: write 200 marks, and wait for a command on the second serial
# port. Then write a last mark, and run the command.
JOB = """
cd /sys/kernel/tracing/instances/boot_map
for m in pvpanic pvpanic-mmio; do
    insmod /ht/$m.ko
done
echo 1 >events/printk/enable
i=0
while [ $i -lt 200 ]; do
    i=$((i + 1))
    echo "HT $i" >trace_marker
done
echo 0 >/proc/sys/kernel/printk
exec 4</dev/ttyS1
echo READY >/dev/console
read -r line <&4
echo "HT 201" >trace_marker
eval "$line"
sleep 1000
"""


class Guest:
    def __init__(self, tmp, env, *options):
        self.tmp, self.env, self.dir = tmp, env, tmp / "flight"
        modules = [kernel_module(m, "drivers/misc/pvpanic", tmp)
                   for m in ("pvpanic.ko", "pvpanic-mmio.ko")]
        image = initrd(tmp / "initrd", JOB, *modules)
        self.talk = None
        self.err = open(tmp / "stderr", "w+")
        self.recorder = subprocess.Popen(
            [HYPERTRACE, "record", "--flight", "8M", *options, "-o", self.dir,
             "--", QEMU, *EMULATION, "-nodefaults", "-display", "none",
             *MEMORY, "-kernel", os.environ["HT_KERNEL"], "-initrd", image,
             "-device", "pvpanic", "-serial", f"file:{tmp}/console",
             "-serial", f"unix:{tmp}/talk,server=on,wait=off",
             "-append", os.environ["HT_KERNEL_ARGS"]],
            env=env, stdin=subprocess.DEVNULL, stderr=self.err)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.recorder.poll() is None:
            for pid in children(self.recorder.pid):
                os.kill(pid, signal.SIGKILL)
            self.recorder.wait(DEADLINE)
        self.err.close()
        if self.talk:
            self.talk.close()

    def qemu(self):
        """PID of QEMU among the recorder's children; another child may
        be writing a recording"""
        pid, = [p for p in children(self.recorder.pid) if "qemu" in
                Path(f"/proc/{p}/comm").read_text()]
        return pid

    def wait_ready(self, boots=1):
        wait_for(self.tmp, "(?s)" + ".*".join(["READY"] * boots),
                 self.recorder)

    def say(self, line):
        if not self.talk:
            self.talk = socket.socket(socket.AF_UNIX)
            self.talk.connect(str(self.tmp / "talk"))
        self.talk.sendall(line.encode() + b"\n")

    def names(self):
        return sorted(p.name for p in self.dir.iterdir()
                      if not p.name.startswith("."))

    def wait(self, name):
        deadline = time.monotonic() + DEADLINE
        while not (self.dir / name).exists():
            assert time.monotonic() < deadline, (self.names(), self.messages())
            time.sleep(0.02)

    def messages(self):
        return (self.tmp / "stderr").read_text()

    def marks(self, name):
        out = subprocess.run([HYPERTRACE, "report", "--json",
                              self.dir / name], env=self.env, check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        found = [re.match(r"HT (\d+)", e["fields"].get("buf", ""))
                 for e in map(json.loads, out.splitlines())]
        return [int(m[1]) for m in found if m]

    def info(self, name):
        keys = configparser.ConfigParser(interpolation=None)
        keys.read(self.dir / name / "info")
        return keys["recording"]


def test_reset_and_panic(tmp_path, env):  # noqa: F811
    """The recorder makes two recordings of a guest on request, one at a reset, and one
    at a panic that ends QEMU."""
    with Guest(tmp_path, env) as g:
        g.wait_ready()
        assert g.names() == []
        out = subprocess.run([HYPERTRACE, "snapshot", g.dir], check=True,
                             capture_output=True, text=True).stdout
        assert re.match(rf"{g.dir}/1-command  \d+ events\n\nThe recording of "
                        "Linux ", out), out
        assert g.marks("1-command") == list(range(1, 201))
        g.recorder.send_signal(signal.SIGUSR1)
        g.wait("2-signal")
        assert g.marks("2-signal") == list(range(1, 201))

        g.say("echo b >/proc/sysrq-trigger")
        g.wait("3-reset")
        assert g.marks("3-reset") == list(range(1, 202))
        g.wait_ready(boots=2)
        g.say("echo c >/proc/sysrq-trigger")
        assert g.recorder.wait(DEADLINE) == 0, g.messages()
        assert g.names() == ["1-command", "2-signal", "3-reset", "4-panic"], \
            g.messages()
        assert g.marks("4-panic") == [*range(1, 202), *range(1, 202)]
        assert g.info("4-panic")["cause"] == "panic"
        log = subprocess.run([HYPERTRACE, "log", g.dir / "4-panic"], env=env,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
        assert log.count("Kernel panic - not syncing: sysrq") == 1, log[-2000:]
        lines = [li for li in g.messages().splitlines() if "-panic" in li]
        assert len(lines) == 1 and "the guest panicked" in lines[0], lines
        assert not (g.dir / ".control").exists()


def test_killed(tmp_path, env):  # noqa: F811
    """If QEMU is killed with SIGKILL, the recorder still has the guest's memory mapped and
    records the last events. With --keep 2, the older recordings are removed."""
    with Guest(tmp_path, env, "--keep", "2") as g:
        g.wait_ready()
        for n in range(1, 4):
            g.recorder.send_signal(signal.SIGUSR1)
            g.wait(f"{n}-signal")
        os.kill(g.qemu(), signal.SIGKILL)
        assert g.recorder.wait(DEADLINE) == 128 + signal.SIGKILL
        assert g.names() == ["3-signal", "4-end"]
        assert g.marks("4-end") == list(range(1, 201))
        assert "killed by signal 9" in g.info("4-end")["end"]
