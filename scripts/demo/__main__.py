# SPDX-License-Identifier: GPL-2.0-or-later
"""./run demo: one workload over three channels, side by side.

Boots guests with a hypertrace device for each channel, records what they emit with a
private LTTng session daemon (without LTTng, by the CTF backend), reads the traces back,
checks every field of every event, and prints one table.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from demo.record import Lttng, verifier, verify
from demo.rounds import BURST, PACED, BareGuest, LinuxGuest, ring0_at_speed
from demo.rows import make_all, table
from vm.lttng_session import SessionError
from vm.machine import Failure
from vm.payload import kvm_problem

CHANNELS = ("hypercall", "shm", "virtio")
PAYLOADS = ("8", "32", "64", "256", "mix")
EVENTS = 20000
BATCH = 10

# The paced run emits 1/PACED_SHARE as many events as the burst, at PACED_RATE events per
# second, a rate that each channel should sustain. With EVENTS in the burst, these are enough
# for a 99th percentile.
PACED_SHARE = 10
PACED_RATE = 10000

LEGEND = """\
accel     tcg: Linux, instructions translated, an exit is a function call.
          kvm: {kvm}.
          Compare channels in rows of kvm only: under tcg leaving the guest
          costs next to nothing, and rows prove that it works.
payload   bytes of an event; mix: all four in turn. x{batch}: a doorbell for
          each {batch} events.
ns/event  one emit in the guest, flat out: {events} events into an empty ring.
exits     doorbells rung (virtio: kicks) for each 1000 of these events.
latency   from the emit to {delivery}, at {rate} events a second;
          +-: error bound of the conversion of the guest's clock, as the device
          tells it; more where an event was recorded before it was emitted.
sent      by the program: recorded + discarded by device + by LTTng. Every
          field of every recorded event was compared with what was emitted."""


class Demo:
    def __init__(self, args):
        self.args = args
        self.started = time.monotonic()
        self.dir = Path(tempfile.mkdtemp(prefix="demo.",
                                         dir=os.environ.get("HT_SCRATCH")))
        self.recorder = None
        self.runs = []
        self.kvm = {"usable": False, "problem": None, "ring0_at_speed": None}

    def say(self, text):
        if not self.args.quiet:
            elapsed = time.monotonic() - self.started
            print(f"[{elapsed:5.1f} s] {text}", file=sys.stderr, flush=True)

    def devices(self, accel):
        found = [{"id": c, "channel": c} for c in self.args.channels]
        if accel == "kvm" and "hypercall" in self.args.channels:
            # With KVM, exits are expensive: add a second hypercall device, which has
            # one exit for every BATCH events.
            found.insert(1, {"id": f"hypercall-x{BATCH}", "batch": BATCH,
                             "channel": "hypercall"})
        return found

    def round(self, guest, payload, phase):
        events = self.args.events
        rate = 0
        if phase == PACED:
            events = max(events // PACED_SHARE, 1)
            rate = PACED_RATE
        ids = [d["id"] for d in guest.devices]
        if self.recorder:
            self.recorder.start(f"{guest.name}-{payload}-{phase}", ids)
        runs = []
        for run in guest.round(payload, phase, events, rate):
            runs.append(run)
            if phase == BURST:
                self.say(f"{guest.name}, {run.accel}, {run.device['id']}, "
                         f"payload {payload}: "
                         f"{run.bench['ns_median']:.1f} ns an event")
        if self.recorder:
            trace = verify(self.recorder.stop())
            for run in runs:
                run.trace = trace
        self.runs += runs

    def measure(self, kind, accel):
        backend = "lttng" if self.recorder else "ctf"
        workdir = self.dir / f"{kind.name}-{accel}"
        workdir.mkdir()
        self.say(f"starting the guest: {kind.name}, {accel}")
        first = len(self.runs)
        with kind(self.devices(accel), accel, backend, workdir) as guest:
            for payload in self.args.payloads:
                for phase in (BURST, PACED):
                    self.round(guest, payload, phase)
            guest.finish()
            if not self.recorder:
                self.read_ctf(guest, self.runs[first:])

    def read_ctf(self, guest, runs):
        """Read the trace that the CTF backend of each device has made, and give each
        run the trace of its device."""
        self.say("reading the traces")
        traces = [verify(d) for d in guest.traces()]
        for n, run in enumerate(runs):
            run.trace = traces[n % len(traces)]

    def probe(self):
        """Unless the user chose TCG, find out whether KVM can be used here, and if so,
        whether it emulates ring 0. Raise Failure if the user chose KVM and it is not
        usable."""
        if self.args.accel == "tcg":
            self.kvm["problem"] = "not asked for"
            return
        self.kvm["problem"] = kvm_problem()
        if self.kvm["problem"]:
            if self.args.accel == "kvm":
                raise Failure(f"KVM cannot be used: {self.kvm['problem']}")
            self.say(f"no rows of KVM: {self.kvm['problem']}")
            return
        self.kvm["usable"] = True
        self.kvm["ring0_at_speed"] = ring0_at_speed(
            self.dir / "probe")
        if not self.kvm["ring0_at_speed"]:
            self.say("this KVM emulates ring 0: Linux runs under TCG, and the"
                     " bare-metal payload, which works at ring 3, under KVM")

    def run(self):
        verifier()          # fail early if ht-verify is missing
        self.probe()
        if self.kvm["ring0_at_speed"]:
            self.measure(LinuxGuest, "kvm")
        elif self.args.accel != "kvm":
            self.measure(LinuxGuest, "tcg")
        if self.kvm["usable"] and not self.kvm["ring0_at_speed"]:
            self.measure(BareGuest, "kvm")
        return make_all(self.runs)

    def legend(self):
        if not self.kvm["usable"]:
            kvm = f"no such rows here ({self.kvm['problem']})"
        elif self.kvm["ring0_at_speed"]:
            kvm = "Linux, exits are real"
        else:
            kvm = ("a bare-metal program at ring 3, since this KVM emulates\n"
                   "          ring 0; exits are real")
        return LEGEND.format(
            kvm=kvm, batch=BATCH, events=f"{self.args.events:,}",
            rate=f"{PACED_RATE:,}",
            delivery="LTTng's record on the host" if self.recorder else
            "the host (not measured without LTTng)")

    def result(self, rows):
        problems = [f"{r['accel']} {r['device']} payload {r['payload']}: {p}"
                    for r in rows for p in r["problems"]]
        return {
            "tool": "hypertrace demo",
            "version": 1,
            "ok": bool(rows) and not problems,
            "recorder": "lttng" if self.recorder else "ctf",
            "kvm": self.kvm,
            "host": host(),
            "events": self.args.events,
            "seconds": round(time.monotonic() - self.started, 1),
            "rows": rows,
            "problems": problems,
        }

    def keep(self):
        target = Path(self.args.keep)
        shutil.copytree(self.dir, target / "guests", symlinks=True)
        if self.recorder:
            shutil.copytree(self.recorder.directory, target / "lttng")
        self.say(f"traces and logs: {target}")

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def host():
    model = "unknown"
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    version = subprocess.run([os.environ["HT_QEMU"], "--version"],
                             check=False, capture_output=True, text=True)
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "qemu": version.stdout.partition("\n")[0],
    }


def a_list(names):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in names:
                raise argparse.ArgumentTypeError(
                    f"'{name}' is not one of {', '.join(names)}")
        return [n for n in names if n in chosen]

    return parse


def a_count(text):
    value = int(text) if text.isdigit() else 0
    if not 100 <= value <= 10_000_000:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a number from 100 to 10000000")
    return value


def parse_args():
    p = argparse.ArgumentParser(
        prog="./run demo", description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--events", type=a_count, default=EVENTS, metavar="N",
                   help=f"events in the burst of each row (default {EVENTS})")
    p.add_argument("--channels", type=a_list(CHANNELS), metavar="LIST",
                   default=list(CHANNELS),
                   help="channels to run (default: " + ",".join(CHANNELS) + ")")
    p.add_argument("--payloads", type=a_list(PAYLOADS), metavar="LIST",
                   default=list(PAYLOADS),
                   help="payloads to run (default: " + ",".join(PAYLOADS) + ")")
    p.add_argument("--accel", choices=("auto", "tcg", "kvm"), default="auto",
                   help="accelerator (default: each that works)")
    p.add_argument("--recorder", choices=("auto", "lttng", "ctf"),
                   default="auto",
                   help="record with LTTng, or by the device's CTF backend")
    p.add_argument("--json", metavar="FILE",
                   help="write the rows to FILE; docs/demo.md has the format")
    p.add_argument("--keep", metavar="DIR",
                   help="keep traces and logs in DIR, which must be new")
    p.add_argument("--quiet", action="store_true",
                   help="print no progress lines")
    # These options are for the script ./run only.
    p.add_argument("--qemu-bin", help=argparse.SUPPRESS)
    p.add_argument("--build", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.qemu_bin:
        os.environ["HT_QEMU"] = args.qemu_bin
    if args.build:
        os.environ["HT_BUILD"] = args.build
    if "HT_QEMU" not in os.environ or "HT_BUILD" not in os.environ:
        p.error('not built, or no environment: use ./run demo, or'
                ' eval "$(scripts/env.sh)" after ./run build')
    if args.keep:
        args.keep = Path(args.keep).absolute()
        if args.keep.exists():
            p.error(f"--keep {args.keep}: is there already")
    if args.json and not Path(args.json).absolute().parent.is_dir():
        p.error(f"--json {args.json}: no such directory")
    return args


def choose_recorder(args, demo):
    problem = Lttng.problem()
    if args.recorder == "ctf" or (args.recorder == "auto" and problem):
        if args.recorder == "auto":
            demo.say(f"LTTng: {problem}; recording with the device's CTF"
                     " backend instead")
        return None
    if problem:
        raise Failure(f"LTTng: {problem}")
    return Lttng()


def work(args, demo):
    recorder = choose_recorder(args, demo)
    with recorder or contextlib.nullcontext():
        if recorder:
            os.environ.update(recorder.env())
            demo.recorder = recorder
        try:
            rows = demo.run()
        finally:
            if args.keep:
                demo.keep()
        return demo.result(rows)


def main():
    args = parse_args()
    # Let SIGTERM and SIGHUP raise an exception, so that every with block cleans up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    demo = Demo(args)
    try:
        result = work(args, demo)
    except (Failure, SessionError, OSError) as e:
        sys.exit(f"demo: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        demo.close()

    print(table(result["rows"]))
    print()
    print(demo.legend())
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    for p in result["problems"]:
        print(f"demo: {p}", file=sys.stderr)
    if not result["ok"]:
        sys.exit("demo: not every event is where it should be")
    demo.say("every event is accounted for")


if __name__ == "__main__":
    main()
