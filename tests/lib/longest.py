# SPDX-License-Identifier: GPL-2.0-or-later
"""A pytest plugin that starts the longest tests first.

The processors then have work until the end of the run.  In the order of the files,
a program of a minute could start last, while all but one processor idle.
"""

# Parts of the names of tests that take more than some 15 s of processor time, the
# longest first.  The tests of a group run in one process, one after the other,
# so the name of one of them suffices.
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
    "test_view.py", "test_lttng_events.py", "ftrace-follow", "model-mailbox",
)


def rank(item):
    """Position of a test in LONGEST; its length if no name fits"""
    return next((n for n, name in enumerate(LONGEST) if name in item.nodeid),
                len(LONGEST))


def pytest_collection_modifyitems(items):
    items.sort(key=rank)
