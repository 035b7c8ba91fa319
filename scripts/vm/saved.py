# SPDX-License-Identifier: GPL-2.0-or-later
"""Start a guest from the saved state of one that has booted.

Starting from a saved state saves the processor time of a boot.  It is possible for
guests that differ only in their devices, their job and the arguments of hypertrace.ko
(see suits()).  The state was saved without hypertrace devices, and before the module
was loaded: the guest then finds its devices by a scan of the PCI bus, loads the module
and runs the job.
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from pathlib import Path

# The directory of the saved states; None: guests always boot.
DIRECTORY = None

# The job of the guest whose state is saved. The state is saved while the job waits for
# the first line of its input. begin() sends three lines: the time, the arguments of
# hypertrace.ko, and the job of the guest that starts from the state.
WAIT_JOB = """
echo waiting >&3
read -r now <&3
read -r arguments <&3
read -r job <&3
date -s "@$now" >/dev/null
mv /ht/saved/*.ko /ht/
echo "$job" | base64 -d >/ht/job.sh
echo 1 >/sys/bus/pci/rescan
insmod /ht/hypertrace.ko $arguments ||
    echo "guest: hypertrace.ko could not be loaded"
exec sh /ht/job.sh
"""

# Time in seconds after which a saved state is removed if no guest has used it
UNUSED = 24 * 3600

# Options of QEMU with which a guest can still start from a saved state
HARMLESS = re.compile(r"-(object|trace|qmp|pidfile) |-device hypertrace,")


def _modules():
    """{name: path} of the kernel modules that are in each saved guest"""
    module = Path(os.environ["HT_MODULE"])
    paths = [module, module.parent / "hypertrace-sources.ko"]
    return {path.name: path for path in paths if path.exists()}


def suits(vm):
    """True if a guest can start from a saved state; all saved states have 512 MiB and
    2 vCPUs"""
    return bool(
        DIRECTORY and vm.job is not None and vm.module and not vm.fresh
        and os.environ.get("HT_MODULE") and vm.accel.startswith("tcg")
        and vm.kernel == os.environ.get("HT_VMLINUX")
        and (vm.memory, vm.cpus) == (512, 2) and not vm.kernel_args
        and vm.files.items() <= _modules().items()
        and all(HARMLESS.match(f"{option} {value}") for option, value
                in zip(vm.args[::2], vm.args[1::2])))


def state(vm):
    """Return the path of the saved state from which a guest can start. If no guest with
    the same QEMU, kernel, initrd, programs and modules has saved that state yet, save it."""
    environment = {k: v for k, v in os.environ.items()
                   if k in ("HT_QEMU_L", "HT_KERNEL_ARGS")}
    files = {str(path): os.stat(path).st_mtime_ns for path in (
        vm.qemu, vm.kernel, *_modules().values(), os.environ["HT_INITRD"],
        *Path(os.environ["HT_GUEST_BIN"]).iterdir())}
    key = json.dumps([str(vm.qemu), vm.kernel, environment, files],
                     sort_keys=True)
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    path = Path(DIRECTORY) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            os.utime(path)
        else:
            _save(vm, path)
            _remove_unused(path.parent)
    return path


def _remove_unused(directory):
    """Remove states that no guest has used for UNUSED seconds: after each change of a
    program of the guest, the old states are of no use."""
    for path in directory.iterdir():
        # Another process may remove the same state.
        with contextlib.suppress(FileNotFoundError):
            if path.suffix != ".lock" and time.time() - path.stat().st_mtime > UNUSED:
                path.unlink()


def _save(vm, path):
    files = {f"saved/{name}": file for name, file in _modules().items()}
    new = path.with_suffix(".new")
    with type(vm)(job=WAIT_JOB, files=files, module=False, packed=False,
                  accel=vm.accel, qemu=vm.qemu, fresh=True) as saved:
        saved.out.expect("^waiting", 120)
        saved.qmp.command("stop")
        saved.qmp.command("migrate", uri=f"file:{new}")
        saved.until(lambda: saved.qmp.command("query-migrate")["status"]
                    == "completed", "no state was saved", 120)
    new.rename(path)


def arguments(path):
    return ["-incoming", f"file:{path}"]


def begin(vm):
    # Wait until QEMU has loaded the state: before that, the serial port would lose its
    # input.
    vm.until(lambda: vm.qmp.command("query-status")["status"] != "inmigrate",
             "the saved state was not loaded")
    vm.qmp.command("cont")
    job = base64.b64encode(vm.job_text().encode()).decode()
    vm.say(f"{time.time():.0f}\n{vm.module_args}\n{job}")
