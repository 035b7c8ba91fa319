# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared code of the tests of the driver in a Linux guest."""

import json
import lzma
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

# Shell functions:
# - refused COMMAND: end the script with status 1 if COMMAND succeeds. "! COMMAND" would not end
#   the script, because "set -e" ignores its result.
# - hold ARGUMENTS: start ht-devtest in the background, and wait until it prints that it holds its
#   stream; end the script with status 1 if ht-devtest ends before.
# - killed: send SIGKILL to the last background program, and wait for its end.
PRELUDE = """
set -e
refused() {
    if "$@"; then echo "should have failed: $*"; exit 1; fi
}
hold() {
    rm -f /tmp/held
    ht-devtest "$@" >/tmp/held &
    while ! grep -q holding /tmp/held; do
        if ! grep -q "^State:.[^Z]" /proc/$!/status 2>/dev/null; then
            echo "ended early: $*: $(cat /tmp/held)"
            exit 1
        fi
        usleep 10000
    done
}
killed() {
    kill -9 $!
    wait $! || :
}
"""

# Shell script for a guest whose kernel has the trace instance boot_map: define marks() and work(),
# then evaluate each line that the test sends, and print {"done": 1} after it. A test may put more
# shell functions before this script.
RING_LOOP = r"""
T=/sys/kernel/tracing/instances/boot_map
marks() {
    i=$1
    while [ $i -lt $2 ]; do i=$((i + 1)); echo "HT $i" >$T/trace_marker; done
}
work() {
    for w in 1 2; do
        ( i=0; while [ $i -lt $1 ]; do i=$((i + 1)); /bin/true; done ) &
        pids="$pids $!"
    done
    wait $pids
    pids=
}
echo '{"up": 1}' >&3
while read -r line <&3; do
    eval "$line"
    echo '{"done": 1}' >&3
done
"""


# Words to put before a command in the guest, if bench.linux.with_libraries() has packed the
# command's program and libraries: the dynamic linker and its options
LD = "/ht/sys/lib/ld-linux-x86-64.so.2 --library-path /ht/sys/lib"
needs_glibc = pytest.mark.skipif(
    not Path("/lib64/ld-linux-x86-64.so.2").exists(),
    reason="needs the x86-64 glibc of the host")


# load: run hackbench, tar and find once. $1: options of hackbench, $2: file or folder in /ht that
# tar packs, $3: folder for find
LOAD = f"""
LD='{LD}'
load() {{
    $LD /ht/sys/hackbench -s 100 -g 1 $1 >/dev/null
    tar -c -f - -C /ht $2 | cat >/dev/null
    find $3 -xdev >/dev/null
}}
"""


def shared_library():
    """{path below /ht in the guest: file on the host} of libhypertrace as built, for
    programs that bench.linux.with_libraries() packs"""
    return {"sys/lib/libhypertrace.so.0":
            Path(os.environ["HT_BUILD"]) / "guest-lib/libhypertrace.so.0"}


HYPERTRACE = Path(os.environ.get("HT_BUILD", "")) / \
    "tools/hypertrace/hypertrace"


class Control:
    """Runs `hypertrace` commands on the QMP socket of a QEMU. QEMU's command line must have the
    list `args`."""

    def __init__(self, directory):
        self.socket = directory / "qmp"
        self.args = ["-qmp", f"unix:{self.socket},server=on,wait=off"]

    def __call__(self, command, *words, status=0):
        done = subprocess.run([HYPERTRACE, command, self.socket, *words],
                              capture_output=True, text=True)
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    def json(self, command, *words):
        return [json.loads(line)
                for line in self(command, "--json", *words).splitlines()]


def kernel_module(name, folder, tmp_path):
    """Unpack the module file `name` (such as x.ko) of the guest's kernel, which is in `folder`
    below the kernel's modules, into tmp_path; return the path of the unpacked file"""
    packed, = Path(os.environ["HT_KERNEL"]).parent.glob(
        f"lib/modules/*/kernel/{folder}/{name}.xz")
    path = tmp_path / name
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def sources_module():
    """{name: path} of hypertrace-sources.ko, the module that emits the kernel's
    events, for the parameter `files` of VM"""
    name = "hypertrace-sources.ko"
    return {name: Path(os.environ["HT_MODULE"]).parent / name}


def call_sites(text):
    """[(low 32 bits of an address, function)] from kallsyms lines: for each function its start
    and the address 4 bytes after the start, because an x86-64 function calls ftrace at its start
    or after an ENDBR64"""
    return [((int(a, 16) & 0xffffffff) + n, name) for a, name in
            re.findall(r"^([0-9a-f]{16}) [tTwW] (\S+)", text, re.M)
            for n in (0, 4)]


def much(channel, **more):
    """Properties of a device that gets many events: with channel=hypercall, the guest rings the
    doorbell after every 64th event"""
    batch = {"batch": 64} if channel == "hypercall" else {}
    return {"channel": channel, **batch, **more}


def stats(vm, device="ht0"):
    return vm.qmp.stats(device)


def wait_events(vm, count, timeout=240):
    """Wait until the device ht0 has counted at least count events since it was plugged in;
    fail after timeout seconds."""
    deadline = time.monotonic() + timeout
    while (now := stats(vm))["events"] < count:
        assert time.monotonic() < deadline, f"{now}\n{vm}\n{vm.where()}"
        time.sleep(0.02)


def assert_sound(vm):
    assert not vm.oops(), str(vm)
    assert not vm.guest_errors, str(vm)


def rows(vm):
    return [json.loads(line) for line in vm.out.text.splitlines()
            if line.startswith("{")]
