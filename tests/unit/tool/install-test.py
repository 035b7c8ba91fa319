#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is installed: the command, and a manual page under each name that one
has."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, HYPERTRACE, *PAGES = sys.argv[1:]


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.root = Path(cls.dir.name)
        subprocess.run([os.environ.get("HT_MESON", "meson"), "install",
                        "-C", BUILD, "--no-rebuild", "--quiet",
                        "--destdir", cls.dir.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def page(self, name, section):
        found = list(self.root.rglob(f"man{section}/{name}.{section}"))
        self.assertEqual(len(found), 1, name)
        return found[0].read_text()

    def test_names(self):
        for page in map(Path, PAGES):
            text = page.read_text()
            section = page.suffix[1:]
            name = re.search(r"^\.Sh NAME\n((?:\.Nm .*\n)+)", text, re.M)[1]
            for n in re.findall(r"^\.Nm (.*?)(?: ,)?$", name, re.M):
                self.assertEqual(self.page(n.replace(" ", "-"), section), text)

    def test_commands(self):
        helped = subprocess.run([HYPERTRACE, "--help"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout
        commands = re.findall(r"^  (\w+) ", helped, re.M)
        self.assertGreater(len(commands), 10)
        for c in commands:
            self.page(f"hypertrace-{c}", 1)
        (installed,) = self.root.rglob("bin/hypertrace")
        self.assertTrue(os.access(installed, os.X_OK))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
