#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/security.md lists every function that touches what a guest can write.

Arguments: the page, the folders of the host's sources.  A function counts if it names
a ring, a slot, a scatter list, a virtqueue element or the mailbox; in the
reader of ftrace rings, which copies all that it looks at, if it copies.
"""

import re
import sys
from pathlib import Path

GUEST = re.compile(r"\bring->|(->|\.)ring\b|\bslot\b|\biov_(to|from)_buf\b|"
                   r"\bvirtqueue_pop\b|dev->mailbox\b|\bring_ram\b|"
                   r"\bread_(ram|word|entry)\(")
FTRACE = re.compile(r"\bht_ft_mem_read\(|\bht_ft_cpu_load\(|"
                    r"mem->(map|read|next)\b")
HEAD = re.compile(r"^(?!static const|typedef|struct \w+ \{)[A-Za-z_].*?"
                  r"\b(\w+)\(")


def functions(text):
    """(name, body) of each function; comments are left out."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    name, head, body = None, None, []
    for line in text.splitlines():
        m = HEAD.match(line)
        if m and body == []:
            # the last call-like word of G_GNUC_PRINTF(2, 3) f( is the name
            name = re.findall(r"\b(\w+)\(", line)[-1]
        if line == "{" and name:
            head = name
        if head:
            body.append(line)
        if line == "}" and head:
            yield head, "\n".join(body)
            name, head, body = None, None, []


def main():
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+\.c:\w+)` \|", page, re.M))
    found, known = set(), set()
    for path in sorted(p for folder in sys.argv[2:]
                       for p in Path(folder).glob("*.c")):
        for name, body in functions(path.read_text(encoding="utf-8")):
            known.add(f"{path.name}:{name}")
            copies = (FTRACE if path.name.startswith(("ftrace", "recording"))
                      else GUEST)
            if copies.search(body):
                found.add(f"{path.name}:{name}")
    results = [
        ("the host's functions are found", len(known) > 100 and
         len(found) > 10, f"{len(known)} functions, {len(found)} accesses"),
        ("each access is listed", found <= listed, sorted(found - listed)),
        ("each row is an access", listed <= found, sorted(listed - found)),
    ]
    print(f"1..{len(results)}")
    for n, (what, ok, why) in enumerate(results, 1):
        print(f"{'ok' if ok else 'not ok'} {n} - {what}")
        if not ok:
            print(f"# {why}")
    return 0 if all(ok for _, ok, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
