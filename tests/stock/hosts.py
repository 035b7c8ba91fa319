# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that tests share: run the KVM and Xen hosts that scripts/vm/stock-guests.sh makes. A
host has an emulated AMD processor, and runs guests itself."""

import io
import os
import re
import subprocess
import tarfile

import pytest
import stock

KVM = stock.GUESTS / "kvmhost"
XEN = stock.GUESTS / "xenhost"
QEMU = os.environ.get("HT_QEMU", "qemu-system-x86_64")
MULTI = ("-accel", "tcg,thread=multi", "-smp", "2")
# Options by which each instruction of the host takes 1 ns of its clock; the clock of an
# idle host jumps to its next timer.
ICOUNT = ("-accel", "tcg", "-icount", "shift=0,sleep=off", "-rtc", "clock=vm")

# First lines of the script of a KVM host. $linux is a QEMU command that starts a guest with
# the job's kernel and initrd; $words are words for that kernel. These scripts give
# `hypertrace record` no option --event: with it, the tool boots the kernel to check the names
# of events, which takes minutes under TCG in such a host.
KVM_SCRIPT = """modprobe kvm_amd
mkdir /run/bin /run/cache /run/out
cat >/run/bin/hypertrace <<"EOT"
#!/bin/sh
LD_LIBRARY_PATH=/run/job/lib XDG_CACHE_HOME=/run/cache exec /run/job/hypertrace "$@"
EOT
chmod +x /run/bin/hypertrace
PATH=/run/bin:$PATH
linux="qemu-system-x86_64 -accel kvm -cpu host -m 256 -nodefaults -display none
-kernel /run/job/vmlinuz -initrd /run/job/initrd"
words="panic=-1 no_timer_check mitigations=off quiet rdinit=/init"
"""
# First part of the script that is init of a guest in these hosts
GUEST_INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
for i in 1 2 3 4; do $b find /proc/self /sys/bus >/dev/null 2>&1; done
# sleep, so that the idle guest executes HLT
$b sleep 1
"""
# A whole script for init, of a guest that is on for some seconds
SHORT_INIT = GUEST_INIT + """echo "the guest is done" >/dev/kmsg
$b poweroff -f
$b sleep 1000
"""
# Last line of a host's script: write the folder /run/out to the second disk as a tar
# archive. run() fails unless the file log in that folder has the text "status 0".
END = "tar c -C /run/out . >/dev/vdb\n"
# Script of a KVM host that records a guest and itself. Tests replace SMP and WORDS.
KVM_RECORD = KVM_SCRIPT + """
hypertrace record --host -o /run/out/rec --buffer main --kernel /run/job/vmlinuz \\
    -- $linux -smp SMP -no-reboot -serial file:/run/out/console \\
    -append "console=ttyS0 $words WORDS" </dev/null >/run/out/log 2>&1
echo "status $?" >>/run/out/log
""" + END


def libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"=> (/\S+)", text)
    # leave out the C library, because the host has its own
    return [p for p in found if not re.search(r"/(libc|libm|ld-linux\S*)\.so", p)]


def hypertrace():
    """{name in the job: path} of the command hypertrace and of its libraries"""
    return {"hypertrace": stock.TOOL,
            **{"lib/" + os.path.basename(p): p for p in libraries(stock.TOOL)}}


def job(tmp, script, files):
    """Make the job: a tar archive of the files {name: path}, and of the script, which the host
    runs; return the archive's path"""
    path = tmp / "job.tar"
    with tarfile.open(path, "w", dereference=True) as tar:
        for name, file in files.items():
            tar.add(file, name)
        script = script.encode()
        info = tarfile.TarInfo("run")
        info.size = len(script)
        tar.addfile(info, io.BytesIO(script))
    return path


def run(tmp, machine, script, files, options, recorder=()):
    """Boot the host that has its disk in the folder `machine`. The host runs the script, which
    must write a tar archive to the host's second disk (see END). Return the folder with the
    archive's files.

    recorder: words before QEMU's command line, such as those of a command that
        records the host
    """
    if not (machine / "disk.img").exists():
        pytest.skip(f"scripts/vm/stock-guests.sh {machine.name} makes the host")
    out = tmp / "out.tar"
    with open(out, "wb") as f:
        f.truncate(512 << 20)
    disks = []
    for n, (path, more) in enumerate([
            (machine / "disk.img", "snapshot=on"), (out, "cache=unsafe"),
            (job(tmp, script, files), "readonly=on")]):
        disks += ["-drive", f"file={path},format=raw,if=none,id=d{n},{more}",
                  "-device", f"virtio-blk-pci,drive=d{n}"]
    subprocess.run(
        [*recorder, QEMU, "-cpu", "qemu64,+svm,+npt,-cx16", "-m", "2048", "-nodefaults",
         "-display", "none", "-no-reboot", "-serial", f"file:{tmp}/console", *options, *disks],
        stdin=subprocess.DEVNULL, check=True, timeout=stock.DEADLINE, env=stock.ENV)
    result = tmp / "result"
    with tarfile.open(out) as tar:
        tar.extractall(result)
    assert (result / "log").exists(), ("the host ended early", stock.console(tmp)[-2000:])
    log = (result / "log").read_text()
    assert "status 0" in log, (log, stock.console(tmp)[-2000:])
    return result


def kvm(tmp, script, files, options=MULTI, recorder=()):
    return run(tmp, KVM, script, {**hypertrace(), **files}, [
        *options, "-kernel", KVM / "vmlinuz", "-initrd", KVM / "initrd", "-append",
        "console=ttyS0 panic=-1 no_timer_check mitigations=off quiet"], recorder)


def kvm_linux(tmp, init, script, recorder=()):
    """Run `script` in a KVM host. Its guests have the host's own kernel, and run the script
    `init` as their init."""
    return kvm(tmp, script, {"vmlinuz": KVM / "vmlinuz",
                             "initrd": stock.initrd(tmp, init=init)}, recorder=recorder)


# First lines of a Xen host's script: start what the command xl needs
XEN_SCRIPT = """mkdir -p /run/out /run/xen /run/lock /run/log/console /dev/pts
mount -t devpts none /dev/pts
mount --bind /run/log /var/log/xen
mount -t xenfs xenfs /proc/xen
export PATH=$(printf "%s:" /usr/lib/xen-*/bin)$PATH
ip link set lo up
for module in xen-evtchn xen-gntdev xen-gntalloc xen-privcmd; do
    modprobe $module
done
oxenstored --pid-file /run/xenstored.pid &
until xenstore-exists /; do
    sleep 0.2
done
xen-init-dom0
xenconsoled --log=guest
xl info >/run/out/info
"""


def xen(tmp, script, files, options=("-accel", "tcg,thread=single")):
    append = ("console=com1 com1=115200,8n1 dom0_mem=1024M,max:1024M noreboot=true "
              "spec-ctrl=no tbuf_size=1024 guest_loglvl=all/all")
    return run(tmp, XEN, script, files, [
        *options, "-kernel", XEN / "xen", "-append", append, "-initrd",
        f"{XEN}/vmlinuz console=hvc0 panic=-1 mitigations=off quiet,{XEN}/initrd"])
