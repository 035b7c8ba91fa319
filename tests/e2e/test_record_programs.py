# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `hypertrace record --programs` and `hypertrace attach` with the distribution's QEMU.

The Linux guest has hypertrace.ko and an ivshmem-plain device. Its program ht-bench computes the
payload of each event from the event's number; ht-verify checks every byte of the payloads.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from scale import LONG
from test_record import (BUILD, DEADLINE, HYPERTRACE, console, env,  # noqa: F401
                         guest, initrd, record_until, report, wait_for)

BENCH = BUILD / "tools/ht-bench"
VERIFY = BUILD / "tools/ht-verify/ht-verify"
MODULE = os.environ.get("HT_MODULE", "")
PRELUDE = "PATH=$PATH:/ht\n[ -d /sys/module/hypertrace ] || " \
    "insmod /ht/hypertrace.ko\n"
# The driver makes the device's node when the recorder has answered.
WAIT = "while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done\n"
EVENTS = 500_000 if LONG else 100_000

pytestmark = [
    pytest.mark.xdist_group("record"),
    pytest.mark.skipif(not (MODULE and BENCH.exists() and VERIFY.exists()),
                       reason="hypertrace.ko or the tools were not built")]


def programs_guest(tmp, job):
    """Return the QEMU command of a guest that has the driver's module and ht-bench."""
    return guest(tmp, initrd(tmp / "initrd", PRELUDE + job, MODULE, BENCH))


def bench(options):
    return f"echo \"BENCH $(ht-bench -j {options})\" >/dev/console\n"


def results(tmp):
    return [json.loads(line) for line in
            re.findall(r"BENCH (\{.*\})", console(tmp))]


def verify(trace):
    """Return the streams that ht-verify finds in a trace. Fail if an event is altered, or
    missing without being counted as discarded."""
    p = subprocess.run([VERIFY, "--json", trace], capture_output=True, text=True,
                       timeout=DEADLINE)
    assert p.returncode == 0, (p.stdout, p.stderr)
    return json.loads(p.stdout)["inputs"][0]["streams"]


def test_every_event(tmp_path, env):  # noqa: F811
    """Each event that ht-bench emitted before QEMU was killed is in the recording once, with
    every byte. `hypertrace report` has them and the kernel's events in one list, ordered
    by time."""
    command = programs_guest(
        tmp_path, WAIT + bench(f"-l -t 2 -p mix -n {EVENTS}") +
        "echo marked >/sys/kernel/tracing/instances/boot_map/trace_marker\n"
        "echo READY >/dev/console; sleep 999\n")
    recorder = record_until(tmp_path, env, "READY", command, "--programs",
                            "-e", "sched,printk")
    os.kill(int(Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
                .read_text().split()[0]), signal.SIGKILL)
    err = recorder.communicate(timeout=DEADLINE)[1]
    assert len(results(tmp_path)) == 1, console(tmp_path)[-2000:]
    result, = results(tmp_path)
    assert result["sent"] == 2 * EVENTS and not result["discarded"], result
    assert "events of programs in " in err and "none lost" in err, err
    streams = verify(tmp_path / "rec/programs")
    assert [s["recorded"] for s in streams] == [EVENTS] * 2
    assert not any(s["missing"] or s["altered"] for s in streams)
    events = report(tmp_path, env)
    dates = [e["ns"] for e in events]
    assert dates == sorted(dates)
    mine = [i for i, e in enumerate(events) if e["system"] == "programs"]
    assert len(mine) == 2 * EVENTS
    kernel = [i for i, e in enumerate(events) if e["system"] != "programs"]
    assert kernel[0] < mine[0] and mine[-1] < kernel[-1]
    assert sum(mine[0] < i < mine[-1] for i in kernel) > EVENTS // 5000


def test_recorders_come_and_go(tmp_path, env):  # noqa: F811
    """Programs of a guest that boots without a recorder end without waiting for one.
    Then three recorders attach, one after the other; two of them are killed.  Each
    has all events of at least two runs of ht-bench; in its other streams, missing events
    are counted as discarded."""
    memory = tmp_path / "memory"
    made = subprocess.Popen([HYPERTRACE, "attach", "--create=16M", "-o",
                             tmp_path / "none", memory], env=env,
                            stderr=subprocess.PIPE, text=True)
    while "-device" not in made.stderr.readline():
        assert made.poll() is None
    made.kill()
    made.wait(timeout=DEADLINE)
    job = "echo BOOTED >/dev/console; while :; do\n" + \
        bench("-n 2000 2>/dev/null") + "sleep 0.2; done\n"
    command = programs_guest(tmp_path, job)
    command += ["-object", "memory-backend-file,id=ht,share=on,size=16M,"
                f"mem-path={memory}", "-device", "ivshmem-plain,memdev=ht"]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL) as qemu:
        try:
            # no recorder runs yet, so ht-bench ends with an error: let it do
            # so twice
            wait_for(tmp_path, r"BOOTED(?s:.*)BENCH \n(?s:.*)BENCH \n", qemu)
            for name, how in (("one", signal.SIGKILL), ("two", signal.SIGKILL),
                              ("three", signal.SIGTERM)):
                before = len(results(tmp_path))
                wanted = r"(?s:BENCH \{.*?){%d}" % (before + 3)
                with subprocess.Popen([HYPERTRACE, "attach", "-q", "-o",
                                       tmp_path / name, memory],
                                      env=env) as recorder:
                    try:
                        wait_for(tmp_path, wanted, qemu)
                    finally:
                        recorder.send_signal(how)
                # ht-bench may be running: wait for its end, and for that of the next run
                ended = console(tmp_path).count("BENCH ") + 2
                wait_for(tmp_path, r"(?s:BENCH .*?){%d}" % ended, qemu)
        finally:
            qemu.kill()
    for name in "one", "two", "three":
        streams = verify(tmp_path / name / "programs")
        assert sum(s["recorded"] == 2000 for s in streams) >= 2, streams
