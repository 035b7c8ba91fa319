# SPDX-License-Identifier: GPL-2.0-or-later
"""Make command lines that start the Python packages demo, soak and bench, as ./run starts
them after the build."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def command(name, *args):
    return ["env", f"PYTHONPATH={SCRIPTS}", sys.executable, "-B", "-m", name,
            *map(str, args)]
