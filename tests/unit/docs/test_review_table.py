# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests exist that docs/reliability.md names in its table of the faults that a review of the
command found."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def named_tests():
    """(file, name) of each test in the page's table"""
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
    """Each test that the table names exists in the file that it names."""
    tests = list(named_tests())
    assert len(tests) > 70
    for file, name in tests:
        path, = (TOP / "tests").rglob(file)
        assert re.search(rf"\b{name}\(", path.read_text()), (file, name)
