# SPDX-License-Identifier: GPL-2.0-or-later
"""Named pipes in place of files: no command waits for a pipe's writer."""

import os
import subprocess

import pytest

from hypertrace import ENV, TOOL, story

QEMU = "record --print --kernel {kernel} -- qemu-system-x86_64 -nographic"
# Command lines with the pipe {pipe}, and the exit status
COMMANDS = {
    "vcpus --xentrace --cpu-hz=1G {pipe}": 1,
    "interference --xentrace --cpu-hz=1G {pipe}": 1,
    "watch --config {pipe}": 2,
    "recover --kernel {kernel} --busybox {pipe} {ram}": 1,
    "events --busybox {pipe} {kernel}": 1,
    "formats --busybox {pipe} {kernel}": 1,
    "last --kernel {kernel} --busybox {pipe} {tmp}/story": 1,
    f"{QEMU} -readconfig {{pipe}}": 0,
    f"{QEMU} -smbios type=11,path={{pipe}}": 0,
    f"{QEMU} -smbios file={{pipe}}": 0,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_pipe(tmp_path, command):
    """A pipe in place of a file is refused with its name. If only QEMU reads the
    file, the command leaves it to QEMU."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if "{tmp}/story" in command:
        story("story", tmp_path / "story")
    ram, kernel = tmp_path / "ram", tmp_path / "kernel"
    ram.write_bytes(bytes(4096))
    kernel.write_bytes(bytes(0x202) + b"HdrS" + bytes(512))
    args = command.format(pipe=pipe, tmp=tmp_path, ram=ram, kernel=kernel).split()
    p = subprocess.run([TOOL, *args], capture_output=True, env={**ENV, "XDG_CACHE_HOME":
                       str(tmp_path)}, timeout=10, stdin=subprocess.DEVNULL, check=False)
    assert p.returncode == COMMANDS[command], p.stderr
    if p.returncode:
        assert str(pipe) in p.stderr.decode()
