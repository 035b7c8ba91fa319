# SPDX-License-Identifier: GPL-2.0-or-later
"""`hypertrace` knows each option in the lines of the README, the tutorial and the how-to pages
that begin with this command."""

import re
import shlex

import pages
import pytest

from hypertrace import run

COMMANDS = sorted({c for page in pages.how_to() for c in pages.commands(page)
                   if c.startswith("hypertrace ")})


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command):
    """`hypertrace` accepts the options of a line, up to "--", a pipe or a final "&". With --help
    at the end, it only parses them and prints help."""
    own = re.split(r" -- | \| | &$", command)[0]
    run(*shlex.split(own)[1:], "--help")


def test_wrong_option():
    run("boot", "--no-such-option", "--help", status=2)
