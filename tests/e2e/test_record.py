# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `hypertrace record` with a stock kernel: nothing of hypertrace is installed in the
guest.

The tests test_killed_* examine one recording, of a guest that was killed; most other tests
start a guest of their own.
"""

import configparser
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

import call_graph
import markers
from built import built

BUILD = Path(os.environ.get("HT_BUILD", ""))
HYPERTRACE = BUILD / "tools/hypertrace/hypertrace"
QEMU = "qemu-system-x86_64"
DEADLINE = 300              # limit of each wait, in s; on an idle machine a guest takes 5 s
# The RAM's size, 513 MiB, is no multiple of 2 MiB. The search for a ring proceeds in steps
# of 2 MiB, and must also find the ring in such a RAM.
MEMORY = ["-m", "513", "-smp", "2"]
# Emulate one processor at a time, without cmpxchg16b: Debian 12's QEMU sometimes miscompiles
# cmpxchg16b, and code that a kernel patches while another processor runs it.
EMULATION = ["-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"]

pytestmark = pytest.mark.xdist_group("record")


def lacking():
    if not HYPERTRACE.exists():
        return "the command hypertrace was not built"
    if not shutil.which(QEMU):
        return f"{QEMU} is not installed"
    if not shutil.which("busybox"):
        return "busybox-static is not installed"
    return None


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    if lacking():
        pytest.skip(lacking())
    # Let all tests share one cache of event formats, in the build tree.
    return {**os.environ, "XDG_CACHE_HOME": os.environ["HT_TREE"]}


def initrd(path, job, *files):
    """Build the guest's initramfs with a job and with files in the
    folder /ht; return its path"""
    overlay = path.parent / "overlay"
    (overlay / "ht").mkdir(parents=True)
    (overlay / "ht/job.sh").write_text(job)
    for file in files:
        shutil.copy(file, overlay / "ht")
    archive = subprocess.run(
        "find . | cpio -o -H newc --quiet", shell=True, cwd=overlay,
        check=True, stdout=subprocess.PIPE).stdout
    base = Path(os.environ["HT_INITRD"]).read_bytes()
    path.write_bytes(base + bytes(-len(base) % 4) + archive)
    return path


def guest(tmp, image, memory=MEMORY):
    return [QEMU, *EMULATION, "-nodefaults", "-display", "none", "-no-reboot",
            *memory,
            "-kernel", os.environ["HT_KERNEL"], "-initrd", str(image),
            "-serial", f"file:{tmp}/console",
            "-append", os.environ["HT_KERNEL_ARGS"] + " oops=panic"]


def console(tmp):
    try:
        return (tmp / "console").read_text(errors="replace")
    except FileNotFoundError:
        return ""


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


def wait_for(tmp, mark, process):
    """Wait until the guest's console matches @mark; fail after DEADLINE, or if @process
    ends before."""
    deadline = time.monotonic() + DEADLINE
    while not re.search(mark, console(tmp)):
        assert process.poll() is None, console(tmp)[-2000:]
        assert time.monotonic() < deadline, console(tmp)[-2000:]
        time.sleep(0.05)


def record_until(tmp, env, mark, command, *options):
    """Start `hypertrace record`, and wait until the guest's console
    matches @mark; return the recorder."""
    recorder = subprocess.Popen(
        [HYPERTRACE, "record", *options, "-o", tmp / "rec", "--", *command],
        env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(tmp, mark, recorder)
    return recorder


def info(tmp):
    keys = configparser.ConfigParser(interpolation=None)
    keys.read(tmp / "rec/info")
    return keys


def report(tmp, env, *options):
    out = subprocess.run([HYPERTRACE, "report", *options, "--json",
                          tmp / "rec"], env=env, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


# Before the guest is killed it stops recording, and prints the final counts of its
# ring.
KILLED_JOB = """
cd /sys/kernel/tracing/instances/boot_map
for i in 1 2 3 4 5 6 7 8 9; do
    cat /proc/self/maps >/dev/null
    echo "mark $i" >trace_marker
done
echo 0 >tracing_on
for c in 0 1; do
    echo "COUNT$c $(sed -n 's/^entries: //p' per_cpu/cpu$c/stats)" \
        "$(sed -n 's/^overrun: //p' per_cpu/cpu$c/stats)" >/dev/console
done
# Use a port without a console, so that no kernel message separates these lines.
dmesg >/dev/ttyS1
echo "log end" >/dev/kmsg
echo READY >/dev/console
sleep 1000
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory, env):
    tmp = tmp_path_factory.mktemp("killed")
    command = guest(tmp, initrd(tmp / "initrd", KILLED_JOB))
    recorder = record_until(tmp, env, "READY",
                            [*command, "-serial", f"file:{tmp}/dmesg"])
    qemu, = children(recorder.pid)
    os.kill(qemu, signal.SIGKILL)
    _, err = recorder.communicate(timeout=DEADLINE)
    return tmp, recorder.returncode, err


def test_texts(killed):
    """The text of each format of a stock kernel equals libtraceevent's for random records,
    except for the formats that print-oracle-test.c lists or libtraceevent does not
    understand."""
    oracle = BUILD / "tests/unit/tool/print-oracle-test"
    if not oracle.exists():
        pytest.skip("libtraceevent was not found when this was built")
    p = subprocess.run(
        [oracle, "-p", "/print-oracle/kernel"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "HT_FORMATS": str(killed[0] / "rec/formats")})
    assert p.returncode == 0, p.stdout
    compared, = re.findall(r"^# (\d+) formats, ", p.stdout, re.M)
    assert int(compared) > 1000


def assert_log_is_dmesg(tmp, env):
    """`hypertrace log` begins with the lines of the guest's dmesg, and has the
    line that the guest logged after its dmesg."""
    markers.assert_log_is_dmesg(
        (tmp / "dmesg").read_text(errors="replace"), subprocess.run(
            [HYPERTRACE, "log", tmp / "rec"], env=env, check=True,
            stdout=subprocess.PIPE, text=True).stdout)
    records = [json.loads(line) for line in subprocess.run(
        [HYPERTRACE, "log", "--json", tmp / "rec"], env=env, check=True,
        stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    assert {r["boot"] for r in records} == {1}
    # a line that a program wrote has the facility 1 (user), if the recording
    # has facilities
    end, = (r for r in records if r["text"] == "log end")
    assert end.get("facility", 1) == 1


def test_killed_log(killed, env):
    """The recorded log is the guest's dmesg, line by line, although QEMU was killed.

    The guest has a boot-mapped ring in a shared NUMA node of its own, which does not contain the
    kernel.
    """
    tmp, _, _ = killed
    assert (tmp / "rec/log").stat().st_size > 10000
    assert_log_is_dmesg(tmp, env)


def test_killed_status(killed):
    tmp, status, err = killed
    assert status == 128 + signal.SIGKILL
    assert re.search(r"\d+ events, .* none lost", err)
    assert info(tmp)["recording"]["end"].startswith(
        "QEMU was killed by signal 9")


def counted(tmp):
    """Return the number of entries in each processor's ring, as the guest printed
    it."""
    counts = re.findall(r"COUNT(\d) (\d+) (\d+)", console(tmp))
    assert len(counts) == 2
    # The ring has not wrapped (overrun is 0), so its number of entries is that of all
    # events.
    assert all(overrun == "0" for _, _, overrun in counts)
    return [int(entries) for _, entries, _ in counts]


def recorded(tmp, env):
    events = report(tmp, env)
    return [sum(e["cpu"] == cpu for e in events) for cpu in range(2)]


def assert_all_events(tmp, env):
    assert recorded(tmp, env) == counted(tmp)


def test_killed_has_all_events(killed, env):
    assert_all_events(killed[0], env)


def test_killed_is_a_whole_boot(killed, env):
    tmp, _, _ = killed
    events = report(tmp, env)
    names = {e["event"] for e in events}
    assert {"initcall_start", "initcall_finish", "sched_switch", "console",
            "task_newtask", "sched_process_exec"} <= names
    levels = [e["fields"]["level"] for e in events
              if e["event"] == "initcall_level"]
    assert levels[0] == "console" and levels[-1] == "late"
    text = subprocess.run([HYPERTRACE, "log", tmp / "rec"], env=env,
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "Run /ht/init" in text or "Run /init as init process" in text


def test_killed_symbols(killed, env):
    """hypertrace corrects symbols for KASLR: `boot` shows an initcall by
    its name in the kernel."""
    tmp, _, _ = killed
    assert info(tmp)["kernel"]["text-0"]
    text = subprocess.run([HYPERTRACE, "boot", tmp / "rec"], env=env,
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    assert re.search(r"^ +acpi_init ", text, re.M), text


def test_killed_info(killed):
    keys = info(killed[0])
    assert keys["guest"]["machine"] == "x86_64"
    assert keys["guest"]["cpus"] == "2"
    assert keys["guest"]["page-size"] == "4096"
    assert keys["guest"]["release"].startswith("6.")
    assert "shared NUMA node" in keys["recording"]["source"]


def dump_core(qmp, path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(str(qmp))
        f = s.makefile("rw")
        for command in (
                {"execute": "qmp_capabilities"},
                {"execute": "dump-guest-memory",
                 "arguments": {"paging": False, "protocol": f"file:{path}"}}):
            f.write(json.dumps(command) + "\n")
            f.flush()
            while not {"return", "error"} & set(answer := json.loads(
                    f.readline())):
                pass
            assert "return" in answer, answer


MARKS = 2000

# A process on each processor writes numbered markers to the main trace buffer.
MARKS_JOB = markers.shell("/sys/kernel/tracing", 2, MARKS) + """
wait
dmesg >/dev/ttyS1
echo "log end" >/dev/kmsg
echo READY >/dev/console
sleep 1000
"""


@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_main_buffer_live(tmp_path, env, kernel):
    """A stock kernel's main buffer, followed from boot until QEMU is killed.

    Two processes of the guest write markers as fast as they can. Each marker is
    recorded once, or lies within a reported gap; the last markers are recorded; and
    the log begins with the guest's dmesg.  6.1 has other layouts of its symbols, its
    buffers and its log than 6.12.
    """
    command = guest(tmp_path, initrd(tmp_path / "initrd", MARKS_JOB))
    if kernel == "6.1":
        command[command.index("-kernel") + 1] = os.environ["HT_KERNEL_OLD"]
    recorder = record_until(
        tmp_path, env, "READY",
        [*command, "-serial", f"file:{tmp_path}/dmesg"], "--buffer", "main")
    qemu, = children(recorder.pid)
    os.kill(qemu, signal.SIGKILL)
    _, err = recorder.communicate(timeout=DEADLINE)
    assert re.search(r"\d+ events, ", err), err
    markers.assert_followed(report(tmp_path, env), 2, MARKS, err)
    assert_log_is_dmesg(tmp_path, env)
    assert f"Linux version {kernel}." in (tmp_path / "dmesg").read_text(
        errors="replace")


GRAPH_JOB = call_graph.shell("/sys/kernel/tracing", "/dev/ttyS1") + """
echo READY >/dev/console
sleep 1000
"""


def test_graph(tmp_path, env):
    """The recorded call graph of an initcall has the calls of the guest's file `trace`, each
    once, with the same function, depth and duration."""
    recorder = record_until(
        tmp_path, env, "READY",
        [*guest(tmp_path, initrd(tmp_path / "initrd", GRAPH_JOB)),
         "-serial", f"file:{tmp_path}/trace"],
        "--event", "initcall", "--graph", "acpi_init,depth=3")
    qemu, = children(recorder.pid)
    os.kill(qemu, signal.SIGKILL)
    _, err = recorder.communicate(timeout=DEADLINE)
    assert re.search(r"\d+ events, ", err), err
    call_graph.assert_same((tmp_path / "trace").read_text(), subprocess.run(
        [HYPERTRACE, "callgraph", "--json", tmp_path / "rec"], env=env,
        check=True, stdout=subprocess.PIPE, text=True).stdout, "acpi_init")
    boot = json.loads(subprocess.run(
        [HYPERTRACE, "boot", "--json", tmp_path / "rec"], env=env, check=True,
        stdout=subprocess.PIPE, text=True).stdout)
    item, = (c for c in boot["initcalls"] if c["name"] == "acpi_init")
    assert item["functions"] and sum(
        f["own_ns"] for f in item["functions"]) <= item["duration_ns"]


FUNCTIONS_JOB = """
cd /sys/kernel/tracing
echo 0 >tracing_on
grep ' <-' trace >/dev/ttyS1
echo READY >/dev/console
sleep 1000
"""


def test_functions(tmp_path, env):
    """With --functions, the recorded calls of a boot are those of the guest's file `trace`:
    the function, its caller, the processor, and the time rounded to us."""
    recorder = record_until(
        tmp_path, env, "READY",
        [*guest(tmp_path, initrd(tmp_path / "initrd", FUNCTIONS_JOB)),
         "-serial", f"file:{tmp_path}/trace"],
        "--event", "initcall", "--functions", "acpi_init,acpi_bus_*")
    qemu, = children(recorder.pid)
    os.kill(qemu, signal.SIGKILL)
    _, err = recorder.communicate(timeout=DEADLINE)
    assert re.search(r"\d+ events, ", err), err
    theirs = re.findall(r"^.*-\d+ +\[0*(\d+)\] .* ([\d.]+): (\S+) <-(\S+)$",
                        (tmp_path / "trace").read_text(), re.M)
    ours = []
    for e in report(tmp_path, env, "--event", "ftrace:function"):
        func, parent = re.fullmatch(r" *(\S+) <-- (\S+) *", e["text"]).groups()
        us = (e["ns"] + 500) // 1000
        ours.append((str(e["cpu"]), f"{us // 1000000}.{us % 1000000:06}", func,
                     parent))
    assert len(theirs) > 20 and "acpi_init" in {c[2] for c in theirs}
    assert ours == theirs


def test_functions_refused(env, tmp_path):
    """A filter is refused if one of its names matches no function that the kernel can
    trace. A kernel that got a filter without any such function would trace all
    functions."""
    def record(*options, command=(QEMU, "-kernel", os.environ["HT_KERNEL"])):
        return run(env, "--print", *options, "--", *command)

    for option in "--graph", "--functions":
        p = record(option, "acpi_init,acpi_bus_i*")
        assert p.returncode == 0, p.stderr
        word = {"--graph": "ftrace_graph_filter", "--functions":
                "ftrace_filter"}[option]
        assert f"{word}=acpi_init,acpi_bus_i*" in p.stdout
        for name, why in (("no_such_function", "no such function"),
                          ("do_initcalls", "no such function"),
                          ("linux_banner", "no such function"),
                          ("rcu_dynticks_no_*,acpi_init", "no such function"),
                          ("acpi_init,asm_exc_page_fault", "cannot trace")):
            p = record(option, name)
            assert p.returncode == 1 and why in p.stderr, p.stderr
        p = record(option, "acpi_init", command=[QEMU, "disk.img"])
        assert p.returncode == 1 and "--kernel" in p.stderr
        for more in (["--pid", "1"], ["--buffer", "boot"]):
            p = run(env, option, "acpi_init", *more)
            assert p.returncode == 2 and option in p.stderr


def record_running(tmp, env, qemu, *which):
    """Record a running QEMU until the recorder has read the guest's log, then end the
    recorder by SIGINT. Return the recorder's messages."""
    recorder = subprocess.Popen(
        [HYPERTRACE, "record", "-o", tmp / "rec", *which], env=env,
        stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + DEADLINE
    while not (tmp / "rec/log").exists():
        if time.monotonic() > deadline:
            recorder.kill()
        assert recorder.poll() is None, recorder.communicate()[1]
        time.sleep(0.05)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate(timeout=DEADLINE)
    assert recorder.returncode == 0, err
    assert qemu.poll() is None
    return err


def test_pid(tmp_path, env):
    """Record a QEMU that already runs, found by its name, whose memory is a shared
    file, as with vhost-user; Ctrl-C ends the recording, not QEMU."""
    name = f"test-pid-{os.getpid()}"
    memory = ["-name", name, "-m", "256", "-smp", "2", "-object",
              "memory-backend-file,id=m,size=256M,share=on,mem-path="
              f"{tmp_path}/ram", "-machine", "memory-backend=m",
              "-qmp", f"unix:{tmp_path}/qmp,server=on,wait=off"]
    command = guest(tmp_path, initrd(tmp_path / "initrd", KILLED_JOB), memory)
    command[-1] += (" reserve_mem=16M:2M:ht trace_instance=boot_map@ht,"
                    "sched,initcall,task,printk")
    command += ["-serial", f"file:{tmp_path}/dmesg"]
    qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_for(tmp_path, "READY", qemu)
        record_running(tmp_path, env, qemu, "--domain", name)
        dump_core(tmp_path / "qmp", tmp_path / "core")
    finally:
        qemu.kill()
        qemu.wait()
    assert info(tmp_path)["recording"]["end"] == "the recorder was stopped"
    assert_all_events(tmp_path, env)
    assert_log_is_dmesg(tmp_path, env)
    events = report(tmp_path, env)
    # After QEMU has ended, recover finds the events that the recorder wrote, in
    # a dump of the guest's memory and in the file of its RAM, with and without
    # the kernel's image.
    kernel = ["--kernel", os.environ["HT_KERNEL"]]
    for name, options in (("core", kernel), ("core", []), ("ram", kernel),
                          ("ram", [])):
        shutil.rmtree(tmp_path / "rec")
        page = subprocess.run(
            [HYPERTRACE, "recover", "-o", tmp_path / "rec", *options,
             tmp_path / name], env=env, check=True,
            stdout=subprocess.PIPE, text=True, timeout=DEADLINE).stdout
        assert f"after {len(events)} events" in page, page
        # Do not expect a certain last message: a guest on a busy host may print one about clocks.
        last = [e for e in events if e["event"] == "console"][-1]
        assert last["fields"]["msg"].strip() in page, page
        assert report(tmp_path, env) == events, (name, options)
        assert_log_is_dmesg(tmp_path, env)
    (tmp_path / "core").unlink()
    (tmp_path / "ram").unlink()


UNKNOWN_JOB = """
cd /sys/kernel/tracing
echo "mark 1" >trace_marker
dmesg >/dev/ttyS1
echo "log end" >/dev/kmsg
echo READY >/dev/console
sleep 1000
"""


def test_pid_unknown_kernel(tmp_path, env):
    """Record a running QEMU after the file of the guest's kernel was deleted.  The guest
    has no boot-mapped ring, so its main trace buffer is recorded.

    The kernel's image in the guest's memory is enough for the names of events, the
    symbols and the log. `recover` finds the main trace buffer in a dump.
    """
    image = initrd(tmp_path / "initrd", UNKNOWN_JOB)
    command = guest(tmp_path, image, ["-m", "513", "-smp", "2"])
    kernel = tmp_path / "vmlinuz"
    shutil.copy(os.environ["HT_KERNEL"], kernel)
    command[command.index("-kernel") + 1] = str(kernel)
    # trace_clock=local: with an unstable TSC, the kernel would change the trace clock
    # during the boot, which empties the buffer.
    command[-1] += (" trace_event=sched,initcall,printk trace_buf_size=4096K"
                    " trace_clock=local")
    command += ["-serial", f"file:{tmp_path}/dmesg",
                "-qmp", f"unix:{tmp_path}/qmp,server=on,wait=off"]
    qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_for(tmp_path, "READY", qemu)
        kernel.unlink()
        err = record_running(tmp_path, env, qemu, "--pid", str(qemu.pid))
        dump_core(tmp_path / "qmp", tmp_path / "core")
    finally:
        qemu.kill()
        qemu.wait()
    assert "the guest's kernel is Linux 6." in err
    assert_log_is_dmesg(tmp_path, env)
    events = report(tmp_path, env)
    assert {"sched_switch", "initcall_start"} <= {e["event"] for e in events}
    assert [e for e in events if e["fields"].get("buf", "").strip("\n") ==
            "mark 1"]
    assert [e for e in events if e["event"] == "initcall_start" and
            e["text"].startswith("func=acpi_init+0x0")]
    # From a dump of the guest's memory, `recover` finds the recorded events, and then
    # those that the guest emitted later.
    shutil.rmtree(tmp_path / "rec")
    subprocess.run([HYPERTRACE, "recover", "-q", "-o", tmp_path / "rec",
                    tmp_path / "core"], env=env, check=True, timeout=DEADLINE)
    (tmp_path / "core").unlink()
    recovered = report(tmp_path, env)
    for cpu in range(2):
        before, after = ([(e["ns"], e["event"], e["text"]) for e in part
                          if e["cpu"] == cpu] for part in (events, recovered))
        assert before and after[:len(before)] == before


def run(env, *args, **kwargs):
    return subprocess.run([HYPERTRACE, "record", *args], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE, **kwargs)


@pytest.mark.parametrize("options", (
    [], ["--buffer", "boot"], ["--buffer", "main"], ["--graph", "acpi_init"]))
def test_event_names(env, options):
    """A name that no event has is refused before the guest starts, whichever
    buffer is read."""
    p = run(env, "--event", "sched:sched_swich", *options, "--", QEMU, "-m", "1G",
            "-kernel", os.environ["HT_KERNEL"])
    assert p.returncode == 1
    assert "sched_swich" in p.stderr and "did you mean" in p.stderr, p.stderr


def test_print(env, tmp_path):
    kernel = os.environ["HT_KERNEL"]
    p = run(env, "--print", "--event", "sched", "--", QEMU, "-m", "1G",
            "-kernel", kernel, "-append", "quiet")
    assert p.returncode == 0
    command, *rest = p.stdout.splitlines()
    assert "quiet reserve_mem=16M:2M:ht trace_instance=boot_map@ht,sched,task"\
        in command
    assert rest[0] == "# memory: a shared NUMA node on top of the memory"
    # The kernel records no system calls in a ring in reserved memory, so for system
    # calls `record` chooses the main buffer.
    p = run(env, "--print", "--event", "sched", "-e", "raw_syscalls", "--", QEMU, "-m",
            "1G", "-kernel", kernel)
    assert "trace_event=sched,raw_syscalls,task" in p.stdout and not p.stderr
    p = run(env, "--print", "--event", "syscalls:sys_enter_read", "--buffer",
            "boot", "--", QEMU, "-m", "1G", "-kernel", kernel)
    assert "trace_instance=boot_map@ht,syscalls:sys_enter_read" in p.stdout
    assert "no system calls will be recorded" in p.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("args, status, message", [
    ((), 2, "give QEMU's command"),
    (("--poll-us", "0", "--", QEMU), 2, "give 1 to 1000000"),
    (("-o", "-", "--", QEMU), 2, "a recording is a directory"),
    (("--size", "3k", "--", QEMU), 2, "1M to 1G"),
    (("--pid", "x"), 2, "number of a process"),
    (("--pid", "1", "--", QEMU), 2, "give one of them"),
    (("--pid", "1", "--event", "sched"), 2, "--event and --pid"),
    (("--pid", "1", "--size", "8M"), 2, "--size and --pid"),
    (("--domain", "no-such-machine"), 1, "no virtual machine"),
    (("--event", "a b", "--", QEMU), 2, "separated by commas"),
    (("--for", "soon", "--", QEMU), 2, "10s, 500ms or 5min"),
    (("--until", "a when b", "--", QEMU), 2, "expected 'where CONDITION'"),
    (("--until", "a", "--until", "b", "--", QEMU), 2, "give it once"),
    (("--match", "a", "--", QEMU), 2, "need --flight"),
    (("--until", "ext4:*,ext4_*", "--", QEMU), 2, "cannot switch on the events 'ext4_*'"),
    (("--flight", "1M", "--until", "a", "--", QEMU), 2, "give --match EVENT"),
    (("--", QEMU, "-object", "sev-guest,id=s"), 1, "confidential"),
    (("--", QEMU, "-kernel", "/nowhere/vmlinuz"), 1, "/nowhere/vmlinuz"),
])
def test_refused(env, tmp_path, args, status, message):
    p = run(env, *args, cwd=tmp_path)
    assert p.returncode == status
    assert message in p.stderr
    assert not list(tmp_path.iterdir())


def test_no_such_program(env, tmp_path):
    p = run(env, "-o", tmp_path / "rec", "--", "/nowhere/qemu-system-x86_64")
    assert p.returncode == 1
    assert "/nowhere/qemu-system-x86_64" in p.stderr


def test_status_is_qemus(env, tmp_path):
    """If QEMU does not start, its error is printed, and no folder of a recording remains that
    would make the corrected command fail."""
    command = [QEMU, "-nodefaults", "-display", "none", "-device"]
    p = run(env, "-o", tmp_path / "rec", "--", *command, "no-such-device")
    assert p.returncode == 1
    assert "no-such-device" in p.stderr
    assert "6.12" not in p.stderr
    assert not (tmp_path / "rec").exists()


def empty_machine(*more):
    return [QEMU, "-nodefaults", "-display", "none", "-accel", "tcg", "-m",
            "256", *more]


@pytest.mark.parametrize("ignored", [False, True])
def test_status_without_a_ring(env, tmp_path, ignored):
    """If no ring was found until --for ended the recording, the status is 3; if QEMU fails, it is
    QEMU's status. Both hold also if the recorder's parent ignored SIGCHLD, so that the kernel
    would discard the status of the recorder's children."""
    def ignore():
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    p = run(env, "--for", "1s", "-o", tmp_path / "rec", "--",
            *empty_machine(), preexec_fn=ignore)
    assert p.returncode == 3, p.stderr
    assert "boot loader must give the kernel" in p.stderr
    assert "trace_instance=boot_map@ht" in p.stderr
    assert not (tmp_path / "rec").exists()
    p = run(env, "-o", tmp_path / "rec", "--", *empty_machine(
        "-device", "isa-debug-exit", "-device", "no-such"),
        preexec_fn=ignore)
    assert p.returncode == 1, p.stderr


AT = r"--until: sched:sched_process_exec at \d+\.\d{6} s on processor [01]"
LINE = r"--until: 'the guest is ready' at \d+\.\d{6} s in the kernel's log"
RUN = 'sched_process_exec where filename == "/ht/busybox"'


@pytest.mark.parametrize("until, job, poll_us, status, end", (
    (RUN, "sleep 999", 1000, 0, f"the recording ended: {AT}"),
    # The guest probably ends before the recorder's next poll, which reads the event.
    (RUN, "", 1000000, 0,
     f"the recording ended: (QEMU ended with status 0, after )?{AT}"),
    (RUN.replace("busybox", "nothing"), "", 1000, 3,
     "--until: there was no such event: QEMU ended with status 0"),
    ("log:^the guest is", "echo the guest is ready >/dev/kmsg; sleep 999", 1000, 0,
     f"the recording ended: {LINE}"),
    ("log:the guest is$", "", 1000, 3,
     "--until: there was no such line: QEMU ended with status 0"),
))
def test_until(env, tmp_path, until, job, poll_us, status, end):
    """The event or the line of the log that --until names ends the recording and QEMU; the
    recorder's last message says which event or line did. If the guest ends without it, the
    status is 3. --event need not select the event of --until."""
    image = initrd(tmp_path / "initrd", f"/ht/busybox true\n{job}\n",
                   shutil.which("busybox"))
    p = run(env, "--event", "initcall", "--poll-us", str(poll_us), "--until", until,
            "-o", tmp_path / "rec", "--", *guest(tmp_path, image))
    assert p.returncode == status, p.stderr
    last = p.stderr.splitlines()[-1]
    assert re.fullmatch(f"hypertrace record: {end}", last)
    assert ("status 0" in last) == ("status 0" in info(tmp_path)["recording"]["end"])
    if not until.startswith("log:"):
        programs = [e["fields"]["filename"] for e in report(
            tmp_path, env, "--event", "sched_process_exec")]
        assert "/ht/busybox" in programs


def test_query(env, tmp_path):
    """If the QEMU command runs no guest, such as with -version, its output is unchanged
    and nothing is recorded."""
    p = run(env, "--", QEMU, "-version", cwd=tmp_path)
    assert p.returncode == 0 and "QEMU emulator" in p.stdout
    assert not p.stderr
    assert not list(tmp_path.iterdir())


def test_daemonize(env, tmp_path):
    """The command returns when QEMU is in the background; the recorder stays
    there and ends when QEMU ends. Then its messages go to the system's log."""
    (tmp_path / "syslog").touch()
    image = initrd(tmp_path / "initrd", "echo READY >/dev/console\nsleep 999\n")
    p = run({**env, "LD_PRELOAD": built("tests/unit/tool/syslog-file.so"),
             "ASAN_OPTIONS": "verify_asan_link_order=0",
             "HT_SYSLOG": str(tmp_path / "syslog")},
            "-o", tmp_path / "rec", "--", *guest(tmp_path, image),
            "-daemonize", "-pidfile", str(tmp_path / "pid"))
    assert p.returncode == 0, p.stderr
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + DEADLINE
    while "READY" not in console(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    while not info(tmp_path).has_option("recording", "end"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "signal 9" in info(tmp_path)["recording"]["end"]
    while not re.search(r"\d+ events, .* MB in ",
                        (tmp_path / "syslog").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    text = subprocess.run([HYPERTRACE, "log", tmp_path / "rec"], env=env,
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "init process" in text


def test_script(env, tmp_path):
    """A script that starts QEMU can be recorded, even if it closes file
    descriptors."""
    script = tmp_path / "run-vm"
    script.write_text("#!/usr/bin/env python3\nimport subprocess, sys\n"
                      f"sys.exit(subprocess.call(['{QEMU}'] + sys.argv[1:]))\n")
    script.chmod(0o755)
    image = initrd(tmp_path / "initrd", "true\n")
    p = run(env, "-o", tmp_path / "rec", "--", str(script),
            *guest(tmp_path, image)[1:])
    assert p.returncode == 0, p.stderr
    assert "none lost" in p.stderr
    assert "shared NUMA node" in info(tmp_path)["recording"]["source"]


def test_no_memory_to_share(env, tmp_path):
    """If no shared memory can be created, the guest starts nevertheless, and
    the recorder reads the memory of the QEMU process."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    image = initrd(tmp_path / "initrd", "true\n")
    p = run(env, "-o", tmp_path / "rec", "--", *guest(tmp_path, image),
            preexec_fn=limit)
    assert p.returncode == 0, p.stderr
    assert "process is read instead" in p.stderr
    assert re.search(r"\d+ events, ", p.stderr)


def test_two_in_one_second(env, tmp_path):
    """Two recordings that start in the same second get different names."""
    procs = [subprocess.Popen(
        [HYPERTRACE, "record", "--for", "3s", "--", *empty_machine()],
        env=env, cwd=tmp_path, stderr=subprocess.DEVNULL) for _ in range(2)]
    deadline = time.monotonic() + DEADLINE
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    folders = len(list(tmp_path.iterdir()))
    assert [p.wait(DEADLINE) for p in procs] == [3, 3]
    assert folders == 2
    assert not list(tmp_path.iterdir())


def test_an_existing_recording_is_kept(killed, env):
    tmp, _, _ = killed
    before = (tmp / "rec/info").read_bytes()
    p = run(env, "-o", tmp / "rec", "--", QEMU, "-display", "none")
    assert p.returncode == 1
    assert (tmp / "rec/info").read_bytes() == before


def talk(command, env):
    """Type a reply to the guest on the recorder's standard input; return the recorder's status
    and all that it prints on its standard output."""
    p = subprocess.Popen(command, env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, bufsize=0)
    killer = threading.Timer(DEADLINE, p.kill)
    killer.start()
    said = b""
    asked = False
    while data := p.stdout.read(4096):
        said += data
        if b"ASK" in said and not asked:
            p.stdin.write(b"hello\n")
            asked = True
    killer.cancel()
    p.stdin.close()
    return p.wait(), said.decode(errors="replace")


def test_serial_on_stdio(env, tmp_path):
    """A guest's console on the recorder's standard input and output works until QEMU ends."""
    image = initrd(tmp_path / "initrd",
                   'echo ASK\nread line\necho "GOT $line"\n')
    command = guest(tmp_path, image)
    command[command.index("-serial") + 1] = "stdio"
    status, said = talk([HYPERTRACE, "record", "-o", tmp_path / "rec", "--",
                         *command], env)
    assert "GOT hello" in said
    assert status == 0
    assert info(tmp_path)["recording"]["end"] == "QEMU ended with status 0"
