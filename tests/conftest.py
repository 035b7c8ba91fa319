# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds for every test: none waits for ever, a failure shows at once."""

import os
import signal
import threading

import pytest

# Seconds.  The longest test takes a tenth of this on two quiet cores.
LIMIT = int(600 * float(os.environ.get("HT_PATIENCE", "1")))
CLEANUP = 60


def _too_long(_signum, _frame):
    # what ends the processes of the test may wait for ever, too
    signal.alarm(CLEANUP)
    pytest.fail(f"still running after {LIMIT} s")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol():
    """A test that hangs fails, and shows where it was."""
    if threading.current_thread() is not threading.main_thread():
        yield       # execnet 1.9's, sometimes; there are no signals there
        return
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class _Failures:
    """Prints a failure when it happens: the run may be cut off later."""

    def __init__(self, config, terminal):
        self.config = config
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line(f"{report.nodeid} ({report.when}):")
            self.terminal.write_line(report.longreprtext)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error):
        """xdist 3.1 can wait for ever for what a crashed worker had left."""
        if error:
            dsession = self.config.pluginmanager.get_plugin("dsession")
            dsession.shouldstop = "a worker crashed"


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """The process that prints is the one that xdist has not started."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config, terminal))
