# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/reliability.md names each change that record makes to a machine."""

import importlib.util
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PARTS = {"qom": "QOM tree", "fw_cfg": "fw_cfg", "acpi": "ACPI",
         "smbios": "SMBIOS", "numa": "NUMA nodes"}


def changes():
    spec = importlib.util.spec_from_file_location(
        "lines", TOP / "scripts/check/qemu-command-lines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CHANGES


def test_table():
    """The page's table lists exactly the differences that
    scripts/check/qemu-command-lines.py accepts."""
    text = (TOP / "docs/reliability.md").read_text()
    section = re.search(r"\n## Command lines of QEMU\n.*?(?=\n## )", text,
                        re.DOTALL)[0]
    documented = re.findall(r"^\| ([^|]*) \| ((?:[^|\\]|\\.)*) \| ([^|]*) \|$",
                            section, re.MULTILINE)
    expected = [(PARTS[part], f"`{name.strip()}`" if name else "all", why)
                for part, name, why in changes()]
    assert [(a, b.replace("\\|", "|"), c) for a, b, c in documented
            if a in PARTS.values()] == expected
