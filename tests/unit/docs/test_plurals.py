# SPDX-License-Identifier: GPL-2.0-or-later
"""The command's messages with counts: none says "1 events"."""

import re
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools/hypertrace"
# A number, at most two other words, and a plural: use ht_number_s() or ht_number_form().
PLURAL = re.compile(r"%[0-9]*l*[udi] (?:(?!of |is |was |that )[a-z-]+ ){0,2}?[A-Za-z]+[^s\W]s\b"
                    r'[^"%]*')
# Words that are no plurals
OTHER = re.compile(r"%[0-9]*l*[udi] (?:[a-z]+ )*?(?:ns|ms|us|has|its|is|was|plus|this)\b")
# Texts with numbers that are never 1, or whose noun comes before the number
NOT_ONE = (
    "%d files, because the guest's clock went back",
    "%d words separated by commas",
    "%d letters, digits",
    "%u processors are recorded, and rings of ",
    "%d times",
    "%d earlier recordings before the one that it checks",
    "%d others were left out; --folded prints all",
    "%u files",
    "%u and ranges",
)


def literals(text):
    """The texts of a file, with conversions in place of PRIu64 and the like"""
    text = re.sub(r'"\s*PRI([diux])\w+\s*"', r"\1", text)
    text = re.sub(r'"\s*PRI([diux])\w+', r'\1"', text)
    return re.sub(r'"\s*\n\s*"', "", text)


def test_forms_after_numbers():
    """No message has a plural after a number that may be 1."""
    found = [(path.name, m[0]) for path in sorted(TOOL.glob("*/*.c"))
             for m in PLURAL.finditer(literals(path.read_text(encoding="utf-8")))
             if not m[0].startswith(NOT_ONE) and not OTHER.match(m[0])]
    assert not found
    assert PLURAL.search(literals('"%" PRIu64\n  " damaged lines"'))
