# SPDX-License-Identifier: GPL-2.0-or-later
"""Open a page in a headless browser, and return its markup after its scripts have
run."""

import os
import re
import shutil
import subprocess

import pytest


def dom(page, tmp_path, args=(), says=""):
    """Return the DOM of a page after its scripts have run for at most 5 s of virtual time,
    as the text of its markup. Without chromium, skip the test.

    page is a Path or an address; args are further options of chromium. A message on the
    browser's console fails the test, unless it matches the regular expression `says`.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("chromium is not installed")
    argv = [chromium, "--headless", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
            "--virtual-time-budget=5000", *args,
            page if isinstance(page, str) else page.as_uri()]
    if os.geteuid() == 0:
        argv.insert(1, "--no-sandbox")
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    for line in done.stderr.splitlines():
        if "CONSOLE" in line:
            assert says and re.search(says, line), done.stderr
    return done.stdout
