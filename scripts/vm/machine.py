# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a Linux guest with hypertrace devices: for the demo, benchmarks and tests.

    with VM(devices=[{"channel": "shm"}], job="ht-bench -j >&3") as vm:
        vm.wait(120)
        print(vm.out.text, vm.trace("ht0"))

The job is a shell script that the guest runs as root, with hypertrace.ko loaded (unless
module=False) and the programs of HT_GUEST_BIN in PATH.  vm.out has the script's
output to descriptor 3; the script reads the lines of vm.say() from descriptor 3, too.  Its
standard output and the kernel's messages are in vm.console.

The environment must have the variables that scripts/env.sh prints.
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from vm import saved

TOP = Path(__file__).resolve().parents[2]
# Factor of most deadlines: kernels with checkers (scripts/check/kernel-tests.sh) are several times
# slower than others
PATIENCE = float(os.environ.get("HT_PATIENCE", 1))
MEMORY = int(os.environ.get("HT_GUEST_MEMORY", 0))     # least RAM of a guest in MiB
QMP_TIMEOUT = 120 * PATIENCE    # limit of the wait for a reply, in seconds
BACKENDS = ("ctf", "log", "lttng", "null")
# Signals that end a QEMU which crashes
CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)


class Failure(Exception):
    """The guest, QEMU or another program did not do what was expected, or a requirement of
    a run, such as KVM, is missing."""


class Closed(Failure):
    """QEMU has closed its QMP connection, perhaps because it crashed."""


class Stream:
    """Bytes received from a socket, which callers search from the end of the previous
    match on.

    about() returns a text that is appended to the message of a failure.
    """

    def __init__(self, name, about=str):
        self.name = name
        self.about = about
        self.ours, self.theirs = socket.socketpair()
        self._data = bytearray()
        self._seen = 0
        self._eof = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while True:
            try:
                data = self.ours.recv(65536)
            except OSError:
                data = b""
            with self._changed:
                self._data += data
                self._eof = not data
                self._changed.notify_all()
            if not data:
                return

    @property
    def text(self):
        with self._changed:
            return self._data.decode(errors="replace").replace("\r\n", "\n")

    def send(self, text):
        self.ours.sendall(text.encode())

    def find(self, pattern, timeout):
        """Wait for text that matches the pattern, after the previous match. Return the
        match, or None after timeout * PATIENCE seconds or at the end of the stream."""
        if pattern.endswith("$"):
            # $ must match the end of a line, not the end of the received bytes
            pattern = pattern[:-1] + "\n"
        regex = re.compile(pattern.encode(), re.M)
        deadline = time.monotonic() + timeout * PATIENCE
        with self._changed:
            while True:
                m = regex.search(self._data, self._seen)
                if m:
                    self._seen = m.end()
                    return m
                left = deadline - time.monotonic()
                if left <= 0 or self._eof:
                    return None
                self._changed.wait(left)

    def expect(self, pattern, timeout):
        """Wait for text that matches the pattern, after the previous match. Return the
        match; raise Failure after timeout * PATIENCE seconds or at the end of the stream."""
        m = self.find(pattern, timeout)
        if not m:
            why = "ended" if self._eof else f"{timeout * PATIENCE} s went by"
            raise Failure(f"{self.name}: {why} without /{pattern}/\n"
                          f"{self.about()}")
        return m

    def finish(self, timeout):
        """After QEMU has ended, wait up to timeout seconds for the rest of its output."""
        self._thread.join(timeout)

    def close(self):
        self.ours.close()


class Qmp:
    """A QMP connection: to a child that gets the socket `theirs`, or to the UNIX socket
    `path`. QEMU's events are kept until wait_event() returns them."""

    def __init__(self, path=None):
        if path is None:
            self.ours, self.theirs = socket.socketpair()
        else:
            self.ours = socket.socket(socket.AF_UNIX)
            self.ours.connect(str(path))
        self._data = b""
        self._last = 0
        self.events = []

    def _receive(self, timeout):
        """Receive QEMU's next QMP message; return None after timeout seconds."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._data:
            self.ours.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.ours.recv(65536)
            except TimeoutError:
                return None
            except ConnectionError:
                data = b""
            if not data:
                raise Closed("QMP: QEMU has closed the connection")
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return json.loads(line)

    def start(self):
        if not self._receive(QMP_TIMEOUT):
            raise Failure(f"QMP: no greeting in {QMP_TIMEOUT} s")
        self.command("qmp_capabilities")

    def command(self, name, /, **arguments):
        """Execute a QMP command and return its value; raise Failure if it fails or gets no
        reply."""
        self._last += 1
        message = {"execute": name, "id": self._last}
        if arguments:
            message["arguments"] = {k.replace("_", "-"): v
                                    for k, v in arguments.items()}
        self.ours.settimeout(QMP_TIMEOUT)
        try:
            self.ours.sendall(json.dumps(message).encode() + b"\n")
        except ConnectionError as e:
            raise Closed(f"QMP {name}: QEMU has closed the connection") from e
        while True:
            reply = self._receive(QMP_TIMEOUT)
            if not reply:
                raise Failure(f"QMP {name}: no reply in {QMP_TIMEOUT} s")
            if "event" in reply:
                self.events.append(reply)
            elif reply.get("id", self._last) != self._last:
                continue        # reply to a command that timed out
            elif "error" in reply:
                raise Failure(f"QMP {name}: {reply['error']['desc']}")
            else:
                return reply["return"]

    def stats(self, name):
        """Statistics of the device that has this id"""
        # Name the device by its QOM path, which QEMU finds without a search of all
        # objects: such a search would take time that benchmarks count.
        one, = self.command("query-hypertrace",
                            object=f"/machine/peripheral/{name}")
        return one

    def wait_event(self, name, timeout, **data):
        """Return a QMP event with this name and with the members @data, which was kept or
        arrives before the timeout; else raise Failure."""
        timeout *= PATIENCE
        deadline = time.monotonic() + timeout
        while True:
            for e in self.events:
                if e["event"] == name and all(
                        e.get("data", {}).get(k) == v
                        for k, v in data.items()):
                    self.events.remove(e)
                    return e
            left = deadline - time.monotonic()
            if left <= 0:
                raise Failure(f"QMP: no event {name} in {timeout} s")
            message = self._receive(left)
            if message and "event" in message:
                self.events.append(message)

    def close(self):
        self.ours.close()


# Words that appear in a kernel's reports of faults, also in those of KASAN and lockdep
COMPLAINT = re.compile(
    r"\bOops\b|\bBUG\b|\bWARNING:|general protection|Call Trace|Kernel panic|"
    r"soft lockup|blocked for more than|refcount_t|UBSAN:|DMA-API:|"
    r"non-static key")
# A report of KCSAN.  The kernel has data races of its own, so a report counts only if
# one of this project's modules makes an access, or calls a function for memory or texts
# that makes it.
RACE = re.compile(r"^.*={66}\n.*BUG: KCSAN: (?s:.*?)={66}$", re.M)
# The part of a stack that an interrupt or exception has interrupted. The handler makes
# the access, not the interrupted functions.
INTERRUPTED = re.compile(r"^.* asm_\w+\+0x.*\n(?:.*\+0x[0-9a-f]+/0x.*\n)*", re.M)
# One of the modules in the title, or in the first line of an access's stack, or in the
# second after such a function
OWN = re.compile(r"data-race in .*\[hypertrace| to 0x.*\n"
                 r"(?:.* \w*(?:mem|str|copy)\w*\+0x[0-9a-f]+/0x.*\n)?"
                 r".*\+0x[0-9a-f]+/0x[0-9a-f]+ \[hypertrace")


def complaints(console):
    """Lines of a console's text that report a fault of the kernel, by COMPLAINT and RACE"""
    own = RACE.sub(lambda report: report[0] if OWN.search(
        INTERRUPTED.sub("", report[0])) else "", console)
    return [line for line in own.splitlines() if COMPLAINT.search(line)]


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG


class VM:
    """A guest.

    devices: a dict of properties for each device; "id" defaults to ht0, ht1..., and
        "backend" is one of BACKENDS (default: ctf) or names backends in args;
        "backend_options" are properties of the backend that this class makes
    job: text of the shell script; None: the guest starts a shell on the console
    module: whether to load hypertrace.ko, with module_args
    kernel_args: added to the kernel's command line
    files: added to the guest's /ht, {name: path}
    packed: whether to boot the compressed kernel HT_KERNEL, as users do, instead of
        HT_VMLINUX, if that is set; by default packed is the opposite of module.  The
        compressed kernel takes longer to boot, but is required to resume from suspend.
    fresh: whether to boot even if a saved state could be used (see vm.saved)
    accel: kvm, tcg, or tcg-single, which emulates one processor at a time.  The default
        is tcg-single if the name of a file begins with "hypertrace-", as that of
        hypertrace-sources.ko does, else tcg.  That module lets the kernel patch its text,
        and TCG with parallel processors sometimes executes an int3 that the kernel has
        removed.
    """

    def __init__(self, devices=(), job=None, accel=None, module=True,
                 module_args="", kernel_args="", files=None, args=(),
                 memory=512, cpus=2, workdir=None, qemu=None,
                 packed=None, fresh=False):
        self.devices = [dict(d) for d in devices]
        self.job = job
        self.accel = accel or ("tcg-single" if any(
            name.startswith("hypertrace-") for name in files or {}) else "tcg")
        self.module = module
        self.module_args = module_args
        self.kernel_args = kernel_args
        self.fresh = fresh
        self.files = dict(files or {})
        self.args = list(args)
        self.memory = max(memory, MEMORY)
        self.cpus = cpus
        self.qemu = qemu or os.environ["HT_QEMU"]
        if packed is None:
            packed = not module
        self.kernel = (not packed and os.environ.get("HT_VMLINUX")
                       or os.environ["HT_KERNEL"])
        self._own_dir = workdir is None
        self.dir = Path(workdir or tempfile.mkdtemp(
            prefix="vm.", dir=os.environ.get("HT_SCRATCH")))
        self.process = None
        self.status = None
        self.console = Stream("console", self.__str__)
        self.out = Stream("job", lambda: f"{self}\n{self.where()}")
        self.qmp = Qmp()
        for n, d in enumerate(self.devices):
            d.setdefault("id", f"ht{n}")

    def trace(self, device):
        return self.dir / f"trace-{device}"

    def job_text(self):
        # Keep the job's serial port open: a closed one drops its input.
        return f"exec 3<>$JOB_OUT\n{self.job}"

    def _initrd(self):
        root = self.dir / "root"
        ht = root / "ht"
        (ht / "bin").mkdir(parents=True)
        for p in sorted(Path(os.environ["HT_GUEST_BIN"]).glob("*")):
            shutil.copy(p, ht / "bin")
        if self.module:
            module = os.environ.get("HT_MODULE")
            if not module:
                raise Failure("hypertrace.ko has not been built")
            shutil.copy(module, ht / "hypertrace.ko")
            (ht / "module.args").write_text(self.module_args)
        if self.job is not None:
            (ht / "job.sh").write_text(self.job_text())
        for name, path in self.files.items():
            (ht / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, ht / name)
        overlay = self.dir / "overlay.cpio"
        subprocess.run([TOP / "scripts/build/guest-overlay.sh", overlay, root],
                       check=True)
        initrd = self.dir / "initrd"
        with open(initrd, "wb") as out:
            for part in (Path(os.environ["HT_INITRD"]), overlay):
                out.write(part.read_bytes())
        shutil.rmtree(root)
        overlay.unlink()
        return initrd

    def backend_args(self, device):
        """QEMU's arguments that create a device's backend, and the backend's id; no
        arguments if the device names a backend in args"""
        kind = device.get("backend", "ctf")
        if kind not in BACKENDS:
            return [], kind
        name = f"{device['id']}-backend"
        options = dict(device.get("backend_options", {}))
        if kind == "ctf":
            options.setdefault("dir", self.trace(device["id"]))
        return ["-object", ",".join(
            [f"hypertrace-backend-{kind}", f"id={name}",
             *(f"{k}={v}" for k, v in options.items())])], name

    def device_args(self, device):
        args, backend = self.backend_args(device)
        properties = {k: v for k, v in device.items()
                      if k not in ("backend", "backend_options")}
        return args + ["-device", ",".join(
            ["hypertrace", f"backend={backend}",
             *(f"{k.replace('_', '-')}={v}"
               for k, v in properties.items())])]

    def command(self, beginning, fds):
        """QEMU's command line.

        beginning: the option -initrd, or the options that load a saved state
        """
        accel = {
            "kvm": ["-accel", "kvm", "-cpu", "host,arch-capabilities=off"],
            "tcg": ["-accel", "tcg"],
            "tcg-single": ["-accel", "tcg,thread=single"],
        }[self.accel]
        argv = [self.qemu, *shlex.split(os.environ.get("HT_QEMU_L", "")),
                *accel, "-m", str(self.memory), "-smp", str(self.cpus),
                "-nodefaults", "-no-user-config", "-no-reboot",
                "-display", "none",
                "-kernel", self.kernel, *beginning, "-append", os.environ["HT_KERNEL_ARGS"]
                # the console must show warnings for oops(), and answer SysRq
                # for where()
                + ("" if self.job is None else
                   " loglevel=5 sysrq_always_enabled")
                + (self.kernel_args and f" {self.kernel_args}"),
                "-d", "guest_errors", "-D", str(self.dir / "qemu.log")]
        for name, fd in fds.items():
            argv += ["-chardev", f"socket,id={name},fd={fd}"]
        argv += ["-serial", "chardev:console", "-serial", "chardev:out",
                 "-mon", "chardev=qmp,mode=control"]
        for d in self.devices:
            argv += self.device_args(d)
        return argv + self.args

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        from_saved = saved.suits(self)
        beginning = (saved.arguments(saved.state(self)) if from_saved
                     else ["-initrd", str(self._initrd())])
        ends = {"console": self.console.theirs, "out": self.out.theirs,
                "qmp": self.qmp.theirs}
        fds = {name: s.fileno() for name, s in ends.items()}
        with open(self.dir / "stderr", "wb") as stderr:
            self.process = subprocess.Popen(
                self.command(beginning, fds), stdin=subprocess.DEVNULL,
                stdout=stderr, stderr=stderr, pass_fds=list(fds.values()),
                preexec_fn=_die_with_parent)
        for s in ends.values():
            s.close()
        try:
            self.qmp.start()
            if from_saved:
                saved.begin(self)
        except (Failure, OSError) as e:
            ended = f"QEMU {self._end()}" if isinstance(e, Closed) else self.stderr
            self.stop()
            raise Failure(f"QEMU did not start: {ended}") from e
        return self

    def backends(self, device):
        """Statistics of each of a device's backends, in the order in
        which the device names them."""
        return self.qmp.stats(device)["backends"]

    def until(self, condition, why, timeout=60):
        """Wait until condition() is true; after a timeout, raise Failure with the message @why."""
        deadline = time.monotonic() + timeout * PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Failure(why)
            time.sleep(0.01)

    def settle(self, device, timeout=60):
        """Wait until all backends of a device are idle: they have taken all events
        that were posted to them."""
        self.until(lambda: all(b["idle"] for b in self.backends(device)),
                   f"{device}: its backends are not idle", timeout)

    @property
    def stderr(self):
        return (self.dir / "stderr").read_text(errors="replace")

    def _log(self):
        log = self.dir / "qemu.log"
        return log.read_text(errors="replace") if log.exists() else ""

    @property
    def guest_errors(self):
        return "".join(line for line in self._log().splitlines(True)
                       if not line.startswith("hypertrace_"))

    def traced(self, event):
        """Texts of the lines that QEMU's trace event `event` has logged; args must have
        the option -trace for the event."""
        return [line.partition(" ")[2] for line in self._log().splitlines()
                if line.startswith(event + " ")]

    def say(self, text):
        """Send a line to the guest's job, which reads it from descriptor 3."""
        self.out.send(text + "\n")

    def wait(self, timeout=120, check=True):
        """Wait for the guest to power off; return the job's status, or None if the console
        does not have it. With check, raise Failure unless the job and QEMU end with 0."""
        self.wait_end(timeout)
        self.console.finish(10)
        self.out.finish(10)
        statuses = re.findall(r"^HT_JOB_STATUS=(\d+)", self.console.text,
                              re.M)
        self.status = int(statuses[-1]) if statuses else None
        if check and (self.status != 0 or self.process.returncode != 0):
            raise Failure(f"the job's status is {self.status}, QEMU's "
                          f"{self.process.returncode}\n{self}")
        return self.status

    def wait_end(self, timeout):
        """Wait until QEMU ends, without killing it; after the timeout raise Failure."""
        try:
            self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"the guest still runs after "
                          f"{timeout * PATIENCE} s\n{self}\n"
                          f"{self.where()}") from None

    def _tasks(self):
        """Stacks of a Linux guest's tasks, by SysRq on its console. Of kernel threads and
        the first process, only those in uninterruptible sleep are included."""
        before = len(self.console.text)
        for key in "9t":        # 9: show all messages on the console, t: tasks
            self.qmp.command("chardev-send-break", id="console")
            self.console.send(key)
            try:
                self.console.expect("sysrq: ", 10)
            except Failure:
                return ["the guest does not answer SysRq"]
        try:
            self.console.expect("^.*runnable tasks:", 60)
        except Failure:
            pass
        text = self.console.text[before:].partition("Sched Debug")[0]
        tasks = re.findall(r"^(?:\[[ \d.]*\] )?(task:.*| [\w.]+\+0x.*)", text,
                           re.M)
        return [task for task in re.split("\n(?=task:)", "\n".join(tasks))
                if "state:D" in task or not re.search(r"ppid:[02]\b", task)]

    def where(self):
        """Text about a guest that hangs: the instruction and stack pointers of its
        processors, three times; the stacks of its tasks; the state of QEMU's threads"""
        lines = []
        try:
            for _ in range(3):
                text = self.qmp.command("human-monitor-command",
                                        command_line="info registers -a")
                lines += re.findall(r"^CPU#\d+|[ER]IP=\w+.*|[ER]SP=\w+",
                                    text, re.M)
            lines += self._tasks()
        except (Failure, OSError) as e:
            lines.append(str(e))
        for task in Path(f"/proc/{self.process.pid}/task").glob("*"):
            try:
                lines.append(" ".join((task / name).read_text().strip()
                                      for name in ("comm", "wchan",
                                                   "syscall")))
            except OSError:     # the thread has ended
                pass
        return "--- where\n" + "\n".join(lines)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self):
        self.stop()
        for s in (self.console, self.out, self.qmp):
            s.close()
        if self._own_dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    def oops(self):
        return complaints(self.console.text)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, _type, failure, _trace):
        if isinstance(failure, Closed):
            failure.args = (f"{failure}: QEMU {self._end()}",)
        self.stop()
        try:
            if not failure and -self.process.returncode in CRASHES:
                raise Failure(f"QEMU {self._end()}")
        finally:
            self.close()

    def _end(self):
        """Text for a message: how QEMU ended, or that it still runs after 5 s"""
        try:
            return f"ended with status {self.process.wait(5)}: {self.stderr[-2000:]}"
        except subprocess.TimeoutExpired:
            return "still runs"

    def __str__(self):
        return (f"--- console\n{self.console.text}\n--- job\n{self.out.text}\n"
                f"--- QEMU\n{self.stderr}\n--- guest errors\n"
                f"{self.guest_errors}")
