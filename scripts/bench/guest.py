# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that runs the program tests/guest/study.c and measures on
command."""

import contextlib
import ctypes
import json
import os
import time
from pathlib import Path

from vm.machine import Failure
from vm.payload import Payload

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000

ROW = r"^(\{.*\})\n"


class TooLate(Exception):
    """A measurement that must be repeated: the payload may have begun to emit before the
    main loop was stopped, or the main loop held a lock while it was stopped."""


class StoppedThread:
    """A context manager that stops a thread of another process with ptrace."""

    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                             ctypes.c_void_p]
    _libc.ptrace.restype = ctypes.c_long

    def __init__(self, tid):
        self.tid = tid

    def _ptrace(self, request):
        if self._libc.ptrace(request, self.tid, None, None):
            error = ctypes.get_errno()
            raise OSError(error, f"ptrace: {os.strerror(error)}")

    def __enter__(self):
        self._ptrace(PTRACE_SEIZE)
        self._ptrace(PTRACE_INTERRUPT)
        os.waitpid(self.tid, WALL)
        return self

    def __exit__(self, *exc):
        """Let the thread continue, unless it has ended. Detaching fails while
        the thread is not stopped, so retry for up to 10 s."""
        deadline = time.monotonic() + 10
        while os.path.exists(f"/proc/{self.tid}"):
            try:
                return self._ptrace(PTRACE_DETACH)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)        # retry until the thread has stopped
        return None


class Study(Payload):
    """The payload, with devices whose consumers can be controlled.

    Each device except virtio's has its own IOThread, which sleeps unless it is set
    to poll.  If this process may use at least two processors, the first vCPU is pinned to
    one of them, and all other threads of QEMU, also other vCPUs, to another one.
    """

    def __init__(self, devices, peers=True, env=None, processors=1, **kwargs):
        args = ["-smp", str(processors)]
        # No IOThread for a virtio device: QEMU's main loop reads its events.
        threads = {d["id"]: f"io-{d['id']}" for d in devices
                   if d["channel"] != "virtio"}
        for thread in threads.values():
            args += ["-object", f"iothread,id={thread},poll-max-ns=0"]
        if peers:
            args += ["-device", "edu", "-chardev", "null,id=port",
                     "-device", "virtio-serial-pci-non-transitional",
                     "-device", "virtconsole,chardev=port,nr=0"]
        devices = [dict(d, iothread=threads[d["id"]])
                   if d["id"] in threads else d for d in devices]
        super().__init__("study", devices=devices, args=args, **kwargs)
        self.index = {d["id"]: n for n, d in enumerate(self.devices)}
        self.extra_env = env or {}
        self.tids = {}
        self.pinned = False
        self.clock_hz = 0
        self.counts_exits = True
        self._polling = {}

    def start(self):
        old = {k: os.environ.get(k) for k in self.extra_env}
        os.environ.update(self.extra_env)
        try:
            super().start()
        finally:
            for k, v in old.items():
                if v is None:
                    del os.environ[k]
                else:
                    os.environ[k] = v
        hello = self.answer(60)
        if hello.get("devices") != len(self.devices):
            raise Failure(f"the payload found other devices: {hello}\n{self}")
        self.clock_hz = hello["clock_hz"]
        for t in self.qmp.command("query-iothreads"):
            self.tids[t["id"]] = t["thread-id"]
        self.tids["vcpu"] = \
            self.qmp.command("query-cpus-fast")[0]["thread-id"]
        self.pin()
        return self

    def pin(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            return
        for task in self._threads():
            os.sched_setaffinity(int(task), {
                cpus[1] if int(task) == self.tids["vcpu"] else cpus[0]})
        self.pinned = True

    def _threads(self):
        return os.listdir(f"/proc/{self.process.pid}/task")

    def host_cpu_ns(self):
        """Processor time in ns that the present threads of QEMU, except the first vCPU,
        have used so far"""
        total = 0
        for task in self._threads():
            if int(task) == self.tids["vcpu"]:
                continue
            try:
                total += int(Path(f"/proc/{self.process.pid}/task/{task}"
                                  "/schedstat").read_text().split()[0])
            except (OSError, IndexError):
                pass                    # the thread has ended
        return total

    def _row(self, match):
        row = json.loads(match[1])
        if "error" in row:
            raise Failure(f"the payload: {row}\n{self}")
        return row

    def answer(self, timeout):
        """Wait up to `timeout` seconds for the result of a command, which the guest
        prints as one JSON row; return the row."""
        return self._row(self.out.expect(ROW, timeout))

    def tell(self, command, timeout=120, **options):
        """Run a command of tests/guest/study.c; returns its row."""
        self.console.send(" ".join(
            [command, *(f"{k}={v}" for k, v in options.items()
                        if v is not None)]) + "\n")
        return self.answer(timeout)

    def poll(self, device, ns):
        """Let the consumer of a device poll for @ns before it sleeps."""
        # The consumer of virtio is the main loop, which cannot be made to poll.
        if not self._virtio(device) and self._polling.get(device, 0) != ns:
            path = f"/objects/io-{device}"
            # The polling time grows to poll-max-ns in two steps. After a sleep that was
            # longer than poll-max-ns, it is 0 again.
            for name, value in (("poll-grow", 1 << 30 if ns else 0),
                                ("poll-shrink", 0), ("poll-max-ns", ns)):
                self.qmp.command("qom-set", path=path, property=name,
                                 value=value)
            self._polling[device] = ns

    def stats(self, device):
        """The device's counters, each the sum over its open and closed streams"""
        s = self.qmp.stats(device)
        return {k: v for k, v in s.items() if isinstance(v, int)}

    def run(self, device, consumer="asleep", **options):
        """Run the payload's command "run" with the consumer stopped, paced or asleep.

        A paced consumer polls the ring; one that is asleep must be woken. The consumer
        of virtio cannot poll. The row also has what the run added to the host's
        counters ("host") and to host_cpu_ns().
        """
        # A consumer that still polls takes processor time from this device's consumer.
        for other in self._polling.keys() - {device}:
            self.poll(other, 0)
        self.poll(device, 10**9 if consumer == "paced" else 0)
        options = dict(options, device=self.index[device])
        if consumer != "stopped" or not self._virtio(device):
            return self._run(device, consumer, options)
        for delay in (20, 20, 100, 100, 1000):
            try:
                return self._run(device, consumer, dict(options, delay=delay))
            except TooLate:
                # This attempt is invalid: let the payload finish it, then try again with
                # the next delay.
                self.answer(10)
                self.tell("go")
        raise Failure(f"{device}: cannot be stopped within a second")

    def _run(self, device, consumer, options):
        before, cpu = self.stats(device), self.host_cpu_ns()
        if consumer == "stopped" or options.get("hold"):
            row = self._run_held(device, consumer == "stopped", options)
        else:
            row = self.tell("run", **options)
        row["host_cpu_ns"] = self.host_cpu_ns() - cpu
        after = self.stats(device)
        row["host"] = {k: after[k] - before[k] for k in
                       ("events", "packets", "bytes", "lost", "dropped",
                        "wakeups", "errors")}
        row["consumer"] = consumer
        if row["gave_up"] or row["host"]["errors"]:
            raise Failure(f"the host made no room: {row}")
        return row

    def _virtio(self, device):
        return self.devices[self.index[device]]["channel"] == "virtio"

    def _run_held(self, device, stopped, options):
        """Run the command "run" with the option "hold": the payload waits for a line
        before the first event, and after the last one.

        So exits while the stream is opened and closed are not counted, and the
        consumer can be stopped while events are emitted. For a single event, the row
        also has the number of the consumer's wakeups until the event is delivered
        ("woken").
        """
        self._expect("opened", "run", **dict(options, hold=1))
        before, kvm = self.stats(device), self.kvm_exits()
        if not stopped:
            self._expect("emitted", "go")
        elif self._virtio(device):
            self._emit_alone(device, options["delay"])
        else:
            with StoppedThread(self.tids[f"io-{device}"]):
                self._expect("emitted", "go")
        kvm = self._exits_since(kvm)
        woken = None
        if options["events"] == 1:
            deadline = time.monotonic() + 10
            while self.stats(device)["events"] == before["events"]:
                if time.monotonic() > deadline:
                    raise Failure(f"{device}: an event was not delivered")
            woken = self.stats(device)["wakeups"] - before["wakeups"]
        row = self.tell("go")
        if stopped and row["discarded"]:
            raise Failure(f"the ring does not hold all: {row}")
        if kvm is not None:
            row["kvm_exits"] = kvm
        if woken is not None:
            row["woken"] = woken
        return row

    def _emit_alone(self, device, delay):
        """Let the payload emit while the main loop, virtio's consumer, is stopped.

        The main loop also passes commands to the payload, so the payload waits for
        @delay ms before it begins.  If the measurement must be repeated, raise TooLate.
        """
        began = time.monotonic()
        self._expect("ready", "go")
        with StoppedThread(self.process.pid):
            if time.monotonic() - began > delay / 1000:
                raise TooLate(device)
            match = self.out.find(ROW, delay / 1000 + 2)
        if not match:
            # No row has arrived: the main loop was stopped while it held the lock that
            # QEMU needs to write the guest's output.
            raise TooLate(device)
        row = self._row(match)
        if row["function"] != "emitted":
            raise Failure(f"not emitted, but {row}")

    def _expect(self, function, command, **options):
        row = self.tell(command, **options)
        if row["function"] != function:
            raise Failure(f"{command}: not {function}, but {row}")

    KVM_COUNTERS = ["exits", "io_exits", "mmio_exits", "irq_exits",
                    "pf_emulate"]

    def kvm_exits(self):
        """The sum over all vCPUs of each of KVM_COUNTERS; None without KVM, or if KVM has no
        statistics."""
        if self.accel != "kvm" or not self.counts_exits:
            return None
        try:
            reply = self.qmp.command("query-stats", target="vcpu", providers=[
                {"provider": "kvm", "names": self.KVM_COUNTERS}])
        except Failure:
            self.counts_exits = False           # the kernel has no statistics
            return None
        sums = dict.fromkeys(self.KVM_COUNTERS, 0)
        for vcpu in reply:
            for s in vcpu["stats"]:
                sums[s["name"]] += s["value"]
        return sums

    def _exits_since(self, before):
        """Number of exits since @before, without those by interrupts, and without those
        by port I/O, by which the payload polls for the next command.

        If KVM does not count port I/O, the result is the number of exits by emulated
        memory accesses: doorbells are such accesses.
        """
        after = self.kvm_exits() if before else None
        if not after:
            return None
        d = {k: after[k] - before[k] for k in after}
        if d["io_exits"]:
            return d["exits"] - d["io_exits"] - d["irq_exits"]
        return max(d["pf_emulate"], d["mmio_exits"])

    @contextlib.contextmanager
    def paused(self):
        """Stop the VM within the with block, because its vCPU polls for commands
        without a pause."""
        self.qmp.command("stop")
        try:
            yield
        finally:
            self.qmp.command("cont")

    def pair(self, device, producers, events):
        """Let one or two producers emit, each on a vCPU of its own, while the device's consumer
        is stopped; returns the row."""
        self.tell("pair", device=self.index[device], producers=producers,
                  events=events)
        with StoppedThread(self.tids[f"io-{device}"]):
            row = self.tell("go")
        self.tell("go")
        return row

    def peer(self, name, **options):
        if not options.get("hold"):
            return self.tell("peer", name=name, **options)
        self._expect("opened", "peer", name=name, **options)
        kvm = self.kvm_exits()
        self._expect("emitted", "go")
        kvm = self._exits_since(kvm)
        row = self.tell("go")
        if kvm is not None:
            row["kvm_exits"] = kvm
        return row

    def quit(self):
        self.console.send("quit\n")
        self.wait(60)
