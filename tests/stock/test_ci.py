# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the commands of docs/ci.md with an emulated guest.

Only this test proves that examples/ci-boot.sh and the page's commands work
together, with the recordings that the script keeps.
"""

import os
import re
import shlex
import subprocess

import pages
import pytest
import stock

INIT = stock.MOUNTS + "$b poweroff -f\n$b sleep 1000\n"
QEMU = "qemu-system-x86_64 -accel tcg,thread=single -cpu qemu64,-cx16"


def as_here(command):
    """A command of the page with QEMU's options and the kernel's words replaced by
    those for an emulated guest"""
    command = re.sub(r" -append \"[^\"]*\"",
                     f" -append '{os.environ['HT_KERNEL_ARGS']}'", command)
    return command.replace("qemu-system-x86_64", QEMU, 1)


def shell(world, command):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=world[0], env=world[1],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=stock.DEADLINE, check=False)


@pytest.fixture(name="world")
def make_world(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hypertrace").symlink_to(stock.TOOL)
    (tmp_path / "examples").symlink_to(pages.TOP / "examples")
    (tmp_path / "vmlinuz").symlink_to(os.environ["HT_KERNEL"])
    (tmp_path / "initrd.img").symlink_to(stock.initrd(tmp_path, init=INIT))
    env = {**stock.ENV, "HOME": str(tmp_path),
           "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    return tmp_path, env


def test_ci(world):
    """examples/ci-boot.sh passes boots that are faster than $MAX, fails a slower boot,
    and moves the recording of the failed boot to recordings.failed. The page's other
    commands then show that recording."""
    top = world[0]
    commands = list(pages.commands(pages.TOP / "docs/ci.md"))
    script, limited = [c for c in commands if "ci-boot.sh" in c][::-1]
    assert limited.startswith("MAX=30s ")
    for _ in range(2):
        done = shell(world, as_here(script).replace(
            "examples/", "MAX=1000s examples/"))
        assert done.returncode == 0, done.stderr
    assert "<failure" not in (top / "boot.xml").read_text()
    assert len(list((top / "recordings").iterdir())) == 2
    done = shell(world, as_here(limited).replace("MAX=30s", "MAX=1ms"))
    assert done.returncode == 4, done.stderr
    assert "<failure" in (top / "boot.xml").read_text()
    assert len(list((top / "recordings").iterdir())) == 2
    (failed,) = (top / "recordings.failed").iterdir()
    shown = [c for c in commands if c.startswith("hypertrace boot")]
    assert len(shown) == 2
    for command in shown:
        done = shell(world, re.sub(r"recordings\.failed/\S+",
                                   shlex.quote(str(failed)), command))
        assert done.returncode == 0, (command, done.stderr)
    assert "<svg" in (top / "boot.svg").read_text()
