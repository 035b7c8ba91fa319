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
    access or calls a function for memory or texts that makes it. Code that was interrupted
    does not count."""
    access = "write to 0x1 of 4 bytes by task 1 on cpu 0:"
    own_frame = " htk_f+0x1/0x2 [hypertrace]"
    interrupt = " asm_sysvec_apic_timer_interrupt+0x1/0x2"
    other = report("BUG: KCSAN: data-race in a / b", access, " a+0x1/0x2")
    own = report("BUG: KCSAN: data-race in htk_a [hypertrace] / b", access,
                 " htk_a+0x1/0x2 [hypertrace]")
    called = report("BUG: KCSAN: data-race in memcpy / memcpy", access,
                    " memcpy+0x1/0x2", " fn_x+0x1/0x2 [hypertrace_sources]")
    second = report("BUG: KCSAN: data-race in c / d", access, " c+0x1/0x2", "",
                    access, own_frame)
    inner = report("BUG: KCSAN: data-race in c / d", access,
                   " c+0x1/0x2", own_frame)
    interrupted = report("BUG: KCSAN: data-race in d / d", access, " d+0x1/0x2", interrupt,
                         own_frame, "", access, " d+0x3/0x4",
                         "Workqueue: events hte_h [hypertrace_sources]")
    after = report("BUG: KCSAN: data-race in d / e", access, " d+0x1/0x2", interrupt,
                   " e+0x1/0x2", "", access, " strlen+0x1/0x2", own_frame)
    later = "[   10.0] WARNING: CPU: 0"
    for text in other, inner, interrupted:
        assert complaints(text) == [], text
    for text in own, called, second, after:
        assert complaints(text) == [text.splitlines()[1]], text
    assert complaints("\n".join([other, own, other, later])) == [own.splitlines()[1], later]
    assert complaints("\n".join([inner, after])) == [after.splitlines()[1]]
