# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace top: times of tasks and numbers of events.

The recordings are described in tests/unit/recording/story.c.
"""

import pytest

from hypertrace import lines, story, text


@pytest.fixture(scope="module")
def rec(tmp_path_factory):
    return story("story", tmp_path_factory.mktemp("top") / "story")


def test_top(rec):
    top = lines("top", rec, "--boot", "1")[0]
    tasks = {t["pid"]: t for t in top["tasks"]}
    assert top["events"] == 34
    # task 1 runs from 2 to 101 ms, and from 151 ms to the CPU's last event
    assert tasks[1]["cpu_ns"] == 99_000_000 + 149_000_000
    assert tasks[7]["cpu_ns"] == 50_000_000
    assert top["ns"] == 401_000_000
    assert tasks[8]["cpu_ns"] == 2_000_000
    assert tasks[99]["cpu_ns"] == 1_000_000
    # the gap's time belongs to no task
    assert top["unknown_ns"] == 400_000_000 - 200_009_000
    assert top["gaps"] == 1 and top["lost_estimate"] == 123
    assert tasks[8]["tgid"] == 7 and tasks[8]["task"] == "worker"
    total = sum(t["cpu_ns"] for t in top["tasks"]) + top["unknown_ns"]
    assert total == top["cpu_ns"] == 300_000_000 + 291_000_000
    types = {t["event"]: t["events"] for t in top["types"]}
    assert types["sched_switch"] == 6 and types["type-4000"] == 1
    out = text("top", rec)
    assert out[0].startswith("47 events of 20 types, 6 tasks, 2 CPUs")


def test_top_rows(rec):
    """--rows=N lists at most N tasks besides the idle task, and at most N types of events, and
    says how many others there are."""
    top = lines("top", rec)[0]
    tasks = sum(t["pid"] != 0 for t in top["tasks"])
    assert 0 < tasks < len(top["tasks"])
    for n in (0, 1, 2, tasks - 1, tasks, tasks + 1, 100):
        parts = "\n".join(text("top", rec, f"--rows={n}")).split("\n\n")[1:]
        for part, total in zip(parts, (tasks, len(top["types"]))):
            rows = [line for line in part.split("\n")[1:] if line and
                    "(idle)" not in line and "(not known" not in line]
            more = total - min(n, total)
            tail = [f"and {more} more; --rows=N lists N"] if more else []
            assert rows[min(n, total):] == tail and len(parts) == 2, (n, part)


def test_top_crowd(tmp_path):
    """If there are more tasks than top lists, it shows the sums of all others."""
    count, most = 70_000, 65536
    path = story("crowd", tmp_path / "crowd", count)
    top = lines("top", path)[0]
    tasks = [t for t in top["tasks"] if t["pid"]]
    # one entry is the idle task
    assert len(tasks) == most - 1
    others = count - len(tasks)
    assert top["other_tasks"] == {"cpu_ns": 1000 * others, "switches": others, "events": others}
    assert top["unknown_ns"] == 0 and top["idle_ns"] == 1000 * (count - 2)
    assert [line.split() for line in text("top", path) if "others" in line] == [
        ["3.2%", f"{others / 1e6:.6f}", str(others), str(others),
         *"(all others: too many to list)".split()]]
    assert not [line for line in text("top", path, "--boot=1") if "others" in line]


def test_top_reuse(tmp_path):
    """A task is identified by boot, PID and start."""
    top = lines("top", story("reuse", tmp_path / "reuse"))[0]
    assert [(t["boot"], t["task"], t.get("start_ns"), t["cpu_ns"],
             t["switches"]) for t in top["tasks"] if t["pid"] == 50] == [
        (2, "third", 10_000_000, 4_000_000, 2),
        (1, "unseen", None, 3_000_000, 2),
        (1, "second", 20_000_000, 2_000_000, 2),
        (1, "first", 10_000_000, 1_000_000, 2)]
    out = text("top", tmp_path / "reuse")
    assert [line for line in out if line.endswith("third  boot 2")]
