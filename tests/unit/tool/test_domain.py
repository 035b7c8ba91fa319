# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace domain, with a virsh that has one domain."""

import os
from pathlib import Path

import pytest

from hypertrace import run

VIRSH = """#!/bin/sh
case "$*" in
*dumpxml*) echo "<domain><name>{name}</name><os><kernel>{kernel}</kernel></os><devices/></domain>";;
*domxml-to-native*) echo "PATH=/bin /usr/bin/qemu-system-x86_64 -m 64 -kernel {kernel}";;
esac
"""


@pytest.fixture(name="domain")
def made_domain(tmp_path):
    """The name of a domain, an environment with a virsh that knows the domain, and the path of
    the file that is the memory of the domain's device"""
    name, kernel, virsh = f"test-{os.getpid()}", tmp_path / "kernel", tmp_path / "virsh"
    kernel.write_bytes(bytes(0x202) + b"HdrS" + bytes(512))
    virsh.write_text(VIRSH.format(name=name, kernel=kernel))
    virsh.chmod(0o755)
    memory = Path(f"/dev/shm/hypertrace-{name}")
    yield name, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, memory
    memory.unlink(missing_ok=True)


def test_memory_is_created_once(domain):
    """The text that `hypertrace domain` prints has `attach --create`, with the size of the device,
    if the memory's file does not exist, or if a URI is given."""
    name, env, memory = domain
    create = f"hypertrace attach --create=16M {memory}"
    text = run("domain", "--programs=16M", name, env=env).stdout.decode()
    assert create in text and f"hypertrace attach {memory}" in text
    assert "<size unit=\"M\">16</size>" in text
    memory.write_bytes(b"")
    text = run("domain", "--programs=16M", name, env=env).stdout.decode()
    assert "--create" not in text and f"hypertrace attach {memory}" in text
    # with a URI, the file of this host does not count: the domain may be on another host
    text = run("domain", "--programs=16M", "-c", "qemu+ssh://host/system", name,
               env=env).stdout.decode()
    assert create in text
