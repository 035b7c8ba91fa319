# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of the command hypertrace share: they run it on recordings that
the program recording-story makes, and print TAP."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOL, STORY = sys.argv[1:3]
# A text that a hostile guest chose: as terminals, and as JSON, shall have it
ESCAPED = "\\x1b[2J</script>\"'&\\x01\\xffx"
HOSTILE = "\033[2J</script>\"'&\001\ufffdx"


class Skip(Exception):
    pass


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def story(name, path, *args):
    subprocess.run([STORY, name, path, *map(str, args)], check=True)
    return path


def run(*args, status=0, **kwargs):
    p = subprocess.run([TOOL, *map(str, args)], capture_output=True,
                       timeout=120, **kwargs)
    assert p.returncode == status, (args, p.returncode, p.stderr)
    return p


def text(*args):
    """Lines that no terminal would mind"""
    out = run(*args).stdout.decode()
    assert not [c for c in out if ord(c) < 32 and c not in "\n\t"], args
    return out.splitlines()


def lines(*args):
    return [json.loads(line) for line in text(*args, "--json")]


def main(cls):
    """Run the methods test_* of cls(a directory of its own)"""
    tests = [n for n in dir(cls) if n.startswith("test_")]
    print(f"1..{len(tests)}")
    os.environ.update(LC_ALL="C.UTF-8", COLUMNS="100")
    with tempfile.TemporaryDirectory(prefix="ht-tool-") as tmp:
        all_tests = cls(Path(tmp))
        for n, name in enumerate(tests, 1):
            try:
                getattr(all_tests, name)()
                print(f"ok {n} {name}")
            except Skip as e:
                print(f"ok {n} {name} # SKIP {e}")
            except Exception as e:
                where = e.__traceback__
                while where.tb_next:
                    where = where.tb_next
                print(f"not ok {n} {name}\n# line {where.tb_lineno}:"
                      f" {e!r}")
