# SPDX-License-Identifier: GPL-2.0-or-later
"""Root's tests get a machine of their own: a session daemon of root's is theirs
alone, and they may mount."""

import functools
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import lttng_session  # noqa: E402


def own_run(test):
    """For tests with LTTng whose daemons they end, stop or talk to."""
    @functools.wraps(test)
    def run(**kwargs):
        lacking = lttng_session.missing_programs()
        if lacking:
            pytest.skip(f"missing: {' '.join(lacking)}")
        if os.geteuid() != 0:
            test(**kwargs)
        elif not lttng_session.private_run(lambda: test(**kwargs)):
            pytest.skip("mounting is not allowed here")
    return run


def mounting(test):
    """For tests that mount a small disk."""
    @functools.wraps(test)
    def run(**kwargs):
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk")
        if not lttng_session.private_run(lambda: test(**kwargs)):
            pytest.skip("mounting is not allowed here")
    return run
