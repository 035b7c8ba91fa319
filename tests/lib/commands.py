# SPDX-License-Identifier: GPL-2.0-or-later
"""Make command lines of the project's commands in Python, as ./run starts
these commands after the build."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def command(name, *args):
    return ["env", f"PYTHONPATH={SCRIPTS}", sys.executable, "-B", "-m", name,
            *map(str, args)]
