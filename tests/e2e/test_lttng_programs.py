# SPDX-License-Identifier: GPL-2.0-or-later
"""Test `hypertrace attach --lttng` with the distribution's QEMU, a Linux guest with
hypertrace.ko, and a session daemon of LTTng.

The unit tests in test_programs_lttng.py use no guest; this test proves that the driver and
ht_trace() obey the session.
"""

import math
import os
import re
import socket
import subprocess
import time

import pytest

from built import need
from directories import session_directory  # noqa: F401
from test_memory import TRACETEST, Host, memory_image
from test_record import console, env, guest, wait_for  # noqa: F401
from vm.lttng_session import PrivateSession, missing_programs

pytestmark = [
    pytest.mark.xdist_group("record"),
    pytest.mark.skipif(not (os.environ.get("HT_MODULE") and TRACETEST.exists()),
                       reason="the kernel module was not built"),
    pytest.mark.skipif(bool(missing_programs()),
                       reason=f"missing: {' '.join(missing_programs())}")]

RECORDED = 4000
ROUNDS = 5
TICK = "vm-programs:tracetest.tick"
# Tolerated time in seconds from the end of `lttng enable-event` to the guest's first event, or of
# disable-event to its last event; without load some 25 ms
SWITCH_MAX = 2.0


JOB = f"""
while [ ! -e /dev/hypertrace0 ]; do usleep 20000; done
stty raw </dev/ttyS2
ht-tracetest recorded {RECORDED} >/dev/ttyS2
echo RECORDED >/dev/console
ht-tracetest switched >/dev/console &
read -r line <$JOB_OUT
touch /tmp/end
wait
echo OVER >/dev/console
sleep 1000
"""

# Labels of the values 0 to 3 of the field j of "tracetest.all", as in
# ht-tracetest.c
STATES = ("idle", "run", "wait", "gone")


def base_16(value):
    return f"0x{value:X}"


def all_fields(line):
    """Return the text that babeltrace2 must print for the event that ht-tracetest printed
    in this line."""
    m = re.match(r'ALL (.*) "(.*)" (.*)', line)
    n, a, b, c, d, e, f, g, h, i, j = m[1].split()
    length, *rest = m[3].split()
    length = int(length)
    seq, array = rest[:length], rest[length:length + 3]
    raw = [base_16(int(v)) for v in rest[length + 3:]]
    text = m[2]

    def items(values):
        return "[ " + ", ".join(f"[{k}] = {v}" for k, v in
                                enumerate(values)) + " ]" if values else "[ ]"

    return (f"n = {n}, a = {a}, b = {b}, c = {c}, d = {d}, e = {e}, f = {f}, "
            f"g = {g}, h = {base_16(int(h, 16))}, i = {i}, "
            f'j = ( "{STATES[int(j)]}" : container = {j} ), '
            f'_k_length = {len(text)}, ' +
            (f'k = "{text}", l = "{text[:6]}", ' if text else "") +
            f"_m_length = {length}, m = {items(seq)}, o = {items(array)}, "
            f"_p_length = {length}, p = {items(raw)}")


def lttng_lines(trace):
    """Return [(event, guest_ns, fields)] of the events in LTTng's trace; the fields are
    babeltrace2's text."""
    need("babeltrace2")
    p = subprocess.run(["babeltrace2", trace], capture_output=True, text=True,
                       check=True)
    assert "discarded" not in p.stdout + p.stderr, p.stderr
    found = []
    for line in p.stdout.splitlines():
        m = re.search(r" (\S+): .*\{ stream = \d+, vcpu = -?\d+, "
                      r"guest_ns = (\d+), (.*) \}$", line)
        # for an empty text, babeltrace2 prints the text of an earlier event:
        # leave it out
        found.append((m[1], int(m[2]), re.sub(
            r'(_k_length = 0, )k = ".*?", l = ".*?", ', r"\1", m[3])))
    return found


def recorded_ticks(trace):
    """Return [(wall clock in ns, number)] of the events "tick" in a recording."""
    p = subprocess.run(["babeltrace2", "--clock-seconds", trace],
                       capture_output=True, text=True)
    return [(int(m[1] + m[2]), int(m[3])) for m in
            re.finditer(r"(?m)^\[(\d+)\.(\d+)\].*tracetest\.tick:.*\{ n = (\d+)",
                        p.stdout)]


class Switch:
    def __init__(self, session, tmp, qemu):
        self.session, self.tmp, self.qemu = session, tmp, qemu
        self.windows = []       # starts and ends of enable and disable, in ns

    def wait(self, state):
        def states():
            return re.findall(r"(?m)^(on|off) \d+\s*$", console(self.tmp))
        self.session.wait_for(lambda: states()[-1:] == [state],
                              f"the program does not see '{state}'")
        assert self.qemu.poll() is None

    def on(self):
        start = time.monotonic_ns()
        self.session.enable(TICK)
        self.windows.append([(start, time.monotonic_ns()), None])
        self.wait("on")

    def off(self):
        start = time.monotonic_ns()
        self.session.lttng("disable-event", "--userspace",
                           f"--session={self.session.name}", "--channel=main", TICK)
        self.windows[-1][1] = (start, time.monotonic_ns())
        self.wait("off")


def check_windows(windows, dates):
    """Check that the program emits between `lttng enable-event` and
    `disable-event`, and at no other time, with a tolerance of SWITCH_MAX; print
    the delays of both commands."""
    starts = [on for (on, _), _ in windows]
    assert min(dates) >= starts[0]
    for ((on, on_end), (off, off_end)), end in zip(windows, [*starts[1:], math.inf]):
        mine = [ns for ns in dates if on <= ns < end]
        print(f"first event {(mine[0] - on) / 1e6:.1f} ms after the start and "
              f"{(mine[0] - on_end) / 1e6:.1f} ms after the end of enable-event; "
              f"last event {(mine[-1] - off) / 1e6:.1f} ms after the start and "
              f"{(mine[-1] - off_end) / 1e6:.1f} ms after the end of disable-event")
        assert mine[0] < on_end + SWITCH_MAX * 1e9
        assert off - SWITCH_MAX * 1e9 < mine[-1] < off_end + SWITCH_MAX * 1e9


def test_attach(tmp, env):  # noqa: F811
    """LTTng's trace has each field of 4000 events as the program printed it.  The program
    emits the event "tick" from soon after LTTng enables it until soon after LTTng disables
    it.  After a recorder is killed, this event stays on or off, and the session can change
    that by the recorder's successor."""
    need("babeltrace2")
    with PrivateSession(str(tmp / "trace"), events=["vm-programs:tracetest.all"],
                        blocking=True) as s:
        own = {**env, **s.env()}
        a = Host(tmp, own, "a", "--create=64M", "--lttng=vm")
        qemu = subprocess.Popen(
            [*guest(tmp, memory_image(tmp, JOB)),
             "-serial", f"unix:{tmp}/job,server=on,wait=off",
             "-serial", f"file:{tmp}/values",
             "-object", "memory-backend-file,id=m,share=on,size=64M,"
             f"mem-path={tmp}/memory", "-device", "ivshmem-plain,memdev=m"],
            stdin=subprocess.DEVNULL)
        switch = Switch(s, tmp, qemu)
        try:
            wait_for(tmp, "RECORDED", qemu)
            s.wait_listed(TICK)
            switch.wait("off")
            for _ in range(ROUNDS):
                switch.on()
                # wait until 20 more events are recorded, some of them by LTTng
                a.wait_events(a.count() + 20)
                switch.off()
            a.end(kill=True)
            s.wait_for(lambda: TICK not in s.listed(), "the recorder is listed")
            b = Host(tmp, own, "b", "--lttng=vm")
            s.wait_listed(TICK)
            enabled = time.time_ns()
            switch.on()
            b.wait_events(100)
            b.end(kill=True)
            s.wait_for(lambda: TICK not in s.listed(), "the recorder is listed")
            c = Host(tmp, own, "c", "--lttng=vm")
            c.wait_events(100)
            with socket.socket(socket.AF_UNIX) as job:
                job.connect(f"{tmp}/job")
                job.send(b"end\n")
                wait_for(tmp, "OVER", qemu)
            c.end()
            s.finish()
        finally:
            qemu.kill()
            qemu.wait()
    lines = lttng_lines(tmp / "trace")
    printed = (tmp / "values").read_text().splitlines()
    wanted = [all_fields(line) for line in printed if line.startswith("ALL ")]
    assert len(wanted) == RECORDED
    assert [fields for name, _, fields in lines if name != TICK] == wanted

    ticks = [(ns, int(fields.removeprefix("n = "))) for name, ns, fields in lines
             if name == TICK]
    *windows, (restarted, _) = switch.windows
    check_windows(windows, [ns for ns, _ in ticks if ns < restarted[0]])
    assert min(recorded_ticks(b.dir / "programs"))[0] > enabled
    emitted = int(re.search(r"emitted (\d+)\s+OVER", console(tmp))[1])
    seen = [[n for _, n in recorded_ticks(h.dir / "programs")] for h in (a, b, c)]
    assert sum(seen, []) == sorted(set(sum(seen, [])))
    assert max(seen[2]) < emitted
    # LTTng's trace may lack events that were emitted before LTTng had the
    # class, or while lttng switched the class off, and the events that a
    # killed recorder had queued for LTTng.
    mine = {n for _, n in ticks}
    assert mine <= set(sum(seen, [])) and set(seen[2]) <= mine
