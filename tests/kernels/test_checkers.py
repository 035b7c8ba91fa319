# SPDX-License-Identifier: GPL-2.0-or-later
"""Test that the kernels of scripts/check/kernel-tests.sh have their checkers enabled."""

import os

from vm.machine import VM, complaints

# For each kernel: the command that the guest runs, and patterns that its
# output must match
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
