# SPDX-License-Identifier: GPL-2.0-or-later
"""The command knows each option that the README and the pages tell a reader to
type."""

import re
import shlex

import pages
import pytest

from hypertrace import run

COMMANDS = sorted({c for page in pages.how_to() for c in pages.commands(page)
                   if c.startswith("hypertrace ")})


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command):
    """The command accepts all options of the line: --help at the end makes it
    parse them and do nothing else."""
    own = re.split(r" -- | \| | &$", command)[0]
    run(*shlex.split(own)[1:], "--help")


def test_wrong_option():
    run("boot", "--no-such-option", "--help", status=2)
