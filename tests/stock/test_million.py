# SPDX-License-Identifier: GPL-2.0-or-later
"""Record a million events between which the guest's clock does not go back, and compare
`hypertrace report` with trace-cmd report and the guest's own file `trace`."""

import gzip
import os
import re
import shutil

import pytest
import stock

EVENTS = 1_000_000

# Each system call is two events; other events come from background activity.
INIT = stock.MOUNTS + r"""$b stty -F /dev/ttyS0 raw
cd /trace/instances/boot_map
echo 1 >events/raw_syscalls/enable
for cpu in 1 2; do
    $b taskset $cpu $b dd if=/dev/zero of=/dev/null bs=1 count=140000 &
done
$b find /proc/self /sys/bus >/dev/null 2>&1
wait
echo 0 >tracing_on
for c in per_cpu/cpu*; do
    echo "COUNT ${c#per_cpu/cpu}" $($b grep -E '^(entries|overrun)' $c/stats)
done
$b gzip -1 -c trace >/dev/ttyS0
$b poweroff -f
$b sleep 1000
"""

TRACE = re.compile(r" *.*-(\d+) +\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+): ?(.*)$")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    tmp = tmp_path_factory.mktemp("million")
    err = stock.record(tmp, [
        *stock.X86, *stock.PLAIN, "-m", "512", "-serial", f"file:{tmp}/trace",
        "-kernel", os.environ["HT_KERNEL"],
        "-initrd", stock.initrd(tmp, init=INIT),
        "-append", "console=ttyS1 panic=-1 no_timer_check"],
        "--size", "128M")
    assert "none lost" in err, err
    return tmp


def test_counts(recorded):
    stock.assert_counts(recorded)


def test_trace_cmd(recorded, tmp_path):
    """`hypertrace report` equals trace-cmd report in the largest segment of the clock. A
    segment ends where the guest's clock goes back."""
    if not shutil.which("trace-cmd"):
        pytest.skip("trace-cmd is not installed")
    assert stock.compare_trace_cmd(recorded,
                                   tmp_path / "trace.dat") >= EVENTS


def alike(text):
    text = re.sub(r"(\+0x[0-9a-f]+)/0x[0-9a-f]+", r"\1", text.strip())
    return re.sub(r"0xffff[0-9a-f]{12}|\(____ptrval____\)|\b0{8}[0-9a-f]{8}\b",
                  "(pointer)", text)


def guests(path):
    with gzip.open(path, "rt", errors="replace") as f:
        for m in filter(None, map(TRACE.match, f)):
            pid, cpu, s, us, name, fields = m.groups()
            yield (int(cpu), int(s) * 10**6 + int(us), int(pid), name,
                   alike(fields))


def test_guests_own(recorded):
    """`hypertrace report` equals the guest's own file `trace`, by the first line of each
    event, except for three differences: the guest's file has rounded microseconds, sizes of
    symbols, and hashed or hidden pointers."""
    ours = ((e["cpu"], (e["ns"] + 500) // 1000, e["pid"], e["event"],
             alike(e["text"].split("\n")[0]))
            for e in stock.reported(recorded / "rec"))
    assert stock.compare(ours, guests(recorded / "trace")) >= EVENTS
