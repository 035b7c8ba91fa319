# SPDX-License-Identifier: GPL-2.0-or-later
"""Record domains of libvirt: one has a link to hypertrace as its emulator, the other
was prepared by `hypertrace domain`.

A session daemon of libvirt, of a user without privileges, runs the domains. Their files
are in a temporary folder of each test.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import stock

CYCLES = 100                # starts and ends of the domain
NAME = f"guest{os.getpid()}"     # record --domain finds domains of all users
KEEP = 3                    # recordings kept
INIT = stock.MOUNTS + """$b find /proc/self /sys/bus >/dev/null 2>&1
echo "the guest is up" >/dev/kmsg
$b sleep 100000
"""
DOMAIN = """<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>256</memory>
  <vcpu>2</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{top}/vmlinuz</kernel>
    <initrd>{top}/initrd</initrd>
    <cmdline>{words}</cmdline>
  </os>
  <cpu mode='custom'>
    <model>qemu64</model><feature policy='disable' name='cx16'/>
  </cpu>
  <devices>
    <emulator>{emulator}</emulator>
    <serial type='file'><source path='{top}/console'/></serial>
  </devices>
</domain>
"""
CONFIG = """cgroup_controllers = []
security_driver = "none"
stdio_handler = "file"
"""


class Session:
    def __init__(self, top):
        self.top = top
        # root would get the system's daemon instead of a session daemon, so
        # use another user
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.user = {"user": user.pw_uid, "group": user.pw_gid,
                     "extra_groups": []} if user else {}
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(top), "XDG_RUNTIME_DIR": str(top / "run"),
            "LIBVIRT_DEFAULT_URI": "qemu:///session"}
        (top / "run").mkdir(mode=0o700)
        for path, text in (
                (top / ".config/libvirt/qemu.conf", CONFIG),
                (top / ".config/hypertrace/emulator.conf",
                 f"[emulator]\nkeep={KEEP}\nrecordings={top}/recordings\n")):
            path.parent.mkdir(parents=True)
            path.write_text(text)
        shutil.copy(stock.TOOL, top / "hypertrace")
        (top / "qemu-system-x86_64").symlink_to("hypertrace")
        if user:
            for path in (top, *top.rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid,
                         follow_symlinks=False)
        with (top / "libvirtd.log").open("w") as log:
            self.daemon = subprocess.Popen(
                ["libvirtd", "--timeout", "600"], env=self.env, cwd=top,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.user)

    def run(self, *args, check=True):
        done = subprocess.run(args, env=self.env, cwd=self.top, text=True,
                              capture_output=True, timeout=stock.DEADLINE,
                              check=False, **self.user)
        assert not check or done.returncode == 0, (
            done.stderr, (self.top / "libvirtd.log").read_text()[-2000:])
        return done.stdout

    def virsh(self, *args, **more):
        return self.run("virsh", "-q", *args, **more)

    def domain(self, *args, **more):
        return self.run("./hypertrace", "domain", *args, NAME, **more)

    def define(self, emulator=shutil.which("qemu-system-x86_64")):
        (self.top / "domain.xml").write_text(DOMAIN.format(
            top=self.top, name=NAME, words=os.environ["HT_KERNEL_ARGS"],
            emulator=emulator))
        stock.wait_until((self.top / "run/libvirt/libvirt-sock").exists,
                         (self.top / "libvirtd.log").read_text)
        self.virsh("define", "domain.xml")

    def processes(self):
        """Command lines of the processes that name a file in the test's folder. libvirt's
        daemon is not one of these processes."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode()
            except (OSError, UnicodeDecodeError):
                continue
            if f"{self.top}/" in line:
                found.append(line)
        return found

    def descriptors(self):
        return len(list(Path(f"/proc/{self.daemon.pid}/fd").iterdir()))

    def files(self):
        return {p for p in self.top.rglob("*")
                if self.top / "recordings" not in p.parents}

    def close(self):
        self.virsh("destroy", NAME, check=False)
        self.daemon.terminate()
        self.daemon.wait()


@pytest.fixture(name="session")
def start_session():
    if not shutil.which("libvirtd") or not shutil.which("virsh"):
        pytest.skip("libvirtd and virsh are not installed")
    # a user without privileges cannot enter pytest's folders
    top = Path(tempfile.mkdtemp(prefix="ht-libvirt-"))
    top.chmod(0o755)
    stock.initrd(top, init=INIT)
    shutil.copy(os.environ["HT_KERNEL"], top / "vmlinuz")
    session = Session(top)
    try:
        yield session
    finally:
        session.close()
        shutil.rmtree(top)


def recordings(session):
    return sorted((session.top / "recordings").glob(f"{NAME}-*"))


def start_domain(session, console="the guest is up"):
    (session.top / "console").unlink(missing_ok=True)
    session.virsh("start", NAME)
    stock.wait_until(lambda: console in stock.console(session.top),
                     lambda: stock.console(session.top)[-2000:])
    assert session.virsh("domstate", NAME).strip() == "running"


def run_domain(session, *console):
    start_domain(session, *console)
    session.virsh("destroy", NAME)
    stock.wait_until(lambda: not session.processes(), session.processes)


def test_domain(session):
    """libvirt probes, starts and ends an emulator that is a link to hypertrace; the
    recording has events and the log of the boot.  A hundred starts and ends of the domain
    leave no process, no descriptor in libvirt's daemon, and no file except the newest
    recordings."""
    session.define(session.top / "qemu-system-x86_64")
    run_domain(session)
    (rec,) = recordings(session)
    names = {e["event"] for e in stock.reported(rec)}
    assert {"initcall_start", "sched_switch", "console"} <= names
    assert "the guest is up" in stock.run("log", rec)
    descriptors, files = session.descriptors(), session.files()
    for _ in range(CYCLES):
        run_domain(session, "Linux version")
    stock.wait_until(lambda: session.descriptors() <= descriptors,
                     lambda: os.listdir(f"/proc/{session.daemon.pid}/fd"))
    assert session.files() == files
    assert len(recordings(session)) == KEEP
    assert {p.name for p in (session.top / "recordings").iterdir()
            if not p.name.startswith(".")} == {
                p.name for p in recordings(session)}
    session.virsh("undefine", NAME)
    assert not session.virsh("list", "--all", "--name").strip()


def test_prepared(session):
    """`hypertrace domain` prepares a domain that has QEMU as its emulator. Then
    `hypertrace record --domain` records the domain. Afterwards `hypertrace domain --remove`
    restores its definition."""
    session.define()
    before = session.virsh("dumpxml", NAME)
    shown = session.domain("--programs=8M")
    assert "trace_instance=boot_map@" in shown and "<shmem " in shown
    assert session.virsh("dumpxml", NAME) == before
    session.domain("--apply")
    assert "changed before" in subprocess.run(
        ["./hypertrace", "domain", "--apply", NAME], cwd=session.top,
        env=session.env, text=True, stderr=subprocess.PIPE, check=False,
        **session.user).stderr
    start_domain(session)
    recorder = subprocess.Popen(
        [stock.TOOL, "record", "-q", "-o", session.top / "rec",
         "--domain", NAME, "--kernel", session.top / "vmlinuz"], env=stock.ENV,
        stderr=subprocess.PIPE, text=True)
    stock.wait_for(lambda: sum(p.stat().st_size for p in
                               (session.top / "rec").glob("cpu*")) > 100000,
                   recorder)
    session.virsh("destroy", NAME)
    assert recorder.wait(stock.DEADLINE) == 0
    assert {"initcall_start", "sched_switch"} <= {
        e["event"] for e in stock.reported(session.top / "rec")}
    session.domain("--remove")
    assert session.virsh("dumpxml", NAME) == before
    assert "not changed" in session.run(
        "sh", "-c", f"./hypertrace domain --remove {NAME} 2>&1 || :")
