# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that tests share: record stock guests by `hypertrace record`, and compare the
recordings with what the guests print."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

TOOL = Path(os.environ["HT_BUILD"]) / "tools/hypertrace/hypertrace"
GUESTS = Path(os.environ["HT_CACHE"]) / "stock"
ENV = {**os.environ, "XDG_CACHE_HOME": os.environ["HT_TREE"]}
DEADLINE = 1800             # seconds

# Debian 12's QEMU sometimes miscompiles cmpxchg16b, and code that a kernel patches
# while another processor runs it. The options -cx16 and thread=single avoid both.
X86 = ["qemu-system-x86_64", "-accel", "tcg,thread=single",
       "-cpu", "qemu64,-cx16"]
ARM64 = ["qemu-system-aarch64", "-accel", "tcg,thread=single", "-M", "virt",
         "-cpu", "max"]
PLAIN = ["-smp", "2", "-nodefaults", "-display", "none", "-no-reboot"]

# First part of the scripts that guests run as init
MOUNTS = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /trace
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
$b mount -t tracefs none /trace
"""

# Script for init: do some work, then print the kernel's counters of the trace instance
# boot_map for each processor: "entries", the events in its ring, and "overrun", the
# overwritten events
INIT = MOUNTS + """for i in 1 2 3 4 5 6 7 8; do
    $b find /proc/self /sys/bus >/dev/null 2>&1
    echo "word $i" >/dev/kmsg
done
cd /trace/instances/boot_map
echo 0 >tracing_on
for c in per_cpu/cpu*; do
    echo "COUNT ${c#per_cpu/cpu}" $($b grep -E '^(entries|overrun)' $c/stats)
done
$b poweroff -f
$b sleep 1000
"""


def initrd(tmp, busybox="/bin/busybox", init=INIT, files=None):
    """Build an initramfs with busybox, a script for init and further files
    {path in the guest: file}"""
    root = tmp / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(busybox, root / "bin/busybox")
    (root / "init").write_text(init)
    (root / "init").chmod(0o755)
    for path, file in (files or {}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / path)
    archive = subprocess.run(
        "find . | cpio -o -H newc --quiet", shell=True, cwd=root, check=True,
        stdout=subprocess.PIPE).stdout
    (tmp / "initrd").write_bytes(archive)
    return tmp / "initrd"


def console(tmp):
    try:
        return (tmp / "console").read_text(errors="replace")
    except FileNotFoundError:
        return ""


def start(tmp, command, *options):
    return subprocess.Popen(
        [TOOL, "record", "-o", tmp / "rec", *options, "--",
         *map(str, command), "-serial", f"file:{tmp}/console"],
        env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def qemu_of(recorder):
    path = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
    for pid in path.read_text().split():
        if "qemu-system" in Path(f"/proc/{pid}/cmdline").read_text():
            return int(pid)
    return None


def kill(recorder):
    qemu = qemu_of(recorder) if recorder.poll() is None else None
    recorder.kill()
    recorder.wait()
    if qemu:
        with contextlib.suppress(ProcessLookupError):
            os.kill(qemu, signal.SIGKILL)


def wait_until(what, about):
    """Poll until what() is true; after a timeout fail with the text of
    about()"""
    deadline = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < deadline, about()
        time.sleep(0.05)


def wait_for(what, process):
    """Poll until what() is true; fail if process ends before that"""
    deadline = time.monotonic() + DEADLINE
    while not (found := what()):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def record(tmp, command, *options):
    recorder = start(tmp, command, *options)
    _, err = recorder.communicate(timeout=DEADLINE)
    assert recorder.returncode == 0, (err, console(tmp)[-2000:])
    return err


def run(*args):
    p = subprocess.run([TOOL, *map(str, args)], env=ENV, capture_output=True,
                       timeout=DEADLINE)
    assert p.returncode == 0, (args, p.stderr)
    return p.stdout.decode()


def assert_counts(tmp, cpus=2):
    """Assert that for each processor the recording has as many events as the guest's
    counters, printed on its console, say"""
    counts = re.findall(r"COUNT (\d+) entries: (\d+) overrun: (\d+)",
                        console(tmp))
    assert len(counts) == cpus, console(tmp)[-2000:]
    recorded = collections.Counter(e["cpu"] for e in reported(tmp / "rec"))
    assert recorded == {int(cpu): int(entries) + int(overrun)
                        for cpu, entries, overrun in counts}


TRACE_CMD = re.compile(r" *(.*)-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\w+): *"
                       r"(.*)$")


def lines_of(command, **more):
    """Run a command and yield its output line by line, because a million lines at
    once would fill memory."""
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE,
                          text=True, errors="replace", **more) as p:
        yield from p.stdout
    assert p.returncode == 0, command


def reported(recording):
    """Run `hypertrace report --json` on a recording; yield each event"""
    return map(json.loads, lines_of([TOOL, "report", "--json", recording],
                                    env=ENV))


def compare(ours, theirs):
    """Assert that for each processor both iterables have the same lines in the same order. A
    line is a tuple that begins with its processor. The order of lines of different
    processors may differ, because events with equal times have no order. Return the number
    of lines."""
    waiting = collections.defaultdict(collections.deque)
    lines = 0
    ours = iter(ours)
    for line in theirs:
        queue = waiting[line[0]]
        while not queue:
            other = next(ours)
            waiting[other[0]].append(other)
        assert queue.popleft() == line
        lines += 1
    assert next(ours, None) is None
    assert not any(waiting.values())
    return lines


def trace_cmd(path):
    for text in lines_of(["trace-cmd", "report", "-N", "-t", path]):
        assert "EVENTS DROPPED" not in text
        if m := TRACE_CMD.match(text):
            _, pid, cpu, s, ns, name, fields = m.groups()
            yield (int(cpu), int(s) * 10**9 + int(ns), int(pid), name,
                   fields.strip())


def compare_trace_cmd(tmp, dat):
    """Export tmp's recording to the file dat for trace-cmd, which gets only the largest
    segment, the part with most events during which the clock never steps back. Assert that
    `hypertrace report` and trace-cmd report the same events of this segment."""
    run("export", "-o", dat, tmp / "rec")
    segments = collections.Counter(e["segment"]
                                   for e in reported(tmp / "rec"))
    (segment, events), = segments.most_common(1)
    lines = compare(
        ((e["cpu"], e["ns"], e["pid"], e["event"],
          e["text"].split("\n")[0].strip())
         for e in reported(tmp / "rec") if e["segment"] == segment),
        trace_cmd(dat))
    assert lines == events
    return lines
