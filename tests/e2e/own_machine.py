# SPDX-License-Identifier: GPL-2.0-or-later
"""Decorators that run a test in private namespaces if root runs the tests.  There the test
can start a session daemon of LTTng as root, and can mount file systems."""

import functools
import os

import pytest

from vm.lttng_session import missing_programs, private_run


def own_run(test):
    """Decorator for tests that end, stop or contact LTTng's daemons: if root runs the tests,
    they have an empty /run and /dev/shm of their own."""
    @functools.wraps(test)
    def run(**kwargs):
        lacking = missing_programs()
        if lacking:
            pytest.skip(f"missing: {' '.join(lacking)}")
        if os.geteuid() != 0:
            test(**kwargs)
        elif not private_run(lambda: test(**kwargs)):
            pytest.skip("mounting is not allowed here")
    return run


def mounting(test):
    """Decorator for tests that mount a small disk: root runs them in a mount namespace of their
    own; other users skip them."""
    @functools.wraps(test)
    def run(**kwargs):
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk")
        if not private_run(lambda: test(**kwargs)):
            pytest.skip("mounting is not allowed here")
    return run
