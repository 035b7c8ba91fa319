# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that docs/reliability.md names existing tests in its table "Faults that a review of the
command found"."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def named_tests():
    """Yield (file, name) of each test in the page's table."""
    text = (TOP / "docs/reliability.md").read_text()
    section = re.search(r"\n## Faults that a review of the command found\n"
                        r".*?(?=\n## )", text, re.DOTALL)[0]
    cells = re.findall(r"^\|.*\| ([^|]*`[^|]*) \|$", section, re.MULTILINE)
    for cell in cells:
        for part in cell.split("; "):
            file, names = re.fullmatch(r"`(.*?)` (.*)", part).groups()
            for name in names.split(", "):
                yield file, name


def test_tests_exist():
    """Each test of the table is in the file that the table gives for the test."""
    tests = list(named_tests())
    assert len(tests) > 70
    for file, name in tests:
        path, = (TOP / "tests").rglob(file)
        assert re.search(rf"\b{name}\(", path.read_text()), (file, name)
