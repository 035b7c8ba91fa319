# SPDX-License-Identifier: GPL-2.0-or-later
"""A Linux guest for the comparison: sources of events, and what they cost.

The sources are hypertrace's channels, and peers: a write() to ftrace's trace_marker,
one to a stock virtio-serial port, and LTTng-UST with its daemons in the guest.
Programs that the guest lacks are copied from the host (Debian), with their libraries.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.plan import Case
from vm.machine import VM, Failure

# Maximum number of events of a burst, which must fit into a device's ring and into LTTng's
# sub-buffers
EVENTS_MAX = 40000
LTTNG = ["lttng", "lttng-sessiond",
         "/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd"]
LTTNG_XSD = "/usr/share/xml/lttng/session.xsd"

# The guest's job: it puts the libraries where programs search for them, and runs the
# commands that Linux.run() sends.
JOB = """
mkdir -p /dev/shm /run /var /lib
mount -t tmpfs tmpfs /dev/shm
ln -s /run /var/run
ln -s /ht/sys/lib /lib64
ln -s /ht/sys/lib /lib/x86_64-linux-gnu
printf 'root:x:0:\ntracing:x:1:\n' >/etc/group
export PATH=$PATH:/ht/sys LTTNG_UST_REGISTER_TIMEOUT=60000
export LTTNG_SESSION_CONFIG_XSD_PATH=/ht/sys
# print the virtio port with the name $1; wait until the kernel has created it
port() {
    for i in $(seq 200); do
        for p in /sys/class/virtio-ports/*; do
            [ "$(cat $p/name)" != $1 ] || { echo /dev/${p##*/}; return; }
        done
        sleep 0.1
    done
    echo "no virtio-serial port $1" >&2
    return 1
}
stock=$(port stock) && trace=$(port trace) || exit 1
n=0
echo READY >&3
while IFS= read -r line <&3; do
    [ "$line" != quit ] || exit 0
    n=$((n + 1))
    eval "$line" </dev/null >&3 2>&1
    echo "END $n $?" >&3
done
"""


def problem():
    for name in ("HT_MODULE", "HT_KERNEL", "HT_INITRD"):
        if not os.path.isfile(os.environ.get(name) or ""):
            return "the Linux guest has not been built: ./run build"
    return None


def lttng_problem():
    lacking = [p for p in LTTNG if not shutil.which(p)]
    if not tracepoint().exists():
        lacking.append("liblttng-ust")
    return f"{', '.join(lacking)} not installed" if lacking else None


def lttng_modules():
    return any(Path(os.environ["HT_LTTNG_MODULES"]).rglob("lttng-tracer.ko"))


def tracepoint():
    return Path(os.environ["HT_BUILD"]) / "tests/bench/ht-marker-lttng"


def with_libraries(programs):
    """{path in the guest's folder /ht: file on the host} of programs and of the
    libraries that they need"""
    files = {}
    for program in programs:
        path = shutil.which(program) or program
        files[f"sys/{os.path.basename(path)}"] = path
        out = subprocess.run(["ldd", path], check=False, capture_output=True,
                             text=True).stdout
        for library in re.findall(r"(/\S+)", out):
            files[f"sys/lib/{os.path.basename(library)}"] = library
    return files


class Source:
    """A shell command for the guest that emits events of 32 bytes: flat() as fast as
    possible, at_rate() at a rate"""

    def __init__(self, name, command):
        self.name = name
        self.command = command

    def flat(self, events):
        return self.command.format(how=f"-n {events}")

    def at_rate(self, rate):
        return self.command.format(how=f"-r {rate}" + (
            " -n 1000000000" if self.command.startswith("ht-bench") else ""))


class Linux(VM):
    """The guest, which runs the commands of run() and tell().

    idle: whether the guest has one more device, its last, on which all classes are off
    """

    def __init__(self, channels, accel, workdir, programs=(), files=None,
                 events="*", kernel_args="", args=(), lttng_modules=False,
                 idle=False):
        self.lttng = not lttng_problem()
        self.lttng_modules = lttng_modules and self.lttng
        devices = [{"channel": c, "backend": "null", "id": f"{c}-linux",
                    "events": events, "packet_size": "64k", "packets": 64}
                   for c in channels]
        if idle:
            # ways.py assumes that the guest's kernel finds the idle device last. So the
            # idle device has channel virtio, because the kernel finds virtio devices last.
            devices.append({"channel": "virtio", "backend": "null",
                            "id": "idle", "events": "nothing"})
        programs = [*programs, *([*LTTNG, tracepoint()] if self.lttng
                                 else [])]
        files = {**with_libraries(programs), **(files or {})}
        if self.lttng_modules:
            root = Path(os.environ["HT_LTTNG_MODULES"])
            files |= {f"sys/{f.relative_to(root)}": f
                      for f in root.rglob("*") if f.is_file()}
        if self.lttng:
            files["sys/session.xsd"] = LTTNG_XSD
        super().__init__(
            devices=devices, accel=accel, memory=1024, workdir=workdir,
            files=files, job=JOB, kernel_args=kernel_args,
            args=[*args, "-device", "virtio-serial-pci",
                  # Do not use the chardev "null": the guest would see a closed port.
                  "-chardev", "file,id=port,path=/dev/null", "-device",
                  "virtserialport,chardev=port,name=stock",
                  "-chardev", f"file,id=trace,path={workdir}/trace.tar",
                  "-device", "virtserialport,chardev=trace,name=trace"])
        self.told = 0
        self.sources = [
            *(Source(c, f"ht-bench -j {{how}} -d /dev/hypertrace{n}")
              for n, c in enumerate(channels)),
            Source("trace_marker",
                   "ht-marker {how} /sys/kernel/tracing/trace_marker"),
            Source("virtio-serial write()",
                   "ht-marker {how} $stock")]
        if self.lttng:
            self.sources.append(Source("LTTng-UST in the guest",
                                       "ht-marker-lttng {how}"))

    def start(self):
        super().start()
        self.out.expect("^READY\n", 120)
        if self.lttng:
            self.start_lttng()
        return self

    def run(self, command, timeout=60):
        """Run a line of the guest's shell; returns status and output."""
        self.told += 1
        self.say(command)
        found = self.out.expect(rf"(?s)(.*?)^END {self.told} (\d+)\n",
                                timeout)
        return int(found[2]), found[1].decode(errors="replace")

    def tell(self, command, timeout=60):
        """Run a line that must succeed; returns its output."""
        status, text = self.run(command, timeout)
        if status:
            raise Failure(f"in the guest: {command}: {text}\n{self}")
        return text

    def start_lttng(self):
        """In the guest, start an LTTng session that records the event of
        ht-marker-lttng; LTTng writes its trace to the guest's tmpfs."""
        kernel = "--no-kernel"
        if self.lttng_modules:
            # lttng-sessiond loads LTTng's modules from /lib/modules
            self.tell("mkdir -p /lib/modules && ln -s /ht/sys/lib/modules/* "
                      "/lib/modules/")
            kernel = "--kmod-probes=sched"
        self.tell(f"lttng-sessiond --background {kernel} "
                  "--consumerd64-path=/ht/sys/lttng-consumerd")
        for command in (
                "create bench --output=/tmp/lttng",
                "enable-channel --userspace --subbuf-size=1M --num-subbuf=4 "
                "ring",
                "enable-event --userspace --channel=ring emit_bench:event_32",
                "start"):
            self.tell(f"lttng --no-sessiond {command}")

    def recorded(self):
        self.tell("lttng --no-sessiond stop")
        self.tell("lttng --no-sessiond destroy --all")
        self.tell("tar -c -C /tmp lttng >$trace")
        subprocess.run(["tar", "-x", "-f", self.dir / "trace.tar", "-C",
                        self.dir], check=True)
        done = subprocess.run(["babeltrace2", self.dir / "lttng"],
                              check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"LTTng's trace of the guest: {done.stderr}")
        return done.stdout.count("emit_bench:event_32")

    def quit(self):
        self.say("quit")
        self.wait(60)


def count(channels):
    return len(channels) + 2 + (not lttng_problem())


def row_of(text):
    row = json.loads(next(line for line in text.splitlines()
                          if line.startswith("{")))
    if row["tool"] == "ht-bench":
        if row["discarded"] or row["gave_up"]:
            raise Failure(f"events were discarded: {row}")
        for name, theirs in (("p50_ns", "ns_median"), ("p99_ns", "ns_p99"),
                             ("max_ns", "ns_max")):
            row[name] = row[theirs]
    return {"function": "linux", **{k: row[k] for k in (
        "sent", "duration_ns", "p50_ns", "p99_ns", "max_ns", "doorbells")
        if k in row}}


def measure(accel, channels, rounds, events, workdir, step):
    """Measure the cost of an event from each source. A round measures one source after
    the other. Returns the cases of the table "linux"."""
    cases = {}
    with Linux(channels, accel, workdir) as guest:
        emitted = 0
        for _ in range(rounds):
            for source in guest.sources:
                step(source.name)
                row = row_of(guest.tell(source.flat(min(events, EVENTS_MAX))))
                cases.setdefault(source.name, Case(
                    "linux", source.name, 32, accel)).rows.append(row)
                if source.name.startswith("LTTng"):
                    emitted += row["sent"]
        if guest.lttng and guest.recorded() != emitted:
            raise Failure(f"LTTng in the guest did not record all of "
                          f"{emitted} events\n{guest}")
        guest.quit()
    return list(cases.values())
