# SPDX-License-Identifier: GPL-2.0-or-later
"""Let a guest write numbered markers to its trace buffer, and check that a recording of the
guest has the markers and the guest's log."""

import re


def shell(folder, cpus, marks, word="mark"):
    """Shell commands: on each of @cpus processors, start a process that writes
    @marks numbered markers to the trace buffer in a folder of tracefs. The shell
    command "wait" waits for their end. @cpus and @word may be a number and a word,
    or shell expressions."""
    return f"""c=0
while [ $c -lt {cpus} ]; do
    taskset -c $c sh -c 'i=0; exec >{folder}/trace_marker
while [ $i -lt {marks} ]; do i=$((i + 1)); echo "'"{word}"' '$c' $i"; done' &
    c=$((c + 1))
done
"""


def assert_followed(events, cpus, marks, err, word="mark"):
    """Assert that each marker is one of the events once, on its processor, or lies
    within a gap that is reported, and that the last marker of each processor is one of
    the events. Returns the number of markers found.

    @events are those of `hypertrace report --json`, @err the recorder's messages.
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
    """Assert that a recording's log begins with the lines of the guest's dmesg, and
    has the line "log end" that the guest logged after its dmesg. dmesg and log are
    texts."""
    dmesg, log = dmesg.splitlines(), log.splitlines()
    assert len(dmesg) > 100
    # arm64 prints the processor's number before the version
    assert any(" Linux version " in line for line in dmesg[:2])
    assert log[:len(dmesg)] == dmesg
    assert any(line.endswith("] log end") for line in log[len(dmesg):])
