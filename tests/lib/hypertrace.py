# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the command hypertrace, and make recordings for it by recording-story."""

import json
import os
import subprocess

from built import built

TOOL = built("tools/hypertrace/hypertrace")
STORY = built("tests/unit/recording/recording-story")
# A text that a hostile guest chose: as hypertrace must print it in text output (ESCAPED),
# and the string that JSON output must contain (HOSTILE)
ESCAPED = "\\x1b[2J</script>\"'&\\x01\\xffx"
HOSTILE = "\033[2J</script>\"'&\001\ufffdx"
ENV = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}


def story(name, path, *args):
    """Let recording-story make its recording called `name` in the folder `path`; return
    the folder."""
    subprocess.run([STORY, name, path, *map(str, args)], check=True)
    return path


def run(*args, status=0, env=None, **kwargs):
    p = subprocess.run([TOOL, *map(str, args)], capture_output=True,
                       timeout=120, env={**ENV, **(env or {})}, **kwargs)
    assert p.returncode == status, (args, p.returncode, p.stderr)
    return p


def text(*args):
    """Run hypertrace; return its lines of output, after a check that they have no ASCII
    control character except tabs."""
    out = run(*args).stdout.decode()
    assert not [c for c in out if ord(c) < 32 and c not in "\n\t"], args
    return out.splitlines()


def lines(*args):
    """Run hypertrace with --json; return the object of each line"""
    return [json.loads(line) for line in text(*args, "--json")]
