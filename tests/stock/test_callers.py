# SPDX-License-Identifier: GPL-2.0-or-later
"""Give programs that start QEMU a link to hypertrace in its place.

The test of mkosi runs mkosi, which scripts/vm/stock-guests.sh gets.  The test of
syzkaller, which is not in Debian, repeats its command line, pipes and SIGKILL.
debian/tests/virtme-ng is the test with virtme-ng, test_libvirt.py that with libvirt.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import stock

READY = "the guest is up"
WORK = stock.MOUNTS + f"""$b find /proc/self /sys/bus >/dev/null 2>&1
echo "{READY}" >/dev/kmsg
"""
POWEROFF = WORK + "$b poweroff -f\n$b sleep 1000\n"
STAY = WORK + "$b sleep 100000\n"
SYZKALLER_WORDS = (
    "earlyprintk=serial oops=panic nmi_watchdog=panic panic=1 "
    "ftrace_dump_on_oops=orig_cpu vsyscall=native net.ifnames=0 biosdevname=0 "
    "root=/dev/sda console=ttyS0 kvm-intel.nested=1")


@pytest.fixture(name="world")
def make_world(tmp_path):
    """(test's folder, environment): PATH begins with a folder in which
    qemu-system-x86_64 is a link to hypertrace"""
    link = tmp_path / "bin/qemu-system-x86_64"
    link.parent.mkdir()
    link.symlink_to(stock.TOOL)
    env = {**os.environ, "HOME": str(tmp_path),
           "PATH": f"{link.parent}:{os.environ['PATH']}",
           "HYPERTRACE_RECORDINGS": str(tmp_path / "recordings")}
    return tmp_path, env


def processes(tmp):
    mark = f"HYPERTRACE_RECORDINGS={tmp}/recordings".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def assert_recorded(tmp):
    """Wait until the recorder has ended; assert that exactly one recording was made,
    and that it has events and messages of the boot, up to the start of init."""
    stock.wait_until(lambda: not processes(tmp), lambda: processes(tmp))
    (rec,) = (tmp / "recordings").iterdir()
    assert {"initcall_start", "sched_switch", "console"} <= {
        e["event"] for e in stock.reported(rec)}
    assert READY in stock.run("log", rec)
    assert "initcalls" in stock.run("boot", rec)


def test_mkosi(world):
    """'mkosi qemu' boots a kernel through the link, and returns its status."""
    tmp, env = world
    mkosi = stock.GUESTS / "mkosi/usr/lib/python3/dist-packages"
    image = tmp / "image.raw"
    image.write_bytes(bytes(1 << 20))
    (tmp / "image.vmlinuz").symlink_to(os.environ["HT_KERNEL"])
    (tmp / "image.initrd").symlink_to(stock.initrd(tmp, init=POWEROFF))
    (tmp / "image.cmdline").write_text(os.environ["HT_KERNEL_ARGS"])
    # replace mkosi's "-cpu max": Debian 12's QEMU sometimes miscompiles cmpxchg16b
    done = subprocess.run(
        [sys.executable, "-B", "-m", "mkosi", "--distribution=debian",
         "--bootable", "--qemu-boot=linux", "--qemu-headless",
         "--qemu-kvm=no", "--output", image, "qemu",
         "-cpu", "qemu64,-cx16", "-no-reboot"],
        env={**env, "PYTHONPATH": str(mkosi)}, cwd=tmp, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=stock.DEADLINE, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert READY in done.stdout
    assert_recorded(tmp)


def test_syzkaller(world):
    """As syzkaller, read the guest's console through a pipe, kill QEMU, and wait for
    the end of the pipe: no recorder may hold the pipe open."""
    tmp, env = world
    image = tmp / "image"
    image.write_bytes(bytes(1 << 20))
    initrd = stock.initrd(tmp, init=STAY)
    read, write = os.pipe()
    qemu = subprocess.Popen(
        ["qemu-system-x86_64", "-m", "512", "-smp", "2", "-display", "none",
         "-serial", "stdio", "-no-reboot", *stock.X86[1:],
         "-chardev", f"socket,id=SOCKSYZ,path={tmp}/mon,server=on,wait=off",
         "-mon", "chardev=SOCKSYZ,mode=control", "-name", "VM-0",
         "-device", "virtio-rng-pci", "-device", "e1000,netdev=net0",
         "-netdev", "user,id=net0,restrict=on,host=10.0.2.10",
         "-hda", image, "-snapshot", "-initrd", initrd,
         "-kernel", os.environ["HT_KERNEL"],
         "-append", f"{SYZKALLER_WORDS} {os.environ['HT_KERNEL_ARGS']}"],
        env=env, cwd=tmp, stdin=subprocess.DEVNULL, stdout=write,
        stderr=write, process_group=0)
    os.close(write)
    with open(read, encoding="utf-8", errors="replace") as console:
        seen = []
        for line in console:
            seen.append(line)
            if READY in line:
                break
        assert seen and READY in seen[-1], seen[-20:]
        assert len(processes(tmp)) == 2
        qemu.kill()
        assert qemu.wait(60) == -signal.SIGKILL
        console.read()
    assert_recorded(tmp)
