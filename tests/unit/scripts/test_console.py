# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of a guest's kernel on its console make a test fail; other lines do not."""

from vm.machine import complaints

BAR = "[    9.1] " + "=" * 66


def report(title, *lines):
    return "\n".join([BAR, f"[    9.1] {title}", *lines, BAR])


def test_sound():
    assert complaints(
        "[    0.0] Linux version 6.12.95\n[    1.0] debug: a bug's life\n"
        "guest: bugs\nHT_JOB_STATUS=0\n") == []


def test_checkers():
    for line in (
            "BUG: KASAN: slab-use-after-free in htk_emit_stop+0x1",
            "WARNING: possible circular locking dependency detected",
            "WARNING: inconsistent lock state",
            "[ BUG: Invalid wait context ]",
            "BUG: sleeping function called from invalid context",
            "WARNING: suspicious RCU usage",
            "INFO: trying to register non-static key.",
            "UBSAN: shift-out-of-bounds in emit.c:3:4",
            "DMA-API: device driver frees DMA memory with wrong function",
            "WARNING: CPU: 0 PID: 1 at lib/debugobjects.c:1",
            "INFO: task rmmod:71 blocked for more than 122 seconds."):
        text = f"[    1.0] fine\n[    2.0] {line}\n"
        assert complaints(text) == [f"[    2.0] {line}"]


def test_races():
    """Data races that KCSAN reports count only if one of the project's modules makes an
    access or calls the function that makes it. Code that was interrupted does not count."""
    other = report("BUG: KCSAN: data-race in a / b",
                   "write to 0x1 of 4 bytes by task 1 on cpu 0:",
                   " a+0x1/0x2")
    own = report("BUG: KCSAN: data-race in htk_a [hypertrace] / b",
                 " htk_a+0x1/0x2 [hypertrace]")
    users = report("BUG: KCSAN: data-race in c / c",
                   " c+0x1/0x2", " fn_x+0x1/0x2 [hypertrace_sources]")
    interrupted = report("BUG: KCSAN: data-race in d / d",
                         "read to 0x1 of 8 bytes by interrupt on cpu 1:",
                         " d+0x1/0x2", " asm_sysvec_apic_timer_interrupt+0x1/0x2",
                         " e+0x1/0x2", " htk_f+0x1/0x2 [hypertrace]", "",
                         "write to 0x1 of 8 bytes by interrupt on cpu 0:",
                         " d+0x3/0x4", "Workqueue: events hte_h [hypertrace_sources]")
    clock = report("BUG: KCSAN: data-race in ktime_get_mono_fast_ns / timekeeping_update",
                   " ktime_get_mono_fast_ns+0x1/0x2", " fn_x+0x1/0x2 [hypertrace_sources]")
    after = report("BUG: KCSAN: data-race in d / htk_g [hypertrace]",
                   " d+0x1/0x2", " asm_common_interrupt+0x1/0x2",
                   " e+0x1/0x2", "", " htk_g+0x1/0x2 [hypertrace]")
    later = "[   10.0] WARNING: CPU: 0"
    assert complaints(other) == []
    assert complaints("\n".join([other, own, other, later])) == [own.splitlines()[1], later]
    assert complaints("\n".join([users, other])) == [users.splitlines()[1]]
    assert complaints("\n".join([interrupted, clock, after])) == [after.splitlines()[1]]
