# SPDX-License-Identifier: GPL-2.0-or-later
"""A link named qemu-system-x86_64 to the command behaves as QEMU.

Promise: a probe reaches QEMU unchanged, and a recorder leaves nothing in the process
that becomes QEMU. A script that prints its arguments takes the place of QEMU.
"""

import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from built import built
from hypertrace import TOOL
from scale import LONG

# Print arguments, descriptors and PID, then do what the last argument says
QEMU = r"""#!/usr/bin/python3
import json, os, signal, sys
fds = {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
       if os.path.exists(f"/proc/self/fd/{n}")}
print(json.dumps({"args": sys.argv[1:], "pid": os.getpid(), "fds": fds}),
      flush=True)
last = sys.argv[-1]
if last.startswith("exit="):
    sys.exit(int(last[5:]))
if last == "wait":
    signal.pause()
"""
PROBES = [
    ["--version"],
    ["-version"],
    ["-h"],
    ["-machine", "help"],
    ["-M", "?"],
    ["-cpu", "help"],
    ["-accel", "help"],
    ["-device", "help"],
    ["-device", "virtio-blk-pci,help"],
    ["-machine", "none"],
    ["-S", "-no-user-config", "-nodefaults", "-nographic", "-machine",
     "none,accel=kvm:tcg", "-qmp", "unix:/nowhere/qmp,server=on,wait=off",
     "-pidfile", "/nowhere/pid", "-daemonize"],
]


@pytest.fixture(name="world")
def make_world(tmp_path):
    qemu = tmp_path / "real"
    qemu.write_text(QEMU)
    qemu.chmod(0o755)
    link = tmp_path / "qemu-system-x86_64"
    link.symlink_to(Path(TOOL).resolve())
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path),
           "HYPERTRACE_QEMU": str(qemu),
           "HYPERTRACE_RECORDINGS": str(tmp_path / "recordings"),
           "LD_PRELOAD": built("tests/unit/tool/syslog-file.so"),
           "ASAN_OPTIONS": "verify_asan_link_order=0",
           "HT_SYSLOG": str(tmp_path / "syslog")}
    (tmp_path / "syslog").touch()
    return link, env, tmp_path


def recorders(env):
    """PIDs of the processes that have this test's folder of recordings in their
    environment: the recorder and QEMU"""
    mark = f"HYPERTRACE_RECORDINGS={env['HYPERTRACE_RECORDINGS']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def wait_for_none(env):
    end = time.monotonic() + 60
    while recorders(env):
        assert time.monotonic() < end, recorders(env)
        time.sleep(0.02)


def start(world, *args, **kwargs):
    link, env, _ = world
    # The tests may run under nohup, which makes them ignore SIGHUP.  QEMU must
    # not inherit that.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        return popen(link, env, args, kwargs)
    finally:
        signal.signal(signal.SIGHUP, before)


def popen(link, env, args, kwargs):
    return subprocess.Popen([link, *args], env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **kwargs)


@pytest.mark.parametrize("args", PROBES, ids=" ".join)
def test_probe(world, args):
    p = start(world, *args)
    out, err = p.communicate(timeout=60)
    assert json.loads(out)["args"] == args
    assert (p.returncode, err) == (0, "")
    assert not recorders(world[1])
    assert not (world[2] / "recordings").exists()


@pytest.mark.parametrize("status", [0, 1, 2, 3, 77, 255])
def test_status(world, status):
    p = start(world, "-nodefaults", f"exit={status}")
    out, err = p.communicate(timeout=60)
    assert json.loads(out)["args"] == ["-nodefaults", f"exit={status}"]
    assert (p.returncode, err) == (status, "")
    wait_for_none(world[1])


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL,
                                 signal.SIGHUP, signal.SIGUSR1])
def test_signal(world, sig):
    p = start(world, "-nodefaults", "wait")
    assert json.loads(p.stdout.readline())["pid"] == p.pid
    assert len(recorders(world[1])) == 2
    p.send_signal(sig)
    assert p.wait(60) == -sig
    assert p.communicate()[1] == ""
    wait_for_none(world[1])


def test_descriptors(world):
    """QEMU has the descriptors that it has if it is started without the link."""
    read, write = os.pipe()
    p = start(world, "-nodefaults", "wait", pass_fds=[write])
    fds = json.loads(p.stdout.readline())["fds"]
    plain = subprocess.run([world[1]["HYPERTRACE_QEMU"]], check=True,
                           stdout=subprocess.PIPE, pass_fds=[write]).stdout
    assert fds.keys() == json.loads(plain)["fds"].keys()
    os.close(write)
    p.kill()
    p.wait(60)
    # The recorder has no copy of the pipe's writing end, so a reader sees the
    # pipe's end when QEMU ends.
    assert os.read(read, 1) == b""
    os.close(read)
    p.communicate()
    wait_for_none(world[1])


def test_kernel_words_only(world):
    """The command line of a machine without -kernel is not changed. The settings
    are those of emulator.conf."""
    config = world[2] / ".config/hypertrace"
    config.mkdir(parents=True)
    (config / "emulator.conf").write_text(
        f"[emulator]\nqemu={world[1].pop('HYPERTRACE_QEMU')}\n")
    args = ["-machine", "q35", "-m", "1G", "-object",
            '{"qom-type":"memory-backend-ram","id":"pc.ram","size":1}',
            "-drive", "file=disk", "exit=0"]
    out, err = start(world, *args).communicate(timeout=60)
    assert (json.loads(out)["args"], err) == (args, "")
    wait_for_none(world[1])


@pytest.mark.parametrize("name, value", [
    ("KEEP", "0"), ("KEEP_SIZE", "much"), ("MAX_SIZE", "-1"),
    ("RING_SIZE", "3k"), ("RECORD", "maybe"), ("RECORDINGS", "here")])
def test_wrong_setting(world, name, value):
    """If a setting in the environment is wrong, the guest starts without a
    recorder. The system's log names the setting."""
    world[1]["HYPERTRACE_" + name] = value
    out, err = start(world, "-nodefaults", "exit=5").communicate(timeout=60)
    assert (json.loads(out)["args"], err) == (["-nodefaults", "exit=5"], "")
    assert not recorders(world[1])
    key = name.lower().replace("_", "-")
    assert f"[emulator] {key}={value}: " in (world[2] / "syslog").read_text()


def test_messages(world):
    """With -daemonize, too, the messages of the recording go to the system's log, and not to
    the standard error of QEMU's caller."""
    kernel = world[2] / "kernel"
    kernel.write_bytes(bytes(0x202) + b"HdrS" + bytes(512))
    world[1]["PATH"] = "/nowhere"       # has no QEMU that boots the kernel
    p = start(world, "-daemonize", "-kernel", str(kernel), "exit=0")
    assert p.communicate(timeout=60)[1] == ""
    log = (world[2] / "syslog").read_text()
    assert f"booting {kernel} once" in log
    assert "events will have numbers instead of names" in log
    wait_for_none(world[1])


@pytest.mark.parametrize("line", [
    "record=maybe", "kep=3", *(f"{key}=1\\q" for key in (
        "record", "recordings", "keep", "keep-size", "max-size", "events",
        "ring-size"))])
def test_wrong_file(world, line):
    """If emulator.conf has a mistake, the guest starts and nothing is recorded:
    the wrong setting does not silently get its default."""
    config = world[2] / ".config/hypertrace"
    config.mkdir(parents=True)
    (config / "emulator.conf").write_text(f"[emulator]\n{line}\n")
    world[1].pop("HYPERTRACE_RECORDINGS")
    out, err = start(world, "-nodefaults", "exit=5").communicate(timeout=60)
    assert (json.loads(out)["args"], err) == (["-nodefaults", "exit=5"], "")
    assert not list(world[2].rglob("info"))


def test_no_qemu(world):
    """If PATH has no QEMU except the link itself, the link prints an error."""
    del world[1]["HYPERTRACE_QEMU"]
    world[1]["PATH"] = str(world[2])
    p = start(world, "--version")
    out, err = p.communicate(timeout=60)
    assert (p.returncode, out) == (127, "")
    assert "HYPERTRACE_QEMU" in err


def test_recorder_ended(world, request):
    """If QEMU cannot be run, the status is 127, also if the recorder was killed
    before. A lease on QEMU's file makes exec wait until the recorder has ended."""
    qemu = Path(world[1]["HYPERTRACE_QEMU"])
    qemu.write_text("#!/nowhere\n")
    with qemu.open() as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as e:
            pytest.skip(f"this file system has no leases: {e}")
        # The kernel sends this signal when a process waits for the lease.
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        request.addfinalizer(lambda: signal.signal(signal.SIGIO, before))
        p = start(world, "-nodefaults")
        end = time.monotonic() + 30
        while fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK:
            assert time.monotonic() < end and p.poll() is None
            time.sleep(0.01)
        recorder, = set(recorders(world[1])) - {p.pid}
        os.kill(recorder, signal.SIGKILL)
        while recorder in recorders(world[1]):
            time.sleep(0.01)
    out, err = p.communicate(timeout=60)
    assert (p.returncode, out) == (127, "")
    assert "cannot run" in err


def test_rotation(world):
    """The oldest recordings beyond the limits of number and size are removed;
    other folders stay."""
    folder = world[2] / "recordings"
    for n in range(6):
        old = folder / f"old-{n}"
        old.mkdir(parents=True)
        (old / "info").write_text("x" * 100)
        os.utime(old / "info", (n, n))
        os.utime(old, (n + 1e9, n + 1e9))
    (folder / "other").mkdir()
    (folder / "other/file").write_text("kept")
    world[1]["HYPERTRACE_KEEP"] = "3"
    start(world, "-nodefaults", "exit=0").communicate(timeout=60)
    wait_for_none(world[1])
    assert sorted(p.name for p in folder.iterdir()) == ["old-4", "old-5",
                                                        "other"]
    world[1].update(HYPERTRACE_KEEP="20", HYPERTRACE_KEEP_SIZE="1M")
    (folder / "old-5/cpu0").write_bytes(bytes(2 << 20))
    start(world, "-nodefaults", "exit=0").communicate(timeout=60)
    wait_for_none(world[1])
    assert sorted(p.name for p in folder.iterdir()) == ["other"]


def test_many(world):
    """Starts and stops leave no process, no descriptor and no file."""
    (world[2] / "tmp").mkdir()
    (world[2] / "recordings").mkdir()
    world[1].update(TMPDIR=str(world[2] / "tmp"))
    files = set(world[2].rglob("*"))
    fds = set(os.listdir("/proc/self/fd"))
    for _ in range(100 if LONG else 20):
        p = start(world, "-nodefaults", "wait")
        assert json.loads(p.stdout.readline())["pid"] == p.pid
        p.kill()
        p.communicate(timeout=60)
    wait_for_none(world[1])
    assert set(world[2].rglob("*")) == files
    assert set(os.listdir("/proc/self/fd")) == fds
