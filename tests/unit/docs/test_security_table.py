# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that docs/security.md lists the functions of the host that touch what a guest can write.

The test finds these functions by expressions in their code: for a ring, a slot, a scatter list, a
virtqueue element, the mailbox or stream memory. In the files for ftrace rings and recordings, it
looks for reads of guest memory instead.
"""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
SOURCES = ("hw/hypertrace", "host-lib")
GUEST = re.compile(r"\bring->|(->|\.)ring\b|\bslot\b|\biov_(to|from)_buf\b|"
                   r"\bvirtqueue_pop\b|dev->mailbox\b|\bring_ram\b|"
                   r"\bread_(ram|word|entry)\(|\bm->(page|base)\b|"
                   r"\bd->base\b|\bhead\(d\)")
FTRACE = re.compile(r"\bht_ft_mem_read\(|\bht_ft_cpu_load\(|"
                    r"mem->(map|read|next)\b")
HEAD = re.compile(r"^(?!static const|typedef|struct \w+ \{)[A-Za-z_].*?"
                  r"\b(\w+)\(")


def functions(text):
    """Yield (name, body) of each function of a C file, without comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    name, head, body = None, None, []
    for line in text.splitlines():
        m = HEAD.match(line)
        if m and body == []:
            # in "G_GNUC_PRINTF(2, 3) f(", the function's name is the last word
            # before a "("
            name = re.findall(r"\b(\w+)\(", line)[-1]
        if line == "{" and name:
            head = name
        if head:
            body.append(line)
        if line == "}" and head:
            yield head, "\n".join(body)
            name, head, body = None, None, []


def accesses():
    """Return a set of all functions, and a set of those that touch what a guest
    can write."""
    known, found = set(), set()
    for folder in SOURCES:
        for path in (TOP / folder).rglob("*.c"):
            for name, body in functions(path.read_text(encoding="utf-8")):
                known.add(f"{path.name}:{name}")
                kernels = path.name.startswith(("ftrace", "recording")) or \
                    path.parent.name in ("ftrace", "recording")
                if (FTRACE if kernels else GUEST).search(body):
                    found.add(f"{path.name}:{name}")
    return known, found


def listed():
    page = (TOP / "docs/security.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([\w-]+\.c:\w+)` \|", page, re.M))


def test_functions_are_found():
    known, found = accesses()
    assert len(known) > 100 and len(found) > 10


def test_each_access_is_listed():
    assert accesses()[1] - listed() == set()


def test_each_row_is_an_access():
    assert listed() - accesses()[1] == set()
