# SPDX-License-Identifier: GPL-2.0-or-later
"""Kill QEMU or the recorder by SIGKILL while the guest boots or works: report, boot, log,
top and export must still open the recording."""

import os
import shutil
import signal
import subprocess

import pytest
import stock

import perfetto_text

KILLS = int(os.environ.get("HT_STOCK_KILLS", "60"))
BOOT = 1500000              # approximate size in bytes of the recording at the latest kill
# The guest makes events until it is killed.
INIT = stock.INIT.split("cd /trace")[0] + """
while :; do $b true; done
"""


def recorded(recording):
    return sum(f.stat().st_size for f in recording.glob("cpu*"))


def check_everywhere(tmp):
    """Read the recording tmp/rec with commands of hypertrace, and its exports with other
    programs, if they are installed; return the recording's number of events."""
    n = len(stock.run("report", "--json", tmp / "rec").splitlines())
    stock.run("boot", tmp / "rec")
    stock.run("log", tmp / "rec")
    stock.run("top", tmp / "rec")
    stock.run("export", "-o", tmp / "trace.dat", tmp / "rec")
    stock.run("export", "-o", tmp / "it.pftrace", tmp / "rec")
    stock.run("export", "-f", "ctf", "-o", tmp / "ctf", tmp / "rec")
    if shutil.which("trace-cmd"):
        text = subprocess.run(
            ["trace-cmd", "report", "-N", tmp / "trace.dat"],
            capture_output=True, check=True).stdout
        assert text.count(b"]") > 0
    if shutil.which("babeltrace2"):
        p = subprocess.run(["babeltrace2", tmp / "ctf"], check=True,
                           capture_output=True)
        assert len(p.stdout.splitlines()) <= n and not p.stderr
    if shutil.which("protoc"):
        assert perfetto_text.packets(tmp / "it.pftrace")
    return n


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return stock.initrd(tmp_path_factory.mktemp("image"), init=INIT)


@pytest.mark.parametrize("kill", range(KILLS))
def test_killed(tmp_path, image, kill):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    recorder = stock.start(tmp_path, [
        *stock.X86, *stock.PLAIN, "-m", "512",
        "-kernel", os.environ["HT_KERNEL"], "-initrd", image, "-append",
        os.environ["HT_KERNEL_ARGS"]])
    enough = 4096 + BOOT * kill // KILLS
    try:
        stock.wait_for(lambda: recorded(tmp_path / "rec") > enough, recorder)
        if kill % 2 == 0:
            os.kill(stock.qemu_of(recorder), signal.SIGKILL)
            recorder.communicate(timeout=stock.DEADLINE)
            assert recorder.returncode == 128 + signal.SIGKILL
    finally:
        stock.kill(recorder)
    assert check_everywhere(tmp_path) > 50
