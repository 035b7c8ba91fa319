# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the call graph in a recording with the one in the guest's file `trace`."""

import json
import re


def shell(folder, port):
    """Return shell commands for the guest. They stop recording in a folder of tracefs, and
    write the calls that the tracer function_graph has recorded to the file `port`."""
    return f"""
cd {folder}
echo 0 >tracing_on
echo 1 >options/funcgraph-abstime
echo 1 >options/funcgraph-proc
grep -v '|  */\\*' trace >{port}
"""


def calls_of_trace(text):
    """Return the calls in the guest's file `trace`, in the order of their ends, each as a tuple:
    PID, function, depth, and the duration in µs as printed."""
    calls, stacks = [], {}
    for line in text.splitlines():
        m = re.match(r" *[\d.]+ \| +\d+\) +.+-(\d+) +\| (.*)\|  ( *)(.+)$",
                     line)
        if not m or m[4].startswith("="):
            continue
        stack = stacks.setdefault(int(m[1]), [])
        depth, took = len(m[3]) // 2, re.search(r"([\d.]+) us", m[2])
        if m[4].endswith("() {"):
            stack.append(m[4][:-4])
            continue
        func = m[4][:-3] if m[4].endswith("();") else stack.pop()
        calls.append((int(m[1]), func, depth, took[1]))
    return calls


def assert_same(trace, callgraph, name):
    """Assert that callgraph, the output of `hypertrace callgraph --json`, has the same calls in
    the same order as trace, the content of the guest's file `trace`, with durations that begin
    with the digits printed there. Assert that there are more than 100 calls, one of which is of
    the function `name`."""
    theirs = calls_of_trace(trace)
    ours = [json.loads(line) for line in callgraph.splitlines()]
    assert len(theirs) > 100 and name in {c[1] for c in theirs}
    assert [(c["pid"], c["func"], c["depth"]) for c in ours] == [
        c[:3] for c in theirs]
    for call, (*_, took) in zip(ours, theirs):
        ns = call["end_ns"] - call["begin_ns"]
        assert f"{ns // 1000}.{ns % 1000:03}".startswith(took), call
