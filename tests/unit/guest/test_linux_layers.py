# SPDX-License-Identifier: GPL-2.0-or-later
"""The C files of each Linux module use each other in one direction: there is no circle."""

import graphlib
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "guest-linux"
MODULES = {
    "hypertrace": ("htk_", "main memory life sysfs emit chardev device port "
                   "control origin enable pci virtio virtio-queue"),
    "hypertrace-sources": ("(?:hte|fn)_", "sources-main events-main "
                           "events-class events-fields events-syscalls "
                           "events-tasks functions"),
}
# Source files that mark the start and the end of an array: the linker places the
# objects of generated sources, which hold the elements, between those of these files.
MARKS = {"events-first", "events-last"}
# The definition of a function or variable that other files can use
DEFINED = r"^(?!static|extern)[A-Za-z].*?\b({}\w+)(?=\(|;$| = |\[)"


def code(name):
    text = (SOURCES / f"{name}.c").read_text()
    return re.sub(r"/\*.*?\*/|//.*?$|\"(\\.|[^\"])*\"", "", text,
                  flags=re.S | re.M)


def uses(prefix, texts):
    """{file: the other files that define functions or variables that the file uses}"""
    home = {}
    for name, text in texts.items():
        for symbol in re.findall(DEFINED.format(prefix), text, re.M):
            home.setdefault(symbol, name)
    return {name: {home[word] for word in re.findall(r"\w+", text)
                   if home.get(word, name) != name}
            for name, text in texts.items()}


def circle(graph):
    """The files of a circle, or None"""
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as e:
        return e.args[1]
    return None


def test_every_file_is_known():
    known = {name for _, names in MODULES.values() for name in names.split()}
    assert {p.stem for p in SOURCES.glob("*.c")} == known | MARKS


@pytest.mark.parametrize("module", MODULES)
def test_no_circle(module):
    prefix, names = MODULES[module]
    graph = uses(prefix, {name: code(name) for name in names.split()})
    assert sum(map(len, graph.values())) >= len(graph) - 1
    assert circle(graph) is None


def test_circles_are_found():
    texts = {"a": "int htk_a(void)\n{\n\treturn htk_b();\n}\n",
             "b": "int htk_b(void)\n{\n\treturn htk_c;\n}\n",
             "c": "int htk_c = 1;\nstatic int x = htk_a();\n"}
    assert set(circle(uses("htk_", texts))) == {"a", "b", "c"}
    del texts["a"]
    assert circle(uses("htk_", texts)) is None
