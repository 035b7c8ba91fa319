# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace vcpus --xentrace compared with Xen's own program for traces."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import stock

TRACE = Path(__file__).parents[1] / "fuzz/corpus/xentrace/excerpt"
MHZ = 2596.135
STATES = ("running", "runnable", "blocked")


def xenalyze():
    """{(domain, vCPU, state): ns} by Xen's xenalyze: number of
    intervals, times their mean"""
    program = shutil.which("xenalyze") or stock.GUESTS / "xenalyze/usr/bin/xenalyze"
    if not Path(program).exists():
        pytest.skip("scripts/vm/stock-guests.sh xenalyze fetches the program")
    text = subprocess.run([program, "--cpu-hz", f"{MHZ / 1000}G", "--summary", TRACE],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout
    sums, domain, vcpu = {}, None, None
    for line in text.splitlines():
        if m := re.match(r"\|-- Domain (\d+) --\|", line):
            domain, vcpu = int(m[1]), None
        elif m := re.match(r"-- v(\d+) --", line):
            vcpu = int(m[1])
        elif (m := re.match(r" +(\w+): +(\d+) +\S+ +(\d+) ", line)) and m[1] in STATES:
            # before the first vCPU of a domain, xenalyze prints the sums of
            # the domain
            if vcpu is not None:
                sums[domain, vcpu, m[1]] = int(m[2]) * int(m[3]) * 1000 / MHZ
    return sums


def test_sums_agree_with_xenalyze():
    """Only this test compares the sums of vcpus with those that Xen's xenalyze prints."""
    expected = xenalyze()
    trace = json.loads(stock.run("vcpus", "--xentrace", f"--cpu-hz={MHZ}M", "--json", TRACE))
    sums = {(v["domain"], v["vcpu"], s): v[s]["ns"] for v in trace["vcpus"] for s in STATES}
    assert expected.keys() >= {(d, 0, s) for d in (0, 1) for s in ("running", "runnable")}
    for key, ns in expected.items():
        assert sums[key] == pytest.approx(ns, rel=0.005), key
