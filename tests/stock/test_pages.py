# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the commands of the README, the tutorial and the how-to pages.

as_here() replaces the words of a command that depend on the reader's machine.
Only these tests prove that the pages' commands work with the recordings that other
commands of the pages made.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pages
import pytest
import stock

# {pattern of a page's command that this file does not run: the test that runs it, or
# the reason}
ELSEWHERE = {
    r"(git clone .*)?\./run |eval .*env\.sh":
        "the tests themselves are commands of ./run",
    r"sudo apt install": "scripts/check/package-upgrade.sh",
    r"sudo ln -s": "tests/stock/test_callers.py",
    r"ninja -C|cc hello\.c": "tests/unit/tool/test_install.py",
    r"make HT_EXCLUDE": "tests/kernels",
    r"insmod": "tests/e2e/test_linux_kernel.py",
    r"\$HT_QEMU .*|lttng|babeltrace2 (/tmp|~)": "tests/e2e/test_backends.py",
    r"babeltrace2? .*(/tmp/|lttng-live)|hypertrace record --net|"
    r"hypertrace export .* /tmp/device-trace":
        "tests/e2e/test_relay.py and test_timeline.py",
    r"hypertrace record .*debian\.img": "tests/stock/test_disk.py",
    r"hypertrace recover": "tests/stock/test_killed.py",
    r"(sudo )?hypertrace attach": "tests/e2e/test_memory.py",
    r"hypertrace watch|hypertrace last ~/|editor|systemctl":
        "tests/e2e/test_watch_guest.py",
    r"xentrace|xl |(sudo )?hypertrace (vcpus|interference)":
        "tests/unit/tool/test_vcpus.py and test_interference.py",
    r"sudo hypertrace record --host": "tests/stock/test_kvm_host.py",
    r"(sudo )?hypertrace (top|latency|flame|boot|last) --host":
        "tests/unit/tool/test_host_split.py",
    r".*examples/ci-boot|hypertrace boot .*recordings": "tests/stock/test_ci.py",
    r"hypertrace record .*--pid|hypertrace snapshot": "test_live()",
}
# {name of a recording in a page's command: name of the recording of this test that
# replaces it}
NAMES = {"slow": "rec", "calls": "rec", "client": "rec", "recording": "rec",
         "server": "acpi", "dead": "flights/1-panic",
         "flights/3-panic": "1-panic"}
# Script for init: the guest's work. The script switches on the tracer function_graph, so
# that `callgraph --function=vfs_read` has calls to show.
WORK = stock.MOUNTS + """echo "the guest is up" >/dev/kmsg
echo vfs_read >/trace/set_graph_function
echo function_graph >/trace/instances/boot_map/current_tracer
$b head -c 1000 /proc/self/maps >/dev/null
$b ls /proc >/dev/null
"""
QEMU = "qemu-system-x86_64 -accel tcg,thread=single -cpu qemu64,-cx16 -no-reboot"


def as_here(command):
    """Return a page's command as this machine can run it. In a command that starts QEMU,
    replace "..." by a kernel, an initrd and other options, and the kernel's arguments by
    those of the test kernel."""
    # drop "| grep ...": grep selects a line that this test's guest may not print
    command = re.sub(r" \| grep .*$", "", command)
    if "qemu-system-x86_64" not in command:
        return command
    if "-kernel " not in command:
        command = command.replace("...", "... -kernel vmlinuz")
    if "-initrd " not in command:
        command += " -initrd " + ("panic" if "pvpanic" in command else "initrd")
    if "-m " not in command:
        command += " -m 512"
    if "-nographic" not in command:
        command += " -nographic"
    append = re.search(r" -append (\"[^\"]*\"|\S+)", command)
    if append:
        command = command.replace(append[0], "")
    command += f" -append '{os.environ['HT_KERNEL_ARGS']}'"
    command = command.replace(" ...", "")
    return command.replace("qemu-system-x86_64", QEMU, 1)


def shell(world, command, **more):
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=world[0], env=world[1],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=stock.DEADLINE, check=False, **more)
    return done


@pytest.fixture(name="world", scope="module")
def make_world(tmp_path_factory):
    top = tmp_path_factory.mktemp("pages")
    (top / "bin").mkdir()
    (top / "bin/hypertrace").symlink_to(stock.TOOL)
    (top / "examples").symlink_to(pages.TOP / "examples")
    (top / "vmlinuz").symlink_to(os.environ["HT_KERNEL"])
    for name, end in (("initrd", "$b poweroff -f\n$b sleep 1000\n"),
                      ("panic", "echo c >/proc/sysrq-trigger\n"),
                      ("stay", "$b sleep 100000\n")):
        (top / "root").mkdir()
        shutil.move(stock.initrd(top / "root", init=WORK + end), top / name)
        shutil.rmtree(top / "root")
    (top / "initrd.img").symlink_to("initrd")
    env = {**stock.ENV, "HOME": str(top),
           "PATH": f"{top}/bin:{os.environ['PATH']}"}
    return top, env


def elsewhere(command):
    return [p for p in ELSEWHERE if re.match(p, command)]


def all_commands():
    return [(page.name, command) for page in pages.how_to()
            for command in pages.commands(page)]


def test_commands(world):
    """Run each command of the pages that does not match ELSEWHERE: first the commands that
    record, then the others in order."""
    commands = [(name, c) for name, c in all_commands() if not elsewhere(c)]
    used = {p for _, c in all_commands() for p in elsewhere(c)}
    assert used == set(ELSEWHERE)
    failed = []
    top = world[0]
    for name, command in sorted(
            commands, key=lambda c: not c[1].startswith("hypertrace record")):
        for link, target in NAMES.items():
            if not os.path.lexists(top / link) and \
                    ((top / link).parent / target).exists():
                (top / link).symlink_to(target)
        for out in re.findall(r" -o (\S+)", command):
            if (top / out).is_symlink():
                (top / out).unlink()
            elif (top / out).is_dir():
                shutil.rmtree(top / out)
        here = as_here(command)
        done = shell(world, here)
        print(f"{name}: {command}\n    {here}: {done.returncode}",
              file=sys.stderr)
        if done.returncode:
            failed.append((name, command, here, done.stderr[-1000:]))
    assert not failed
    assert len(commands) > 25
    assert "initcalls" in stock.run("boot", top / "rec")
    assert "acpi_init" in stock.run("callgraph", top / "acpi")
    assert "sysrq triggered crash" in stock.run("last", top / "flights/1-panic")


def test_live(world):
    """Run the two commands of flight-recorder.md for a virtual machine that already runs."""
    top, env = world
    flight, snapshot = [c for name, c in all_commands()
                        if name == "flight-recorder.md" and
                        ("--pid" in c or "snapshot" in c)]
    shutil.rmtree(top / "flights", ignore_errors=True)
    with (top / "console").open("w") as console:
        qemu = subprocess.Popen(
            [*QEMU.split(), "-m", "512", "-nographic", "-kernel", "vmlinuz",
             "-initrd", "stay", "-append", os.environ["HT_KERNEL_ARGS"] +
             " trace_event=sched,printk"],
            cwd=top, stdin=subprocess.DEVNULL, stdout=console)
    recorder = None
    try:
        stock.wait_until(lambda: "the guest is up" in stock.console(top),
                         lambda: stock.console(top)[-2000:])
        recorder = subprocess.Popen(
            [*shlex.split(flight.replace("4711", str(qemu.pid))),
             "--kernel", "vmlinuz", "--buffer", "main"],
            cwd=top, env=env, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        stock.wait_for(lambda: shell(world, snapshot).returncode == 0,
                       recorder)
        assert list((top / "flights").glob("1-command*"))
    finally:
        qemu.kill()
        qemu.wait()
        if recorder:
            recorder.wait(stock.DEADLINE)
