# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that tests share: scripts for init of guests whose main trace buffer and log
`hypertrace record` follows, and functions that check these recordings."""

import collections
import json
import re

import stock

import markers

CPUS = 2
MARKS = 2000

# Script for init of a guest whose markers and log are compared. It writes dmesg's
# output to the port ttyS0, and prints the counters of its trace buffer on the console.
INIT = stock.MOUNTS + f"""$b --install -s /bin
export PATH=/bin
{markers.shell("/trace", CPUS, MARKS)}
wait
echo 0 >/trace/tracing_on
dmesg >/dev/ttyS0
echo "log end" >/dev/kmsg
! grep -q la57 /proc/cpuinfo || echo "5 levels"
for c in /trace/per_cpu/cpu*; do
    echo "COUNT ${{c#/trace/per_cpu/cpu}}" $(grep -E '^(entries|overrun)' $c/stats)
done
poweroff -f
sleep 1000
"""


def assert_all(tmp, err):
    """Check the recording tmp/rec of a guest with INIT: each marker that the guest wrote is
    recorded exactly once or lies within a reported gap, and the recorded log begins with the
    guest's dmesg. If no event is lost, the recording has as many events as the guest's counters
    say. tmp also has the files console and dmesg; err has the recorder's messages."""
    events = list(stock.reported(tmp / "rec"))
    markers.assert_followed(events, CPUS, MARKS, err)
    markers.assert_log_is_dmesg((tmp / "dmesg").read_text(errors="replace"),
                                stock.run("log", tmp / "rec"))
    if "none lost" in err:
        stock.assert_counts(tmp, CPUS)


BOOTS_MARKS = 300
# Script for init of a guest that boots repeatedly: each boot writes its random number to
# the log and, with numbered markers, to the trace buffer. The script then runs each line
# that the test sends to the port ttyS0.
BOOTS_INIT = stock.MOUNTS + f"""$b --install -s /bin
export PATH=/bin
id=$(cat /proc/sys/kernel/random/boot_id)
echo "boot $id" >/dev/kmsg
{markers.shell("/trace", "$(nproc)", BOOTS_MARKS, "$id")}
wait
kexec() {{
    (cd / && find init bin vmlinuz kexec | cpio -o -H newc) >/initrd
    /kexec /vmlinuz /initrd "$(cat /proc/cmdline)$1" $2
}}
stty -F /dev/ttyS0 raw -echo
exec 4</dev/ttyS0
echo "READY $id $(nproc)" >/dev/console
while read -r line <&4; do
    eval "$line"
    echo "DONE" >/dev/console
done
"""

MARK = re.compile(r"(\S{36}) \d+ \d+\n?$")


def buf(event):
    return str(event["fields"].get("buf", ""))


def ready(console):
    """[(random number, number of processors)] of each boot that has printed READY"""
    return [(boot, int(cpus)) for boot, cpus in
            re.findall(r"READY ([0-9a-f-]{36}) (\d+)", console)]


def assert_living(rec, boots, err):
    """Assert that a recording has the log and the markers of the last of @boots, and of
    no other boot. @boots is a list as that of ready()."""
    living, cpus = boots[-1]
    assert re.findall(r"\] boot (\S{36})", stock.run("log", rec)) == [living]
    events = list(stock.reported(rec))
    assert {m[1] for m in map(MARK.match, map(buf, events)) if m} == {living}
    markers.assert_followed(events, cpus, BOOTS_MARKS, err, living)


def assert_each_boot(rec, boots, err):
    """Assert that a recording has all boots, each with its own markers and log."""
    names = [boot for boot, _ in boots]
    log = [json.loads(line) for line in stock.run("log", "--json", rec).splitlines()]
    assert [(r["boot"], r["text"].split()[1]) for r in log
            if re.fullmatch(r"boot \S{36}", r["text"])] == list(enumerate(names, 1)), err
    events = list(stock.reported(rec))
    assert {e["boot"] for e in events} == set(range(1, len(names) + 1)), err
    marked = collections.defaultdict(set)
    for e in events:
        if m := MARK.match(buf(e)):
            marked[e["boot"]].add(m[1])
    assert marked == {n: {name} for n, name in enumerate(names, 1)}
    for n, (name, cpus) in enumerate(boots, 1):
        markers.assert_followed([e for e in events if e["boot"] == n], cpus,
                                BOOTS_MARKS, err, name)
