# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest library's public functions: the linker's map exports exactly the functions
that the public headers declare, and each function that users call has a manual page. The
manual lists, for seccomp filters, exactly the system calls in the library's source. The
Python module's structures agree with the specification."""

import os
import re
import subprocess
import sys
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
    """Functions that the headers declare but do not define"""
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
    """Each function that a manual page names (.Nm) has a prototype (.Fn) in this page."""
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


def python(code):
    """Run code with the Python module; return its output."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(LIB / "python"),
                               "LD_LIBRARY_PATH": os.path.join(os.environ["HT_BUILD"],
                                                               "guest-lib")}).stdout


def test_python_structures():
    """The Python module's structures for host statistics have the members, offsets and
    sizes of the specification's tables."""
    code = ("import hypertrace as h\n"
            "for c in (h._HostStats, h._Exit):\n"
            "    print(h.ctypes.sizeof(c))\n"
            "    for n, _ in c._fields_: print(n, getattr(c, n).offset, getattr(c, n).size)\n")
    out = python(code)
    spec = (TOP / "docs/specs/hypertrace.rst").read_text(encoding="utf-8")
    expected = ""
    for name in ("ht_host_stats", "ht_host_exit"):
        table = re.search(rf"``struct {name}``, (\d+) bytes.*?\n(.*?)\n[\\=]", spec, re.S)
        rows = re.findall(r"^(0x\w+) +(\d+) +``(\w+)``", table[2], re.M)
        expected += table[1] + "\n" + "".join(f"{n} {int(at, 16)} {size}\n"
                                              for at, size, n in rows)
    assert out == expected


PYTHON_TEST = """
import ctypes, errno, hypertrace as h
want = h._HostStats(seq=2, from_ns=3, to_ns=9, vcpu=1, nr_exits=2, guest_ns=4, idle_ns=1)
want.exits[0] = h._Exit(120, b"hlt", 5, 6)
want.exits[1] = h._Exit(7, b"", 8, 9)
class Library:
    error, opened = 0, 0
    def ht_open(self, path, device):
        assert path is None
        self.opened += 1
        return 0
    def ht_close(self, device):
        self.opened -= 1
    def ht_host_stats(self, device, vcpu, stats):
        assert vcpu == 1
        ctypes.memmove(ctypes.byref(stats), ctypes.byref(want), ctypes.sizeof(want))
        return self.error
h._library = Library()
told = h.host_stats(1)
assert told["to_ns"] == 9 and told["guest_ns"] == 4 and told["idle_ns"] == 1 and told["vcpu"] == 1
assert told["exits"] == [("hlt", 120, 5, 6), ("", 7, 8, 9)]
h._library.error = -errno.ENODATA
assert h.host_stats(1) is None
h._library.error = -errno.EPROTO
try:
    h.host_stats(1)
except OSError as e:
    assert e.errno == errno.EPROTO
else:
    raise AssertionError
assert not h._library.opened
"""


def test_python_host_stats():
    """host_stats() converts the library's structure; it returns None for ENODATA, raises
    OSError for EPROTO, and closes the device each time."""
    python(PYTHON_TEST)
