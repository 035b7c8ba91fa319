# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace watch follows a stock guest that another program started.

The test proves that hypertrace sees a panic and a reset of a stock kernel in the guest's
memory, without a monitor of QEMU. The recordings of both have the guest's last mark before
them, and the recording of the panic has the kernel's log.
"""

import os
import re
import socket
import subprocess
import time

import pytest

from test_flight import Guest as FlightGuest
from test_record import (DEADLINE, EMULATION, HYPERTRACE, MEMORY, QEMU, initrd,
                         lacking)

pytestmark = pytest.mark.xdist_group("record")

# Kernel parameters that make the kernel record these events. `hypertrace watch` does not start
# the machine, so it cannot add them.
WORDS = " trace_event=sched:sched_switch,sched:sched_process_exec"
JOB = """
echo 0 >/proc/sys/kernel/printk
exec 4</dev/ttyS1
echo READY >/dev/console
read -r line <&4
cd /sys/kernel/tracing
echo "HT 1" >trace_marker
eval "$line"
sleep 1000
"""


class Guest(FlightGuest):
    def __init__(self, tmp, name="vm1"):
        self.tmp, self.env, self.talk = tmp, os.environ, None
        self.dir = tmp / "flights/root" / name
        image = initrd(tmp / "initrd", JOB)
        self.vm = subprocess.Popen(
            [QEMU, "-name", f"guest={name}", *EMULATION, "-nodefaults",
             "-display", "none", *MEMORY, "-kernel", os.environ["HT_KERNEL"],
             "-initrd", image, "-serial", f"file:{tmp}/console",
             "-serial", f"unix:{tmp}/talk,server=on,wait=off",
             "-append", os.environ["HT_KERNEL_ARGS"] + WORDS],
            stdin=subprocess.DEVNULL)
        with open(tmp / "stderr", "w") as err:
            self.recorder = subprocess.Popen(
                [HYPERTRACE, "watch", "--name", name, "--size", "8M",
                 "--dir", tmp / "flights"], stdin=subprocess.DEVNULL,
                stderr=err)

    def __exit__(self, *exc):
        self.vm.kill()
        self.vm.wait()
        self.recorder.terminate()
        assert self.recorder.wait(DEADLINE) == 0
        if self.talk:
            self.talk.close()

    def wait_followed(self):
        """Wait until `hypertrace snapshot` succeeds: `hypertrace watch` then follows the guest.
        The snapshot makes the recording 1-command."""
        deadline = time.monotonic() + DEADLINE
        while subprocess.run([HYPERTRACE, "snapshot", "-q", self.dir],
                             check=False, capture_output=True).returncode:
            assert time.monotonic() < deadline, self.messages()
            time.sleep(0.2)


@pytest.mark.skipif(os.geteuid() != 0, reason="the folder has root's name")
def test_panic_reset_killed(tmp_path):
    if lacking():
        pytest.skip(lacking())
    with Guest(tmp_path) as g:
        g.wait_ready()
        g.wait_followed()
        g.say("echo c >/proc/sysrq-trigger")
        g.wait("2-panic")
        g.wait_ready(boots=2)
        g.say("echo b >/proc/sysrq-trigger")
        g.wait("3-reset")
        g.wait_ready(boots=3)
        g.vm.kill()
        g.wait("4-end")
        assert g.names() == ["1-command", "2-panic", "3-reset", "4-end"]
        assert g.marks("2-panic") == [1]
        assert g.marks("3-reset")[-1:] == [1]
        line, = re.findall("vm1: panic: .*", g.messages())
        assert "; The recording of Linux " in line, line
        log = subprocess.run([HYPERTRACE, "log", g.dir / "2-panic"],
                             check=True, capture_output=True, text=True).stdout
        assert "Kernel panic - not syncing" in log
