# SPDX-License-Identifier: GPL-2.0-or-later
"""Under load, the kernel's events and function entries are recorded or counted as discarded.

HT_LOAD_CPUS=2,4,8 tests each channel with 2, 4 and 8 vCPUs; by default one
channel is tested.
"""

import os
import re
import shutil
import subprocess

import pytest

from bench.linux import with_libraries
from vm.machine import VM
from linux_guest import (
    LOAD, PRELUDE, assert_sound, much, needs_glibc, sources_module, stats)

CPUS = os.environ.get("HT_LOAD_CPUS", "")
CASES = [(channel, int(cpus)) for cpus in CPUS.split(",")
         for channel in ("hypercall", "shm", "virtio")] if CPUS \
    else [("virtio", 2)]

JOB = PRELUDE + LOAD + """
insmod /ht/hypertrace-sources.ko events='sched,irq,raw_syscalls'
load "-l 20" . /
# under load, switch the last CPU off and on, and load the module again
load "-l 20" . / &
c=/sys/devices/system/cpu/cpu$(($(nproc) - 1))/online
for i in 1 2 3; do
    echo 0 >$c
    echo 1 >$c
    rmmod hypertrace-sources
    insmod /ht/hypertrace-sources.ko events='sched,irq,raw_syscalls'
done
wait
rmmod hypertrace-sources
echo events >&3
read answer <&3
insmod /ht/hypertrace-sources.ko events= functions='entry:*'
load "-l 1" . /
rmmod hypertrace-sources
echo functions >&3
read answer <&3
"""


def counted(trace):
    out = subprocess.run(
        ["babeltrace2", trace, "-c", "sink.utils.counter"], check=True,
        stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return int(re.findall(r"(\d+) Event messages", out)[-1])


@needs_glibc
@pytest.mark.parametrize("channel,cpus", CASES)
def test_load(tmp_path, channel, cpus):
    if not shutil.which("hackbench"):
        pytest.skip("hackbench is not installed (Debian: rt-tests)")
    with VM(devices=[much(channel, packets=256)], job=JOB,
            files={**sources_module(),
                   **with_libraries(["hackbench"])}, cpus=cpus,
            workdir=tmp_path / "vm") as vm:
        totals = []
        for part in "events", "functions":
            vm.out.expect(f"^{part}$", 1200)
            vm.settle("ht0")
            totals.append(stats(vm))
            vm.say("go on")
        vm.wait(120)
        assert_sound(vm)
        events, last = totals
        came = counted(vm.trace("ht0"))
    print(f"{channel}, {cpus} vCPUs: {events['events']} events of the "
          f"kernel's, {events['lost']} discarded; then "
          f"{last['events'] - events['events']} entries of functions, "
          f"{last['lost'] - events['lost']} discarded")
    # The device would count an error for a packet whose number of earlier events is
    # wrong.
    assert not last["errors"] and not last["dropped"]
    assert came == last["events"]
    assert events["events"] > 10000
    functions = last["events"] - events["events"]
    assert functions > 100000
    # Events of functions that the driver calls to submit a packet may be discarded.
    assert (last["lost"] - events["lost"]) * 10000 < functions
