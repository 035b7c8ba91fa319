# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that create a folder or a file on a full disk."""

import os
import re
import subprocess

import pytest

from hypertrace import ENV, TOOL, story
from test_record_pid import MEMORY, machines
from vm.lttng_session import private_run

# Tests of "hypertrace watch" would find the machine, so do not run them at the same time.
pytestmark = pytest.mark.xdist_group("record")

# Command lines. Their output is on the full disk {disk}, but --create makes a file in {tmp}, which
# has room. {pid} is the process of a virtual machine, and {ram} is a copy of its memory.
COMMANDS = {
    "recover": "recover -q -o {disk}/new {ram}",
    "recover with parents": "recover -q -o {disk}/a/b/new {ram}",
    "recover streams": "recover -q -o {disk}/a/new {tmp}/dead/ht0",
    "record": "record --pid {pid} --for 100ms -o {disk}/new",
    "flight": "record --pid {pid} --flight --for 100ms -o {disk}/new",
    "attach": "attach --create=8M --for 1ms -o {disk}/new {tmp}/made",
    "dat": "export -o {disk}/new.dat {tmp}/story",
    "perfetto": "export -o {disk}/new.pftrace {tmp}/story",
    "ctf": "export -o {disk}/new.ctf {tmp}/story",
    "lttng": "export -o {disk}/new.lttng {tmp}/story",
    "several": "export -f ctf -o {disk}/new {tmp}/story {tmp}/pairs",
}
# Rows: the number of free blocks of 4 KiB, and the maximum number of inodes of the file system, of
# which its root folder uses one; 0: no maximum
ROOM = [*((blocks, 0) for blocks in (0, 1, 2, 4, 8, 12)), *((0x10000, n) for n in range(1, 8))]


@pytest.fixture(name="folder", scope="module")
def files(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("full")
    for name in ("dead", "story", "pairs"):
        story(name, tmp / name)
    (tmp / "disk").mkdir()
    with machines(tmp) as start:
        pid = start()
        with open(f"/proc/{pid}/maps", encoding="ascii") as f, \
                open(f"/proc/{pid}/mem", "rb") as memory:
            for line in f:
                begin, end = (int(n, 16) for n in line.split()[0].split("-"))
                if " rw-p " in line and end - begin >= MEMORY:
                    memory.seek(begin)
                    (tmp / "ram").write_bytes(memory.read(end - begin))
                    break
        yield {"tmp": tmp, "disk": tmp / "disk", "ram": tmp / "ram", "pid": pid}


def run_in(room, folder, command):
    """Run a command with a disk that has the given room, a row of ROOM. Return the command's
    status, its messages, and the files and folders that it has left."""
    disk, (blocks, inodes) = folder["disk"], room
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={4 * blocks + 4}k,nr_inodes={inodes}",
                    "small", disk], check=True)
    try:
        if not inodes:
            (disk / "filled").write_bytes(bytes(4096))
        p = subprocess.run([TOOL, *command.format(**folder).split()], capture_output=True,
                           env=ENV, cwd=folder["tmp"], timeout=60, check=False)
        left = {path for path in disk.iterdir() if path.name != "filled"}
        made = folder["tmp"] / "made"
        if made.exists():
            made.unlink()
            left.add(made)
        return p.returncode, p.stderr.decode(), left
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_unnamed_is_left(name, folder):
    """A command that fails because the disk is full removes what it has made, or names it."""
    failed = []

    def body():
        for room in ROOM:
            status, said, left = run_in(room, folder, COMMANDS[name])
            told = {path for path in left
                    if re.search(rf"events?(, .* MB)? in '?{path}['; ]|mem-path={path}\n", said)}
            assert not status or left == told, (room, status, said, left)
            if status:
                failed.append(room)

    if not private_run(body):
        pytest.skip("mounting is not allowed here")
    assert failed
