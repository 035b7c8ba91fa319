# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the list in docs/architecture.md, which folder includes headers of which, with the code.

Promise: the list and the code have the same arrows, apart from the files below, and each arrow
leads to a folder that stands lower in the list, so that there is no circle.
"""

import re
from collections import defaultdict
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
COMMAND = "tools/hypertrace"
# Headers in include/ that count as part of hw/hypertrace, because only hw/ and backends/ use them
OF_QEMU = {"include/hypertrace/backend.h", "include/hypertrace/compat.h"}
# Files that may include headers of all folders of the command: the list leaves them out
JOINTS = {f"{COMMAND}/main.c", f"{COMMAND}/notraces.c"}
FOLDERS = ["tools", "backends", "hw", "guest-linux", "guest-lib", "host-lib",
           "include"]


def room(path):
    """Return the name that the list has for a file's folder."""
    if path in OF_QEMU:
        return "hw/hypertrace"
    parts = path.split("/")
    if path.startswith(COMMAND + "/"):
        return "/".join(parts[:3])
    return "/".join(parts[:2]) if parts[0] in ("hw", "backends") else parts[0]


def sources():
    for folder in FOLDERS:
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            if not path.is_symlink():
                yield path.relative_to(TOP).as_posix()


def target(name, user, files):
    """Return the file that an #include of @user names, or None for a system header."""
    beside = (Path(user).parent / name).as_posix()
    if beside in files:
        return beside
    found = [f for f in files if f.endswith("/" + name)
             and not (name == "hypertrace/trace.h" and f.startswith("hw/"))]
    return found[0] if found else None


def arrows():
    files = set(sources())
    found = defaultdict(set)
    for user in files - JOINTS:
        for name in re.findall(r'#include ["<]([^">]+)[">]',
                               (TOP / user).read_text()):
            used = target(name, user, files)
            if used and room(used) != room(user):
                found[room(user)].add(room(used))
    return found


def listed():
    page = (TOP / "docs/architecture.md").read_text()
    part = page.partition("## Dependencies")[2].partition("\n## ")[0]
    rows = re.findall(r"^    ([a-z/-]+) +->(.*)$", part, re.M)
    names = [name for name, _ in rows]
    return {name: {f"{COMMAND}/{u}" if f"{COMMAND}/{u}" in names else u
                   for u in used.split()} for name, used in rows}


def test_arrows():
    want, have = listed(), arrows()
    order = {name: i for i, name in enumerate(want)}
    problems = []
    for name in sorted(set(want) | set(have)):
        for used in sorted(have[name] - want.get(name, set())):
            problems.append(f"{name} -> {used}: in the code only")
        for used in sorted(want.get(name, set()) - have[name]):
            problems.append(f"{name} -> {used}: on the page only")
        for used in sorted(want.get(name, set())):
            if order.get(used, -1) <= order[name]:
                problems.append(f"{name} -> {used}: leads upwards")
    assert not problems
