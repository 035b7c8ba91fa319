# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that `hypertrace record` changes a machine of QEMU only as docs/reliability.md lists."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from built import built, need

TOP = Path(__file__).resolve().parents[3]
SCRIPT = TOP / "scripts/check/qemu-command-lines.py"
PARTS = {"qom": "QOM tree", "fw_cfg": "fw_cfg", "acpi": "ACPI",
         "smbios": "SMBIOS", "numa": "NUMA nodes"}


def changes():
    spec = importlib.util.spec_from_file_location("lines", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
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


@pytest.mark.long
def test_same_machines():
    """If a QEMU starts with a command line, it also starts with that command line by
    `hypertrace record`, and its machine is the same except for the listed differences.

    Only this test proves this with QEMU for whole command lines."""
    need("qemu-system-x86_64")
    qemus = ["qemu-system-x86_64"]
    if os.access(os.environ.get("HT_QEMU", ""), os.X_OK):
        qemus.append(os.environ["HT_QEMU"])
    p = subprocess.run([sys.executable, SCRIPT, "--hypertrace",
                        built("tools/hypertrace/hypertrace"), "--styles", "40",
                        "--generate", "20", "--seed", "3", "--jobs", "2", *qemus],
                       capture_output=True, text=True, timeout=900)
    assert p.returncode == 0, p.stdout
    for lines in re.findall(r": (\d+) different lines start", p.stdout):
        assert int(lines) > 40, p.stdout
