# SPDX-License-Identifier: GPL-2.0-or-later
"""Emit on all channels for a long time, and account for each event.

tests/guest/soak.c emits on six devices, two of each channel: one with the null
backend, and one with the ctf backend.  ht-verify, if it was built, reads the recorded
events back before they are deleted.  Again and again the VM is stopped, and the guest's
counts of events are compared with the devices' counters.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from soak.accounts import ROW, Accounts, Book, whole_rows
from vm.machine import Failure
from vm.payload import Payload, kvm_problem

CHANNELS = ("hypercall", "shm", "virtio")
# {channel: number of streams of a device}
STREAMS = {"hypercall": 2, "shm": 4, "virtio": 4}
RING = 128 << 10        # bytes of a stream's ring, for any packet size
MEMORY = "memory-backend-ram,id=memory,size=512M,prealloc=on"
# {accelerator: maximum of the mean number of events of a round}. This mean is a twentieth
# of the soak's goal (--events), but at least 1000. Rounds that end by the guest's own reset
# have a tenth of it.
ROUND_EVENTS = {"kvm": 25_000_000, "tcg": 1_000_000}
# number of ended stream instances of a recorded device above which life() runs only its last
# round; each instance is a file
INSTANCES_MAX = 400
# Growth of QEMU's memory in KiB up to which no leak is reported: QEMU touches the rings
# and buffers of new devices gradually. Runs shorter than SHORT_MINUTES have the larger
# tolerance, because their warm-up is short.
TOLERANCE_KB, SHORT_TOLERANCE_KB, SHORT_MINUTES = 8192, 24576, 2
WARM_UP = 0.25          # part of the run, from its beginning, that growth() ignores


class Rss:
    """Samples of QEMU's memory: (seconds, events, resident KiB, anonymous KiB)"""

    def __init__(self, pid):
        self.status = Path(f"/proc/{pid}/status")
        self.began = time.monotonic()
        self.samples = []

    def sample(self, events):
        rows = dict(line.split(":", 1)
                    for line in self.status.read_text().splitlines())
        kb = [int(rows[name].split()[0]) for name in ("VmRSS", "RssAnon")]
        self.samples.append((round(time.monotonic() - self.began, 2), events,
                             *kb))

    @property
    def warm(self):
        last = self.samples[-1][0]
        return [s for s in self.samples if s[0] >= last * WARM_UP]

    def growth(self):
        """Growth of QEMU's resident memory in KiB after the warm-up: that of a regression line
        through the samples, from the first to the last"""
        points = [(s[0], s[2]) for s in self.warm]
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        square = sum((x - mean_x) ** 2 for x, _ in points)
        if not square:
            return 0
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / square
        return slope * (points[-1][0] - points[0][0])


class Soak(Payload):
    def __init__(self, rng, **kwargs):
        super().__init__(
            "soak", machine="pc,memory-backend=memory", memory=512,
            args=["-object", MEMORY, "-action", "reboot=reset"], **kwargs)
        self.rng = rng
        self.rss = None
        self.names = [f"{kind}-{c}" for kind in ("mass", "kept")
                      for c in CHANNELS]
        self.plugs = 0
        self.devices = [self.draw(name) for name in self.names]
        self.accounts = [self.new_accounts(name) for name in self.names]
        self.hello = None
        self.rounds = 0         # number of rounds since the guest booted
        # sums over the devices that were unplugged so far
        self.past_events = self.past_discarded = 0
        self.events = self.discarded = self.past_died = 0
        self.recorded = self.slices = 0
        self.checkpoints = self.resets = self.takeovers = 0
        self.unaccounted = 0
        self.problems = []

    @property
    def rows(self):
        return whole_rows(self.out.text)

    def command(self, initrd, fds):
        # Limit TCG's buffer of translated code: its growth after each reset would look
        # like a leak.
        return ["tcg,tb-size=8" if a == "tcg" else a
                for a in super().command(initrd, fds)]

    def start(self):
        # Use one malloc arena: an arena for each new thread would look like a leak.
        os.environ["MALLOC_ARENA_MAX"] = "1"
        super().start()
        self.rss = Rss(self.process.pid)
        self.rss.sample(0)
        self.booted()
        return self

    def draw(self, name):
        """Choose random properties for a device, among those that its
        channel allows."""
        rng = self.rng
        channel = name.split("-")[1]
        size = rng.choice([8, 16] if channel == "virtio" else
                          [4, 8, 16, 32]) << 10
        device = {"id": name, "name": name, "channel": channel,
                  "addr": f"{4 + self.names.index(name)}",
                  "streams": STREAMS[channel],
                  "packet_size": size, "packets": RING // size,
                  "flush_ms": rng.choice([1, 10, 100]), "backend": "null"}
        if channel != "virtio":
            device["mode"] = rng.choice(["discard", "discard", "overwrite"])
        if channel == "hypercall":
            device["batch"] = rng.choice([1, 1, 4, 32, 256])
        if name.startswith("kept"):
            self.plugs += 1
            device["backend"] = "ctf"
            device["backend_options"] = {
                "dir": str(self.dir / f"{name}-{self.plugs}")}
        return device

    def new_accounts(self, name):
        return Accounts(name, name.endswith("virtio"))

    def plug(self, name):
        n = self.names.index(name)
        device = self.devices[n] = self.draw(name)
        backend = f"{name}-backend"
        self.qmp.command("object-add", qom_type="hypertrace-backend-"
                         + device["backend"], id=backend,
                         **device.get("backend_options", {}))
        self.qmp.command("device_add", driver="hypertrace", backend=backend,
                         **{k: v for k, v in device.items()
                            if not k.startswith("backend")})
        self.accounts[n] = self.new_accounts(name)

    def unplugged(self, name):
        """Wait until a device has been unplugged; then add its account to the sums, and
        compare and delete its recording."""
        n = self.names.index(name)
        self.qmp.wait_event("DEVICE_DELETED", 30, device=name)
        self.qmp.command("object-del", id=f"{name}-backend")
        ended = self.accounts[n].ended.values()
        self.past_events += sum(i.host["events"] for i in ended)
        self.past_discarded += sum(i.host["lost"] + i.host["dropped"]
                                   for i in ended)
        self.past_died += sum(i.died for i in ended)
        self.verify(n)

    def verify(self, n):
        options = self.devices[n].get("backend_options")
        if not options:
            return
        program = Path(os.environ["HT_BUILD"]) / "tools/ht-verify/ht-verify"
        if program.exists():
            p = subprocess.run([program, "--json", options["dir"]],
                               check=False, text=True, capture_output=True,
                               stdin=subprocess.DEVNULL)
            if p.returncode > 1:
                raise Failure(f"ht-verify: {p.stderr}")
            verified = json.loads(p.stdout)
            self.accounts[n].check_recorded(verified)
            self.recorded += sum(
                s["recorded"] for s in verified["inputs"][0]["streams"])
            self.slices += 1
            self.judge()
        shutil.rmtree(options["dir"])

    @property
    def few(self):
        return sum(1 << n for n, d in enumerate(self.devices)
                   if d["backend"] == "ctf")

    @property
    def died(self):
        """Number of events and discards of virtio guests of which the host cannot know,
        because a reset came before the guest had reported them"""
        return self.past_died + sum(i.died for a in self.accounts
                                    for i in a.ended.values())

    def memory_at(self, address, size):
        path = self.dir / "memory"
        self.qmp.command("pmemsave", val=address, size=size,
                         filename=str(path))
        return path.read_bytes()

    def book(self):
        return Book(self.hello, self.memory_at,
                    [a.virtio for a in self.accounts],
                    [d["packet_size"] for d in self.devices],
                    [d["packets"] for d in self.devices])

    def read_book(self):
        """Stop the VM at a time when the guest's struct book is consistent; return
        the book. The VM stays stopped. Raise Failure if the book is inconsistent at each
        of 200 stops."""
        for tries in range(200):
            self.qmp.command("stop")
            book = self.book()
            if book.sound:
                return book
            self.qmp.command("cont")
            # After each failure let the guest run for longer on average: in a slow
            # guest the book is inconsistent for longer.
            time.sleep(tries * self.rng.random() / 1000)
        raise Failure("the guest's book was inconsistent at each of 200 stops")

    def stats(self, name):
        return self.qmp.stats(name)

    def check(self, still_open):
        """Compare the accounts with the devices' counters. The VM must be stopped.
        still_open: stream instances that are open now"""
        self.events, self.discarded = self.past_events, self.past_discarded
        for n, account in enumerate(self.accounts):
            self.settle(account.name)
            stats = self.stats(account.name)
            account.check(stats, [i for i in still_open if i.device == n])
            self.events += stats["events"]
            self.discarded += stats["lost"] + stats["dropped"]
        self.checkpoints += 1
        self.rss.sample(self.events)
        self.judge()

    def checkpoint(self, ending=False):
        """Stop the VM, and compare the guest's figures with the devices' counters.

        ending: treat the streams that are open now as ended, because the guest will
        not close them
        """
        book = self.read_book()
        for i in book.closed():
            self.accounts[i.device].end(i)
        still_open = list(book.open())
        self.check(still_open)
        if ending:
            for i in still_open:
                self.accounts[i.device].end(i)

    def judge(self):
        for a in self.accounts:
            self.unaccounted += a.unaccounted
            self.problems += a.problems
            a.unaccounted, a.problems = 0, []
        if self.problems:
            raise Failure("\n".join(self.problems[:20]))

    def answer(self, function, timeout=300, skip=()):
        while True:
            row = json.loads(self.out.expect(ROW, timeout)[1])
            if row.get("function") == function:
                return row
            if row.get("function") not in skip:
                raise Failure(f"the guest says {row}")

    def booted(self):
        # In a round that ends by "cut", the guest is reset. If the guest had already
        # ended the round, its row "round" comes first: skip it.
        self.hello = self.answer("soak", 120, skip=("round",))
        self.rounds = 0
        if self.hello["devices"] != len(self.names):
            raise Failure(f"the guest found other devices: {self.hello}")

    def system_reset(self):
        self.qmp.command("system_reset")
        self.qmp.wait_event("RESET", 30)
        self.resets += 1

    def reset(self, change):
        """Reset a stopped VM, compare the accounts, and replace the devices with the names
        in change. Then let the VM run, and wait until the guest has booted."""
        self.system_reset()
        deadline = time.monotonic() + 30
        while any(s["open"] for name in self.names
                  for s in self.stats(name)["streams"]):
            if time.monotonic() > deadline:
                raise Failure("a reset closes no streams")
        self.check([])
        if change:
            for name in change:
                self.qmp.command("device_del", id=name)
            # A stopped guest cannot confirm the unplug of a device: a reset completes the
            # unplug.
            self.system_reset()
            for name in change:
                self.unplugged(name)
                self.plug(name)
        self.qmp.command("cont")
        self.booted()

    def round(self, events, end):
        """Run a round, with up to 3 checkpoints at random times and one at its end, and
        leave the VM stopped.

        events: number of events after which the guest ends the round
        end: how the round ends: see soak.c. "cut": do not wait for the end of the round,
            because the caller resets the guest
        """
        rng = self.rng
        self.console.send(f"round seed={rng.getrandbits(48)} events={events} "
                          f"few={self.few} "
                          f"end={'leave' if end == 'cut' else end}\n")
        self.rounds += 1
        deadline = time.monotonic() + 60
        while self.book().rounds != self.rounds:
            # Wait until the guest has read the command: the reset that ends a "cut" round
            # must not come before.
            if time.monotonic() > deadline:
                raise Failure("the guest does not begin a round")
        for _ in range(rng.choice([0, 0, 1, 3])):
            time.sleep(rng.random() * 0.3)
            self.checkpoint()
            self.qmp.command("cont")
        if end == "cut":
            time.sleep(rng.random() * 0.3)
        else:
            self.answer("round")
            self.takeovers += end == "takeover"
        self.checkpoint(ending=end in ("cut", "reset"))

    def life(self, events, go_on):
        rng = self.rng
        for _ in range(rng.randint(1, 5)):
            self.round(rng.randint(events // 2, events * 3 // 2),
                       rng.choice(["close", "leave", "leave", "takeover"]))
            self.qmp.command("cont")
            if not go_on() or max(len(a.ended) for n, a in
                                  enumerate(self.accounts)
                                  if self.few >> n & 1) > INSTANCES_MAX:
                break
        if rng.random() < 0.3:
            self.round(events // 10, "reset")
            self.qmp.command("cont")
            self.console.send("go\n")
            self.qmp.wait_event("RESET", 60)
            self.resets += 1
            self.booted()
            self.checkpoint()
            self.qmp.command("cont")
        else:
            self.round(events, "cut")
            self.reset([name for n, name in enumerate(self.names)
                        if self.few >> n & 1 or rng.random() < 0.3])

    def finish(self):
        self.round(1, "close")
        for n in range(len(self.names)):
            self.accounts[n].check(self.stats(self.names[n]), [])
        self.judge()
        self.qmp.command("cont")
        self.console.send("quit\n")
        self.wait(60)
        for n in range(len(self.names)):
            self.verify(n)


def run(args, seed):
    began = time.monotonic()
    goal = args.events
    of_round = min(ROUND_EVENTS[args.accel], max(goal // 20, 1000))
    failure = None

    with Soak(random.Random(seed), accel=args.accel) as vm:

        def go_on():
            return (time.monotonic() - began < args.minutes * 60 and
                    vm.events < goal)

        try:
            while True:
                vm.life(of_round, go_on)
                seconds, _, kb, anon = vm.rss.samples[-1]
                print(f"{seconds:7.1f} s  {vm.events:,} events  "
                      f"{vm.discarded:,} discarded  {vm.resets} resets  "
                      f"{vm.checkpoints} checkpoints  RSS {kb:,} KiB "
                      f"({anon:,} anonymous)", flush=True)
                if not go_on():
                    break
            vm.finish()
        except (Failure, AssertionError, OSError) as e:
            failure = str(e) or repr(e)
            print(f"{failure}\n{vm}", file=sys.stderr)
        return {
            "seed": seed, "accel": args.accel,
            "minutes": (time.monotonic() - began) / 60,
            "events": vm.events, "discarded": vm.discarded,
            "unaccounted": vm.unaccounted, "died": vm.died,
            "recorded": vm.recorded, "slices": vm.slices,
            "checkpoints": vm.checkpoints, "resets": vm.resets,
            "takeovers": vm.takeovers, "rss_first_kb": vm.rss.warm[0][2],
            "rss_last_kb": vm.rss.warm[-1][2],
            "rss_growth_kb": vm.rss.growth(), "failure": failure,
            "samples": vm.rss.samples,
        }


def parse(argv):
    p = argparse.ArgumentParser(prog="./run soak", description=__doc__,
                                formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--minutes", type=float, default=10,
                   help="stop after this time (default: 10)")
    p.add_argument("--events", type=int, default=10**9,
                   help="or stop after this number of events (default: 10^9)")
    p.add_argument("--seed", type=int,
                   help="seed of random choices (default: a new one; it is printed)")
    p.add_argument("--accel", choices=("kvm", "tcg"),
                   help="accelerator (default: kvm if it can be used)")
    p.add_argument("--json", metavar="FILE",
                   help="write the result, with all samples of QEMU's memory")
    p.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args(argv)
    if args.minutes <= 0 or args.events <= 0:
        p.error("--minutes and --events must be greater than 0")
    problem = kvm_problem()
    if args.accel == "kvm" and problem:
        p.error(problem)
    args.accel = args.accel or ("tcg" if problem else "kvm")
    return args


def main(argv):
    args = parse(argv)
    if args.check:
        return 0
    seed = random.SystemRandom().getrandbits(32) if args.seed is None \
        else args.seed
    print(f"seed {seed}, {args.accel}", flush=True)
    r = run(args, seed)
    if args.json:
        Path(args.json).write_text(json.dumps(r) + "\n")
    tolerance = TOLERANCE_KB if r["minutes"] >= SHORT_MINUTES \
        else SHORT_TOLERANCE_KB
    flat = r["rss_growth_kb"] <= tolerance
    print(f"{r['recorded']:,} events in {r['slices']} traces were compared "
          f"field by field; {r['discarded']:,} were discarded or overwritten "
          f"and counted; {r['died']:,} only a virtio guest knew of that was "
          f"reset\n"
          f"memory: a line through {len(r['samples'])} samples rises by "
          f"{r['rss_growth_kb']:.0f} KiB, at most {tolerance} are "
          f"{'' if flat else 'NOT '}flat")
    print(f"{r['events']:,} events, {r['unaccounted']:,} unaccounted, "
          f"{r['resets']} resets, {r['minutes']:.1f} minutes, RSS "
          f"{r['rss_first_kb'] / 1024:.1f} MiB first, "
          f"{r['rss_last_kb'] / 1024:.1f} MiB last"
          + (", FAILED" if r["failure"] or not flat else ""))
    return 1 if r["failure"] or r["unaccounted"] or not flat else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
