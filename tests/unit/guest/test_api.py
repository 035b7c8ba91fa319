# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest library's public functions: exactly those that a header declares are
exported, and each that users call has a manual page.  The library makes exactly
the system calls that the manual lists for seccomp filters."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
LIB = TOP / "guest-lib"
HEADERS = [LIB / "include/hypertrace" / f"{name}.h"
           for name in ("hypertrace", "event", "trace")]
PAGES = [TOP / "docs/man" / name for name in ("ht_trace.3", "ht_stream_open.3")]
# Used only by inline functions in the headers
INTERNAL = {"ht_module_add"}


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def declared():
    """Functions that are declared and not defined in the headers"""
    found = set()
    for header in HEADERS:
        for name in re.findall(r"^(?:[a-z_0-9]+[ *]+)+(ht_\w+)\([^;{]*?\);",
                               without_comments(header), re.M | re.S):
            found.add(name)
    return found


def described():
    return {name for page in PAGES for name in
            re.findall(r"^\.Nm (\w+)", page.read_text(), re.M)}


def test_declared():
    assert len(declared()) > 15


def test_exported():
    text = (LIB / "libhypertrace.map").read_text()
    assert set(re.findall(r"^\s+(ht_\w+);", text, re.M)) == declared()


def test_described():
    assert declared() - INTERNAL <= described()


def test_exists():
    """Each name that the manual describes is a function or macro of a header."""
    text = "".join(map(without_comments, HEADERS))
    for name in described():
        assert re.search(rf"\b{name}\(", text), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_synopsis(page):
    """Each function that a manual page names is in its synopsis."""
    text = page.read_text()
    for name in re.findall(r"^\.Nm (\w+)", text, re.M):
        assert re.search(rf"(?m)^\.Fn {name}( |$)", text), name


def test_system_calls():
    used = set()
    for path in (LIB / "ports").glob("linux-*.[ch]"):
        used |= set(re.findall(r"__NR_(\w+)", path.read_text()))
    text = PAGES[0].read_text()
    listed = re.search(r"^\.Sh SECCOMP\n(.*?)^\.Sh ", text, re.M | re.S)[1]
    assert set(re.findall(r"^\.Xr (\w+) 2", listed, re.M)) == used
