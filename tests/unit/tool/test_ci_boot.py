# SPDX-License-Identifier: GPL-2.0-or-later
"""examples/ci-boot.sh on small recordings, without a virtual machine."""

import os
import subprocess
from pathlib import Path

import pytest

from hypertrace import TOOL, story


@pytest.mark.parametrize("limit, damaged, status, kept", [
    ("60s", False, 0, True), ("1us", False, 4, False), ("60s", True, 1, True),
    ("never", False, 2, True)])
def test_kept(tmp_path, limit, damaged, status, kept):
    """A recording is moved away only if its boot was too slow, not after any other
    failure."""
    story("story", tmp_path / "new")
    if damaged:
        (tmp_path / "recordings/0").mkdir(parents=True)
    fake = tmp_path / "bin/hypertrace"
    fake.parent.mkdir()
    fake.write_text(f"""#!/bin/sh
[ "$1" != record ] || exec cp -r '{tmp_path}/new' "$3"
exec '{TOOL}' "$@"
""")
    fake.chmod(0o755)
    p = subprocess.run(
        ["sh", Path(__file__).parents[3] / "examples/ci-boot.sh", "recordings", "qemu"],
        cwd=tmp_path, capture_output=True, timeout=60, check=False,
        env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}",
             "MAX": limit})
    assert p.returncode == status, p.stderr
    good = [p for p in (tmp_path / "recordings").iterdir() if p.name != "0"]
    moved = list(tmp_path.glob("recordings.failed/*"))
    assert (len(good), len(moved)) == ((1, 0) if kept else (0, 1))
