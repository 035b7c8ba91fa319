# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorder that reads a guest's buffer costs the guest not one instruction.

The guest writes the same events with and without the recorder. With -icount and no
sleep the guest's clock counts its instructions, and the kernel's lines on the guest's
console begin with the time: the consoles must be identical.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import stock

EVENTS = "sched,irq,initcall,printk,task"
BOOT = f"reserve_mem=16M:2M:ht trace_instance=boot_map@ht,{EVENTS}"
APPEND = "console=ttyS0 panic=-1 no_timer_check nokaslr"
SIZE = 512 << 20


def command(tmp, image, words):
    ram = tmp / "ram"
    return ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount",
            "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed",
            "1", "-cpu", "qemu64,-cx16", "-m", "512", *stock.PLAIN,
            "-object", f"memory-backend-file,id=m,size={SIZE},mem-path={ram},"
            "share=on", "-machine", "memory-backend=m",
            "-kernel", os.environ["HT_KERNEL"], "-initrd", str(image),
            "-append", words]


def words_for_main(line, options):
    """The guest's kernel command line after `hypertrace record` has added its words
    to it"""
    printed = shlex.split(stock.run("record", "--print", *options, "--",
                                    *line).splitlines()[0])
    return printed[printed.index("-append") + 1]


@pytest.fixture
def in_memory():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        yield Path(path)


def said(tmp):
    text = stock.console(tmp)
    assert re.search(r"^\[ +\d+\.\d{6}\] reboot: Power down", text, re.M)
    return text


@pytest.mark.parametrize("buffer", ["boot", "main"])
def test_instructions(tmp_path, in_memory, buffer):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    image = stock.initrd(tmp_path, init=stock.INIT if buffer == "boot" else
                         stock.INIT.replace("/instances/boot_map", ""))
    consoles = {}
    given = words = f"{APPEND} {BOOT}"
    more = ()
    if buffer == "main":
        given, more = APPEND, ("--buffer", "main", "--event", EVENTS)
        words = words_for_main(command(tmp_path, image, given), more)
    for name, options in (("alone", None), ("again", None),
                          ("1 ms", ("--poll-us", "1000")),
                          ("50 us", ("--poll-us", "50"))):
        tmp = in_memory / name.replace(" ", "")
        tmp.mkdir()
        if options is None:
            subprocess.run([*command(tmp, image, words), "-serial",
                            f"file:{tmp}/console"], check=True,
                           stdin=subprocess.DEVNULL, timeout=stock.DEADLINE)
        else:
            stock.record(tmp, command(tmp, image, given), *options, *more)
            stock.assert_counts(tmp)
        consoles[name] = said(tmp)
    assert consoles["again"] == consoles["alone"]
    assert consoles["1 ms"] == consoles["alone"]
    assert consoles["50 us"] == consoles["alone"]
