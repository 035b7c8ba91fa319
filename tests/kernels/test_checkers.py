# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that a kernel that scripts/check/kernel-tests.sh builds has its checkers enabled, or has
PREEMPT_RT; HT_DEBUG_KERNEL is the name of the kernel."""

import os

from vm.machine import VM, complaints

# For each kernel: the commands that the guest runs, and regular expressions that
# must match parts of their output, in this order
SHOWN = {
    "lockdep": ("dmesg; cat /proc/lockdep_stats",
                ["KernelAddressSanitizer initialized", "debug_locks: *1"]),
    "kcsan": ("cat /sys/kernel/debug/kcsan",
              ["enabled: 1", "setup_watchpoints: [1-9]"]),
    "rt": ("cat /proc/version", ["PREEMPT_RT"]),
}


def test_it_checks(tmp_path):
    job, lines = SHOWN[os.environ["HT_DEBUG_KERNEL"]]
    with VM(job=f"({job}; echo done) >&3", workdir=tmp_path / "vm") as vm:
        for line in lines:
            vm.out.expect(line, 60)
        vm.wait()
        assert not complaints(vm.console.text), str(vm)
