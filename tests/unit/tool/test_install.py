# SPDX-License-Identifier: GPL-2.0-or-later
"""What "meson install" installs: the command, its completions, the library, and a manual page
for each name in the section NAME of a page."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from hypertrace import TOOL

PAGES = sorted((Path(__file__).resolve().parents[3] / "docs/man").iterdir())


@pytest.fixture(name="root", scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    subprocess.run([os.environ.get("HT_MESON", "meson"), "install", "-C",
                    os.environ["HT_BUILD"], "--no-rebuild", "--quiet",
                    "--destdir", root], check=True)
    return root


def page(root, name, section):
    found = list(root.rglob(f"man{section}/{name}.{section}"))
    assert len(found) == 1, name
    return found[0].read_text()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_names(root, path):
    text = path.read_text()
    section = path.suffix[1:]
    names = re.search(r"^\.Sh NAME\n((?:\.Nm .*\n)+)", text, re.M)[1]
    for name in re.findall(r"^\.Nm (.*?)(?: ,)?$", names, re.M):
        assert page(root, name.replace(" ", "-"), section) == text


def test_commands(root):
    helped = subprocess.run([TOOL, "--help"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    commands = re.findall(r"^  (\w+) ", helped, re.M)
    assert len(commands) > 10
    for command in commands:
        page(root, f"hypertrace-{command}", 1)
    for completion in ("completions/hypertrace", "site-functions/_hypertrace",
                       "vendor_completions.d/hypertrace.fish"):
        assert len(list(root.rglob(completion))) == 1, completion
    (program,) = root.rglob("bin/hypertrace")
    assert os.access(program, os.X_OK)


def test_static(root):
    """A static program links with the flags that pkg-config prints for
    hypertrace, without others."""
    (pc,) = root.rglob("hypertrace.pc")
    flags = subprocess.run(
        ["pkg-config", "--static", "--cflags", "--libs", "hypertrace"],
        check=True, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent),
             "PKG_CONFIG_SYSROOT_DIR": str(root)}).stdout
    program = root / "hello"
    source = Path(__file__).resolve().parents[3] / "examples/hello.c"
    subprocess.run(["cc", "-static", source, "-o", program, *flags.split()],
                   check=True)
    said = subprocess.run(
        [program], check=True, text=True, stderr=subprocess.PIPE,
        env={"HYPERTRACE_DEBUG": "1", "HYPERTRACE_DEVICE": "none"}).stderr
    # The library, which the program contains, prints this.
    assert "HYPERTRACE_DEVICE is none" in said
