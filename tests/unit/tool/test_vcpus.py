# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace vcpus --xentrace: sums of a real trace and of a made one, truncated files, and the
check of --cpu-hz."""

import json
import struct
from pathlib import Path

import pytest

from hypertrace import run

HZ = "2596.135M"
EXCERPT = Path(__file__).parents[2] / "fuzz/corpus/xentrace/excerpt"

# Printed by xenalyze --summary, which tests/stock/test_xen.py runs: number of
# intervals and their mean in cycles.
# The test compares only their products, because xenalyze splits a running interval where the
# scheduler lets the vCPU continue.
XENALYZE = {
    (0, "running"): (146, 4217479), (0, "runnable"): (140, 3466374),
    (1, "running"): (144, 3360963), (1, "runnable"): (139, 3370028),
}


def vcpus(path, *args):
    result = run("vcpus", "--xentrace", f"--cpu-hz={HZ}", "--json", path, *args)
    return json.loads(result.stdout)


def record(event, tsc, *words):
    return struct.pack(f"<IQ{len(words)}I", 1 << 31 | len(words) << 28 | event, tsc, *words)


def state(vcpu, before, after, tsc):
    return record(0x21001 | before << 8 | after << 4, tsc, vcpu)


def chunk(cpu, *records):
    data = b"".join(records)
    return struct.pack("<III", 0x2001f003, cpu, len(data)) + data


def cycles(ns):
    return ns * 2.596135


def agree(trace, figures):
    states = {(v["domain"], s): cycles(v[s]["ns"]) for v in trace["vcpus"]
              for s in ("running", "runnable", "blocked")}
    for key, (number, mean) in figures.items():
        assert states[key] == pytest.approx(number * mean, rel=0.005), key


def test_excerpt_agrees_with_xenalyze():
    """The sums of a real trace agree with those of xenalyze within 0.5 %."""
    agree(vcpus(EXCERPT), XENALYZE)


def test_exits_hypercalls_and_two_cpus(tmp_path):
    """The time of an exit does not include the time in which the vCPU did not run. Records of
    several CPUs are merged by their time, and lost records are counted."""
    v = 3 << 16 | 1
    path = tmp_path / "trace"
    path.write_bytes(
        chunk(1, state(v, 0, 1, 900000), state(v, 1, 0, 1000000),
              record(0x81003, 1100000, 0x7b, 0, 0), record(0x81001, 1110000),
              record(0x82012, 1120000, 32),
              record(0x1f001, 1300000, 17, v, 1200000, 0),
              state(v, 0, 2, 1500000)) +
        chunk(0, state(v, 1, 0, 100000), record(0x81003, 200000, 0x7b, 0, 0),
              state(v, 0, 1, 210000), state(v, 1, 0, 500000), record(0x81001, 520000)))
    trace = vcpus(path)
    (one,) = trace["vcpus"]
    assert (one["domain"], one["vcpu"]) == (3, 1)
    assert (trace["lost"], trace["gaps"], trace["cpus"]) == (17, 1, 2)
    assert cycles(one["running"]["ns"]) == pytest.approx(110000 + 400000 + 200000, abs=9)
    assert cycles(one["runnable"]["ns"]) == pytest.approx(290000 + 100000, abs=9)
    assert cycles(one["unknown_ns"]) == pytest.approx(300000, abs=9)
    (exits,) = one["exits"]
    assert (exits["reason"], exits["number"]) == (0x7b, 2)
    assert cycles(exits["ns"]) == pytest.approx(30000 + 10000, abs=9)
    assert cycles(exits["max_ns"]) == pytest.approx(30000, abs=9)
    assert one["hypercalls"] == [{"hypercall": 32, "number": 1}]


def test_every_cut_is_read(tmp_path):
    """A file that is cut off anywhere after its first header is read up to the cut; an
    empty or foreign file is refused."""
    data = chunk(0, state(1, 1, 0, 5), state(1, 0, 2, 9), record(0x81001, 10))
    path = tmp_path / "cut"
    for size in range(12, len(data) + 1):
        path.write_bytes(data[:size])
        whole = vcpus(path)
        assert whole["records"] == sum(size >= end for end in (28, 44, 56))
    for bad in (b"", b"no trace at all"):
        path.write_bytes(bad)
        result = run("vcpus", "--xentrace", f"--cpu-hz={HZ}", path, status=1)
        assert "0x2001f003" in result.stderr.decode()


@pytest.mark.parametrize("hz", ["", "0", "-1G", "nan", "inf", "2596.135", "1T", "2Gx"])
def test_frequency_is_checked(hz):
    result = run("vcpus", "--xentrace", f"--cpu-hz={hz}", EXCERPT, status=2)
    assert "cpu_mhz" in result.stderr.decode()
