# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the commands in the README and in the pages of docs/"""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# First words of the commands that pages tell a reader to type
PROGRAMS = r"hypertrace|\./run|sudo|apt|ninja|lttng|lttng-relayd|" \
    r"babeltrace2?|insmod|modprobe|systemctl|examples/\S+|[A-Z_]+=\S+ \S+|" \
    r"xentrace|xl|eval|cc|make|\$HT_QEMU|git|editor|scripts/\S+"


def how_to():
    """Return the paths of the README, and of the tutorial and the how-to pages that
    docs/README.md lists."""
    text = (TOP / "docs/README.md").read_text()
    found = re.findall(r"^\| \[(.*?\.md)\]", text[text.index("## Tutorial"):
                                                  text.index("## Reference")],
                       re.M)
    assert len(found) > 10
    return [TOP / "README.md", *(TOP / "docs" / name for name in found)]


def blocks(text):
    """Yield the indented and the fenced blocks of a text, each as a list of stripped lines; a
    line that ends with a backslash is joined with the next. An empty line does not end a
    block."""
    text = re.sub(r" *\\\n +", " ", text)
    block, fenced = [], False
    for line in [*text.splitlines(), ""]:
        if line.strip().startswith("```"):
            fenced = not fenced
        elif fenced or re.match(r" {4}", line):
            block.append(line.strip())
            continue
        if block and not re.match(r"\s*$", line):
            yield block
            block = []
    if block:
        yield block


def commands(page):
    """Yield the commands in the blocks of a page that begin with one of PROGRAMS, without
    comments.  In a block with prompts, lines without a prompt are output."""
    for block in blocks(page.read_text()):
        prompted = [line[2:] for line in block if re.match(r"[$#] ", line)]
        for line in prompted or block:
            if re.match(rf"({PROGRAMS})( |$)", line) and \
                    not re.match(r"hypertrace( \w+)?: ", line):
                yield re.sub(r"\s+#.*$", "", line)
