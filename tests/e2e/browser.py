# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages as a browser has them, after their scripts have run."""

import os
import shutil
import subprocess

import pytest


def dom(page, tmp_path):
    """The elements of a file, as text; nothing may complain."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("chromium is not installed")
    argv = [chromium, "--headless", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
            "--virtual-time-budget=5000", page.as_uri()]
    if os.geteuid() == 0:
        argv.insert(1, "--no-sandbox")
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout
