# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that no message of `hypertrace` can say "1 events"."""

import re
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools/hypertrace"
# A number, at most two other words, and a plural: use ht_number_s() or ht_number_form().
PLURAL = re.compile(r"%[0-9]*l*[udi] (?:(?!of |is |was |that )[a-z-]+ ){0,2}?[A-Za-z]+[^s\W]s\b"
                    r'[^"%]*')
# A number before a word that ends in "s" and is no plural
OTHER = re.compile(r"%[0-9]*l*[udi] (?:[a-z]+ )*?(?:ns|ms|us|has|its|is|was|plus|this)\b")
# Texts that are allowed, because the number is never 1 or follows its noun
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
    """Return C code with its adjacent strings joined, and "u" for PRIu64 and the like"""
    text = re.sub(r'"\s*PRI([diux])\w+\s*"', r"\1", text)
    text = re.sub(r'"\s*PRI([diux])\w+', r'\1"', text)
    return re.sub(r'"\s*\n\s*"', "", text)


def test_forms_after_numbers():
    """No string in a folder of tools/hypertrace has a plural after a number that may be 1."""
    found = [(path.name, m[0]) for path in sorted(TOOL.glob("*/*.c"))
             for m in PLURAL.finditer(literals(path.read_text(encoding="utf-8")))
             if not m[0].startswith(NOT_ONE) and not OTHER.match(m[0])]
    assert not found
    assert PLURAL.search(literals('"%" PRIu64\n  " damaged lines"'))
