# SPDX-License-Identifier: GPL-2.0-or-later
"""Make temporary directories that other users can enter and read"""

import contextlib
import tempfile
from pathlib import Path

import pytest


@contextlib.contextmanager
def public_directory():
    with tempfile.TemporaryDirectory(prefix="ht-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(name="tmp")
def session_directory():
    """Fixture: a folder for an LTTng session daemon, which may run as
    another user"""
    with public_directory() as path:
        yield path
