# SPDX-License-Identifier: GPL-2.0-or-later
"""A fixture and a setting for all end-to-end tests"""

import os
from pathlib import Path

import pytest

from vm import saved
from vm.lttng_session import PrivateSession, missing_programs

if os.environ.get("HT_SCRATCH"):
    saved.DIRECTORY = Path(os.environ["HT_SCRATCH"]) / "guests"


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Fixture: a function that starts a private LTTng session, and sets the environment
    so that the session can record each QEMU that the test starts later"""
    lacking = missing_programs()
    if lacking:
        pytest.skip(f"missing: {' '.join(lacking)}")
    sessions = []

    def start(**kwargs):
        s = PrivateSession(str(tmp_path / "lttng"), **kwargs)
        s.__enter__()
        sessions.append(s)
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        return s
    yield start
    for s in sessions:
        s.__exit__(None, None, None)
