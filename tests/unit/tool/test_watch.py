# SPDX-License-Identifier: GPL-2.0-or-later
"""hypertrace watch: which virtual machines are recorded, and which recordings they get.

The machines are processes of watch-guest under the name of QEMU.  Each test states
the promise that only it proves.
"""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from built import built
from hypertrace import TOOL, run
from test_record_pid import wait_memory
from vm.lttng_session import private_run

GUEST = built("tests/unit/tool/watch-guest")
DEADLINE = 120
OTHER = pwd.getpwuid(65534).pw_name

as_root = pytest.mark.skipif(os.geteuid() != 0,
                             reason="only root can be another user")

# "hypertrace watch" also finds the machines of other tests, so one worker runs these tests, one
# after the other.
pytestmark = pytest.mark.xdist_group("record")


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


def parent(pid):
    """The parent's PID; None if the process has ended, even if its parent has
    not waited for it"""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return None
    return None if fields[0] in "ZX" else int(fields[1])


class Guest:
    """A virtual machine with the name @name, of the user @user. The end of the with block kills
    it. "hypertrace watch" looks for machines at its start, and then every two seconds."""

    def __init__(self, tmp, name, *options, user=None):
        program = tmp / "qemu-system-x86_64"
        if not program.exists():
            shutil.copy(GUEST, program)
        self.process = subprocess.Popen(
            [program, "-name", name, *options], user=user,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if "-late" not in options:
            wait_memory(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def reset(self):
        self.process.send_signal(signal.SIGUSR1)


class Watch:
    """A running "hypertrace watch". Its recordings are in the folder tmp/flights, its messages in
    the file tmp/log."""

    def __init__(self, tmp, *options, user=None):
        self.dir = tmp / "flights"
        self.log = tmp / "log"
        tool = TOOL
        if user:
            # Copy the program: the build tree may be in a folder that only root may enter.
            tool = shutil.copy(TOOL, tmp)
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [tool, "watch", "-o", os.path.relpath(self.dir), "--size", "1M",
                 *options],
                user=user, stdin=subprocess.DEVNULL, stderr=log,
                env={**os.environ, "HOME": str(tmp)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    def end(self):
        recorders = children(self.process.pid)
        self.process.terminate()
        assert self.process.wait(DEADLINE) == 0, self.messages()
        assert not [p for p in recorders if parent(p)], self.messages()

    def messages(self):
        return self.log.read_text()

    def wait_said(self, text):
        wait_for(lambda: re.search(text, self.messages()),
                 lambda: f"not said: {text}\n{self.messages()}")

    def recordings(self):
        """Paths of the recordings, such as "root/web1/2-reset" """
        return sorted(str(p.relative_to(self.dir))
                      for p in self.dir.glob("*/*/[0-9]*-*"))

    def wait_recorded(self, *names):
        wait_for(lambda: set(names) <= set(self.recordings()),
                 lambda: f"{self.recordings()}\n{self.messages()}")

    def snapshot(self, vm):
        """Repeat "hypertrace snapshot" until the recorder of @vm makes a recording; return the
        recording's folder."""
        def made():
            p = subprocess.run([TOOL, "snapshot", "--json", self.dir / vm],
                               capture_output=True, text=True)
            return p.returncode == 0 and made.replies.append(p.stdout) is None
        made.replies = []
        wait_for(made, self.messages)
        return json.loads(made.replies[0])["directory"]


def user_name():
    return pwd.getpwuid(os.geteuid()).pw_name


def test_found_and_killed(tmp_path):
    """A machine that starts after the watch is recorded when it is reset and when
    it is killed. One line names each cause, and only the machine's user can read
    the recordings. A machine that no rule selects is left alone."""
    me = user_name()
    with Watch(tmp_path, "--name", "web*") as w, \
            Guest(tmp_path, "other") as other, Guest(tmp_path, "web1") as vm:
        w.snapshot(f"{me}/web1")
        vm.reset()
        w.wait_recorded(f"{me}/web1/2-reset")
        vm.kill()
        w.wait_recorded(f"{me}/web1/3-end")
        w.wait_said("web1: end: ")
        wait_for(lambda: not children(w.process.pid), w.messages)
        assert other.process.poll() is None and "other" not in w.messages()
    assert w.recordings() == [f"{me}/web1/{n}" for n in
                              ("1-command", "2-reset", "3-end")]
    for cause in ("reset", "end"):
        line, = re.findall(f"web1: {cause}: .*", w.messages())
        assert "The " in line and "events" in line
    for path in (w.dir / me).rglob("*"):
        assert path.stat().st_mode & 0o77 == 0, path
    events = run("report", "--json", w.dir / me / "web1/3-end").stdout
    assert events.count(b"\n") > 20


def test_domain(tmp_path):
    """'record --domain' refuses a name that two machines have, and a name that no
    machine has."""
    name = f"d{os.getpid()}"
    with Guest(tmp_path, name) as one, Guest(
            tmp_path, f"guest={name},debug-threads=on") as two:
        message = run("record", "--domain", name, status=1).stderr.decode()
        assert {str(g.process.pid) for g in (one, two)} <= set(
            re.findall(r"\d+", message)), message
        message = run("record", "--domain", name + "x", status=1).stderr
        assert b"no virtual machine" in message


def test_restart(tmp_path):
    """If a watch is killed, its recorders end, and the next watch records each
    machine once. A second watch of the same folder is refused."""
    me = user_name()
    with Guest(tmp_path, "web1") as vm:
        first = Watch(tmp_path, "--name", "web1")
        w = None
        try:
            first.snapshot(f"{me}/web1")
            recorder, = children(first.process.pid)
            again = run("watch", "--name", "web1", "--dir", first.dir, status=1)
            assert b"another hypertrace watch uses" in again.stderr
        finally:
            first.process.kill()
            first.process.wait()
        with Watch(tmp_path, "--name", "web1") as w:
            wait_for(lambda: not parent(recorder), "the recorder is left")
            w.snapshot(f"{me}/web1")
            assert len(children(w.process.pid)) == 1
            vm.kill()
            w.wait_recorded(f"{me}/web1/3-end")
    assert w.recordings() == [f"{me}/web1/{n}" for n in
                              ("1-command", "2-command", "3-end")]


@as_root
def test_owner(tmp_path):
    """The recorder runs as the machine's user, who owns the recordings. It has at most the
    capability CAP_SYS_PTRACE. If two machines of a user have the
    same name, each has a folder of its own."""
    uid = pwd.getpwnam(OTHER).pw_uid
    os.chmod(tmp_path, 0o755)
    for folder in list(tmp_path.parents)[:-2]:
        os.chmod(folder, folder.stat().st_mode | 0o11)
    with Guest(tmp_path, "web", user=OTHER) as vm, \
            Guest(tmp_path, "web", user=OTHER), Guest(tmp_path, "web"), \
            Watch(tmp_path, "--user", OTHER) as w:
        for name in ("web", "web-2"):
            w.snapshot(f"{OTHER}/{name}")
        recorders = children(w.process.pid)
        assert len(recorders) == 2
        for pid in recorders:
            status = Path(f"/proc/{pid}/status").read_text()
            assert re.search(rf"^Uid:\t{uid}\t{uid}\t{uid}\t{uid}$", status,
                             re.M)
            caps = int(re.search(r"^CapPrm:\t(\w+)", status, re.M)[1], 16)
            assert caps & ~(1 << 19) == 0       # CAP_SYS_PTRACE
        vm.kill()
        wait_for(lambda: any(r.endswith("-end") for r in w.recordings()),
                 w.messages)
    assert os.listdir(w.dir) == [OTHER]
    for path in (w.dir / OTHER, *(w.dir / OTHER).rglob("*")):
        st = path.stat()
        assert (st.st_uid, st.st_mode & 0o77) == (uid, 0), path


@as_root
def test_other_users(tmp_path):
    """A watch that does not run as root says in one line that machines of other users are not
    recorded."""
    os.chmod(tmp_path, 0o777)
    for folder in list(tmp_path.parents)[:-2]:
        os.chmod(folder, folder.stat().st_mode | 0o11)
    with Guest(tmp_path, "web1"), Guest(tmp_path, "web2"), \
            Guest(tmp_path, "web3", user=OTHER), \
            Watch(tmp_path, "--name", "web*", user=OTHER) as w:
        w.snapshot(f"{OTHER}/web3")
    assert w.messages().count("this needs root") == 1, w.messages()
    assert os.listdir(w.dir) == [OTHER]


def test_retry(tmp_path):
    """If a machine cannot be recorded, the watch tries again, and prints the
    reason once."""
    reason = "no mapping that could be a guest's RAM"
    with Guest(tmp_path, "web1", "-late") as vm, \
            Watch(tmp_path, "--name", "web1") as w:
        w.wait_said(reason)
        wait_for(lambda: not children(w.process.pid), w.messages)
        wait_for(lambda: children(w.process.pid), w.messages)
        wait_for(lambda: not children(w.process.pid), w.messages)
        vm.process.send_signal(signal.SIGUSR2)
        w.snapshot(f"{user_name()}/web1")
    assert w.messages().count(reason) == 1, w.messages()


def test_max_memory(tmp_path):
    """If --max-memory leaves no memory for the recorder of a further machine, the watch starts
    that recorder only after another one has ended."""
    me = user_name()
    with Guest(tmp_path, "web1") as first, \
            Watch(tmp_path, "--name", "web*", "--max-memory", "1M") as w:
        w.snapshot(f"{me}/web1")
        with Guest(tmp_path, "web2"):
            w.wait_said("web2 and further virtual machines wait")
            assert len(children(w.process.pid)) == 1
            first.kill()
            w.snapshot(f"{me}/web2")
    assert w.messages().count("virtual machines wait") == 1


def test_max_vms(tmp_path):
    """A watch records at most max-vms machines of a user; one message reports the limit."""
    me = user_name()
    path = tmp_path / "watch.conf"
    path.write_text(f"[watch]\nmax-vms=1\nuser={me}\nname=web*\n")
    with Guest(tmp_path, "web1"), Watch(tmp_path, "--config", path) as w:
        w.snapshot(f"{me}/web1")
        with Guest(tmp_path, "web2"), Guest(tmp_path, "web3"):
            w.wait_said("1 recorded machine, the limit of max-vms")
            w.snapshot(f"{me}/web1")
            assert len(children(w.process.pid)) == 1
    assert w.messages().count("the limit of max-vms") == 1, w.messages()


def test_named_files(tmp_path):
    """The recorder of a watch opens no file that the machine's command line names. The files of
    this test are FIFOs, which would block the recorder."""
    me = user_name()
    fifos = [tmp_path / name for name in ("kernel", "config")]
    for fifo in fifos:
        os.mkfifo(fifo)
    with Guest(tmp_path, "web1", "-kernel", fifos[0], "-readconfig", fifos[1]), \
            Watch(tmp_path, "--name", "web1") as w:
        w.snapshot(f"{me}/web1")
        for fifo in fifos:
            with pytest.raises(OSError, match="No such device or address"):
                os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    # If the recorder had tried to open a FIFO, the log would name it.
    assert str(fifos[0]) not in w.messages()


@as_root
def test_full_disk(tmp_path):
    """If the file system is full, the watch removes the oldest recordings with a message, and
    keeps the newest of each machine. If a machine then dies, its death is recorded, for which its
    other recording is removed."""
    me = user_name()
    disk = tmp_path / "disk"
    disk.mkdir()

    def body():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20M", "small",
                        disk], check=True)
        with Guest(disk, "web1"), Guest(disk, "web2") as dies, \
                Watch(disk, "--name", "web*") as w:
            w.snapshot(f"{me}/web1")
            w.snapshot(f"{me}/web1")
            w.snapshot(f"{me}/web2")
            (disk / "big").write_bytes(bytes(5 << 20))
            # Stop the machine, so that its next recording needs no more room than the last.
            dies.process.send_signal(signal.SIGSTOP)
            w.snapshot(f"{me}/web2")
            w.wait_said("removed the recording .*: the file system is full")
            wait_for(lambda: len(w.recordings()) == 2, w.messages)
            assert w.recordings() == [f"{me}/web1/2-command",
                                      f"{me}/web2/2-command"]
            with open(disk / "bigger", "wb") as f:
                st = os.statvfs(disk)
                os.posix_fallocate(f.fileno(), 0, st.f_bavail * st.f_frsize)
            dies.kill()
            w.wait_recorded(f"{me}/web2/3-end")
            w.wait_said("removed the recording .*/web2/2-command")

    if not private_run(body):
        pytest.skip("mounting is not allowed here")


SETTINGS = (
    ("", "no virtual machine is chosen"),
    ("[vm]\n", r"there is no group \[vm\]"),
    ("[vm web*]\nuser=no-such-user\n", "user=no-such-user: give the name"),
    ("[vm *]\nuser=\n", r"\[vm \*\] user=: give one or more users"),
    ("[vm *]\nuser=;\n", "user=;: give one or more users"),
    ("[watch]\nuser=\nname=web\n", "user=: give one or more users"),
    ("[watch]\nuser=root;;\n", "user=root;;: give one or more users"),
    ("[watch]\nname=\nuser=root\n", "name=: give one or more patterns"),
    ("[vm web*]\nsiez=1M\n", r"no setting 'siez'; did you mean size"),
    ("[watch]\nkeep=0\n[vm *]\n", "keep=0: give 1 to"),
    ("[watch]\nmax-vms=0\n[vm *]\n", "max-vms=0: give 1 to"),
    ("[watch]\nsize=1K\n[vm *]\n", "size=1K: give 1M to 64G"),
    ("[watch]\ndir=here\n[vm *]\n", "dir=here: give an absolute path"),
    ("[watch]\nsilence=never\n[vm *]\n", "silence=never: give a time"),
    ("[watch]\nmatch=a when b\n[vm *]\n", "match: expected 'where CONDITION' at"),
    ("[watch]\nmatch=,\n[vm *]\n", "match: give the name of an event"),
    ("[watch]\nmax-disk=20M\n[vm *]\n", "smaller than two recordings"),
    ("[watch]\nmax-memory=8M\n[vm *]\n", "smaller than size"),
    ("[watch\n", "file"),
    # a value with an unknown escape is refused for each key
    *((f"{group}{key}=1\\q\n[vm *]\n", rf"{key}=1\\q: give UTF-8 with")
      for group, keys in (("[watch]\n", ("dir", "size", "keep", "silence", "match",
                                         "max-memory", "max-disk", "max-vms",
                                         "name", "user")),
                          ("[vm a]\n", ("user", "size", "silence", "match")))
      for key in keys),
)


@pytest.mark.parametrize("text,message", SETTINGS)
def test_refused_settings(tmp_path, text, message):
    """A mistake in the configuration file is refused with a message that names it."""
    path = tmp_path / "watch.conf"
    path.write_text(text)
    p = run("watch", "--config", path, status=2)
    assert re.search(message, p.stderr.decode()), p.stderr


def test_file(tmp_path):
    """A rule of the configuration file selects machines by name and user, and has
    its own silence. An option on the command line replaces a setting of the file."""
    me = user_name()
    path = tmp_path / "watch.conf"
    path.write_text(f"""
[watch]
keep=1
silence=3600s
size=4M
[vm web1]
user={me}
silence=1s
[vm web2]
user=4294967294
""")
    with Guest(tmp_path, "web2"), Guest(tmp_path, "web1") as vm, \
            Watch(tmp_path, "--config", path, "--keep", "2") as w:
        for _ in range(3):
            w.snapshot(f"{me}/web1")
        vm.process.send_signal(signal.SIGSTOP)
        w.wait_recorded(f"{me}/web1/4-silence")
        found = w.recordings()
    assert "web2" not in w.messages()
    assert found == [f"{me}/web1/{n}" for n in
                              ("3-command", "4-silence")]
