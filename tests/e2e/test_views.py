# SPDX-License-Identifier: GPL-2.0-or-later
"""Record a stock guest's boot. `hypertrace report` and `log` must agree with the guest's own
texts. The exported files, read by trace-cmd, libkshark, babeltrace2, protoc and speedscope, and
the output of boot, top, flame, latency and last must agree with the rest of the recording."""

import base64
import collections
import html
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import browser
import perfetto_text

TOP = Path(__file__).resolve().parents[2]

# Stop tracing before the job prints the trace, because printing causes events.
JOB = """
trace=/sys/kernel/tracing/instances/boot_map
i=0
while [ $i -lt 30 ]; do cat /proc/self/maps >/dev/null; i=$((i+1)); done
echo 'the last word' >/dev/kmsg
echo 0 >$trace/tracing_on
dmesg >$JOB_OUT
echo ---- >$JOB_OUT
cat $trace/trace >$JOB_OUT
"""

pytestmark = pytest.mark.xdist_group("views")

QEMU = "qemu-system-x86_64"


def tool():
    path = Path(os.environ["HT_BUILD"]) / "tools/hypertrace/hypertrace"
    if not path.exists():
        pytest.skip("hypertrace was not built: libtraceevent is missing")
    return str(path)


def run(*args):
    p = subprocess.run([tool(), *map(str, args)], capture_output=True,
                       timeout=300)
    assert p.returncode == 0, (args, p.stderr)
    return p.stdout.decode()


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """The recording's folder, and what the job in the guest wrote: the lines of dmesg and of the
    file `trace`"""
    if not shutil.which(QEMU):
        pytest.skip(f"the system has no {QEMU}")
    tmp = tmp_path_factory.mktemp("views")
    (tmp / "root/ht").mkdir(parents=True)
    (tmp / "root/ht/job.sh").write_text(JOB)
    subprocess.run([TOP / "scripts/build/guest-overlay.sh", tmp / "job.cpio",
                    tmp / "root"], check=True)
    with open(tmp / "initrd", "wb") as out:
        for part in Path(os.environ["HT_INITRD"]), tmp / "job.cpio":
            out.write(part.read_bytes())
    p = subprocess.run(
        [tool(), "record", "-o", tmp / "rec", "--", QEMU, "-accel",
         "tcg,thread=single", "-cpu", "qemu64,-cx16", "-smp", "2", "-m",
         "512M", "-nodefaults", "-display", "none",
         "-serial", f"file:{tmp}/console", "-serial", f"file:{tmp}/said",
         "-no-reboot", "-kernel", os.environ["HT_KERNEL"], "-initrd",
         tmp / "initrd", "-append", os.environ["HT_KERNEL_ARGS"]],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
    console = (tmp / "console").read_text(errors="replace")
    assert p.returncode == 0, (p.stderr, console[-2000:])
    assert "HT_JOB_STATUS=0" in console, console[-2000:]
    said = (tmp / "said").read_text(errors="replace").replace("\r", "")
    dmesg, trace = said.split("----\n", 1)
    return tmp / "rec", dmesg.splitlines(), trace.splitlines()


@pytest.fixture(scope="module")
def report(guest):
    """A pair: all events of the recording, and the events of the largest segment, which is the
    segment of the guest's clock with the most events"""
    out = [json.loads(line) for line in
           run("report", "--json", guest[0]).splitlines()]
    sizes = collections.Counter(e["segment"] for e in out)
    largest = sizes.most_common(1)[0][0]
    return out, [e for e in out if e["segment"] == largest]


def by_cpu(lines):
    """{cpu: [(...)]} from lines (cpu, ...).  Each CPU is compared alone, because events of two
    CPUs with equal times have no defined order."""
    out = collections.defaultdict(list)
    for line in lines:
        out[line[0]].append(line[1:])
    return dict(out)


def compare(ours, theirs):
    assert set(ours) == set(theirs)
    for cpu in ours:
        for n, (a, b) in enumerate(zip(ours[cpu], theirs[cpu])):
            near = slice(max(n - 2, 0), n + 3)
            assert a == b, (cpu, n, ours[cpu][near], theirs[cpu][near])
        assert len(ours[cpu]) == len(theirs[cpu])


def alike(text):
    text = re.sub(r"(\+0x[0-9a-f]+)/0x[0-9a-f]+", r"\1", text.strip())
    return re.sub(r"0xffff[0-9a-f]{12}|\(____ptrval____\)|\b0{8}[0-9a-f]{8}\b",
                  "(pointer)", text)


def test_guests_own_trace(guest, report):
    """`hypertrace report` equals the guest's own `trace` file, line by line for each CPU, except
    that the file has microseconds instead of nanoseconds, sizes of symbols, and hashed
    pointers. Names of threads, the column of flags, and all lines of an event's text but the
    first are not compared."""
    line = re.compile(r" *.*-(\d+) +\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+): ?"
                      r"(.*)$")
    theirs = []
    for text in guest[2]:
        m = line.match(text)
        if m:
            pid, cpu, s, us, name, fields = m.groups()
            theirs.append((int(cpu), int(s) * 10**6 + int(us), int(pid), name,
                           alike(fields)))
    assert len(theirs) > 5000
    # round to microseconds, as the kernel's text does
    ours = [(e["cpu"], (e["ns"] + 500) // 1000, e["pid"], e["event"],
             alike(e["text"].split("\n")[0])) for e in report[0]]
    compare(by_cpu(ours), by_cpu(theirs))


def test_log(guest):
    """From the log's first line to the job's last message, `hypertrace log` has the lines of
    dmesg, in order. Times and white space are not compared. There are two exceptions.  The log
    has the parts of a continued line as separate lines.  It may lack some known lines, which a
    processor printed before its ring existed."""
    def squeeze(lines):
        return "".join("".join(lines).split())

    log = run("log", guest[0]).splitlines()
    texts = [line.split("] ", 1)[1].strip() for line in log if "] " in line]
    dmesg = [line.split("] ", 1)[1].strip() for line in guest[1]
             if "] " in line]
    texts = texts[:texts.index("the last word") + 1]    # dmesg ran then
    dmesg = dmesg[dmesg.index(texts[0]):]
    everything = squeeze(texts)
    missing = [line for line in dmesg if squeeze([line]) not in everything]
    assert not [line for line in missing
                if not re.search("calibrat|lpj|platform interrupts|clocksource: tsc:", line)]
    assert len(everything) <= len(squeeze(dmesg))
    assert [t for t in texts if t in dmesg] == [t for t in dmesg if t in texts]


def test_trace_cmd(guest, report, tmp_path):
    """`hypertrace report` equals `trace-cmd report` of the exported file, line by line for each
    CPU, for the events of the clock's largest segment. trace-cmd runs without its plugins, which
    format some events differently. Names of threads are not compared, because trace-cmd shows
    only the last name of a thread. Of an event's text only the first line is compared."""
    if not shutil.which("trace-cmd"):
        pytest.skip("trace-cmd is not installed")
    dat = tmp_path / "trace.dat"
    run("export", "-o", dat, guest[0])
    text = subprocess.run(["trace-cmd", "report", "-N", "-t", dat],
                          capture_output=True, check=True,
                          timeout=300).stdout.decode("utf-8", "replace")
    line = re.compile(r" *.*-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\w+): *(.*)$")
    theirs = []
    for m in filter(None, map(line.match, text.splitlines())):
        pid, cpu, s, ns, name, fields = m.groups()
        theirs.append((int(cpu), int(s) * 10**9 + int(ns), int(pid), name,
                       fields.strip()))
    ours = [(e["cpu"], e["ns"], e["pid"], e["event"],
             e["text"].split("\n")[0].strip()) for e in report[1]]
    assert len(ours) > 5000
    compare(by_cpu(ours), by_cpu(theirs))
    assert "EVENTS DROPPED" not in text


KSHARK = """
#include <libkshark.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct kshark_context *context = NULL;
    struct kshark_entry **entries = NULL;
    int stream = kshark_instance(&context) ? kshark_open(context, argv[1]) : -1;

    (void)argc;
    printf("%zd", stream < 0 ? -1 :
           kshark_load_entries(context, stream, &entries));
    return 0;
}
"""


def test_kernelshark(guest, report, tmp_path):
    """From the exported file libkshark loads as many events as `hypertrace report` shows of the
    clock's largest segment. Skipped without the headers of libkshark or json-c."""
    # do not use pkg-config: libkshark's .pc file names libraries that only its
    # own build needs
    include = "/usr/include/kernelshark"
    if not (os.path.exists(f"{include}/libkshark.h") and
            os.path.exists("/usr/include/json-c/json.h")):
        pytest.skip("libkshark-dev or libjson-c-dev is not installed")
    (tmp_path / "load.c").write_text(KSHARK)
    subprocess.run(["cc", "-o", tmp_path / "load", tmp_path / "load.c",
                    "-I", include, "-lkshark", "-ljson-c"], check=True)
    run("export", "-o", tmp_path / "trace.dat", guest[0])
    n = subprocess.run([tmp_path / "load", tmp_path / "trace.dat"],
                       capture_output=True, check=True, timeout=300).stdout
    assert int(n) == len(report[1])


def switches(report):
    return by_cpu((e["cpu"], e["ns"], *(e["fields"][k] for k in (
        "prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm")))
        for e in report[1] if e["event"] == "sched_switch")


def test_perfetto(guest, report, tmp_path):
    if not shutil.which("protoc"):
        pytest.skip("protobuf-compiler is not installed")
    out = tmp_path / "boot.pftrace"
    run("export", "-o", out, guest[0])
    packets = perfetto_text.packets(out)
    events = list(perfetto_text.events(packets))
    slices = [p["track_event"][0] for p in packets if "track_event" in p]
    assert len(events) + len(slices) == len(report[1])
    theirs = by_cpu((cpu, e["timestamp"][0], *(s[k][0] for k in (
        "prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm")))
        for cpu, e in events for s in e.get("sched_switch", []))
    compare(switches(report), theirs)
    # The export knows the process of each thread, because the recording has the creation of all
    # threads.
    attributes = {a["key"][0]: a for p in packets
                  for t in p.get("trace_attributes", [])
                  for a in t["attribute"]}
    assert attributes["hypertrace.threads_without_process"][
        "long_value"] == [0]
    names = [s["name"][0] for s in slices if "name" in s]
    assert "acpi_init" in names
    assert not [n for n in names if n.startswith("0x")]


def test_ctf(guest, report, tmp_path):
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")
    out = tmp_path / "ctf"
    run("export", "--format", "ctf", "-o", out, guest[0])
    p = subprocess.run(["babeltrace2", "--clock-cycles", out],
                       capture_output=True, check=True, timeout=300)
    lines = p.stdout.decode().splitlines()
    assert len(lines) == len(report[1]) and not p.stderr
    names = collections.Counter(re.match(r"\[(\d+)\].*?\) \S+ (\w+): ",
                                         line)[2] for line in lines)
    assert names == collections.Counter(e["event"] for e in report[1])


def test_boot(guest, report, tmp_path):
    svg = tmp_path / "boot.svg"
    boot = json.loads(run("boot", "--json", "--svg", svg, guest[0]))
    phases = boot["phases"]
    assert [p["name"] for p in phases][:4] == [
        "kernel", "initcalls", "kernel, rest", "initramfs"]
    for a, b in zip(phases, phases[1:]):
        assert a["end_ns"] == b["begin_ns"]
    finished = [e for e in report[0] if e["event"] == "initcall_finish"]
    assert len(boot["initcalls"]) == len(finished) > 300
    assert all(c["ended"] and not c["name"].startswith("0x")
               for c in boot["initcalls"])
    assert len([p for p in boot["processes"] if p["name"] == "cat"]) >= 30
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_top(guest, report):
    top = json.loads(run("top", "--json", guest[0]))
    assert top["events"] == len(report[0]) and top["gaps"] == 0
    # A CPU's time before its first switch is in unknown_ns, the rest in the time of a task.
    total = sum(t["cpu_ns"] for t in top["tasks"]) + top["unknown_ns"]
    assert total == top["cpu_ns"]
    assert top["unknown_ns"] < top["cpu_ns"] / 100


# JavaScript that test_flame_in_a_browser() adds to the picture: do what a user does, and store
# the picture's state after each action, as JSON, in a new element "facts"
USER = """
const frames = [...document.querySelectorAll('g.f')], of = g => g.dataset;
const wide = g => +g.querySelector('rect').getAttribute('width');
const shown = () => frames.filter(g => !g.classList.contains('away')).length;
const say = q => document.querySelector(q).textContent;
const at = frames.find(g => of(g).d > 0 && of(g).name === 'initcall acpi_init');
const click = e => e.dispatchEvent(new MouseEvent('click', {bubbles: true}));
const facts = {frames: frames.length, at_first: shown(), before: wide(at)};
at.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
facts.info = say('#info');
click(at);
facts.wide = wide(at); facts.zoomed = shown();
facts.expected = frames.filter(g =>
    +of(g).x < +of(at).x + +of(at).w && +of(g).x + +of(g).w > +of(at).x &&
    (+of(g).d >= +of(at).d || +of(g).x <= +of(at).x)).length;
facts.button = !document.querySelector('#reset').classList.contains('away');
document.documentElement.dispatchEvent(
    new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
facts.again = shown(); facts.after = wide(at);
window.prompt = () => '^initcall acpi_init$';
click(document.querySelector('#search'));
facts.found = document.querySelectorAll('g.found').length;
facts.share = say('#info');
const out = document.createElementNS('http://www.w3.org/2000/svg', 'text');
out.id = 'facts';
out.textContent = JSON.stringify(facts);
document.documentElement.append(out);
"""


def test_flame_in_a_browser(guest, tmp_path):
    """In the picture of `hypertrace flame`, a click on a frame zooms in, Escape
    zooms out, and a search shows the share of the time that it found."""
    svg = tmp_path / "flame.svg"
    run("flame", "--of=cpu", "--svg", svg, guest[0])
    text = svg.read_text()
    svg.write_text(text.replace(
        "</svg>", f"<script><![CDATA[{USER}]]></script></svg>"))
    shown = browser.dom(svg, tmp_path)
    facts = json.loads(html.unescape(
        re.search(r'<text id="facts">(.*?)</text>', shown)[1]))
    assert facts["frames"] == text.count('<g class="f"') > 50
    assert facts["at_first"] == facts["again"] == facts["frames"]
    # The file has widths with three decimals. When it zooms, the picture's own script sets
    # exact widths.
    assert facts["wide"] == 1180 > facts["before"]
    assert facts["after"] == pytest.approx(facts["before"], abs=0.001)
    assert 1 < facts["zoomed"] == facts["expected"] < facts["frames"]
    assert facts["info"].startswith("initcall acpi_init"), facts
    assert facts["button"] and facts["found"] >= 1
    assert re.fullmatch(r"found in \d+\.\d%", facts["share"]), facts


def speedscope():
    """Path of the web page of speedscope, a viewer. If it is not in HT_CACHE, npm downloads it
    there."""
    at = Path(os.environ["HT_CACHE"]) / "speedscope"
    page = at / "package/dist/release/index.html"
    if not page.exists():
        npm = shutil.which("npm")
        if not npm:
            pytest.skip("npm, which speedscope comes by, is not installed")
        at.mkdir(exist_ok=True)
        p = subprocess.run([npm, "pack", "speedscope@1.25.0"], cwd=at,
                           check=False, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        if p.returncode:
            pytest.skip(f"speedscope cannot be fetched: {p.stderr[-200:]}")
        subprocess.run(["tar", "-xzf", at / p.stdout.split()[-1], "-C", at],
                       check=True)
    return page


def times(profile, names):
    """{name of a frame: [its total time, its self time]}, in the unit of the weights"""
    out = collections.defaultdict(lambda: [0, 0])
    for stack, weight in zip(profile["samples"], profile["weights"]):
        for name in {names[frame] for frame in stack}:
            out[name][0] += weight
        if stack:
            out[names[stack[-1]]][1] += weight
    return out


def test_speedscope(guest, tmp_path):
    """speedscope reads the file of `hypertrace flame`. Its table shows, for each frame, the
    shares of the whole time that follow from the file: the frame's total and its self time."""
    file = tmp_path / "cpu.speedscope.json"
    run("flame", "--of=cpu", f"--speedscope={file}", guest[0])
    written = json.loads(file.read_text())
    script = tmp_path / "profile.js"
    encoded = base64.b64encode(file.read_bytes()).decode()
    script.write_text(f'speedscope.loadFileFromBase64("cpu", "{encoded}")')
    shown = browser.dom(
        f"{speedscope().as_uri()}#localProfilePath={script}&view=sandwich",
        tmp_path, ["--use-gl=angle", "--use-angle=swiftshader",
                   "--enable-unsafe-swiftshader"],
        says="speedscope v|WebGL initialized|GPU stall|"
             "Importing as speedscope|import: ")
    profile = written["profiles"][written.get("activeProfileIndex", 0)]
    ours = times(profile, [f["name"] for f in written["shared"]["frames"]])
    total = sum(profile["weights"])
    rows = re.findall(r"\((<?[\d.]+)%\).*?\((<?[\d.]+)%\).*?<td[^>]*>(.*?)</td>",
                      shown, re.S)
    assert len(rows) >= 10, shown
    for *theirs, cell in rows:
        name = html.unescape(re.sub("<[^>]*>", "", cell)).strip()
        for percent, ns in zip(theirs, ours[name]):
            assert (100 * ns / total < 0.01 if percent.startswith("<") else
                    float(percent) == pytest.approx(100 * ns / total,
                                                    abs=0.51)), name


def test_put_together(guest, report):
    """`top` and `flame` agree on the sum of the CPUs' times. `latency` counts each end of an
    initcall in `report` as part of a pair, or as alone. `last` has the end of the log, and an
    entry for each CPU."""
    rec = guest[0]
    events = report[0]
    top = json.loads(run("top", "--json", rec))
    folded = [line.rsplit(" ", 1) for line in
              run("flame", "--of=cpu", "--folded", rec).splitlines()]
    assert sum(int(ns) for _, ns in folded) == top["cpu_ns"]
    assert any(";initcall acpi_init" in stack for stack, _ in folded)
    calls = json.loads(run("latency", "--json", "initcall_start",
                           "initcall_finish", rec))
    # An end without a start, such as after a step of the clock, counts in to_alone.
    finished = sum(e["event"] == "initcall_finish" for e in events)
    assert calls["pairs"] + calls["to_alone"] == finished
    assert calls["pairs"] > finished // 2 and not calls["across_gaps"]
    waits = json.loads(run("latency", "--json",
                           "sched_wakeup,sched_wakeup_new", "sched_switch",
                           rec))
    assert waits["pairs"] > 100 and waits["min_ns"] > 0
    end = json.loads(run("last", "--json", rec))
    assert end["boot"] == end["boots"] == 1
    assert any("the last word" in line["text"] for line in end["log"])
    assert {c["cpu"] for c in end["cpus"]} == {0, 1}
