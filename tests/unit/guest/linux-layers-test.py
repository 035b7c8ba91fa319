#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of the Linux driver use each other in one direction.

Only this test proves that there is no circle among them.
"""

import graphlib
import re
import sys
import unittest
from pathlib import Path

SOURCES = Path(sys.argv.pop(1)) / "guest-linux"
MODULES = {
    "hypertrace": ("htk_", "main sysfs emit chardev device port control origin "
                   "enable pci virtio virtio-queue"),
    "hypertrace-sources": ("(?:hte|fn)_", "sources-main events-main "
                           "events-class events-fields events-syscalls "
                           "events-tasks functions"),
}
# A function or variable at the beginning of a line that other files see
DEFINED = r"^(?!static|extern)[A-Za-z].*?\b({}\w+)(?=\(|;$| = |\[)"


def code(name):
    text = (SOURCES / f"{name}.c").read_text()
    return re.sub(r"/\*.*?\*/|//.*?$|\"(\\.|[^\"])*\"", "", text,
                  flags=re.S | re.M)


def uses(prefix, names):
    """{file: files whose functions or variables it uses}"""
    texts = {name: code(name) for name in names}
    home = {}
    for name, text in texts.items():
        for symbol in re.findall(DEFINED.format(prefix), text, re.M):
            home.setdefault(symbol, name)
    return {name: {home[word] for word in re.findall(r"\w+", text)
                   if home.get(word, name) != name}
            for name, text in texts.items()}


class Layers(unittest.TestCase):
    def test_every_file_is_known(self):
        known = " ".join(names for _, names in MODULES.values()).split()
        found = {p.stem for p in SOURCES.glob("*.c")}
        self.assertEqual(found - set(known), {"events-first", "events-last"})

    def test_no_circle(self):
        for module, (prefix, names) in MODULES.items():
            with self.subTest(module):
                graph = uses(prefix, names.split())
                self.assertTrue(any(graph.values()))
                try:
                    tuple(graphlib.TopologicalSorter(graph).static_order())
                except graphlib.CycleError as e:
                    self.fail(f"a circle: {' -> '.join(e.args[1])}")

    def test_circles_are_found(self):
        graph = {"a": {"b"}, "b": {"a"}}
        with self.assertRaises(graphlib.CycleError):
            tuple(graphlib.TopologicalSorter(graph).static_order())


if __name__ == "__main__":
    unittest.main()
