# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the bare-metal payload of tests/guest: for the demo, benchmarks and tests.

    with Payload("bench events=1000", devices=[{"channel": "shm"}],
                 accel="kvm") as vm:
        vm.wait(60)
        print(vm.rows, vm.trace("ht0"))

On a host where KVM emulates ring 0, a Linux guest is too slow to measure, but the payload
can still measure the exits to QEMU, because it emits in ring 3.  Devices are those of
vm.machine.VM; the environment must have the variables that scripts/env.sh prints.
"""

import fcntl
import json
import os
import shlex
import subprocess
from pathlib import Path

from vm.machine import VM, Failure

OK, FAILED, USAGE = 33, 35, 37      # QEMU's status; tests/guest/platform/console.h

KVM_CREATE_VM = 0xAE01


def kvm_problem():
    try:
        kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError as e:
        return f"/dev/kvm: {e.strerror}"
    try:
        os.close(fcntl.ioctl(kvm, KVM_CREATE_VM, 0))
    except OSError as e:
        return f"/dev/kvm creates no VM: {e.strerror}"
    finally:
        os.close(kvm)
    return None


def payload_path():
    return Path(os.environ["HT_BUILD"]) / "tests/guest/hypertrace-payload"


class Payload(VM):
    """A run of the bare-metal guest tests/guest.

    append: the payload's command line, see tests/guest/main.c
    """

    def __init__(self, append, machine="pc", memory=256, **kwargs):
        super().__init__(memory=memory, cpus=1, module=False, **kwargs)
        self.append = append
        self.machine = machine

    def start(self):
        try:
            return super().start()
        except Failure:
            # A short payload may have ended before QEMU answered on QMP.
            if self.process.poll() not in (OK, FAILED, USAGE):
                raise
            return self

    def _initrd(self):
        return None

    def _tasks(self):
        """Return no stacks: the payload has no tasks and no SysRq."""
        return []

    def command(self, initrd, fds):
        accel = {
            # a KVM that emulates ring 0 lacks the MSR IA32_ARCH_CAPABILITIES
            "kvm": ["-accel", "kvm", "-cpu", "host,arch-capabilities=off"],
            "tcg": ["-accel", "tcg"],
        }[self.accel]
        argv = [self.qemu, *shlex.split(os.environ.get("HT_QEMU_L", "")),
                *accel, "-machine", self.machine, "-m", str(self.memory),
                "-nodefaults", "-no-user-config", "-no-reboot",
                "-display", "none",
                "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
                "-kernel", str(payload_path()), "-append", self.append,
                "-d", "guest_errors", "-D", str(self.dir / "qemu.log")]
        for name, fd in fds.items():
            argv += ["-chardev", f"socket,id={name},fd={fd}"]
        argv += ["-serial", "chardev:console",
                 "-device", "isa-debugcon,iobase=0xe9,chardev=out",
                 "-mon", "chardev=qmp,mode=control"]
        # Put args before the devices, because args may define a bridge for them.
        argv += self.args
        for d in self.devices:
            argv += self.device_args(d)
        return argv

    @property
    def rows(self):
        """The JSON objects that the payload has printed on complete lines so far"""
        return [json.loads(line) for line in self.out.text.split("\n")[:-1]
                if line.startswith("{")]

    def named(self, **match):
        """Those of the payload's JSON objects whose members have the values in
        @match"""
        return [r for r in self.rows
                if all(r.get(k) == v for k, v in match.items())]

    def wait(self, timeout=120, check=True):
        """Wait for the payload to end, and return QEMU's status. With check, raise Failure
        unless the status is OK and no row reports a failure."""
        try:
            self.status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"the payload still runs after {timeout} s\n"
                          f"{self}") from None
        self.console.finish(10)
        self.out.finish(10)
        if check:
            bad = [r for r in self.rows
                   if r.get("ok") is False or "error" in r]
            if self.status != OK or bad:
                raise Failure(f"the payload's status is {self.status}: "
                              f"{bad}\n{self}")
        return self.status
