# SPDX-License-Identifier: GPL-2.0-or-later
"""Test hypertrace watch with many ends, resets and panics of machines within some
minutes: after each, hypertrace watch must report a recording.

The watch follows synthetic machines (tests/unit/tool/watch-guest.c) and stock guests
under TCG; its recordings are on a small file system.  docs/reliability.md ("A simulated
month") lists the faults that this program causes at random.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from vm.lttng_session import private_run

BUILD = Path(os.environ.get("HT_BUILD", ""))
TOOL = BUILD / "tools/hypertrace/hypertrace"
SYNTHETIC = BUILD / "tests/unit/tool/watch-guest"
QEMU = "qemu-system-x86_64"
EMULATION = ["-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"]
WORDS = " trace_event=sched:sched_switch,sched:sched_process_exec"
USER = "root"
SIZE_MIB = 1
DEADLINE = 120              # seconds for a recording, on a busy machine
BOOT_DEADLINE = 400
MIB = 1 << 20

JOB = """
echo 0 >/proc/sys/kernel/printk
exec 4</dev/ttyS1
echo READY >/dev/console
read -r line <&4
eval "$line"
sleep 100000
"""


def files(folder):
    """List a folder. If the folder is a file, or if hypertrace watch has removed it, the list
    is empty."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def size_on_disk(path):
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0


class Failure(Exception):
    """hypertrace watch did not do in time what it must do, or its recordings take more
    than their limit"""


def wait_for(condition, what, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Guest:
    """A virtual machine of the soak. soak.deaths counts the ends, resets and panics of all
    machines by kind of machine and cause."""
    number = 0

    def __init__(self, soak):
        Guest.number += 1
        self.soak, self.name = soak, f"{self.kind}{Guest.number}"
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)

    def is_followed(self):
        """True if `hypertrace snapshot` reaches a flight recorder that
        follows this machine."""
        p = subprocess.run([TOOL, "snapshot", "-q",
                            self.soak.dir / USER / self.name], check=False,
                           capture_output=True)
        return p.returncode == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self, cause):
        return len(re.findall(rf"/{self.name}: {cause}: ",
                              self.soak.messages()))

    def dies(self, cause, action):
        """Call action, which ends or resets the machine, and wait until hypertrace
        watch reports a recording with this cause."""
        before = self.said(cause)
        action()
        wait_for(lambda: self.said(cause) > before,
                 f"a recording of {self.name}: {cause}")
        self.soak.deaths[f"{self.kind} {cause}"] += 1


class Synthetic(Guest):
    kind = "ring"

    def boots(self):
        return 1

    def command(self):
        return [self.soak.programs / QEMU, "-name", self.name]

    def reset(self):
        self.dies("reset", lambda: self.process.send_signal(signal.SIGUSR1))

    actions = (reset,)


class Stock(Guest):
    kind = "linux"

    def command(self):
        self.tmp = Path(tempfile.mkdtemp(dir=self.soak.tmp))
        return [QEMU, "-name", f"guest={self.name}", *EMULATION, "-nodefaults",
                "-display", "none", "-m", "256", "-smp", "1",
                "-kernel", os.environ["HT_KERNEL"], "-initrd", self.soak.image,
                "-serial", f"file:{self.tmp}/console",
                "-serial", f"unix:{self.tmp}/talk,server=on,wait=off",
                "-append", os.environ["HT_KERNEL_ARGS"] + WORDS]

    def boots(self):
        try:
            return (self.tmp / "console").read_bytes().count(b"READY")
        except FileNotFoundError:
            return 0

    def trigger(self, key):
        """Reset or crash the guest by the SysRq key `key`; wait until it has booted
        again."""
        boots = self.boots()
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(str(self.tmp / "talk"))
            talk.sendall(f"echo {key} >/proc/sysrq-trigger\n".encode())
            wait_for(lambda: self.boots() > boots, f"a boot of {self.name}",
                     BOOT_DEADLINE)

    def reset(self):
        self.dies("reset", lambda: self.trigger("b"))

    def panic(self):
        self.dies("panic", lambda: self.trigger("c"))

    actions = (reset, panic)


class Soak:
    def __init__(self, args, tmp):
        self.args, self.tmp, self.rand = args, tmp, random.Random(args.seed)
        self.disk, self.programs = tmp / "disk", tmp / "programs"
        self.dir, self.log = self.disk / "flights", tmp / "log"
        self.deaths, self.events = Counter(), Counter()
        self.guests, self.watch = [], None
        self.peak = Counter()

    def messages(self):
        return self.log.read_text(errors="replace")

    def start_watch(self):
        # All machines belong to one user: raise the limit of machines per user.
        settings = self.tmp / "config/hypertrace/watch.conf"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("[watch]\n"
                            f"max-vms={self.args.vms + self.args.guests + 8}\n")
        with open(self.log, "a") as log:
            self.watch = subprocess.Popen(
                [TOOL, "watch", "--dir", self.dir, "--name", "ring*", "--name",
                 "linux*", "--size", f"{SIZE_MIB}M", "--max-disk",
                 f"{self.args.max_disk}M", "--keep", "5"],
                stdin=subprocess.DEVNULL, stderr=log,
                env={**os.environ, "XDG_CONFIG_HOME": str(self.tmp / "config")})

    def recorders(self):
        pid = self.watch.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(p) for p in text.split()]

    def sample(self):
        rss = {}
        for pid in [self.watch.pid, *self.recorders()]:
            try:
                text = Path(f"/proc/{pid}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found = re.search(r"^VmRSS:\s+(\d+)", text, re.M)
            rss[pid] = int(found[1]) if found else 0
        recordings = self.recordings()
        used = sum(size_on_disk(f) for r in recordings for f in files(r))
        now = {"watch KiB": rss.get(self.watch.pid, 0),
               "watch and recorders KiB": sum(rss.values()),
               "recorders": len(rss) - 1,
               "recordings": len(recordings),
               "disk KiB": used >> 10}
        for name, value in now.items():
            self.peak[name] = max(self.peak[name], value)
        most = self.args.max_disk * MIB + len(self.guests) * SIZE_MIB * MIB
        if used > most:
            raise Failure(f"recordings have {used >> 20} MiB")

    def add(self, kind):
        guest = kind(self)
        self.guests.append(guest)
        return guest

    def wait_followed(self, guest):
        wait_for(guest.is_followed, f"a recorder of {guest.name}",
                 BOOT_DEADLINE)

    def a_guest(self):
        """Choose a booted machine at random, and wait until hypertrace watch follows it. If
        stock and synthetic machines have booted, both kinds are equally likely."""
        ready = [g for g in self.guests if g.boots()]
        kind = self.rand.choice(sorted({g.kind for g in ready}))
        guest = self.rand.choice([g for g in ready if g.kind == kind])
        self.wait_followed(guest)
        return guest

    def replace(self, guest):
        guest.dies("end", guest.kill)
        self.guests.remove(guest)
        self.add(type(guest))

    def kill_guest(self):
        self.replace(self.a_guest())

    def guest_event(self):
        guest = self.a_guest()
        self.rand.choice(guest.actions)(guest)

    def fill_disk(self):
        """Kill a machine while only 256 KiB of the file system are free: a recording must
        be made even so. A recorder without room removes older recordings of its machine."""
        guest = self.a_guest()
        big = self.disk / "big"
        st = os.statvfs(self.disk)
        with open(big, "wb") as f:
            left = st.f_bavail * st.f_frsize - 256 * 1024
            os.posix_fallocate(f.fileno(), 0, max(left, 1))
        try:
            self.replace(guest)
        finally:
            big.unlink()

    def recordings(self):
        return [r for user in files(self.dir) for guest in files(user)
                for r in files(guest) if r.name[0].isdigit()]

    def step_clock(self):
        for path in self.recordings():
            at = time.time() + self.rand.randint(-10**6, 10**6)
            try:
                os.utime(path, (at, at))
            except FileNotFoundError:
                continue

    def restart(self):
        recorders = self.recorders()
        sig = self.rand.choice((signal.SIGTERM, signal.SIGKILL))
        self.watch.send_signal(sig)
        self.watch.wait(DEADLINE)
        wait_for(lambda: not [p for p in recorders if is_running(p)],
                 "the end of all recorders")
        self.start_watch()

    def end(self):
        if self.watch and self.watch.poll() is None:
            recorders = self.recorders()
            self.watch.terminate()
            self.watch.wait(DEADLINE)
            wait_for(lambda: not [p for p in recorders if is_running(p)],
                     "the end of all recorders")
        for guest in self.guests:
            guest.kill()

    def run(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.programs.mkdir()
        shutil.copy(SYNTHETIC, self.programs / QEMU)
        self.start_watch()
        for _ in range(self.args.vms):
            self.add(Synthetic)
        for _ in range(self.args.guests):
            self.add(Stock)
        names = {self.kill_guest: 8, self.guest_event: 8, self.fill_disk: 2,
                 self.step_clock: 1, self.restart: 1}
        end = time.monotonic() + self.args.minutes * 60
        while time.monotonic() < end:
            event, = self.rand.choices(list(names), names.values())
            event()
            self.events[event.__name__] += 1
            self.sample()


def is_running(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def make_image(tmp):
    overlay = tmp / "overlay"
    (overlay / "ht").mkdir(parents=True)
    (overlay / "ht/job.sh").write_text(JOB)
    archive = subprocess.run("find . | cpio -o -H newc --quiet", shell=True,
                             cwd=overlay, check=True,
                             stdout=subprocess.PIPE).stdout
    base = Path(os.environ["HT_INITRD"]).read_bytes()
    (tmp / "initrd").write_bytes(base + bytes(-len(base) % 4) + archive)
    return tmp / "initrd"


def parse():
    parser = argparse.ArgumentParser(prog="black_box", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--vms", type=int, default=10,
                        help="synthetic machines (default: %(default)s)")
    parser.add_argument("--guests", type=int, default=1,
                        help="stock guests under TCG (default: %(default)s)")
    parser.add_argument("--max-disk", type=int, default=48, metavar="MIB",
                        help="limit for recordings, 34 or more")
    parser.add_argument("--disk", type=int, default=64, metavar="MIB",
                        help="size of the file system")
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def main():
    args = parse()
    failure = None
    with tempfile.TemporaryDirectory(prefix="ht-black-box-") as folder:
        soak = Soak(args, Path(folder))

        def body():
            nonlocal failure
            soak.disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o",
                            f"size={args.disk}M", "small", soak.disk],
                           check=True)
            if args.guests:
                soak.image = make_image(soak.tmp)
            try:
                soak.run()
            except Failure as error:
                failure = str(error)
                print(soak.messages()[-4000:], file=sys.stderr)
            finally:
                soak.end()
                subprocess.run(["umount", soak.disk], check=False)

        if os.geteuid() or not private_run(body):
            sys.exit("black_box: a small file system needs root, and the right "
                     "to mount")
    result = {"seed": args.seed, "minutes": args.minutes, "failure": failure,
              "events": dict(soak.events), "deaths": dict(soak.deaths),
              "peak": dict(soak.peak)}
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    for group in ("events", "deaths", "peak"):
        for name, n in sorted(result[group].items()):
            print(f"{group:8}{name:28}{n:12,}")
    print(f"{sum(soak.deaths.values()):,} deaths, "
          f"{'each has its recording' if not failure else failure} "
          f"(seed {args.seed})")
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
