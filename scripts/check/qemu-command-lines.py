#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Start QEMU by many command lines, alone and through hypertrace record.

A machine that starts alone must start with hypertrace record, and be the same
machine except for the changes in CHANGES. Command lines come from a folder of
files with one shell-quoted line each (--corpus), from a generator of rare syntax in
random combinations (--generate), and from one of usual lines (--styles). Parts that
need something of a host (devices, descriptors, KVM) are removed or replaced first.

    scripts/check/qemu-command-lines.py --hypertrace PROGRAM
        [--corpus DIR] [--generate N] [--styles N] [--seed N] [--jobs N]
        [--only NAME]... [QEMU...]

Each QEMU is a program, by default qemu-system-x86_64 in PATH; lines for arm64 use the
program with aarch64 in place of x86_64 in its name. No guest runs: each machine is
created, inspected and ended.
"""

import argparse
import base64
import concurrent.futures
import contextlib
import fnmatch
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from command_styles import styles

DEADLINE = 300              # seconds for one start on a busy machine
ATTEMPTS = 40               # starts of a line alone; each failed start removes an option
NAMES = {"qemu-system-x86_64": "x86_64", "qemu-kvm": "x86_64",
         "kvm": "x86_64", "qemu-system-aarch64": "aarch64"}

# (kind of a part, pattern of its name, reason): parts of a machine that `hypertrace
# record` may add, change or remove
CHANGES = [
    ("qom", r"/(ht-ram|ht-top)\d* ", "the memory backends that are shared"),
    ("qom", r"/(pc\.ram|microvm\.ram|mach-virt\.ram)(\[0\])? ",
     "the one backend that they stand for"),
    ("qom", r"/(ram-node\d+|ht-\w+)\[\d+\] ", "their memory regions"),
    ("fw_cfg", r"^etc/acpi/(tables|rsdp)$", "SRAT is new: see acpi"),
    ("fw_cfg", r"^etc/table-loader$", "SRAT is new: see acpi"),
    ("fw_cfg", r"^etc/smbios/", "a string of type 11: see smbios"),
    ("fw_cfg", r"^item-0x(000d|0014|0015)$",
     "nodes; the kernel's command line and its size"),
    ("acpi", r"^SRAT$", "the node with the ring"),
    ("acpi", r"^(DSDT|FACP|RSDT|XSDT)$",
     "_PXM of processors; addresses of tables"),
    ("smbios", r"^type 11$", "the words for a stub or boot loader"),
    ("smbios", r"^type 16|^type 127",
     "the handle of the table after the string"),
    ("numa", r"", "the node with the ring"),
]


def fake_kernels(tmp):
    """Create kernel images that QEMU accepts as kernels, but that cannot run, an initrd,
    and a cache for hypertrace record."""
    x86 = bytearray(8192)
    x86[0x1f1] = 4
    x86[0x1fe:0x200] = b"\x55\xaa"
    x86[0x202:0x206] = b"HdrS"
    x86[0x206:0x208] = struct.pack("<H", 0x20f)
    x86[0x211] = 1
    x86[0x22c:0x230] = struct.pack("<I", 0x7fffffff)
    x86[0x238:0x23c] = struct.pack("<I", 2047)
    arm64 = bytearray(8192)
    arm64[0x10:0x18] = struct.pack("<Q", 8192)
    arm64[0x38:0x3c] = b"ARM\x64"
    (tmp / "vmlinuz").write_bytes(x86)
    (tmp / "Image").write_bytes(arm64)
    (tmp / "initrd").write_bytes(bytes(4096))
    # Fill record's cache with facts about these kernels: without the cache, record
    # would boot a kernel to get them.
    for name, machine in ("vmlinuz", "x86_64"), ("Image", "aarch64"):
        digest = hashlib.sha256((tmp / name).read_bytes()).hexdigest()
        cache = tmp / "cache/hypertrace/kernels" / digest
        cache.mkdir(parents=True)
        (cache / "info").write_text(
            f"[kernel]\nrelease=6.12.0\nmachine={machine}\n"
            "version=Linux version 6.12.0\n")
        (cache / "formats").write_text("header: header_page\n")
        (cache / "kallsyms").write_text("ffffffff81000000 T _text\n")


class QMP:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self("qmp_capabilities")

    def __call__(self, name, **arguments):
        print(json.dumps({"execute": name, "arguments": arguments}),
              file=self.file, flush=True)
        while True:
            reply = json.loads(self.file.readline())
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise RuntimeError(reply["error"]["desc"])

    def hmp(self, line):
        return self("human-monitor-command", **{"command-line": line})


class QTest:
    """Reads the machine's fw_cfg through its DMA interface, as firmware
    does, over QEMU's qtest socket."""

    def __init__(self, path, arch):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")
        self.arch = arch
        self.ram = 0x8000 if arch == "x86_64" else 0x40008000

    def __call__(self, line):
        print(line, file=self.file, flush=True)
        while (reply := self.file.readline()) and not reply.startswith("OK"):
            if reply.startswith(("FAIL", "ERR")):
                raise RuntimeError(reply)
        return reply.split()[1:]

    def read(self, key, size):
        order = struct.pack(">IIQ", key << 16 | 8 | 2, size, self.ram + 16)
        self(f"write {self.ram:#x} 16 0x{order.hex()}")
        if self.arch == "x86_64":
            for port, value in (0x514, 0), (0x518, self.ram):
                value = int.from_bytes(value.to_bytes(4, "big"), "little")
                self(f"outl {port:#x} {value:#x}")
        else:
            value = int.from_bytes(self.ram.to_bytes(8, "big"), "little")
            self(f"writeq 0x9020010 {value:#x}")
        if not size:
            return b""
        return base64.b64decode(
            self(f"b64read {self.ram + 16:#x} {size:#x}")[0])

    def all(self):
        count, = struct.unpack(">I", self.read(0x19, 4))
        directory = self.read(0x19, 4 + 64 * count)[4:]
        files = {}
        for i in range(count):
            size, key, _, name = struct.unpack(
                ">IHH56s", directory[64 * i:64 * i + 64])
            files[name.rstrip(b"\0").decode()] = self.read(key, size)
        for key in 3, 5, 7, 8, 11, 0x0d, 0x0f, 0x14, 0x17, 0x18:
            files[f"item-{key:#06x}"] = self.read(key, 4)
        return files


def acpi_tables(data):
    tables, at = {}, 0
    while at + 36 <= len(data):
        name, size = data[at:at + 4], struct.unpack("<I", data[at + 4:at + 8])
        if not re.fullmatch(rb"[A-Z0-9]{4}", name) or size[0] < 36:
            at += 4
            continue
        body = bytearray(data[at:at + size[0]])
        body[9] = 0                             # checksum
        tables.setdefault(name.decode(), []).append(bytes(body))
        at += size[0]
    return tables


def smbios_tables(data):
    tables, at = {}, 0
    while at + 4 <= len(data):
        kind, size = data[at], data[at + 1]
        end = data.find(b"\0\0", at + size)
        if size < 4 or end < 0:
            break
        tables.setdefault(f"type {kind}", []).append(
            data[at + 4:at + size] + data[at + size:end])
        at = end + 2
    return tables


def look(qmp, qtest):
    """{kind: {name of a part: its content}} of a machine, as QEMU describes it on its
    monitor and by fw_cfg"""
    tree = []
    path = []
    for line in qmp.hmp("info qom-tree").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        path[depth:] = [line.strip().split(" ")[0].strip("/")]
        tree.append("/" + "/".join(p for p in path if p) + " " +
                    line.strip().split(" ", 1)[-1])
    fw_cfg = qtest.all() if qtest else {}
    cpus = [{k: v for k, v in cpu.items() if k != "thread-id"}
            for cpu in qmp("query-cpus-fast")]
    for cpu in cpus:
        cpu.get("props", {}).pop("node-id", None)
    return {
        "qom": {line: 1 for line in tree},
        "fw_cfg": fw_cfg,
        "acpi": acpi_tables(fw_cfg.get("etc/acpi/tables", b"")),
        "smbios": smbios_tables(fw_cfg.get("etc/smbios/smbios-tables", b"")),
        "memory": qmp("query-memory-size-summary"),
        "devices": {"memory": qmp("query-memory-devices")},
        "cpus": {"all": cpus},
        "numa": {"all": qmp.hmp("info numa")},
    }


def expected(kind, name):
    return any(k == kind and re.search(pattern, name)
               for k, pattern, _ in CHANGES)


def differences(alone, traced):
    for kind, before in alone.items():
        after = traced[kind]
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name) and \
                    not expected(kind, name):
                yield f"{kind} {name}: {str(before.get(name))[:300]} became " \
                    f"{str(after.get(name))[:300]}"


class Failed(Exception):
    pass


def has_fw_cfg(argv, arch):
    machine = " ".join(b for a, b in zip(argv, argv[1:])
                       if a.strip("-") in ("machine", "M"))
    return bool(re.search(r"\b(pc|q35|microvm)\b|^$", machine)) \
        if arch == "x86_64" else "virt" in machine


def start(argv, tmp, arch, before=()):
    """Start QEMU with its processors stopped, end it, and return the parts of its machine
    (see look()). If QEMU does not start, raise Failed with QEMU's message; if QEMU does
    not end within DEADLINE, raise Failed, too."""
    run = Path(tempfile.mkdtemp(dir=tmp))
    command = [*before, *argv, "-qmp", f"unix:{run}/qmp,server=on,wait=off",
               "-qtest", f"unix:{run}/qtest,server=on,wait=off",
               "-qtest-log", "/dev/null"]
    if "-S" not in argv:
        command += ["-S"]
    with open(run / "log", "w") as log:
        process = subprocess.Popen(
            command, cwd=tmp, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp / "cache")})
    try:
        deadline = time.monotonic() + DEADLINE
        while True:
            with contextlib.suppress(OSError):
                qmp = QMP(run / "qmp")
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed((run / "log").read_text(errors="replace"))
            time.sleep(0.02)
        qtest = QTest(run / "qtest", arch) if has_fw_cfg(argv, arch) else None
        result = look(qmp, qtest)
        qmp("quit")
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"does not end within {DEADLINE} s of QMP's quit") \
                from error
        return result
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(run)


def options(argv):
    """[[option, its value or None]] of the words after the program's name"""
    result = []
    for word in argv:
        if word.startswith("-") and len(word) > 1 or not result or \
                result[-1][1] is not None:
            result.append([word, None])
        else:
            result[-1][1] = word
    return result


def flatten(opts):
    return [word for opt in opts for word in opt if word is not None]


def adapt(argv, tmp, arch):
    """Remove or replace those parts of a command line that need something of the
    host for which it was written. Create the disks of the new command line in tmp."""
    kernel = tmp / ("vmlinuz" if arch == "x86_64" else "Image")
    out = []
    for name, value in options(argv):
        v = value or ""
        if re.search(r"fd=|host_device|/dev/Host|vfio|\"secret\"|/var/lib|"
                     r"vhost|spice|egl|passt|@", v) and \
                name not in ("-kernel", "-append", "-m", "-machine", "-smbios",
                             "-sandbox", "-initrd"):
            continue
        if name in ("-mon", "-enable-kvm", "-daemonize", "-pidfile", "-vnc",
                    "-qmp", "-runas", "-chroot", "-D", "-bios", "-spice", "-dtb",
                    "-qtest", "-s"):
            # -s needs a fixed port, which only one job at a time can have.
            continue
        if name in ("-curses", "-nographic"):
            name, v, value = "-display", "none", "none"
        if name in ("-serial", "-netdev", "-net", "-nic", "-gdb"):
            # Replace the standard input and output of this script, and tap
            # interfaces; drop forwarded ports.
            v = re.sub(r"^(mon:)?stdio$", "null", v)
            v = re.sub(r"^tap\b.*?(,id=[^,]*)?(,.*)?$", r"user\1", v)
            v = re.sub(r",hostfwd=[^,]*", "", v)
        if name in ("-hda", "-cdrom", "-drive") or not name.startswith("-"):
            disk = tmp / f"disk{len(out)}.img"
            if name == "-drive":
                v = re.sub(r"\bfile=[^,]*", f"file={disk}", v)
                v = re.sub(r"\bformat=\w+", "format=raw", v)
            elif value:
                v = str(disk)
            else:
                name = str(disk)
            with open(disk, "wb") as f:
                f.truncate(512 << 10 if "pflash" in v else 64 << 20)
        if name in ("-accel", "-display"):
            v = "tcg" if name == "-accel" else "none"
        if name == "-cpu":
            v = "max"
        v = re.sub(r"\b(accel=)?(kvm|hvf|xen)\b(:tcg)?",
                   r"\1tcg" if "accel=" in v else "tcg", v) \
            if name in ("-machine", "-M") else v
        if name in ("-machine", "-M"):
            # Drop versions of machine types from 8.0 on, which this QEMU may lack, and
            # firmware files, which are missing here.
            v = re.sub(r"\b(?:pc-)?(q35|i440fx|virt)-(8|9|1\d)\.\d\b",
                       lambda m: m[1].replace("i440fx", "pc"), v)
            v = re.sub(r",pflash\d=[^,]*", "", v)
            v = re.sub(r"\+pve\d+", "", v)     # versions of Proxmox
        v = re.sub(r"(mem-path\"?[:=]\"?)[^\",]+",
                   lambda m: m[1] + str(tmp / "memory"), v)
        v = re.sub(r",\"(host-nodes|policy|prealloc|prealloc-context)\":"
                   r"(\[[^]]*\]|[^,}]*)", "", v)
        v = re.sub(r",(host-nodes|policy|prealloc)=[^,]*", "", v)
        if name == "-m":
            # Limit maxmem, because TCG's processors have only 40 bits of physical
            # addresses.
            v = re.sub(r"maxmem=\d{9,}[kK]", "maxmem=67108864k", v)
        v = {"-kernel": str(kernel), "-initrd": str(tmp / "initrd"),
             "-overcommit": "mem-lock=off"}.get(name, v)
        out.append([name, v if value is not None else None])
    accel = any(name in ("-M", "-machine") and "accel=" in value
                for name, value in out)
    for option, value in ("-accel", "tcg"), ("-display", "none"):
        if not any(name == option for name, _ in out) and \
                not (option == "-accel" and accel):
            out.append([option, value])
    return flatten(out)


def alone(argv, program, tmp, arch):
    """Start QEMU by a command line, without hypertrace. If QEMU reports a wrong option,
    drop the option and start again, up to ATTEMPTS times. Returns (the remaining command
    line, its machine), or (None, QEMU's last message)."""
    opts = options(argv)
    why = ""
    for _ in range(ATTEMPTS):
        try:
            line = [program, *flatten(opts)]
            return line, start(line, tmp, arch)
        except Failed as error:
            why = str(error)
        found = None
        for opt in reversed(opts):
            text = " ".join(w for w in opt if w is not None)
            if f": {text}:" in why or f": {text}\n" in why or \
                    f": {opt[0]}: invalid option" in why or \
                    (opt[0] in ("-cpu", "-sandbox") and opt[0][1:] in why):
                found = opt
                break
        if not found:
            break
        opts.remove(found)
    return None, why


def read_corpus(folder):
    for path in sorted(Path(folder).glob("*.args")):
        argv = shlex.split(path.read_text())
        arch = NAMES.get(Path(argv[0]).name)
        if arch:
            yield path.stem, arch, argv[1:]


# A generated command line has one choice of each group. alone() drops options that QEMU
# refuses.
GROUPS = [
    [["-M", "q35"], ["-M", "pc"], ["-machine", "type=q35"], [],
     ["-machine", "pc-q35-7.2"], ["-M", "q35,usb=off"], ["-M", "microvm"],
     ["-M", "pc", "-machine", "smm=off"], ["-M", "isapc", "-cpu", "486"],
     ["-M", "pc-i440fx-7.1"], ["-M", "q35,nvdimm=on"], ["-M", "q35,hmat=on"],
     ["-M", "none"], ["-readconfig", "machine.cfg"]],
    [["-m", "1G"], ["-m", "size=512M"], ["-m", "300"], [],
     ["-m", "1G,slots=4,maxmem=8G"], ["-m", "slots=4,maxmem=8G", "-m", "2G"],
     ["-m", "513"], ["-m", "0.5G"], ["-m", "5G"], ["-m", "1048576k"],
     ["-m", "3000M"], ["-readconfig", "memory.cfg"]],
    [["-smp", "4"], ["-smp", "cpus=2,maxcpus=8"], [], ["-smp", "sockets=2"],
     ["-smp", "2,sockets=1,cores=2,threads=1"],
     ["-smp", "maxcpus=6", "-smp", "3"], ["-smp", "6,dies=2,cores=3"],
     ["-machine", "smp.cpus=3"], ["-readconfig", "smp.cfg"]],
    [["-kernel", "vmlinuz"], [], ["-machine", "kernel=vmlinuz"],
     ["-kernel", "vmlinuz", "-append", "console=ttyS0 quiet"],
     ["-kernel", "vmlinuz", "-append", 'x="a -- b" -- c'],
     ["-kernel", "vmlinuz", "-machine", "append=a,,b", "-initrd", "initrd"],
     ["-kernel", "vmlinuz", "-append", 'open="x', "-initrd", "initrd"],
     ["-kernel", "vmlinuz", "-append", "trace_instance=q@0x1000000:1M"],
     ["-kernel", "vmlinuz", "-append", "a", "-append", "b"]],
    [[], [], [],
     ["-object", "memory-backend-ram,id=m,size={ram}", "-machine",
      "memory-backend=m"],
     ["-object", '{{"qom-type":"memory-backend-file","id":"m","size":{bytes},'
      '"mem-path":"ram.bin","share":true}}', "-machine", "memory-backend=m"],
     ["-object", "memory-backend-memfd,id=m,size={ram},share=on", "-numa",
      "node,memdev=m"],
     ["-object", "memory-backend-ram,id=ht-ram,size=1M"],
     ["-mem-path", "memory"], ["-mem-prealloc"], ["-numa", "node"]],
    [[], [], ["-smbios", "type=1,manufacturer=a,,b,serial=1"],
     ["-smbios", "type=11,value=x,value=y"],
     ["-smbios", "type=11,value=io.systemd.stub.kernel-cmdline-extra=z"],
     ["-smbios", "type=0xb,path=oem.txt"], ["-smbios", "file=oem.bin"],
     ["-smbios", "file=type1.bin"]],
    [[], [], ["-S"], ["-incoming", "defer"], ["-no-user-config"],
     ["-name", "guest=x,debug-threads=on"], ["-sandbox", "on,spawn=deny"],
     ["-fw_cfg", "name=opt/x,string=-append"], ["-global", "ICH9-LPC.noreboot=on"],
     ["-device", "virtio-balloon-pci"], ["-device", "pvpanic"],
     ["-device", '{{"driver":"virtio-rng-pci"}}'], ["-nodefaults"],
     ["-object", "memory-backend-file,id=nv,size=16M,mem-path=nv.bin,share=on"],
     ["-action", "panic=pause"], ["-rtc", "base=utc"], ["-pidfile", "-m"]],
]


def make_files(tmp):
    (tmp / "memory").mkdir()
    (tmp / "machine.cfg").write_text('[machine]\n  type = "q35"\n')
    (tmp / "memory.cfg").write_text('[memory]\n  size = "700M"\n')
    (tmp / "smp.cfg").write_text('[smp-opts]\n  cpus = "2"\n')
    (tmp / "oem.txt").write_text("io.systemd.stub.kernel-cmdline-extra=file")
    (tmp / "oem.bin").write_bytes(b"\x0b\x05\0\x7f\1of a file\0\0")
    (tmp / "type1.bin").write_bytes(b"\x01\x08\0\x7f\1\0\0\0x\0\0")


def generate(count, seed):
    rand = random.Random(seed)
    for n in range(count):
        chosen = [rand.choice(group) for group in GROUPS]
        order = chosen[:]
        rand.shuffle(order)
        argv = ["-display", "none", "-accel", "tcg",
                *(word for choice in order for word in choice)]
        size = " ".join(chosen[1])
        ram = next((m[0] for m in re.finditer(
            r"\d+(\.\d+)?[GMk]?(?=$|,| )", size)), "128M")
        if ram.isdigit():
            ram += "M"
        if "cfg" in size:
            ram = "700M"
        if "slots=4,maxmem=8G -m" in size:
            ram = "2G"
        number = float(ram[:-1]) * {"k": 1 << 10, "M": 1 << 20,
                                    "G": 1 << 30}[ram[-1]]
        yield f"generated-{seed}-{n}", "x86_64", [
            w.format(ram=ram, bytes=int(number)) for w in argv]


def check(name, argv, program, arch, tmp, hypertrace):
    """Start a command line alone and by `hypertrace record`, and compare the two
    machines. Returns (list of complaints, command line), or (None, last line of
    QEMU's message) if QEMU does not start here alone."""
    line, before = alone(adapt(argv, tmp, arch), program, tmp, arch)
    if not line:
        return None, before.strip().splitlines()[-1:] or ["no output"]
    try:
        after = start(line, tmp, arch, (hypertrace, "record", "-q", "-o",
                                        str(tmp / "recording"), "--"))
    except Failed as error:
        return [f"fails with hypertrace: {str(error)[-400:]}"], line
    except (OSError, RuntimeError, json.JSONDecodeError) as error:
        return [f"cannot be looked at with hypertrace: {error!r}"], line
    finally:
        shutil.rmtree(tmp / "recording", ignore_errors=True)
    return list(differences(before, after)), line


def check_all(lines, qemu, args, folder):
    """Check the lines with one QEMU, several at a time; returns how many have
    complaints."""
    hypertrace = os.path.abspath(args.hypertrace)
    own = threading.local()

    def one(item):
        name, arch, argv = item
        program = qemu if arch == "x86_64" else qemu.replace("x86_64", arch)
        if not shutil.which(program):
            return None
        if not hasattr(own, "tmp"):
            # Each thread has a folder of its own, because the lines name the same
            # files.
            own.tmp = Path(tempfile.mkdtemp(dir=folder))
            fake_kernels(own.tmp)
            make_files(own.tmp)
        return check(name, argv, program, arch, own.tmp, hypertrace)

    bad, unusable, starts = 0, 0, set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for n, ((name, *_), result) in enumerate(zip(lines, pool.map(one, lines))):
            if args.verbose:
                print(f"line {n + 1} of {len(lines)}", file=sys.stderr, flush=True)
            if not result:
                continue
            found, line = result
            if found is None:
                unusable += 1
                if args.verbose:
                    print(f"{name}: not here: {' '.join(line)[:200]}")
                continue
            # Count lines that differ only in the name of a thread's folder as one.
            starts.add(re.sub(re.escape(str(folder)) + "/[^/]*", "",
                              shlex.join(line[1:])))
            if found:
                bad += 1
                print(f"{name}: {shlex.join(line)}")
                print("".join(f"    {f}\n" for f in found[:10]), flush=True)
    print(f"{qemu}: {len(starts)} different lines start, {bad} of them fail or make"
          f" another machine with hypertrace; {unusable} do not start here alone",
          flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hypertrace", required=True)
    parser.add_argument("--corpus")
    parser.add_argument("--generate", type=int, default=0)
    parser.add_argument("--styles", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="check this line; a pattern with * and ?")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("qemu", nargs="*", default=["qemu-system-x86_64"])
    args = parser.parse_args()
    lines = list(read_corpus(args.corpus)) if args.corpus else []
    lines += generate(args.generate, args.seed)
    lines += styles(args.styles, args.seed)
    different = {(arch, tuple(argv)): (name, arch, argv)
                 for name, arch, argv in reversed(lines)}
    lines = [line for line in reversed(different.values()) if not args.only or
             any(fnmatch.fnmatch(line[0], name) for name in args.only)]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="ht-lines-") as folder:
        for qemu in args.qemu:
            bad += check_all(lines, qemu, args, Path(folder))
    print("nothing else differs" if not bad else f"{bad} lines differ")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
