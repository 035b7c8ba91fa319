# SPDX-License-Identifier: GPL-2.0-or-later
"""A short soak, and tests of the accounts that a soak makes.  "./run soak" runs a
long one; docs/reliability.md has its figures."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from commands import command
from soak.accounts import ROW, Accounts, Instance, whole_rows
from vm.payload import kvm_problem


SEED = 20261121


@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_soak(accel, tmp_path):
    """A soak of some seconds succeeds, with no event unaccounted for."""
    if accel == "kvm" and kvm_problem():
        pytest.skip(kvm_problem())
    p = subprocess.run(
        command("soak", "--minutes", 0.15, "--events", 4000000, "--accel",
                accel, "--seed", SEED, "--json", tmp_path / "soak"),
        check=False, text=True, capture_output=True, timeout=300,
        stdin=subprocess.DEVNULL)
    assert p.returncode == 0, p.stdout + p.stderr
    result = json.loads((tmp_path / "soak").read_text())
    last = p.stdout.splitlines()[-1]
    assert re.match(rf"{result['events']:,} events, 0 unaccounted, ", last)
    assert result["events"] > 100_000 and result["resets"] > 0
    assert result["checkpoints"] > 0 and result["failure"] is None
    if (Path(os.environ["HT_BUILD"]) / "tools/ht-verify/ht-verify").exists():
        assert result["recorded"] > 0
    else:
        assert result["slices"] == 0


COUNTERS = {"events": 90, "dropped": 10, "lost": 5, "errors": 0}


def host(**changes):
    return {**COUNTERS, "instance": 7, "open": False, "stopped": False,
            **changes}


def account(stats, instance, virtio=False, told=True):
    """Return the number of events that Accounts cannot account for in the figures of one closed
    instance of a stream.

    stats: the host's counts of the instance
    instance: the guest's counts (sent, discarded)
    told: give Accounts the host's counts when the instance is closed
    """
    a = Accounts("dut", virtio)
    i = Instance(0, 1, 7, *instance)
    i.host = stats if told else None
    a.end(i)
    a.check({**stats, "streams": [stats]}, [])
    return a.unaccounted


def test_books_balance():
    assert account(host(), (100, 5)) == 0
    assert account(host(), (100, 5), told=False) == 0
    # The guest was reset after it had reported 3 of the 5 discards of a virtio stream.
    assert account(host(lost=3), (100, 5), virtio=True, told=False) == 0


@pytest.mark.parametrize("stats, instance", [
    (host(events=89), (100, 5)),
    (host(events=91), (100, 5)),
    (host(dropped=9), (100, 5)),
    (host(lost=4), (100, 5)),
    (host(lost=6), (100, 5)),
    (host(errors=1), (100, 5)),
])
@pytest.mark.parametrize("told", [True, False])
def test_books_find(stats, instance, told):
    """The accounts detect that one of the host's counts is wrong by one."""
    assert account(stats, instance, told=told) > 0


def test_books_find_what_was_not_recorded():
    a = Accounts("dut", False)
    i = Instance(0, 1, 7, 100, 5)
    i.host = host()
    a.end(i)
    row = {"instance": 7, "recorded": 90, "discarded": 15}
    a.check_recorded({"inputs": [{"problems": [], "streams": [row]}]})
    assert a.unaccounted == 0
    for wrong in ({"recorded": 89}, {"discarded": 14}, {"instance": 8}):
        a.check_recorded({"inputs": [{"problems": [],
                                      "streams": [{**row, **wrong}]}]})
        assert a.unaccounted > 0
        a.unaccounted = 0
    a.check_recorded({"inputs": [{"problems": ["altered"],
                                  "streams": [row]}]})
    assert a.unaccounted > 0


@pytest.mark.parametrize("cut", ["", '{"func', '{"function": "round", "events'])
def test_row_behind_one_cut_short(cut):
    """A row that a reset cuts short does not hide the row after it."""
    m = re.search(ROW, 'boot\n' + cut + '{"function": "soak", "n": 6}\n')
    assert json.loads(m[1]) == {"function": "soak", "n": 6}
    text = '{"function": "round"}\n' + m.string + cut
    assert [r["function"] for r in whole_rows(text)] == ["round", "soak"]
