# SPDX-License-Identifier: GPL-2.0-or-later
"""Follow the main trace buffer while the guest resizes, empties and reads it.

A kernel module of these tests, marks/, writes numbered and checksummed markers on both
processors.  Meanwhile the guest changes or reads the ring, loads modules or makes probes.
Each marker is recorded once, or lies in a reported gap, and no record is torn.  In
test_counted() and test_many(), recorded and lost events together are those that the kernel
has counted.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import stock

EVENTS = int(os.environ.get("HT_STOCK_EVENTS", "100000000"))
MODULE = "kyber-iosched"    # has events, and depends on no other module
CHECK = Path(os.environ["HT_BUILD"]) / "tests/e2e/programs/marks-check"
# Number of times that the recorder must sleep before a SYNC is answered. It sleeps
# after each poll, so it has polled meanwhile.
POLLS = 10

# SYNC: the guest waits until the recorder has read all that is in the ring.
# COUNT: for each processor, the number of events that the kernel has counted since the ring
# was last emptied.  count() leaves tracing off.
# BEGIN empties the ring, and then writes a marker on each processor.  Events before that
# marker are not compared, because the kernel may empty the ring while it boots.
INIT = stock.MOUNTS + r"""
$b mkdir -p /tmp
$b ln -s /bin/busybox /bin/sh
$b stty -F /dev/ttyS0 raw -echo
exec 3>/dev/ttyS0 4</dev/ttyS0
$b insmod /ht_marks.ko
cd /trace
marks=/sys/module/ht_marks/parameters
sync() {
    echo SYNC >&3
    read answer <&4
}
count() {
    echo 0 >tracing_on
    sync
    for c in per_cpu/cpu*; do
        echo COUNT ${c#per_cpu/cpu} $($b awk '
            $1 == "entries:" || $1 == "overrun:" { n += $2 }
            $1 == "read" { n += $3 }
            END { print n }' $c/stats)
    done
}
# write N markers on each processor, in turns of at most 1000
write() {
    writers=
    for mask in 1 2; do
        $b taskset $mask $b sh -c "
            i=0
            while [ \$i -lt $1 ]; do
                n=$1
                [ \$((n - i)) -gt ${2:-1000} ] && n=\$((i + ${2:-1000}))
                echo \$((n - i)) >$marks/write
                i=\$n
            done" &
        writers="$writers $!"
    done
    wait $writers
}
# write markers while a command runs
during() {
    >/busy
    (while [ -e /busy ]; do write 500; done) &
    storm=$!
    "$@"
    $b rm /busy
    wait $storm
}
"""
BEGIN = """
echo 0 >events/enable
echo 0 >tracing_on
sync
echo >trace
echo 1 >tracing_on
write 1
sync
echo 1 >events/module/enable
echo 1 >events/task/enable
"""
END = r"""
cd /trace
echo 1 >tracing_on
write 10
count
echo WRITTEN $($b cat $marks/written)
$b poweroff -f
$b sleep 1000
"""

RESIZE = """
resize() {
    for kb in 8192 512 4 1024 64 4096 16 2048 8 256 1024 4 64; do
        echo $kb >buffer_size_kb
        write 3000
    done
}
during resize
"""
RESETS = """
for i in 1 2 3 4 5; do
    write 3000
    count
    echo >trace
    echo 1 >tracing_on
done
"""
RESETS_LIVE = """
resets() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        write 1000
        echo >trace
    done
}
during resets
"""
CAT = """
$b cat trace_pipe >/dev/null &
reader=$!
write 60000
$b kill $reader
wait $reader
"""
# trace-cmd empties the ring when it starts and when it ends.
TRACE_CMD = """
write 1000
count
/bin/trace-cmd record -q -e module -o /tmp/trace.dat /write.sh || echo FAILED
"""
MODULES = """
modules() {
    i=0
    while [ $i -lt 500 ]; do
        $b insmod /module.ko && $b rmmod kyber_iosched || echo FAILED
        i=$((i + 1))
    done
}
during modules
"""
# When a module whose events were switched on is unloaded, the kernel empties the ring.
MODULES_LIVE = """
modules() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        $b insmod /module.ko || echo FAILED
        echo 1 >events/kyber/enable
        write 500
        $b rmmod kyber_iosched || echo FAILED
    done
}
during modules
"""


def command(tmp, work, files):
    return [*stock.X86, *stock.PLAIN, "-m", "512",
            "-chardev", f"socket,id=sync,path={tmp}/sync",
            "-serial", "chardev:sync", "-kernel", os.environ["HT_KERNEL"],
            "-initrd", stock.initrd(tmp, init=INIT + BEGIN + work + END, files=files),
            "-append", "console=ttyS1 panic=-1 no_timer_check"]


@pytest.fixture(name="modules", scope="module")
def build_modules(tmp_path_factory):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    tmp = tmp_path_factory.mktemp("marks")
    for file in (Path(__file__).parent / "marks").iterdir():
        shutil.copy(file, tmp)
    subprocess.run(["make", "-C", os.environ["HT_KHEADERS"], f"M={tmp}",
                    "CONFIG_DEBUG_INFO=", "modules"], check=True,
                   stdout=subprocess.DEVNULL)
    packed, = (Path(os.environ["HT_CACHE"]) / "guest/lib/modules").rglob(
        f"{MODULE}.ko.xz")
    with (tmp / "module.ko").open("wb") as f:
        subprocess.run(["xz", "-dc", packed], check=True, stdout=f)
    return {"ht_marks.ko": tmp / "ht_marks.ko", "module.ko": tmp / "module.ko"}


def sleeps(pid):
    """Number of times that a process has slept voluntarily"""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])


def answer(listener, recorder):
    """Answer each SYNC of the guest as soon as the recorder has slept POLLS times after the
    SYNC."""
    guest, _ = listener.accept()
    with guest, guest.makefile("rw") as f:
        for line in f:
            if line != "SYNC\n":
                continue
            until = sleeps(recorder.pid) + POLLS
            stock.wait_for(lambda: sleeps(recorder.pid) >= until, recorder)
            f.write("go\n")
            f.flush()


def follow(tmp, work, files, *options):
    """Record a guest that runs the shell commands @work. Return the counts of each processor
    by marks-check, the number of events that the kernel counted, and the number of events
    that the recorder reports as lost, or 0 if it gives no number."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp}/sync")
        listener.listen()
        recorder = stock.start(tmp, command(tmp, work, files), "--buffer", "main",
                               "--event", "module", *options)
        thread = threading.Thread(target=answer, args=(listener, recorder),
                                  daemon=True)
        thread.start()
        _, err = recorder.communicate(timeout=stock.DEADLINE)
    text = stock.console(tmp)
    print(err)
    assert recorder.returncode == 0, (err, text[-2000:])
    assert "FAILED" not in text
    lost = re.search(r"about (\d+) lost in \d+ gap", err)
    assert lost or "none lost" in err or "unknown number lost" in err, err
    cpus = json.loads(subprocess.run([CHECK, tmp / "rec"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    written = list(map(int, re.search(r"WRITTEN (.*)", text)[1].split()))
    print(cpus, written)
    for cpu, number in zip(cpus, written, strict=True):
        assert cpu["torn"] == cpu["doubled"] == cpu["silent"] == 0, cpus
        assert cpu["last"] == number == cpu["marks"] + cpu["missing"], cpus
    counted = sum(int(n) for n in re.findall(r"COUNT \d+ (\d+)", text))
    return cpus, counted, int(lost[1]) if lost else 0


@pytest.mark.parametrize("work, wraps", [
    pytest.param("echo 64 >buffer_size_kb\nwrite 100000", False, id="small"),
    pytest.param("echo 4 >buffer_size_kb\nwrite 100000 50000", True, id="4KiB"),
    pytest.param(CAT, False, id="cat"),
    pytest.param(TRACE_CMD, False, id="trace-cmd"),
    pytest.param(RESIZE, False, id="resize"),
    pytest.param(RESETS, False, id="reset"),
    pytest.param(MODULES, False, id="modules"),
])
def test_counted(tmp_path, modules, work, wraps):
    """The events that the recorder has and those that it reports as lost are
    together exactly those that the kernel counted."""
    files = dict(modules)
    if "trace-cmd" in work:
        files.update(program("trace-cmd"))
        script = tmp_path / "write.sh"
        script.write_text("#!/bin/sh\nb=/bin/busybox\n"
                          "exec 3>/dev/ttyS0 4</dev/ttyS0\ncd /trace\n" + INIT.split("cd /trace")[1] +
                          "write 60000\ncount\n")
        script.chmod(0o755)
        files["write.sh"] = script
    cpus, counted, lost = follow(tmp_path, work, files)
    assert sum(cpu["events"] for cpu in cpus) + lost == counted
    assert sum(cpu["missing"] for cpu in cpus) <= lost
    assert not wraps or lost


@pytest.mark.parametrize("work", [
    pytest.param(RESETS_LIVE, id="reset"),
    pytest.param(MODULES_LIVE, id="modules"),
])
def test_emptied(tmp_path, modules, work):
    """The ring is emptied between two polls of the recorder: markers that the recorder had
    not read are missing, and each lies in a reported gap."""
    cpus, _, _ = follow(tmp_path, work, modules, "--poll-us", "500000")
    assert sum(cpu["missing"] for cpu in cpus)


def program(name):
    """{path in the guest: file} of a program and its libraries"""
    path = shutil.which(name)
    if not path:
        pytest.skip(f"{name} is not installed")
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(
        ["ldd", path], check=True, capture_output=True, text=True).stdout)
    return {f"bin/{name}": path, **{lib[1:]: lib for lib in libraries}}


KPROBES = 60
PROBES = f"""
probes() {{
    i=1
    while [ $i -le {KPROBES} ]; do
        pad=
        [ $((i % 3)) = 0 ] && pad="pad=\\\\1:u64"
        echo "p:ht/k$i do_sys_openat2 $pad n=\\\\$i:u32" >kprobe_events || echo FAILED
        echo "p:ht/same do_sys_openat2 $pad n=\\\\7:u32" >>kprobe_events || echo FAILED
        echo 1 >events/ht/enable
        $b cat /proc/version >/dev/null
        sync
        echo 0 >events/ht/enable
        echo >kprobe_events || echo FAILED
        i=$((i + 1))
    done
}}
during probes
"""


def test_probes(tmp_path, modules):
    """Probes are added and removed, and the kernel may give the event id of a removed probe
    to a new one. Each recorded event of a probe has that probe's name and values, or its name
    begins with "unsure_"."""
    follow(tmp_path, PROBES, modules)
    known = unsure = 0
    for e in stock.reported(tmp_path / "rec"):
        if m := re.fullmatch(r"k(\d+)", e["event"]):
            assert e["fields"]["n"] == int(m[1]), e
            known += 1
        elif e["event"] == "same":
            assert e["fields"]["n"] == 7, e
            known += 1
        unsure += e["event"].startswith("unsure_")
    print(known, unsure)
    assert known + unsure >= 2 * KPROBES


def test_many(tmp_path, modules):
    """The recorded and the reported lost events are together those that the kernel counted:
    at least 10^8 events, or as many as the variable HT_STOCK_EVENTS says."""
    cpus, counted, lost = follow(
        tmp_path, f"write {EVENTS // 2} 1000000", modules, "--size", "16M")
    assert counted >= EVENTS
    assert sum(cpu["events"] for cpu in cpus) + lost == counted
    for file in (tmp_path / "rec").glob("cpu*"):
        file.unlink()               # some GB
