# SPDX-License-Identifier: GPL-2.0-or-later
"""A pytest plugin that selects the tests of a run, and starts the longest first.

./run check --long runs all tests; ./run check without --long, a short run, should end in a
few minutes.  A short run
- leaves out the tests with the mark "long": other tests check nearly the same
  (docs/tests-removed.md), and
- runs an end-to-end test that has the parameter "channel" on one of its channels only,
  unless it has the mark "each_channel".  A hash of the test's name decides on which, so
  that each of three channels gets about a third of the tests.

If the longest tests start first, the processors have work until the end of the run.
"""

import zlib

import pytest

from scale import LONG

# Parts of the names of tests that take more than about 15 s of processor time, the
# longest first. At the end are parts of the names of tests that mostly wait, for about
# 10 s. pytest-xdist runs the tests with the same mark "xdist_group" in one process, one
# after the other, so the name of one of them suffices.
LONGEST = (
    "test_record.py", "test_bench.py", "test_linux_functions.py", "test_ring.py",
    "hypertrace-migration-refuse-test", "hypertrace-migration-test",
    "hypertrace-limits-test", "hypertrace-hang-test", "model-wake", "model-sink",
    "hypertrace-race-test", "hypertrace-control-test", "fuzz-image", "model-ring",
    "guest-node", "test_views.py", "test_timeline.py", "record-session",
    "hypertrace-seams-test", "hypertrace-pci-test",
    "hypertrace-reset-test", "hypertrace-snapshot-test", "model-control", "fuzz-",
    "ctf-crash", "guest-signal", "qtest-x86_64/", "test_emulator.py",
    "test_demo.py", "test_hotplug.py", "test_migration.py", "test_linux_load.py",
    "test_linux_churn.py",
    "test_view.py", "test_lttng_events.py", "ftrace-follow", "model-mailbox",
    "test_messages_after", "test_hangs",
)


def rank(item):
    """Return the index of the first element of LONGEST that the test's id contains, or
    len(LONGEST) if it contains none."""
    return next((n for n, name in enumerate(LONGEST) if name in item.nodeid),
                len(LONGEST))


def channel_of(item):
    """For a case of a test of which a short run takes one channel, return (the test and
    its other parameters, the case's channel); else None."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "/e2e/" not in str(item.path) or "channel" not in params or \
            item.get_closest_marker("each_channel"):
        return None
    others = sorted((k, str(v)) for k, v in params.items() if k != "channel")
    return (str(item.path), item.originalname, str(others)), params["channel"]


def one_channel(items):
    """Return {(test, its other parameters): the channel on which a short run runs it}."""
    channels = {}
    for item in items:
        if found := channel_of(item):
            channels.setdefault(found[0], set()).add(found[1])
    return {test: sorted(found)[zlib.crc32(test[1].encode()) % len(found)]
            for test, found in channels.items()}


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only ./run check --long runs it")
    config.addinivalue_line("markers",
                            "each_channel: a short run has each channel, too")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if not LONG:
        chosen = one_channel(items)

        def left_out(item):
            found = channel_of(item)
            return item.get_closest_marker("long") or \
                (found and chosen[found[0]] != found[1])

        kept, left = [], []
        for item in items:
            (left if left_out(item) else kept).append(item)
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    items.sort(key=rank)
