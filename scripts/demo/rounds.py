# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's rounds: a workload over each channel in turn, in one guest.

The guest is Linux with ht-bench, or the bare-metal payload; its function "bench" has the
same core (tools/ht-bench-core.c).  The payload measures real exits even where KVM emulates
ring 0.  Linux would take hours to boot there.
"""

import json

from vm.machine import VM, Failure
from vm.payload import Payload

# A stream's ring has room for a whole burst of the default length, so that the measured
# cost of a burst includes neither waits nor discards.
RING = {"packet_size": "64k", "packets": 256, "streams": 1}

# The host sends its first command only after READY: while the guest has the serial port
# closed, the port drops bytes.
JOB = """
echo READY >&3
while read -r line <&3; do
    [ "$line" != quit ] || exit 0
    $line >&3 || echo "FAILED $?" >&3
done
exit 1
"""

BURST = "burst"             # full speed: an event's cost in the guest
PACED = "paced"             # at a rate: an event's latency

TIMEOUT = 180


class Run:
    """The results of one workload over one device.

    bench: the JSON of ht-bench, or of the payload's "bench", in the guest
    before, after: the device's statistics before and after the run
    trace: the trace's object in the JSON of ht-verify; None until the trace is read
    """

    def __init__(self, device, accel, guest, payload, phase, bench, before,
                 after):
        self.device = device
        self.accel = accel
        self.guest = guest
        self.payload = payload
        self.phase = phase
        self.bench = bench
        self.before = before
        self.after = after
        self.trace = None

    def delta(self, counter):
        return self.after[counter] - self.before[counter]

    @property
    def instances(self):
        return {s["instance"] for s in self.bench["streams"]}


def stats(vm, device):
    return vm.qmp.stats(device)


def check_channel(device, bench):
    if bench["channel"] != device["channel"]:
        raise Failure(f"the guest found channel {bench['channel']} on the "
                      f"device {device['id']}")
    if bench["gave_up"]:
        raise Failure(f"{device['id']}: the host no longer made room")


class LinuxGuest:
    """A Linux guest that runs ht-bench; it boots once for all rounds."""

    name = "linux"

    def __init__(self, devices, accel, backend, workdir):
        self.devices = devices
        self.accel = accel
        self.vm = VM([dict(d, backend=backend, **RING) for d in devices],
                     job=JOB, accel=accel, workdir=workdir)

    def __enter__(self):
        self.vm.__enter__()
        try:
            self.vm.out.expect("^READY\n", TIMEOUT)
        except Failure as e:
            self.vm.close()
            raise Failure(f"{e}\n{self.vm}") from None
        return self

    def __exit__(self, *exc):
        self.vm.__exit__(*exc)

    def _bench(self, n, device, payload, events, rate):
        command = (f"ht-bench -j -d /dev/hypertrace{n} -p {payload}"
                   f" -n {events}" + (f" -r {rate}" if rate else ""))
        before = stats(self.vm, device["id"])
        self.vm.say(command)
        try:
            m = self.vm.out.expect(r'^(\{"tool": "ht-bench".*\}|FAILED .*)\n',
                                   TIMEOUT)
        except Failure as e:
            raise Failure(f"{command}: {e}\n{self.vm}") from None
        if m[1].startswith(b"FAILED"):
            raise Failure(f"{command}: {m[1].decode()}\n{self.vm}")
        bench = json.loads(m[1])
        check_channel(device, bench)
        self.vm.settle(device["id"])
        return bench, before, stats(self.vm, device["id"])

    def round(self, payload, phase, events, rate):
        for n, device in enumerate(self.devices):
            result = self._bench(n, device, payload, events, rate)
            yield Run(device, self.accel, self.name, payload, phase, *result)

    def finish(self):
        self.vm.say("quit")
        self.vm.wait(60)
        trouble = self.vm.oops() + self.vm.guest_errors.splitlines()
        if trouble:
            raise Failure("errors of the guest's kernel or in QEMU's log:\n"
                          + "\n".join(trouble))

    def traces(self):
        return [self.vm.trace(d["id"]) for d in self.devices]


class BareGuest:
    """A guest without Linux: the payload's function "bench", which takes
    commands on its serial port."""

    name = "bare-metal"

    def __init__(self, devices, accel, backend, workdir):
        self.devices = devices
        self.accel = accel
        self.vm = Payload(
            "bench serial=1", accel=accel, workdir=workdir,
            devices=[dict(d, backend=backend, **RING) for d in devices])

    def __enter__(self):
        self.vm.__enter__()
        try:
            self._answer("bench")
        except Failure:
            self.vm.close()
            raise
        return self

    def __exit__(self, *exc):
        self.vm.__exit__(*exc)

    def _answer(self, value):
        try:
            m = self.vm.out.expect(f'^(\\{{"[a-z]+": "{value}".*\\}})\n',
                                   TIMEOUT)
        except Failure as e:
            raise Failure(f"{e}\n{self.vm}") from None
        return json.loads(m[1])

    def round(self, payload, phase, events, rate):
        sizes = "8,32,64,256" if payload == "mix" else payload
        command = (f"bench mode=flat payload={sizes} events={events}"
                   + (f" rate={rate}" if rate else ""))
        for n, device in enumerate(self.devices):
            before = stats(self.vm, device["id"])
            self.vm.console.send(f"{command} device={n}\n")
            bench = self._answer("ht-bench")
            check_channel(device, bench)
            self.vm.settle(device["id"])
            yield Run(device, self.accel, self.name, payload, phase, bench,
                      before, stats(self.vm, device["id"]))

    def finish(self):
        self.vm.console.send("quit\n")
        self.vm.wait(60)
        if self.vm.guest_errors:
            raise Failure(f"errors in QEMU's log:\n{self.vm.guest_errors}")

    def traces(self):
        return [self.vm.trace(d["id"]) for d in self.devices]


def ring0_at_speed(workdir):
    """Return True if KVM runs ring 0 natively; if not, Linux takes hours to boot."""
    workdir.mkdir(parents=True)
    with Payload("probe", accel="kvm", workdir=workdir) as vm:
        vm.wait(60)
        row, = vm.named(function="probe")
        return row["ring0_at_speed"]
