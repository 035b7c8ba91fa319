# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace record --pid on processes that are virtual machines without a processor.

watch-guest is the machine. Its memory has a small kernel and a ring, which may stay empty, or
neither. Each test states the promise that only it proves.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from built import built, need
from directories import public_directory
from hypertrace import TOOL, lines, run
from vm.lttng_session import private_run

GUEST = built("tests/unit/tool/watch-guest")
MEMORY = 16 << 20           # size of watch-guest's memory in bytes

# Tests of "hypertrace watch" find these machines, so do not run them at the same time.
pytestmark = pytest.mark.xdist_group("record")


def wait_memory(process):
    """Wait until watch-guest has its memory: without it, "record" ends at once."""
    deadline = time.monotonic() + 60
    while True:
        with open(f"/proc/{process.pid}/maps") as f:
            for line in f:
                begin, end = (int(n, 16) for n in line.split()[0].split("-"))
                if " rw-p " in line and end - begin >= MEMORY:
                    return
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def machines(folder):
    """Yield a function that starts watch-guest with options and returns its PID. In the end, kill
    all machines that it started."""
    program = shutil.copy(GUEST, folder / "qemu-system-x86_64")
    started = []

    def start(*options):
        started.append(subprocess.Popen([program, "-name", "vm", *options],
                                        stdin=subprocess.DEVNULL))
        wait_memory(started[-1])
        return started[-1].pid

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def machine(tmp_path):
    with machines(tmp_path) as start:
        yield start


@pytest.fixture(scope="module", autouse=True)
def blank(tmp_path_factory):
    """A recorder of a machine without a ring and without a kernel. It runs for 32
    s, while the other tests run."""
    tmp = tmp_path_factory.mktemp("blank")
    with machines(tmp) as start, subprocess.Popen(
            [TOOL, "record", "--pid", str(start("-blank")), "--for", "32s", "-o", tmp / "rec"],
            stderr=subprocess.PIPE) as recorder:
        yield recorder
        recorder.kill()


@pytest.mark.parametrize("options, status, said", (
    (("--wait", "2s", "--until", "x"), 3, "--until: no event can match"),
    (("--until", "x"), 1, "--until: no event can match"),
    (("--until", "log:x"), 1, "--until: no line can match"),
    (("--flight", "1M", "--match", "x", "--for", "1s"), 3, "--match: no event matches before"),
))
def test_match_before_boot(tmp_path, machine, options, status, said):
    """If the memory has no kernel yet, a recorder with --until or --match searches for one during
    the time of --wait or --for, and then returns 3. Without such a time it returns 1."""
    begun = time.monotonic()
    p = run("record", "--pid", machine("-blank"), *options, "-o", tmp_path / "rec",
            status=status)
    assert said in p.stderr.decode(), p.stderr
    assert time.monotonic() - begun >= (status == 3)


def test_no_events(tmp_path, machine):
    """If the ring stays empty, the command states likely reasons and returns 3."""
    p = run("record", "--pid", machine("-empty"), "--for", "2s", "-o", tmp_path / "rec",
            status=3)
    assert b"none lost" not in p.stderr
    for text in b"it stayed empty", b"lockdown=confidentiality", b"tracing_on is 0":
        assert text in p.stderr, p.stderr


@pytest.mark.parametrize("exists", (True, False))
def test_relative_kernel(tmp_path, machine, exists):
    """A relative path after -kernel on the machine's command line counts from the
    working directory of the machine's process. If the file is not there, the
    command says what to give."""
    kernel = tmp_path / "vmlinuz"
    if exists:
        kernel.write_bytes(bytes(4096))
    p = subprocess.run(
        [TOOL, "record", "--pid", str(machine("-run", "-kernel",
                                              os.path.relpath(kernel))),
         "--for", "1s", "-o", tmp_path / "rec"], capture_output=True, timeout=120,
        cwd=tmp_path)
    assert (b"cannot be read: give --kernel FILE" in p.stderr) == (not exists), p
    assert exists or p.returncode == 0 and b"none lost" in p.stderr, p


def test_closed_terminal(tmp_path, machine):
    """If the reader of its messages has closed the pipe, a recorder still records until --for
    ends it."""
    read, write = os.pipe()
    with subprocess.Popen([TOOL, "record", "--pid", str(machine()), "--for", "2s",
                           "-o", tmp_path / "rec"], stderr=write, stdout=write) as p:
        os.close(write)
        os.close(read)
        assert p.wait(120) == 0
    out = lines("report", tmp_path / "rec")
    assert out[-1]["ns"] - out[0]["ns"] > 1_000_000_000


def test_request_without_flight(tmp_path, machine):
    """SIGUSR1 makes a recorder with --flight write a recording. It does not end a recorder without
    --flight, which prints that the signal has no effect."""
    with subprocess.Popen([TOOL, "record", "--pid", str(machine()), "--for", "2s",
                           "-o", tmp_path / "rec"], stderr=subprocess.PIPE) as p:
        while not (tmp_path / "rec/cpu0").exists():
            assert p.poll() is None
            time.sleep(0.01)
        p.send_signal(signal.SIGUSR1)
        err = p.communicate(timeout=120)[1]
    assert p.returncode == 0, err
    assert b"SIGUSR1 has no effect without --flight" in err
    assert b"none lost" in err


@pytest.mark.parametrize("name", ("two words", "na\u00efve \u4e16", "-o",
                                  "a\nb", "%s%n", b"\xff\xfe"))
def test_names(tmp_path, machine, name):
    """A recording can have any name; messages have it without control
    characters."""
    place = os.fsencode(tmp_path) + b"/" + os.fsencode(name)
    p = subprocess.run([TOOL, "record", "--pid", str(machine()), "--for", "1s",
                        "-o", place], capture_output=True, timeout=120)
    assert p.returncode == 0, p.stderr
    assert b"none lost" in p.stderr
    assert not [c for c in p.stderr.decode(errors="replace")
                if ord(c) < 32 and c != "\n"]
    assert p.stderr.count(b"\n") <= 5, p.stderr
    q = subprocess.run([TOOL, "report", place], capture_output=True, timeout=60)
    assert q.returncode == 0 and q.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' machines")
@pytest.mark.parametrize("user, folder, owner", (
    (65534, None, 65534),       # a new folder
    (65534, "exists", 0),       # a folder of root, which stays root's
    (0, None, 0),
))
def test_owner(user, folder, owner):
    """If root records another user's machine into a new folder, the recording belongs to that
    user. In an existing folder of root, it belongs to root. Its files have mode 0600."""
    with public_directory() as tmp:
        program = shutil.copy(GUEST, tmp / "qemu-system-x86_64")
        path = tmp / "rec"
        if folder:
            path.mkdir(mode=0o700)
            (path / "mine").write_text("mine")
        with subprocess.Popen([program, "-name", "vm"], user=user, group=user,
                              extra_groups=[], stdin=subprocess.DEVNULL) as vm:
            wait_memory(vm)
            run("record", "--pid", vm.pid, "--for", "1s", "-o", path)
            vm.kill()
        assert (path / "cpu0").stat().st_size
        for file in path, *path.iterdir():
            st = file.stat()
            assert (st.st_uid, st.st_gid) == (owner, owner), file
            if file.name != "mine":
                assert st.st_mode & 0o777 == (0o700 if file == path else 0o600)
        assert os.stat(tmp).st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' machines")
def test_replaced_folder():
    """The user of a machine cannot become the owner of root's other files by putting
    another folder in the recording's place."""
    with public_directory() as tmp:
        replace_folder(tmp)


def replace_folder(top):
    program = shutil.copy(GUEST, top / "qemu-system-x86_64")
    path, moved = top / "rec", top / "moved"
    with subprocess.Popen([program, "-name", "vm"], user=65534, group=65534,
                          extra_groups=[], stdin=subprocess.DEVNULL) as vm:
        wait_memory(vm)
        with subprocess.Popen([TOOL, "record", "-q", "--pid", str(vm.pid), "-o",
                               path]) as p:
            while not (path / "cpu0").exists() or not (path / "cpu0").stat().st_size:
                assert p.poll() is None
                time.sleep(0.05)
            path.rename(moved)
            path.mkdir()
            (path / "secret").write_text("root's")
            p.terminate()
            p.wait(60)
        vm.kill()
    files = path, path / "secret", moved, moved / "cpu0"
    assert [f.stat().st_uid for f in files] == [0, 0, 65534, 65534]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
@pytest.mark.parametrize("left", (48, 57))
def test_full_disk(tmp_path, machine, left):
    """If the disk becomes full, the recorder ends with status 3. The recording names the reason,
    and is not reported as damaged."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def body():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "small", disk],
                       check=True)
        with open(disk / "big", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, (512 - left) << 10)
        p = run("record", "--pid", machine(), "--for", "6s", "-o", disk / "rec", status=3)
        assert b"No space left" in p.stderr and b"rest is missing" in p.stderr
        p = run("last", disk / "rec")
        assert b"the recorder stopped before the guest: cannot write" in p.stderr
        assert b"damaged" not in p.stderr and b"killed" not in p.stderr
        assert lines("report", disk / "rec")

    if not private_run(body):
        pytest.skip("mounting is not allowed here")


def test_stopped(tmp_path, machine):
    """After SIGINT, SIGTERM or SIGHUP, a recorder leaves a recording without lost events, and
    returns 0."""
    pid = machine()
    for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        path = tmp_path / f"by-{sig.name}"
        with subprocess.Popen([TOOL, "record", "--pid", str(pid), "-o", path],
                              stderr=subprocess.PIPE) as p:
            while not (path / "cpu0").exists() or \
                    not (path / "cpu0").stat().st_size:
                assert p.poll() is None
                time.sleep(0.05)
            p.send_signal(sig)
            _, err = p.communicate(timeout=120)
        assert p.returncode == 0 and b"none lost" in err, (sig, err)
        assert lines("report", path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a program setuid")
def test_not_ours():
    """--for ends the command even if the machine that the command started runs as root, so that
    the user may not end it. The machine goes on."""
    need("setpriv")
    with public_directory() as tmp:
        program = shutil.copy(GUEST, tmp / "qemu-system-x86_64")
        tool = shutil.copy(TOOL, tmp)
        sudo = shutil.copy(shutil.which("setpriv"), tmp / "sudo")
        os.chmod(sudo, 0o4755)
        os.chown(tmp, 65534, 65534)
        with open(tmp / "messages", "w+", encoding="utf-8") as messages:
            p = subprocess.Popen([tool, "record", "--for", "1s", "-o", tmp / "rec", "--",
                                  sudo, "--reuid=0", program, "-name", "vm", "-blank"],
                                 user=65534, group=65534, extra_groups=[],
                                 stdin=subprocess.DEVNULL, stderr=messages)
            vm = only_child(p)
            try:
                assert p.wait(60) == 3
                os.kill(vm, 0)
            finally:
                os.kill(vm, signal.SIGKILL)
                p.kill()
                p.wait()
            messages.seek(0)
            assert f"process {vm} cannot be ended: Operation not permitted" in \
                messages.read()


def test_refused(tmp_path):
    """A process that is no guest, and an empty -o, are refused with one line, apart from a line
    with "see:"."""
    with subprocess.Popen(["sleep", "99"]) as p:
        for args, status, said in (
                (("--pid", p.pid), 1, "has no mapping that could be a guest's RAM"),
                (("-o", "", "--", "true"), 2, "-o '': give the name of a directory")):
            err = run("record", *args, status=status, cwd=tmp_path).stderr.decode()
            lines = [line for line in err.splitlines() if not line.startswith("see: ")]
            assert len(lines) == 1 and said in err, err
        p.kill()
    assert not list(tmp_path.iterdir())


def only_child(process):
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    while not (pids := Path(path).read_text(encoding="ascii").split()):
        assert process.poll() is None
        time.sleep(0.05)
    return int(pids[0])


def test_no_ring(blank):
    """Without a ring, the command states likely reasons while the machine runs, and
    returns 3. This is the last test, because it waits for the recorder."""
    _, err = blank.communicate(timeout=300)
    assert blank.returncode == 3 and b"none lost" not in err, err
    for text in (b"no ring of events after 30 s. Likely reasons:", b"no words for a ring",
                 b"CONFIG_TRACING", b"lockdown=confidentiality", b"does not run Linux",
                 b"nothing was recorded"):
        assert text in err, err
