# SPDX-License-Identifier: GPL-2.0-or-later
"""The project's commands in Python, as ./run starts them after the build."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def command(name, *args):
    """The command line of scripts/NAME, a package"""
    return ["env", f"PYTHONPATH={SCRIPTS}", sys.executable, "-B", "-m", name,
            *map(str, args)]
