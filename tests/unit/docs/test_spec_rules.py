# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that each numbered rule of the specification says MUST and names tests that exist."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
RULE = re.compile(r"^\* ([A-Z]+)(\d+): (.*?)(?=^\* |^\S|\Z)", re.M | re.S)


def rules():
    for page in sorted((TOP / "docs/specs").glob("*.rst")):
        for series, number, text in RULE.findall(page.read_text(encoding="utf-8")):
            yield series, int(number), " ".join(text.split())


def exists(test):
    """True if any file of the tests has the test: "/suite/name" in C, else "file.py::name"."""
    if test.startswith("/"):
        return any(f'"{test}"' in path.read_text(encoding="utf-8")
                   for path in (TOP / "tests").rglob("*-test.c"))
    file, name = test.split("::")
    return any(re.search(rf"^ *def {name}\(", path.read_text(encoding="utf-8"), re.M)
               for path in (TOP / "tests").rglob(file))


def test_rules():
    last = {}
    for series, number, text in rules():
        assert number == last.get(series, 0) + 1, f"{series}{number} is not the next number"
        last[series] = number
        assert "MUST" in text, text
        named = re.search(r"\(((?:``[^`]+``(?:, )?)+)\)[;.]$", text)
        assert named, f"{series}{number} names no test"
        for test in re.findall(r"``([^`]+)``", named[1]):
            assert exists(test), f"{series}{number}: no test {test}"
    assert last["HS"] == 8
