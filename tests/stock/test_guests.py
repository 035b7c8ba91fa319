# SPDX-License-Identifier: GPL-2.0-or-later
"""Record guests with kernels, machines and boot loaders of several kinds.

The kernels are Debian's: scripts/vm/stock-guests.sh gets them, except $HT_KERNEL.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import stock

KERNEL = os.environ["HT_KERNEL"]
APPEND = "console=ttyS0 panic=-1 oops=panic no_timer_check"


def needs(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def has_names(tmp, layout):
    info = (tmp / "rec/info").read_text()
    assert f"layout={layout}\n" in info
    boot = stock.run("boot", tmp / "rec")
    assert re.search(r"^  inet_init .* fs ", boot, re.M), boot
    log = stock.run("log", tmp / "rec")
    assert re.search(r"\] word 8\n", log), log[-500:]


def test_newest(tmp_path):
    """A guest with a kernel 7.x is recorded; its ring has another layout than in 6.12."""
    needs("qemu-system-x86_64")
    stock.record(tmp_path, [
        *stock.X86, *stock.PLAIN, "-m", "512",
        "-kernel", stock.GUESTS / "newest/vmlinuz",
        "-initrd", stock.initrd(tmp_path), "-append", APPEND])
    stock.assert_counts(tmp_path)
    has_names(tmp_path, "7")


def test_arm64(tmp_path):
    needs("qemu-system-aarch64")
    busybox = stock.GUESTS / "arm64/usr/bin/busybox"
    stock.record(tmp_path, [
        *stock.ARM64, *stock.PLAIN, "-m", "512",
        "-kernel", stock.GUESTS / "arm64/vmlinuz",
        "-initrd", stock.initrd(tmp_path, busybox),
        "-append", "console=ttyAMA0 panic=-1"], "--busybox", busybox)
    stock.assert_counts(tmp_path)
    has_names(tmp_path, "6.12")
    assert "NUMA node" in (tmp_path / "rec/info").read_text()


def test_microvm(tmp_path):
    """A microvm has no NUMA nodes, so the recorder makes all memory shared. The test
    switches ACPI off, because with ACPI the guest's kernel finds no timer under
    emulation, even without a recorder. Without ACPI, the guest finds only one
    processor."""
    needs("qemu-system-x86_64")
    stock.record(tmp_path, [
        *stock.X86, "-M", "microvm,acpi=off", *stock.PLAIN, "-m", "512",
        "-kernel", KERNEL, "-initrd", stock.initrd(
            tmp_path, init=stock.INIT.replace("poweroff", "reboot")),
        # Without ACPI the guest cannot power off, so it ends by a reboot: reboot=t
        # makes that a triple fault.
        "-append", APPEND + " reboot=t"])
    stock.assert_counts(tmp_path, cpus=1)
    has_names(tmp_path, "6.12")
    assert "all memory shared" in (tmp_path / "rec/info").read_text()


def unified(tmp):
    root = stock.GUESTS / "uki/usr"
    stub = root / "lib/systemd/boot/efi/linuxx64.efi.stub"
    subprocess.run(
        [os.environ["HT_PYTHON"], root / "bin/ukify", "build",
         f"--linux={KERNEL}", f"--initrd={stock.initrd(tmp)}",
         f"--stub={stub}", f"--cmdline={APPEND}", "--os-release=NAME=guest",
         "--uname=6.12", f"--output={tmp}/uki.efi"], check=True)
    return tmp / "uki.efi"


@pytest.mark.parametrize("where", ["kernel", "disk"])
def test_unified(tmp_path, where):
    """systemd's stub takes the recorder's words for the kernel from SMBIOS,
    whether QEMU loads the stub or firmware loads it from a disk."""
    needs("qemu-system-x86_64")
    firmware = Path("/usr/share/ovmf/OVMF.fd")
    if not firmware.exists():
        pytest.skip("ovmf is not installed")
    uki = unified(tmp_path)
    command = [*stock.X86, *stock.PLAIN, "-m", "512", "-bios", firmware]
    options = []
    if where == "kernel":
        command += ["-kernel", uki]
    else:
        boot = tmp_path / "esp/EFI/BOOT"
        boot.mkdir(parents=True)
        shutil.copy(uki, boot / "BOOTX64.EFI")
        command += ["-drive", f"format=raw,file=fat:rw:{tmp_path}/esp"]
        options = ["--kernel", KERNEL]
    stock.record(tmp_path, command, *options)
    stock.assert_counts(tmp_path)
    has_names(tmp_path, "6.12")
