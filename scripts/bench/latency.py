# SPDX-License-Identifier: GPL-2.0-or-later
"""How long events take from a guest's emit to LTTng's time stamp.

Both ends are host CLOCK_MONOTONIC nanoseconds: guest_ns as the device
converted it (its error bound is in the device's statistics), and the time at
which LTTng-UST recorded the event.
"""

import re
import shutil
import subprocess
from pathlib import Path

from vm.machine import Failure

EVENT = re.compile(r"^\[0*(\d+)\] .*guest_ns = (\d+)")


def read(session, device, count):
    """Times in ns from emit to delivery of the last @count events of a device, in
    increasing order"""
    session.snapshot()
    newest = max(Path(session.output).iterdir(),
                 key=lambda p: p.stat().st_mtime_ns)
    try:
        done = subprocess.run(
            ["babeltrace2", "--no-delta", "--clock-cycles", newest],
            check=False, stdin=subprocess.DEVNULL, capture_output=True,
            text=True)
    finally:
        shutil.rmtree(newest, ignore_errors=True)
    times = []
    for line in done.stdout.splitlines():
        if f" {device}:" not in line:
            continue
        found = EVENT.match(line)
        if found:
            times.append(int(found[1]) - int(found[2]))
    if len(times) < count:
        raise Failure(f"LTTng recorded {len(times)} of {count} events of "
                      f"{device}: {done.stderr.strip()[-300:]}")
    return sorted(times[-count:])


def percentiles(times):
    def at(share):
        return times[min(len(times) - 1, int(len(times) * share))]
    return {"latency_min_ns": times[0], "latency_p50_ns": at(0.5),
            "latency_p90_ns": at(0.9), "latency_p99_ns": at(0.99),
            "latency_max_ns": times[-1],
            "latency_points_ns": [at(i / 20) for i in range(21)]}
