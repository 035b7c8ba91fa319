# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `hypertrace record --lttng` with each buffer of a stock kernel.

LTTng must know an event's fields before it takes the first event of this kind.  So
`hypertrace record` reads the formats of the kernel's events early, from the kernel's
image or from the memory of a running guest.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import test_record as recording
from directories import session_directory  # noqa: F401
from test_record import DEADLINE, HYPERTRACE, env  # noqa: F401
from vm.lttng_session import PrivateSession, missing_programs

JOB = """
echo READY >/dev/console
sleep 1000
"""
# Parameters of the guest's kernel, which make it trace into its main buffer
WORDS = " trace_event=sched,initcall trace_buf_size=4096K trace_clock=local"

pytestmark = [
    pytest.mark.xdist_group("record"),
    pytest.mark.skipif(bool(missing_programs()) or
                       not shutil.which("babeltrace2"),
                       reason="LTTng or babeltrace2 is not installed")]


def record_started(tmp, environment, options):
    command = recording.guest(tmp, recording.initrd(tmp / "initrd", JOB))
    recorder = recording.record_until(tmp, environment, "READY", command,
                                      *options)
    qemu, = recording.children(recorder.pid)
    os.kill(qemu, signal.SIGKILL)
    return recorder.communicate(timeout=DEADLINE)[1]


def record_running(tmp, environment, options):
    command = recording.guest(tmp, recording.initrd(tmp / "initrd", JOB))
    kernel = shutil.copy(os.environ["HT_KERNEL"], tmp / "vmlinuz")
    command[command.index("-kernel") + 1] = kernel
    command[-1] += WORDS
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as qemu:
        try:
            recording.wait_for(tmp, "READY", qemu)
            Path(kernel).unlink()
            return recording.record_running(tmp, environment, qemu, "--pid",
                                            str(qemu.pid), *options)
        finally:
            qemu.kill()


@pytest.mark.parametrize("record, options, event", (
    (record_started, ["--buffer", "boot"], "initcall_start"),
    (record_started, ["--buffer", "main"], "initcall_start"),
    (record_started, ["--graph", "acpi_init,depth=2"], "funcgraph_exit"),
    (record_running, [], "initcall_start"),
))
def test_buffers(tmp, env, record, options, event):  # noqa: F811
    """LTTng gets as many events as are recorded, under their names; an event of the kind
    `event` has its field func."""
    with PrivateSession(str(tmp / "trace"), events=["vm:*"],
                        blocking=True) as s:
        err = record(tmp, s.env({**env, "LTTNG_UST_REGISTER_TIMEOUT": "60000"}),
                     ["--lttng=vm", *options])
        s.finish()
    count = int(re.search(r"(\d+) of them are LTTng's, as 'vm:\*'", err)[1])
    assert f"{count} events, " in err, err
    text = subprocess.run(["babeltrace2", tmp / "trace"], check=True,
                          capture_output=True, text=True).stdout
    found = collections.Counter(re.findall(r" vm:(\S+): ", text))
    # LTTng's event "discarded" reports a gap, which the kernel causes if it empties its
    # ring when it starts the tracer.
    found.pop("discarded", None)
    assert found.total() == count > 100, (found, err)
    assert not found["ftrace.raw"], found
    names = [name for name in found if name.endswith(event)]
    assert names and re.search(rf" vm:{re.escape(names[0])}: .* func = ", text)
