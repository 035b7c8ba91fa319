# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the programs that tests run: those of the build, and installed ones."""

import os
import shutil
from pathlib import Path

import pytest


def built(path):
    """Return the path of a program in the build folder HT_BUILD. If the program was not
    built, skip the test; if a module calls this at its import, skip the module's tests."""
    program = Path(os.environ["HT_BUILD"]) / path
    if not program.exists():
        pytest.skip(f"{path} was not built: a library is missing",
                    allow_module_level=True)
    return str(program)


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
