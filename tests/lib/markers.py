# SPDX-License-Identifier: GPL-2.0-or-later
"""Let a guest write numbered markers to its trace buffer, and check that a recording of the
guest has the markers; check that a recording has the guest's log."""

import re


def shell(folder, cpus, marks, word="mark"):
    """Return shell commands: on each of the processors 0 to cpus - 1, start a process that
    writes markers "WORD CPU NUMBER" to the trace buffer in a folder of tracefs, with the
    numbers from 1 to marks. After them the shell command "wait" waits for the processes.
    cpus and word may be a number and a word, or shell expressions."""
    return f"""c=0
while [ $c -lt {cpus} ]; do
    taskset -c $c sh -c 'i=0; exec >{folder}/trace_marker
while [ $i -lt {marks} ]; do i=$((i + 1)); echo "'"{word}"' '$c' $i"; done' &
    c=$((c + 1))
done
"""


def assert_followed(events, cpus, marks, err, word="mark"):
    """Assert that the events have the markers of each processor in order and once, that
    markers are missing only where an event reports a gap before it, and that the last marker
    of each processor is there. If markers are missing, the recorder's messages must report a
    gap, too. Returns the number of markers found.

    events are those of `hypertrace report --json`, err the recorder's messages.
    """
    expected, gap, seen = [1] * cpus, [False] * cpus, 0
    for event in events:
        gap[event["cpu"]] |= "lost_from_ns" in event
        mark = re.match(rf"{word} (\d+) (\d+)\n?$",
                        str(event["fields"].get("buf", "")))
        if not mark:
            continue
        cpu, number = map(int, mark.groups())
        assert cpu == event["cpu"]
        assert number == expected[cpu] or (gap[cpu] and
                                           number > expected[cpu]), event
        expected[cpu], gap[cpu] = number + 1, False
        seen += 1
    assert expected == [marks + 1] * cpus, err
    assert seen == cpus * marks or "gap" in err, err
    return seen


def assert_log_is_dmesg(dmesg, log):
    """Assert that a recording's log begins with the lines of the guest's dmesg, more than
    100, and has after them the message "log end", which the guest must have logged after
    its dmesg. dmesg and log are texts."""
    dmesg, log = dmesg.splitlines(), log.splitlines()
    assert len(dmesg) > 100
    # On arm64, the first line has the processor's number, and the second has the version.
    assert any(" Linux version " in line for line in dmesg[:2])
    assert log[:len(dmesg)] == dmesg
    assert any(line.endswith("] log end") for line in log[len(dmesg):])
