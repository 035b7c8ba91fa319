# SPDX-License-Identifier: GPL-2.0-or-later
"""The command hypertrace, run on recordings that recording-story makes."""

import json
import os
import subprocess

from built import built

TOOL = built("tools/hypertrace/hypertrace")
STORY = built("tests/unit/recording/recording-story")
# A text that a hostile guest chose, as it must appear on terminals (ESCAPED) and
# in JSON (HOSTILE)
ESCAPED = "\\x1b[2J</script>\"'&\\x01\\xffx"
HOSTILE = "\033[2J</script>\"'&\001\ufffdx"
ENV = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}


def story(name, path, *args):
    """Make the recording NAME in PATH."""
    subprocess.run([STORY, name, path, *map(str, args)], check=True)
    return path


def run(*args, status=0, env=None, **kwargs):
    """Run the command; assert its exit status."""
    p = subprocess.run([TOOL, *map(str, args)], capture_output=True,
                       timeout=120, env={**ENV, **(env or {})}, **kwargs)
    assert p.returncode == status, (args, p.returncode, p.stderr)
    return p


def text(*args):
    """Lines of output; assert that no control character is among them."""
    out = run(*args).stdout.decode()
    assert not [c for c in out if ord(c) < 32 and c not in "\n\t"], args
    return out.splitlines()


def lines(*args):
    """The objects that --json prints"""
    return [json.loads(line) for line in text(*args, "--json")]
