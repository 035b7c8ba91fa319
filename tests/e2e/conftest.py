# SPDX-License-Identifier: GPL-2.0-or-later
"""What several end-to-end tests use."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import lttng_session  # noqa: E402


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Starts a private session when called; QEMU is then traced by it."""
    lacking = lttng_session.missing_programs()
    if lacking:
        pytest.skip(f"missing: {' '.join(lacking)}")
    sessions = []

    def start(**kwargs):
        s = lttng_session.PrivateSession(str(tmp_path / "lttng"), **kwargs)
        s.__enter__()
        sessions.append(s)
        for name, value in s.env().items():
            monkeypatch.setenv(name, value)
        return s
    yield start
    for s in sessions:
        s.__exit__(None, None, None)
