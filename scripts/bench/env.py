# SPDX-License-Identifier: GPL-2.0-or-later
"""Conditions of the figures: machine, kernel, QEMU, accelerator."""

import os
import platform
import re
import subprocess
from pathlib import Path


def _read(path, otherwise=""):
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return otherwise


def _first_line(argv):
    try:
        done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout or done.stderr).strip().split("\n")[0] or "unknown"


def kvm_kind():
    """Describe how KVM runs ring 0: by the processor's extension, or by emulation."""
    flags = re.search(r"^flags\s*:(.*)$", _read("/proc/cpuinfo"), re.M)
    have = {"vmx": "Intel VT-x", "svm": "AMD SVM"}
    for flag, name in have.items():
        if flags and flag in flags[1].split():
            return name
    return "software: neither vmx nor svm, ring 0 is emulated"


def collect():
    """A dict of the conditions under which the benchmarks ran, in the
    order of the report"""
    cpuinfo = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.M)
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    system = re.search(r'^PRETTY_NAME="(.*)"$', _read("/etc/os-release"),
                       re.M)
    version = subprocess.run(
        ["git", "-C", os.environ["HT_TOP"], "describe", "--always",
         "--dirty"], check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL).stdout.strip()
    return {
        "hypertrace": version or "unknown",
        "processor": model[1] if model else platform.processor(),
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": f"{int(memory[1]) // 1024} MiB" if memory else "unknown",
        "system": system[1] if system else "unknown",
        "kernel": f"{platform.system()} {platform.release()}",
        "clock source": _read(clock, "unknown"),
        "QEMU": _first_line([os.environ["HT_QEMU"], "--version"]),
        "KVM": kvm_kind(),
        "LTTng": _first_line(["lttng", "--version"]),
        "compiler": _first_line([os.environ.get("CC", "gcc"), "--version"]),
    }


def load():
    return os.getloadavg()[0]
