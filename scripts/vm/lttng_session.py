#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A private LTTng session daemon, for tests and demonstrations.

    with PrivateSession(output, events=["ht0:*"]) as session:
        subprocess.run(["qemu-system-x86_64", ...], env=session.env())
    # recording is stopped and flushed, the daemon has ended; read session.output

The daemon has its own LTTNG_HOME and so is independent of other session daemons.
LTTng allows root only one daemon per machine, so if root uses this module, the private
daemon runs as an unprivileged user.  That daemon also traces a program that root runs with
env(), but only if the daemon was started before the program.  In a function that
private_run() calls, root can run a private daemon as root (own_run).

As a command: lttng_session.py [--event PATTERN]... OUTPUT -- COMMAND...
records while COMMAND runs, and exits with its status, or 128 + N after a signal N.
"""

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

UNPRIVILEGED = 65534        # nobody
DEADLINE = 120              # limit of each wait, in seconds


class SessionError(Exception):
    """A step of a session failed or took too long; the exception's text says which."""


def private_run(function):
    """Call function in a new thread that has an empty /run and /dev/shm of its own,
    so that root can run a private LTTng daemon as root. Return True after the call, or
    raise the exception that function raised. If the mounts fail, return False without
    a call."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = []

    def thread():
        # unshare() moves only this new thread into a new mount namespace
        if libc.unshare(0x00020000):                    # CLONE_NEWNS
            return
        for command in (["mount", "--make-rprivate", "/"],
                        ["mount", "-t", "tmpfs", "none", "/run"],
                        ["mount", "-t", "tmpfs", "none", "/dev/shm"]):
            if subprocess.run(command, check=False,
                              stderr=subprocess.DEVNULL).returncode:
                return
        result.append(None)
        try:
            function()
        # Catch all exceptions, also those of pytest for skip and fail: private_run()
        # raises them in its caller's thread.
        except BaseException as error:
            result.append(error)

    t = threading.Thread(target=thread)
    t.start()
    t.join()
    if result[1:]:
        raise result[1]
    return bool(result)


def missing_programs():
    needed = ["lttng", "lttng-sessiond"]
    if os.geteuid() == 0:
        needed.append("setpriv")
    return [name for name in needed if not shutil.which(name)]


def _die_with_parent():
    """In the child: get SIGTERM when the thread that started the child ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGTERM, 0, 0, 0)      # PR_SET_PDEATHSIG


class PrivateSession:
    """A context manager: one session daemon, with one recording session.

    The daemon gets SIGTERM, at the latest, when the thread that started it ends.

    output: directory for the trace; it must not exist.  The end of the with block
        completes the trace, and does not remove it.  None: make a directory in /tmp
    events: patterns as for `lttng enable-event --userspace`
    filter: LTTng's filter expression for the patterns in events, or None
    start: whether to start recording at once
    blocking: traced programs wait for space instead of losing events; they
        must run with env(), which then sets LTTNG_UST_ALLOW_BLOCKING
    subbuf_size, num_subbuf: size and number of the sub-buffers of the channel "main",
        for each CPU
    snapshot: keep events in memory only, until snapshot() writes them
    per_uid: all programs of a user share the buffers.  Off by default, because a killed
        program can leave shared buffers unusable for the others
    own_run: whether the caller runs as root in a function that private_run() calls
    """

    def __init__(self, output=None, events=("*",), filter=None, start=True,
                 blocking=False, subbuf_size="1M", num_subbuf=8,
                 snapshot=False, per_uid=False, name="hypertrace",
                 own_run=False):
        self.name = self._given_name = name
        self.output = os.path.abspath(output) if output else None
        self._written = None    # directory to which the daemon writes
        self._events = list(events)
        self._filter = filter
        self._start = start
        self._blocking = blocking
        self._subbuf = (subbuf_size, num_subbuf)
        self._snapshot = snapshot
        self._per_uid = per_uid
        self._root = os.geteuid() == 0 and not own_run
        self._home = None
        self._daemon = None
        self._log = None

    # Set-up and end -----------------------------------------------------

    def __enter__(self):
        try:
            self._make_home()
            self._start_daemon()
            self._create()
        except BaseException:
            self._end_daemon()
            self._remove_home()
            raise
        return self

    def __exit__(self, kind, value, traceback):
        name, self.name = self.name, None
        try:
            if name:
                # The trace of a stopped session is complete. Destroying the session, or
                # ending the daemon in order, takes half a second: so kill the daemon.
                self.lttng("stop", name, check=False)
                if f" {name} " not in self.lttng("list"):
                    raise SessionError(f"no session {name}: {self.daemon_log()}")
                self.kill()
                self._take_trace()
        except SessionError:
            if kind is None:
                raise
        finally:
            self._end_daemon()
            self._remove_home()
        return False

    def finish(self):
        """Stop the recording and complete the trace, unless that was done. The session
        daemon keeps running."""
        if not self.name:
            return
        name, self.name = self.name, None
        self.lttng("stop", name, check=False)
        self.lttng("destroy", name)
        self._take_trace()

    def _take_trace(self):
        """If the daemon wrote the trace to its own folder, move the trace to the output.
        If root's daemon ran as another user, make root the owner of the trace."""
        if self._written != self.output:
            os.rmdir(self.output)
            shutil.move(self._written, self.output)
        if self._root:
            for path, dirs, files in os.walk(self.output):
                for entry in [path, *(os.path.join(path, n)
                                      for n in dirs + files)]:
                    os.lchown(entry, 0, 0)

    def _make_home(self):
        # Do not use TMPDIR: paths of sockets must be short.
        self._home = tempfile.mkdtemp(prefix="ht-lttng-", dir="/tmp")
        if self._root:
            os.chown(self._home, UNPRIVILEGED, UNPRIVILEGED)
        os.chmod(self._home, 0o755)

    def _start_daemon(self):
        self._log = open(os.path.join(self._home, "sessiond.log"), "w+b")
        try:
            self._daemon = subprocess.Popen(
                self._as_daemon_user(["lttng-sessiond", "--no-kernel"]),
                env=self.env(), stdin=subprocess.DEVNULL, stdout=self._log,
                stderr=subprocess.STDOUT, cwd="/", start_new_session=True,
                preexec_fn=None if self._root else _die_with_parent)
        except OSError as error:
            raise SessionError(f"cannot start lttng-sessiond: {error}") \
                from error
        self._wait(self._answers, "lttng-sessiond does not answer")

    def _answers(self):
        if self._daemon.poll() is not None:
            raise SessionError("lttng-sessiond ended: " + self.daemon_log())
        return self._run(["lttng", "--no-sessiond", "list"]).returncode == 0

    def _create(self):
        if self.output is None:
            self.output = os.path.join(
                tempfile.mkdtemp(prefix="ht-trace-", dir="/tmp"), "trace")
            os.chmod(os.path.dirname(self.output), 0o755)
        try:
            os.makedirs(self.output)
        except OSError as error:
            raise SessionError(f"cannot make {self.output}: "
                               f"{error.strerror}") from error
        self._written = self.output
        if self._root:
            os.chown(self.output, UNPRIVILEGED, UNPRIVILEGED)
            if self._run(["test", "-w", self.output]).returncode:
                # The daemon's user cannot reach the output, so let the daemon write the
                # trace to its own folder.
                self._written = os.path.join(self._home, "trace")
        self.lttng("create", self.name, f"--output={self._written}",
                   *(["--snapshot"] if self._snapshot else []))
        self.make_channels({"main": self._subbuf})
        for event in self._events:
            self.enable(event, self._filter)
        if self._start:
            self.start()

    def _end_daemon(self):
        """Ask the session daemon to end, wait for up to DEADLINE seconds, and kill what is
        left of its process group."""
        if self._daemon:
            self._daemon.terminate()
            try:
                self._daemon.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(self._daemon.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            self._daemon.wait()
            self._daemon = None
        if self._log:
            self._log.close()
            self._log = None

    def _remove_home(self):
        if self._home:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def env(self, base=None):
        env = dict(os.environ if base is None else base)
        env["LTTNG_HOME"] = self._home
        # Time in ms for which LTTng-UST in a program waits for the daemon; after a
        # timeout, events of the program may not be recorded. The default, 3 s, can be
        # too short with a slow disk.
        env.setdefault("LTTNG_UST_REGISTER_TIMEOUT", "20000")
        if self._blocking:
            env["LTTNG_UST_ALLOW_BLOCKING"] = "1"
        return env

    @property
    def pid(self):
        return self._daemon.pid

    def consumers(self):
        """Process ids of the daemon's consumers, the processes that
        write the traces."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii",
                          errors="replace") as stat:
                    pid, rest = stat.read().split(" (", 1)
                name, rest = rest.rsplit(") ", 1)
            except (OSError, ValueError):
                continue
            if name == "lttng-consumerd" and \
                    int(rest.split()[2]) == self._daemon.pid:
                found.append(int(pid))
        return found

    def kill(self):
        """Kill the daemon and its consumers; unwritten events are lost."""
        os.killpg(self._daemon.pid, signal.SIGKILL)
        self._daemon.wait()
        self._log.close()
        self.name = None

    def restart(self, output):
        """Start a new session daemon after kill(); it records to the new folder output."""
        self.name = self._given_name
        self.output = os.path.abspath(output)
        self._start_daemon()
        self._create()

    def start(self):
        self.lttng("start", self.name)

    def stop(self):
        """Pause recording; events recorded so far become readable."""
        self.lttng("stop", self.name)

    def make_channels(self, channels, session=None):
        """Make a channel for each item of {name: (size of a sub-buffer, number of
        sub-buffers)}, and the channel "discarded", which enable() uses."""
        for name, (size, count) in {**channels, "discarded": ("16k", 4)}.items():
            self.lttng("enable-channel", "--userspace",
                       f"--session={session or self.name}",
                       f"--subbuf-size={size}", f"--num-subbuf={count}",
                       "--buffers-uid" if self._per_uid else "--buffers-pid",
                       *(["--blocking-timeout=inf"] if self._blocking else []),
                       name)

    def enable(self, pattern, filter=None, channel="main", session=None):
        """Record matching events, also those that programs register later.

        The pattern DEVICE:*, in which DEVICE has no "*", matches also the event by which
        the LTTng backend reports discarded events. Record that event in the channel
        "discarded", without the filter. So if LTTng itself discards events, its count for
        the given channel has only events of the guest.
        """
        common = ["enable-event", "--userspace",
                  f"--session={session or self.name}"]
        device, _, name = pattern.partition(":")
        alone = f"{device}:discarded"
        apart = name == "*" and "*" not in device
        self.lttng(*common, f"--channel={channel}", pattern,
                   *([f"--filter={filter}"] if filter else []),
                   *([f"--exclude={alone}"] if apart else []))
        if apart:
            self.lttng(*common, "--channel=discarded", alone)

    def snapshot(self):
        self.lttng("snapshot", "record", f"--session={self.name}")

    def listed(self):
        """Names of the events that running programs have registered with the daemon"""
        text = self.lttng("list", "--userspace")
        return {line.split()[0] for line in text.splitlines()
                if "(type: tracepoint)" in line}

    def wait_for(self, done, message, deadline=DEADLINE):
        self._wait(done, message, deadline)

    def wait_listed(self, name, deadline=DEADLINE):
        self._wait(lambda: name in self.listed(),
                   f"no program offers the event {name}", deadline)

    def lttng(self, *args, check=True):
        done = self._run(["lttng", "--no-sessiond", *args])
        if check and done.returncode:
            raise SessionError(f"lttng {' '.join(args)}: {done.stdout}"
                               f"{self.daemon_log()}")
        return done.stdout

    def daemon_log(self):
        with open(self._log.name, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _as_daemon_user(self, command):
        if not self._root:
            return command
        return ["setpriv", f"--reuid={UNPRIVILEGED}",
                f"--regid={UNPRIVILEGED}", "--clear-groups",
                "--pdeathsig=TERM", *command]

    def _run(self, command):
        try:
            return subprocess.run(
                self._as_daemon_user(command), env=self.env(), cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=DEADLINE, text=True,
                check=False)
        except subprocess.TimeoutExpired as error:
            raise SessionError(f"{' '.join(command)} hangs") from error

    @staticmethod
    def _wait(done, message, deadline=DEADLINE):
        end = time.monotonic() + deadline
        while not done():
            if time.monotonic() > end:
                raise SessionError(message)
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--event", action="append", metavar="PATTERN",
                        help="events to record (default: all)")
    parser.add_argument("--filter", help="filter expression for the events")
    parser.add_argument("--blocking", action="store_true",
                        help="let the program wait instead of losing events")
    parser.add_argument("output", help="new directory for the trace")
    parser.add_argument("command", nargs=argparse.REMAINDER,
                        help="the program to trace, after --")
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("no command to run")
    if missing_programs():
        parser.error("missing: " + " ".join(missing_programs()))
    try:
        with PrivateSession(args.output, args.event or ["*"], args.filter,
                            blocking=args.blocking) as session:
            status = subprocess.run(command, env=session.env(),
                                    check=False).returncode
    except SessionError as error:
        sys.exit(f"lttng_session.py: {error}")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
