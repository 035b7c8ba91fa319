# SPDX-License-Identifier: GPL-2.0-or-later
"""Command lines of QEMU as people and programs write them, for qemu-command-lines.py.

Each function of STYLES makes a line in the style of one kind of caller. It chooses
options, sizes and devices at random. adapt() of qemu-command-lines.py replaces the
names of kernels, initrds and disks by those of files that exist.
"""

import json
import random


def maybe(rand, *words, chance=0.5):
    return list(words) if rand.random() < chance else []


def obj(**fields):
    """JSON text of an option's value, with "-" for each "_" in the names of members"""
    return json.dumps({k.replace("_", "-"): v for k, v in fields.items()},
                      separators=(",", ":"))


def uuid(rand):
    text = f"{rand.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def mac(rand):
    return "52:54:00:" + ":".join(f"{rand.randrange(256):02x}" for _ in range(3))


def kernel(rand, *more):
    """Options of a direct boot of a kernel, with random parameters and those in more"""
    words = rand.sample([
        "console=ttyS0", "root=/dev/vda1", "root=UUID=0a3407de rw", "quiet",
        "panic=-1", "net.ifnames=0", "earlyprintk=serial", "nokaslr",
        "systemd.unit=rescue.target", "loglevel=7", "init=/sbin/init",
        "ip=dhcp", "rootfstype=ext4", "selinux=0", "ro",
        'dyndbg="file drivers/usb/* +p"', "trace_event=sched:*",
        "console=tty0 console=hvc0", "crashkernel=128M", "debug",
    ], rand.randrange(1, 8))
    tail = rand.choice(["", "", "", " -- --verbose", " -- sh -c 'ls -l'"])
    return ["-kernel", "vmlinuz", *maybe(rand, "-initrd", "initrd"),
            rand.choice(["-append", "--append"]),
            " ".join([*words, *more]) + tail]


def script(rand):
    """A line that a user keeps in a shell script"""
    size = rand.choice(["1024", "2G", "4G", "1536M", "2048", "512M", "8G"])
    line = [
        *rand.choice([["-enable-kvm"], ["-accel", "kvm"], [],
                      ["-machine", "q35,accel=kvm:tcg"], ["-M", "accel=tcg"]]),
        "-m", size, *maybe(rand, "-smp", str(rand.randrange(1, 9))),
        *rand.choice([["-cpu", "host"], ["-cpu", "max"], [],
                      ["-cpu", "qemu64,+ssse3"]]),
        *rand.choice([["-hda", "disk.img"], ["disk.img"],
                      ["-drive", "file=disk.qcow2,if=virtio,format=qcow2"],
                      ["-drive", "file=disk.img,media=disk,cache=none"],
                      ["-drive", "file=a.img,if=none,id=d0", "-device",
                       "virtio-blk-pci,drive=d0,bootindex=1"]]),
        *maybe(rand, "-cdrom", "install.iso", "-boot", "d", chance=0.2),
        *rand.choice([["-nic", "user,model=virtio-net-pci"],
                      ["-net", "nic", "-net", "user,hostfwd=tcp::10022-:22"],
                      ["-netdev", "user,id=n0", "-device",
                       f"e1000,netdev=n0,mac={mac(rand)}"], [],
                      ["-netdev", "tap,id=n0,ifname=tap0,script=no", "-device",
                       "virtio-net-pci,netdev=n0"]]),
        *rand.choice([["-nographic"], ["-display", "gtk"], ["-vga", "std"],
                      ["-curses"], ["-serial", "mon:stdio"], []]),
        *maybe(rand, "-usb", "-device", "usb-tablet", chance=0.3),
        *maybe(rand, "-rtc", "base=localtime,clock=host", chance=0.2),
        *maybe(rand, "-no-reboot", chance=0.2), *maybe(rand, "-s", chance=0.1),
        *maybe(rand, "-snapshot", chance=0.1),
    ]
    return line


def developer(rand):
    """A kernel developer's line"""
    line = [
        *rand.choice([["-M", "q35"], ["-M", "pc"], [], ["-machine", "q35,smm=off"],
                      ["-machine", "pc,accel=kvm,usb=off"]]),
        "-m", rand.choice(["2G", "1G", "4096", "size=3G", "768M", "16G"]),
        "-smp", rand.choice(["2", "4", "cpus=4,sockets=2,cores=2", "2,maxcpus=4",
                             "8,sockets=2,cores=2,threads=2"]),
        *kernel(rand, *maybe(rand, "kasan.fault=panic", "slub_debug=FZ")),
        *maybe(rand, "-drive", "file=rootfs.img,format=raw,if=virtio"),
        *rand.choice([["-nographic"], ["-display", "none", "-serial", "stdio"],
                      ["-serial", "file:console.log", "-display", "none"]]),
        *maybe(rand, "-device", "virtio-rng-pci"),
        *maybe(rand, "-net", "nic,model=e1000", "-net",
               "user,hostfwd=tcp:127.0.0.1:10021-:22"),
        *maybe(rand, "-device", "edu", chance=0.1),
        *maybe(rand, "-device", "intel-iommu", chance=0.1),
        *maybe(rand, "-fsdev", "local,id=f0,path=.,security_model=none", "-device",
               "virtio-9p-pci,fsdev=f0,mount_tag=host0", chance=0.3),
        *maybe(rand, "-no-reboot"), *maybe(rand, "-pidfile", "vm.pid", chance=0.2),
        *maybe(rand, "-qmp", "unix:qmp.sock,server,nowait", chance=0.2),
        *maybe(rand, "-gdb", "tcp::0", chance=0.1),
    ]
    return line


def memory(rand, size):
    """Memory of size MiB in a random style: (value of -machine's memory-backend or
    None, options of QEMU)"""
    kind = rand.choice(["ram", "memfd", "file", "plain", "numa", "hotplug"])
    if kind == "plain":
        return None, ["-m", f"size={size * 1024}k"]
    total = ["-m", f"size={size * 1024}k"]
    if kind == "hotplug":
        total[1] += ",slots=16,maxmem=16777216k"
    if kind in ("numa", "hotplug"):
        half = size // 2 << 20
        words = []
        for node in 0, 1:
            words += ["-object", obj(qom_type="memory-backend-ram",
                                     id=f"ram-node{node}", size=half),
                      "-numa", f"node,nodeid={node},cpus={2 * node}-"
                      f"{2 * node + 1},memdev=ram-node{node}"]
        if kind == "hotplug":
            words += ["-object", obj(qom_type="memory-backend-ram",
                                     id="memdimm0", size=512 << 20),
                      "-device", obj(driver="pc-dimm", node=1, memdev="memdimm0",
                                     id="dimm0", slot=0)]
        return None, [*total, *words]
    more = {"ram": {"qom_type": "memory-backend-ram"},
            "memfd": {"qom_type": "memory-backend-memfd", "share": True,
                      "x-use-canonical-path-for-ramblock-id": False},
            "file": {"qom_type": "memory-backend-file", "mem_path": "memory/pc.ram",
                     "share": rand.random() < 0.7}}[kind]
    return "pc.ram", [*total, "-object",
                      obj(**more, id="pc.ram", size=size << 20)]


def libvirt(rand):
    """A virtual machine as libvirt starts it"""
    q35 = rand.random() < 0.7
    size = rand.choice([512, 1024, 2048, 4096])
    backend, words = memory(rand, size)
    numa = "-numa" in words
    machine = ["pc-q35-7.2" if q35 else "pc-i440fx-7.2", "usb=off",
               "dump-guest-core=off",
               *maybe(rand, "vmport=off"), *maybe(rand, "smm=off"),
               *([f"memory-backend={backend}"] if backend else []),
               *maybe(rand, "hpet=off", chance=0.3), "acpi=on"]
    cpus = 4 if numa else rand.choice([1, 2, 4, 8])
    bus = "pcie.0" if q35 else "pci.0"
    ports, devices = [], []
    kinds = rand.sample(["virtio-net-pci", "virtio-blk-pci", "virtio-balloon-pci",
                         "virtio-rng-pci", "virtio-scsi-pci", "virtio-serial-pci",
                         "virtio-gpu-pci", "qemu-xhci", "pvpanic-pci",
                         "virtio-tablet-pci", "virtio-keyboard-pci"],
                        rand.randrange(1, 7))
    for n, kind in enumerate(kinds):
        where = bus
        if q35 and kind.startswith("virtio"):
            where = f"pci.{n + 1}"
            ports += ["-device", obj(
                driver="pcie-root-port", port=8 + n, chassis=n + 1, id=where,
                bus=bus, addr=f"0x{n + 2:x}")]
        fields = {"driver": kind, "id": f"dev{n}", "bus": where,
                  "addr": "0x0" if where != bus else f"0x{n + 16:x}"}
        if kind == "virtio-net-pci":
            devices += ["-netdev", obj(type="user", id="hostnet0")]
            fields |= {"netdev": "hostnet0", "mac": mac(rand)}
        if kind == "virtio-blk-pci":
            devices += ["-blockdev", obj(driver="null-co", node_name="storage0",
                                         size=1 << 30, read_zeroes=True)]
            fields |= {"drive": "storage0", "bootindex": 1}
        if kind == "virtio-rng-pci":
            devices += ["-object", obj(qom_type="rng-random", id="objrng0",
                                       filename="/dev/urandom")]
            fields |= {"rng": "objrng0"}
        devices += ["-device", obj(**fields)]
    name = f"vm{rand.randrange(1000)}"
    return [
        "-name", f"guest={name},debug-threads=on", *maybe(rand, "-S"),
        "-machine", ",".join(machine), "-accel", rand.choice(["kvm", "tcg"]),
        "-cpu", rand.choice(["host,migratable=on", "qemu64", "Skylake-Server"]),
        *words, "-overcommit", "mem-lock=off",
        "-smp", f"{cpus},sockets={cpus},cores=1,threads=1", "-uuid", uuid(rand),
        *maybe(rand, "-smbios", f"type=1,manufacturer=Cloud,product={name},"
               f"serial={uuid(rand)},family=VM", chance=0.4),
        *maybe(rand, "-smbios", "type=11,value=cloud-init:ds=nocloud", chance=0.1),
        "-display", "none", "-no-user-config", "-nodefaults",
        "-chardev", f"socket,id=charmonitor,path=mon-{name}.sock,server=on,wait=off",
        "-mon", "chardev=charmonitor,id=monitor,mode=control",
        "-rtc", "base=utc,driftfix=slew", "-no-shutdown", "-boot", "strict=on",
        *(kernel(rand) if rand.random() < 0.4 else []), *ports, *devices,
        "-chardev", "null,id=charserial0", "-device",
        obj(driver="isa-serial", chardev="charserial0", id="serial0", index=0),
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,"
        "resourcecontrol=deny", "-msg", "timestamp=on",
    ]


def proxmox(rand):
    cores, sockets = rand.choice([1, 2, 4]), rand.choice([1, 2])
    size = rand.choice([1024, 2048, 4096])
    vm = rand.randrange(100, 999)
    words = ["-m", str(size)]
    if rand.random() < 0.4:
        words = ["-m", f"size={size},slots=255,maxmem=524288M"]
        for node in range(sockets):
            first = node * cores
            words += [
                "-object", f"memory-backend-ram,id=ram-node{node},"
                f"size={size // sockets}M", "-numa",
                f"node,nodeid={node},cpus={first}-{first + cores - 1},"
                f"memdev=ram-node{node}"]
        for n in range(rand.randrange(3)):
            words += ["-object", f"memory-backend-ram,id=mem-dimm{n},size=512M",
                      "-device", f"pc-dimm,id=dimm{n},memdev=mem-dimm{n},node=0"]
    q35 = rand.random() < 0.3
    bus = "pcie.0" if q35 else "pci.0"
    return [
        "-name", f"vm-{vm},debug-threads=on", "-no-shutdown",
        "-chardev", f"socket,id=qmp,path=mon-{vm}.sock,server=on,wait=off",
        "-mon", "chardev=qmp,mode=control", "-pidfile", f"{vm}.pid",
        *maybe(rand, "-daemonize"), "-smbios", f"type=1,uuid={uuid(rand)}",
        "-smp", f"{cores * sockets},sockets={sockets},cores={cores},"
        f"maxcpus={cores * sockets}", "-nodefaults",
        "-boot", "menu=on,strict=on,reboot-timeout=1000",
        "-cpu", "kvm64,enforce,+lahf_lm,+sep", *words,
        *maybe(rand, "-object", "iothread,id=iothread0"),
        *([] if q35 else ["-global", "PIIX4_PM.disable_s3=1"]),
        "-device", f"pci-bridge,id=pci.1,chassis_nr=1,bus={bus},addr=0x1e",
        "-device", f"vmgenid,guid={uuid(rand)}",
        *maybe(rand, "-device", f"VGA,id=vga,bus={bus},addr=0x2"),
        "-device", f"virtio-balloon-pci,id=balloon0,bus={bus},addr=0x3",
        *maybe(rand, "-device", f"virtio-scsi-pci,id=scsihw0,bus={bus},addr=0x5",
               "-drive", "file=vm-disk-0.raw,if=none,id=drive-scsi0,format=raw,"
               "cache=none,detect-zeroes=on", "-device",
               "scsi-hd,bus=scsihw0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,"
               "id=scsi0"),
        "-machine", f"type={'q35' if q35 else 'pc'}" + rand.choice(
            ["", "+pve0", ",hpet=off"]),
    ]


def fuzzer(rand):
    """A virtual machine of a fuzzer or of a CI job"""
    return [
        "-m", rand.choice(["2048", "1024", "512"]),
        "-smp", rand.choice(["2,sockets=2,cores=1", "1", "4"]),
        *maybe(rand, "-chardev", "null,id=SOCKSYZ", "-mon",
               "chardev=SOCKSYZ,mode=control"),
        "-display", "none", "-serial", "stdio", "-no-reboot",
        "-name", f"VM-{rand.randrange(8)}",
        *maybe(rand, "-device", "virtio-rng-pci"),
        *rand.choice([["-enable-kvm", "-cpu", "host,migratable=off"],
                      ["-machine", "pc-q35-7.1"], ["-M", "pc,accel=tcg"]]),
        "-device", "e1000,netdev=net0", "-netdev",
        f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:{rand.randrange(20000, 60000)}-:22",
        *rand.choice([["-hda", "disk.img", "-snapshot"],
                      ["-drive", "file=disk.img,format=raw,if=virtio"]]),
        *kernel(rand), *maybe(rand, "-usb", chance=0.3),
        *maybe(rand, "-device", "qemu-xhci", chance=0.3),
    ]


def container(rand):
    """A machine that runs containers; often its memory is shared, as virtiofs needs it"""
    size, most = rand.choice([256, 512, 1024, 2048]), rand.choice([1, 2, 4, 8])
    sort = rand.choice(["q35", "q35", "pc", "microvm"])
    shared = rand.choice(["file", "memfd", None])
    words = []
    if shared == "file":
        words = ["-object", f"memory-backend-file,id=dimm1,size={size}M,"
                 "mem-path=memory,share=on"]
    elif shared:
        words = ["-object", f"memory-backend-memfd,id=dimm1,size={size}M,share=on"]
    if words:
        words += ["-machine", "memory-backend=dimm1"] if sort == "microvm" or \
            rand.random() < 0.3 else ["-numa", "node,memdev=dimm1"]
    slots = "" if sort == "microvm" else ",slots=10,maxmem=8G"
    tail = "device" if sort == "microvm" else "pci"
    return [
        "-name", f"sandbox-{uuid(rand)[:8]},debug-threads=on", "-uuid", uuid(rand),
        "-machine", f"{sort},accel=kvm" + (
            rand.choice(["", ",nvdimm=on"]) if sort != "microvm" else ""),
        "-cpu", "host,pmu=off", "-m", f"{size}M{slots}",
        *(["-device", "pci-bridge,bus="
           f"{'pcie.0' if sort == 'q35' else 'pci.0'},id=pci-bridge-0,"
           "chassis_nr=1,shpc=off,addr=2"] if sort != "microvm" else []),
        "-device", f"virtio-serial-{tail},id=serial0",
        "-object", "rng-random,id=rng0,filename=/dev/urandom", "-device",
        f"virtio-rng-{tail},rng=rng0", "-rtc", "base=utc,driftfix=slew,clock=host",
        "-vga", "none", "-no-user-config", "-nodefaults", "-nographic",
        "--no-reboot", *words, *kernel(rand, "systemd.show_status=false"),
        "-pidfile", "pid", "-smp",
        f"1,cores=1,threads=1,sockets={most},maxcpus={most}",
    ]


def laptop(rand):
    """A desktop guest with firmware for UEFI"""
    size = rand.choice(["4G", "8192", "6G", "3072"])
    return [
        *rand.choice([["-machine", "q35,smm=on,vmport=off"], ["-M", "q35"],
                      ["-machine", "q35,hpet=off"]]),
        *maybe(rand, "-global", "driver=cfi.pflash01,property=secure,value=on",
               chance=0.2),
        "-drive", "if=pflash,format=raw,unit=0,readonly=on,file=OVMF_CODE.fd",
        *maybe(rand, "-drive", "if=pflash,format=raw,unit=1,file=OVMF_VARS.fd"),
        "-name", f"desktop,process=desktop-{rand.randrange(9)}",
        "-smp", rand.choice(["cores=2,threads=2,sockets=1", "4", "2"]),
        "-m", size, "-device", "virtio-balloon",
        *rand.choice([["-vga", "none", "-device", "virtio-vga"], ["-vga", "qxl"],
                      ["-device", "virtio-gpu-pci"]]),
        "-display", "sdl", "-device", "virtio-rng-pci,rng=rng0", "-object",
        "rng-random,id=rng0,filename=/dev/urandom",
        "-device", "qemu-xhci,id=input", "-device", "usb-kbd,bus=input.0",
        *maybe(rand, "-device", "usb-tablet,bus=input.0"),
        "-audiodev", "none,id=audio0", "-device", "intel-hda", "-device",
        "hda-micro,audiodev=audio0",
        "-device", f"virtio-net-pci,netdev=nic,mac={mac(rand)}", "-netdev",
        "user,hostname=desktop,id=nic",
        *rand.choice([
            ["-device", "virtio-blk-pci,drive=SystemDisk", "-drive",
             "id=SystemDisk,if=none,format=raw,file=disk.raw"],
            ["-drive", "if=none,id=nvme0,format=raw,file=disk.raw", "-device",
             "nvme,drive=nvme0,serial=1234"]]),
        *maybe(rand, "-smbios", "type=2,manufacturer=ACME,product=Board"),
        *maybe(rand, "-smbios",
               "type=11,value=io.systemd.credential:ssh.key=abc", chance=0.3),
        "-rtc", "base=localtime,clock=host,driftfix=slew",
        *maybe(rand, "-fw_cfg", "name=opt/org.example/note,string=a,,b"),
        *(kernel(rand) if rand.random() < 0.2 else []),
    ]


STYLES = [script, script, developer, developer, libvirt, libvirt, libvirt, proxmox,
          fuzzer, container, laptop]


def styles(count, seed):
    """Yield (name, architecture, options of QEMU) of count lines, all different."""
    rand = random.Random(f"styles {seed}")
    seen = set()
    while len(seen) < count:
        style = rand.choice(STYLES)
        argv = style(rand)
        if tuple(argv) not in seen:
            seen.add(tuple(argv))
            yield f"{style.__name__}-{seed}-{len(seen)}", "x86_64", argv
