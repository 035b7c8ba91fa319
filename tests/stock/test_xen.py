# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare hypertrace vcpus --xentrace with xenalyze, Xen's own program for traces."""

import collections
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import hosts
import pytest
import stock

TRACE = Path(__file__).parents[1] / "fuzz/corpus/xentrace/excerpt"
MHZ = 2596.135
STATES = ("running", "runnable", "blocked")

# Script of the Xen host: run a guest of type pv, then one of type pvh, and trace both.
SCRIPT = hosts.XEN_SCRIPT + """
guest() {
    cat >/run/$1.cfg <<EOT
name="$1"
type="$1"
kernel="$(echo /boot/vmlinuz-*)"
ramdisk="/run/job/initrd"
extra="console=hvc0 panic=-1 mitigations=off quiet rdinit=/init"
memory=192
vcpus=1
on_poweroff="destroy"
on_crash="destroy"
EOT
    xentrace -D -e 0x0fdff000 -S 1024 /run/out/$1.trace &
    tracer=$!
    xl create /run/$1.cfg || return
    while xl list $1; do
        sleep 0.5
    done
    kill -INT $tracer
    wait $tracer
    xenalyze --summary /run/out/$1.trace >/run/out/$1.summary 2>/run/out/$1.errors
}
{
    guest pv && guest pvh
    echo "status $?"
} >/run/out/log 2>&1
""" + hosts.END

# Ids of trace records, from Xen's public/trace.h. An id is compared with the bits of a
# record's id that the mask keeps; the other bits hold, for example, the states.
RUNSTATE, RUNSTATE_MASK = 0x21001, 0xffffccf
VMENTRY, VMX_EXIT, SVM_EXIT, HVM_MASK = 0x81001, 0x81002, 0x81003, 0xffffaff
RUNNING, RUNNABLE = 0, 1


def run_xenalyze(trace):
    program = shutil.which("xenalyze") or stock.GUESTS / "xenalyze/usr/bin/xenalyze"
    if not Path(program).exists():
        pytest.skip("scripts/vm/stock-guests.sh xenalyze fetches the program")
    return subprocess.run([program, "--cpu-hz", f"{MHZ / 1000}G", "--summary", trace],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


def summary(text):
    """A pair of sums in cycles from xenalyze's text: {(domain, vCPU, state): sum} of
    states, and {(domain, vCPU): [(number, sum)]} of exits. A sum is the number of
    intervals times their mean."""
    states, exits, domain, vcpu = {}, {}, None, None
    for line in text.splitlines():
        if m := re.match(r"\|-- Domain (\d+) --\|", line):
            domain, vcpu = int(m[1]), None
        elif m := re.match(r"-- v(\d+) --", line):
            vcpu = int(m[1])
        # Ignore the lines before the first vCPU of a domain: xenalyze prints the sums
        # of the whole domain there.
        elif vcpu is not None and (m := re.match(r" +(\w+):? +(\d+) +\S+(?: +\S+%)? +(\d+) ",
                                                 line)):
            cycles = int(m[2]) * int(m[3])
            if m[1] in STATES:
                states[domain, vcpu, m[1]] = cycles
            elif m[1].startswith("VMEXIT_"):
                exits.setdefault((domain, vcpu), []).append((int(m[2]), cycles))
    return states, exits


def vcpus(trace, mhz):
    text = stock.run("vcpus", "--xentrace", f"--cpu-hz={mhz}M", "--json", trace)
    return json.loads(text)["vcpus"]


def assert_states_agree(trace, mhz, expected):
    sums = {(v["domain"], v["vcpu"], s): v[s]["ns"] for v in vcpus(trace, mhz) for s in STATES}
    for key, cycles in expected.items():
        assert sums[key] * mhz / 1000 == pytest.approx(cycles, rel=0.005), key


def test_sums_agree_with_xenalyze():
    """For a stored trace, the sums of states by `hypertrace vcpus` and by Xen's xenalyze agree
    within 0.5 %. test_exits_agree_with_xenalyze compares these sums for new traces."""
    expected, _ = summary(run_xenalyze(TRACE))
    assert expected.keys() >= {(d, 0, s) for d in (0, 1) for s in ("running", "runnable")}
    assert_states_agree(TRACE, MHZ, expected)


def records(trace):
    """Yield (event, TSC or None, words) of each record in a trace with one CPU"""
    data, at = trace.read_bytes(), 0
    while at < len(data):
        head, = struct.unpack_from("<I", data, at)
        stamped, words = head >> 31, head >> 28 & 7
        fields = struct.unpack_from(f"<{'Q' * stamped}{'I' * words}", data, at + 4)
        at += 4 + 8 * stamped + 4 * words
        yield head & 0xfffffff, fields[0] if stamped else None, fields[stamped:]


def exits_of(trace):
    """{(vCPU, reason): [number of exits, cycles in which the vCPU had its CPU during these
    exits, cycles from the exits up to the next entries]}. If a vCPU becomes runnable before
    the entry, the third number counts only the cycles up to that."""
    sums, current, opened = collections.defaultdict(lambda: [0, 0, 0]), None, {}
    for event, t, words in records(trace):
        if event & RUNSTATE_MASK == RUNSTATE:
            vcpu, old, new = words[0], event >> 8 & 3, event >> 4 & 3
            if one := opened.get(vcpu):
                one["on_cpu"] += t - one["since"] if old == RUNNING else 0
                one["since"] = t
                if new == RUNNABLE and one["until"] is None:
                    one["until"] = t
            if new == RUNNING:
                current = vcpu
        elif event & HVM_MASK in (VMX_EXIT, SVM_EXIT):
            opened[current] = {"reason": words[0], "begin": t, "since": t, "on_cpu": 0,
                               "until": None}
        elif event & HVM_MASK == VMENTRY and (one := opened.pop(current, None)):
            row = sums[current, one["reason"]]
            row[0] += 1
            row[1] += one["on_cpu"] + t - one["since"]
            row[2] += (one["until"] or t) - one["begin"]
    return sums


def test_exits_agree_with_xenalyze(tmp_path):
    """Only this test compares the exits by `hypertrace vcpus` with those by Xen's xenalyze.

    As the time of an exit, vcpus counts the time in which the vCPU had its CPU. xenalyze counts
    the time until the entry, or until the vCPU became runnable. The test computes both times
    from the trace's records.
    """
    initrd = stock.initrd(tmp_path, init=hosts.SHORT_INIT)
    result = hosts.xen(tmp_path, SCRIPT, {"initrd": initrd})
    mhz = float(re.search(r"cpu_mhz +: ([\d.]+)", (result / "info").read_text())[1])
    for kind in ("pv", "pvh"):
        states, _ = summary((result / f"{kind}.summary").read_text())
        assert len({domain for domain, _, _ in states}) == 3
        assert_states_agree(result / f"{kind}.trace", mhz, states)
    trace = result / "pvh.trace"
    expected = exits_of(trace)
    (guest,) = [v for v in vcpus(trace, mhz) if v["exits"]]
    found = {e["reason"]: e for e in guest["exits"]}
    print(f"{len(found)} reasons, {sum(e['number'] for e in found.values())} exits, "
          f"{sum(e['ns'] for e in found.values()) / 1e9:.3f} s")
    assert found.keys() == {reason for _, reason in expected} and len(found) > 8
    for (_, reason), (number, on_cpu, _) in expected.items():
        assert found[reason]["number"] == number
        assert found[reason]["ns"] * mhz / 1000 == pytest.approx(on_cpu, rel=0.005), reason
    _, exits = summary((result / "pvh.summary").read_text())
    ((key, theirs),) = exits.items()
    assert key == (guest["domain"], guest["vcpu"])
    ours = [(number, until) for number, _, until in expected.values()]
    assert len(theirs) == len(ours)
    for (n, cycles), (number, until) in zip(sorted(theirs), sorted(ours), strict=True):
        assert n == number
        assert cycles == pytest.approx(until, rel=0.005)
