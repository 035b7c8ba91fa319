# SPDX-License-Identifier: GPL-2.0-or-later
"""Views on a terminal: the pager, and the line that shows progress."""

import contextlib
import os
import pty
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hypertrace import ENV, TOOL, run, story

DEADLINE = 60


@pytest.fixture(name="recording", scope="module")
def make_recording(tmp_path_factory):
    return story("story", tmp_path_factory.mktemp("terminal") / "story")


def read_all(fd):
    """Return what a process writes to a terminal, until the other side is closed; close fd."""
    out = b""
    # If the other side of a terminal is closed, a read fails.
    with contextlib.suppress(OSError):
        while part := os.read(fd, 65536):
            out += part
    os.close(fd)
    return out.replace(b"\r\n", b"\n")


def on_terminal(*args, env, **kwargs):
    """Run the command with a terminal as standard output; return its exit status, output and
    messages."""
    terminal, other = pty.openpty()
    with subprocess.Popen([TOOL, *map(str, args)], stdin=subprocess.DEVNULL,
                          stdout=other, env={**ENV, "TERM": "xterm", **env},
                          stderr=subprocess.PIPE, **kwargs) as p:
        os.close(other)
        out = read_all(terminal)
        err = p.stderr.read()
        return p.wait(DEADLINE), out, err


PREFIX = "sed s/^/paged:/"


@pytest.mark.parametrize("command", (
    ["report"], ["log"], ["top"], ["boot"], ["last"], ["callgraph"],
    ["latency", "sched_waking", "sched_switch"]))
def test_pager(recording, command):
    """If standard output is a terminal, the pager gets a view's text unchanged."""
    plain = run(*command, recording).stdout
    args = [*command, "--color=never", recording]
    status, out, _ = on_terminal(*args, env={"PAGER": PREFIX})
    assert status == 0
    assert out == b"".join(b"paged:" + line + b"\n"
                           for line in plain.splitlines())


@pytest.mark.parametrize("env, options", (
    ({"PAGER": PREFIX}, ["--no-pager"]), ({"PAGER": ""}, []),
    ({"PAGER": "cat"}, []), ({"PAGER": "/no/such/pager -x"}, []),
    ({"PAGER": "unmatched 'quote"}, []), ({"PAGER": PREFIX, "TERM": "dumb"}, []),
    ({"PAGER": PREFIX}, ["--output=-"]),
))
def test_no_pager(recording, env, options):
    """If no pager runs, the text is printed as it is."""
    status, out, err = on_terminal("log", "--color=never", *options, recording,
                                   env=env)
    assert (status, err) == (0, b"")
    assert out == run("log", recording).stdout


def test_pipe(recording):
    assert run("log", recording, env={"PAGER": PREFIX}).stdout == \
        run("log", recording).stdout


@pytest.mark.parametrize("args", (
    ["--help"], ["--version"], ["help", "report"], ["record", "--help"],
    ["attach", "--help"], ["report", None], ["top", None], ["events", None]))
def test_output_fails(recording, args):
    """If the reader of the output's pipe has ended, these commands end with status 0. If the disk
    is full or standard output is closed, they fail with a message."""
    command = [TOOL, *(arg or recording for arg in args)]
    for restore in True, False:
        read, write = os.pipe()
        os.close(read)
        p = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=ENV,
                           timeout=DEADLINE, restore_signals=restore)
        os.close(write)
        assert (p.returncode, p.stderr) == (0, b"")
    for shell in 'exec "$@" >/dev/full', 'exec "$@" >&-':
        p = subprocess.run(["sh", "-c", shell, "sh", *command], timeout=DEADLINE,
                           stderr=subprocess.PIPE, env=ENV)
        assert p.returncode == 1 and b"cannot write" in p.stderr, p


@pytest.mark.parametrize("closed", ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"))
@pytest.mark.parametrize("args", (["report", "-o"], ["export", "-o"],
                                  ["boot", "--boot=1", "--svg"]))
def test_closed_streams(recording, tmp_path, args, closed):
    """If standard streams are closed, the files that the command writes have the same content as
    with open streams: its messages do not end up in them."""
    # With this address of the kernel, which does not fit the symbols, the command prints a message.
    info = (recording / "info").read_text()
    shutil.copytree(recording, tmp_path / "other")
    (tmp_path / "other/info").write_text(info.replace("91000000", "91000450"))
    files = {}
    for name, shell in ("open", ""), ("closed", closed):
        (tmp_path / name).mkdir()
        out = tmp_path / name / "out.pftrace"
        subprocess.run(["sh", "-c", f'exec "$@" {shell}', "sh", TOOL, *args, out,
                        tmp_path / "other"], stderr=subprocess.DEVNULL, timeout=DEADLINE,
                       stdout=subprocess.DEVNULL, env=ENV, check=False)
        files[name] = {f.name: f.read_bytes() for f in out.parent.iterdir()}
    assert files["open"] == files["closed"]


@pytest.mark.parametrize("columns", ("-5", "0", "x", "99999999999999999999"))
def test_columns(recording, columns):
    """If COLUMNS is not a valid width, it is ignored."""
    assert run("boot", "--boot=1", recording, env={"COLUMNS": columns}).stdout == \
        run("boot", "--boot=1", recording).stdout


def test_pager_ends_first(recording):
    """If the pager ends before the text does, the command returns 0. If the command fails, it
    returns its own status, although a pager runs."""
    status, out, err = on_terminal("report", "--color=never", recording,
                                   env={"PAGER": "head -n 1"})
    assert status == 0 and out.count(b"\n") == 1 and not err
    status, _, err = on_terminal("report", "--event=no_such_event", recording,
                                 env={"PAGER": PREFIX})
    assert status == 1 and b"no_such_event" in err


@pytest.fixture(name="large", scope="module")
def make_large(tmp_path_factory):
    """A recording of 24 MB, which takes some time to read"""
    path = story("slower", tmp_path_factory.mktemp("large") / "large")
    for file in path.glob("cpu*"):
        data = file.read_bytes()
        file.write_bytes(data * (24_000_000 // len(data)))
    return path


def bytes_read(pid):
    text = Path(f"/proc/{pid}/io").read_text()
    return int(text.split("rchar: ")[1].split()[0])


def stop_for_a_second(p):
    """Stop the process p for more than a second after it has read 3 MB."""
    while bytes_read(p.pid) < 3_000_000:
        assert p.poll() is None
    p.send_signal(signal.SIGSTOP)
    end = time.monotonic() + 1.1
    while time.monotonic() < end:
        os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        time.sleep(0.05)
    p.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("terminal", (True, False))
def test_progress(large, terminal):
    """If a read takes more than a second and standard error is a terminal, a line there shows the
    progress, and is removed before the end. If standard error is no terminal, nothing is shown."""
    fd, other = pty.openpty()
    with subprocess.Popen([TOOL, "top", large], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, env=ENV,
                          stderr=other if terminal else subprocess.PIPE) as p:
        os.close(other)
        stop_for_a_second(p)
        assert b"sched_switch" in p.stdout.read()
        err = read_all(fd) if terminal else p.stderr.read()
        assert p.wait(DEADLINE) == 0
    if terminal:
        assert b"\rhypertrace top: " in err and b" % read\033[K" in err
        assert err.endswith(b"\r\033[K"), err
    else:
        assert not err
