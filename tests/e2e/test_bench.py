# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison study runs, and its report agrees with its figures."""

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

# Most tests use the same run of the study, so one xdist process must run all of them.
pytestmark = pytest.mark.xdist_group("bench")

import browser
from bench import conclusions, plan, plot, stats, targets, ways
from bench.guest import StoppedThread, Study
from commands import command
from vm.machine import Failure
from vm.payload import kvm_problem

INSTRUCTIONS = {ways.KERNEL_EVENT: 145, ways.ENTRY: 103, ways.CALL: 580}


def bench(*args, check=True):
    done = subprocess.run(
        command("bench", *args), check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=600)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Result of a short run of the comparison study, with KVM if it can
    be used"""
    out = tmp_path_factory.mktemp("bench")
    done = bench("--smoke", "--json", out / "figures.json", "--report", out)
    return out, json.loads((out / "figures.json").read_text()), done.stdout


def cases(result, **want):
    return [c for c in result["cases"]
            if all(c[k] == v for k, v in want.items())]


def test_json(study):
    """Each case has rows and ordered quartiles. Each case except native ones, and except events
    that are off, has a cost: instructions in the table "ways", else ns. Each payload size over
    shm and each peer has a case."""
    _, result, _ = study
    assert result["tool"] == "hypertrace-bench" and result["schema"] == 1
    assert all(result["environment"][k] for k in
               ("processor", "kernel", "QEMU", "KVM", "accelerators",
                "mapping of stream memory"))
    ids = [c["id"] for c in result["cases"]]
    assert len(ids) == len(set(ids))
    accel = "tcg" if kvm_problem() else "kvm"
    for c in result["cases"]:
        assert len(c["rows"]) >= 1, c
        # Linux guests use TCG if KVM emulates ring 0; those of the table "ways" always do.
        assert c["accel"] in (accel, "native") or \
            c["table"] in ("linux", "ways"), c
        for s in c["summary"].values():
            assert s["min"] <= s["q1"] <= s["median"] <= s["q3"] <= s["max"]
        if c["accel"] != "native":
            figure = "insns" if c["table"] == "ways" else "p50_ns"
            assert c["summary"][figure]["median"] > 0 or \
                c["series"] == ways.OFF, c
    sizes = {c["x"] for c in cases(result, table="payload", series="shm")}
    assert sizes == {0, 8, 32, 64, 256, 1024, 4096}
    # the cases "overload" are measured under KVM only
    for channel in ("hypercall", "shm", "virtio") if accel == "kvm" else ():
        assert cases(result, accel=accel, table="overload", series=channel)
    assert {c["series"] for c in cases(result, table="peers")} == {
        "limit", "pio", "mmio", "virtio-serial", "virtio-serial-queued"}


def test_sources_in_linux(study):
    """In a Linux guest each channel and each peer is measured; if not, the list of skipped
    parts has a reason."""
    _, result, _ = study
    left_out = " ".join(s["what"] for s in result["skipped"])
    found = {c["series"] for c in cases(result, table="linux")}
    if not found:
        assert "sources in a Linux guest" in left_out
        pytest.skip(left_out)
    wanted = {"hypercall", "shm", "virtio", "trace_marker",
              "virtio-serial write()"}
    if "LTTng-UST in the guest" not in left_out:
        wanted.add("LTTng-UST in the guest")
    assert found == wanted
    markdown = (study[0] / "report.md").read_text()
    assert "Sources in a Linux guest" in markdown


def test_instructions(study):
    """The instructions of each way to emit are counted.  The kernel's events stay within
    the limits in INSTRUCTIONS, and add no instructions while the host does not want
    them."""
    out, result, _ = study
    left_out = " ".join(s["what"] for s in result["skipped"])
    found = {c["series"]: c["summary"]["insns"]["median"]
             for c in cases(result, table="ways")}
    if not found:
        assert "instructions an event" in left_out
        pytest.skip(left_out)
    channels = ("hypercall", "shm", "virtio")
    wanted = {*channels, "trace_marker", "virtio-serial write()",
              "the stock kernel's ring",
              *(f"hypertrace-sources.ko, {c}" for c in channels)}
    assert wanted <= set(found)
    # insns_least: instructions per event of the group of events that took the fewest. Over shm,
    # events after a doorbell take more until the consumer runs; the group of insns_least has no
    # such event.
    least = {c["series"]: c["summary"]["insns_least"]["median"]
             for c in cases(result, table="ways")}
    assert least["shm"] == least["virtio"] < found["trace_marker"]
    for c in channels:
        assert found[f"hypertrace-sources.ko, {c}"] < \
            found["the stock kernel's ring"]
    for x, limit in INSTRUCTIONS.items():
        at = {c["series"]: c["summary"]
              for c in cases(result, table="ways", x=x)}
        # Compare insns_least, because the median depends on the time at which the consumer runs.
        insns = min(at[f"hypertrace-sources.ko, {c}"]["insns_least"]["min"]
                    for c in ("shm", "virtio"))
        assert 0 < insns <= limit, x
        assert at[ways.OFF]["insns_least"]["median"] == 0, x
    assert "(ways.svg)" in (out / "report.md").read_text().split("## ")[0]


def test_marks():
    """A group whose marks are on two vCPUs is not counted: groups() fails, because a
    group is missing."""
    events = ways.GROUP
    assert ways.groups([(1, 1, 100), (1, 2, 100 + 3 * events)],
                       events) == [3]
    with pytest.raises(Failure):
        ways.groups([(1, 1, 100), (0, 2, 148)], events)


def test_times():
    """From a program's time, add_times() subtracts the time of the same program without
    tracing, and divides the rest by the number of traced events. The short run of the
    study, in the fixture, measures no such times."""
    names = ("none", 32), ("none", ways.KERNEL_EVENT), ("ring", ways.KERNEL_EVENT), ("shm", 32)
    cases = [plan.Case("ways", *name, "tcg") for name in names]
    for case in cases:
        case.rows = [{}, {}]
    ways.add_times(cases, cases, [0, 100, 160, 7, 0, 200, 280, 9])
    assert [r["ns"] for r in cases[2].rows] == [60 / ways.SWITCHES, 80 / ways.SWITCHES]
    assert [r["ns"] for r in cases[3].rows] == [7, 9]


@pytest.fixture(name="guest")
def virtio_guest(tmp_path):
    device = plan.device("virtio-4k", "virtio", 4)
    with Study([device], peers=False, accel="tcg",
               workdir=tmp_path) as guest:
        yield guest
        guest.quit()


def test_main_loop_stopped_too_late(guest, monkeypatch):
    """If the guest's row does not arrive while the main loop is stopped, the study
    repeats the run."""
    find, missed = guest.out.find, []

    def miss(pattern, timeout):
        status = Path(f"/proc/{guest.process.pid}/status").read_text()
        if "tracing stop" in status and not missed:
            missed.append(pattern)
            return None
        return find(pattern, timeout)

    monkeypatch.setattr(guest.out, "find", miss)
    row = guest.run("virtio-4k", "stopped", events=100)
    assert missed and row["host"]["events"] == 100, row


def give_up(guest):
    """Send a QMP command while QEMU is stopped, and give up waiting for the reply,
    which arrives later"""
    with pytest.MonkeyPatch.context() as patch, \
            StoppedThread(guest.process.pid):
        patch.setattr("vm.machine.QMP_TIMEOUT", 0.5)
        with pytest.raises(Failure, match="query-status: no reply"):
            guest.qmp.command("query-status")


def test_qmp_goes_on_after_no_reply(guest):
    """The late reply of an earlier command does not disturb the next command,
    or the wait for an event."""
    qmp = guest.qmp
    give_up(guest)
    assert "major" in qmp.command("query-version")["qemu"]
    give_up(guest)
    with pytest.raises(Failure, match="no event NONE"):
        qmp.wait_event("NONE", 0.5)


def test_exits_are_those_that_kvm_counts(study):
    """The number of exits that KVM counts is about the number of the producer's events
    (peer "mmio") or of its doorbells (channels)."""
    _, result, _ = study
    found = {c["series"]: c["rows"][0] for c in cases(result, table="exits")}
    if not any("kvm_exits" in row for row in found.values()):
        pytest.skip("no KVM, or it has no statistics")
    for series in ("hypercall, batch 1", "hypercall, batch 10", "mmio"):
        row = found[series]
        events = row["sent"] / (10 if series.endswith("10") else 1)
        assert events <= row["kvm_exits"] <= events * 1.1 + 20, row
    for series in ("shm", "virtio"):
        row = found[f"{series}, consumer stopped"]
        assert row["kvm_exits"] < 20 < row["sent"], row
        row = found[series]
        assert abs(row["kvm_exits"] - row["doorbells"]) < 20, row


def test_consumers(study):
    """Without a guest, the study measures with no consumer, and with a paced, a sleeping and
    a spinning one; in a guest under KVM, with a stopped, a paced and a sleeping one."""
    _, result, _ = study
    native = {c["series"] for c in cases(result, table="native")}
    assert {"emit", "paced live consumer", "sleeping consumer",
            "spinning consumer"} <= native
    if kvm_problem():
        pytest.skip(kvm_problem())
    for channel in ("shm", "virtio"):
        found = cases(result, table="consumer",
                      series=f"{channel}, as fast as possible")
        assert {c["x"] for c in found} == {"stopped", "asleep"} | (
            {"paced"} if channel == "shm" else set())
        row = next(c for c in found if c["x"] == "stopped")["rows"][0]
        assert row["discarded"] == 0
    one, = cases(result, table="one event", series="shm")
    assert one["rows"][0]["woken"] >= 1


def test_nothing_lost_silently(study):
    """Each event that the guest sent was delivered or counted as dropped by the host; the host
    knows how many events the guest discarded."""
    _, result, _ = study
    checked = 0
    for c in result["cases"]:
        for row in c["rows"]:
            if row.get("function") != "run":
                continue
            host = row["host"]
            assert row["sent"] == host["events"] + host["dropped"], c["id"]
            assert row["discarded"] == host["lost"], c["id"]
            checked += 1
    assert checked > 50


def test_hypercall_rings_once_a_batch(study):
    for c in cases(study[1], table="batch"):
        for row in c["rows"]:
            assert row["doorbells"] == row["sent"] / c["x"]


def test_targets_are_all_reported(study):
    out, result, text = study
    assert len(result["targets"]) >= 21
    markdown = (out / "report.md").read_text()
    for t in result["targets"]:
        assert t["figure"] in text and t["figure"] in markdown
        assert t["reached"] in (True, False, None)
        if t["reached"] is None:
            assert t["measured"] == "not measured"
        if t["reached"] is not True:
            assert t["why"]


def test_report_again(study, tmp_path):
    out, _, _ = study
    bench("--from", out / "figures.json", "--report", tmp_path)
    assert (tmp_path / "report.md").read_text() == \
        (out / "report.md").read_text()


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.sources, self.depth = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.sources += [attrs[k] for k in ("src", "href") if k in attrs]
        if tag not in ("img", "meta", "link", "br"):
            self.depth.append(tag)

    def handle_endtag(self, tag):
        assert self.depth.pop() == tag


def test_page_is_self_contained(study):
    page = Page((study[0] / "report.html").read_text())
    assert not page.depth
    assert all(s.startswith("data:") for s in page.sources), page.sources
    if plot.problem():
        pytest.skip(plot.problem())
    assert len(page.sources) >= 5


def test_page_in_a_browser(study, tmp_path):
    """A browser opens the report from a file and shows each picture."""
    page = tmp_path / "page.html"
    probe = ("<script>addEventListener('load', () => document.title = "
             "[...document.images].map(i => i.complete && i.naturalWidth > 0)"
             ".join() + ' loaded')</script></body>")
    text = (study[0] / "report.html").read_text()
    page.write_text(text.replace("</body>", probe))
    title = re.search(r"<title>(.*)</title>", browser.dom(page, tmp_path))[1]
    assert title.endswith(" loaded") and "false" not in title, title
    assert title.count("true") == text.count("<img ")


@pytest.mark.parametrize("args, what", [
    (["--channels", "shm,udp"], "'udp' is not one of"),
    (["--peers", "pigeon"], "'pigeon' is not one of"),
    (["--rounds", "0"], "1 to 100"),
    (["--from", "no-such-file"], "no such file"),
    (["--json", "no-such-dir/x.json"], "is not a directory"),
    (["--compare", os.devnull, "no-such-file"], "no such file"),
])
def test_wrong_use(args, what):
    done = bench(*args, check=False)
    assert done.returncode == 2 and what in done.stderr


def made_up(accel, table, series, x, values, **more):
    return {"accel": accel, "table": table, "series": series, "x": x,
            "summary": {"p50_ns": stats.spread(values)},
            "rows": [{"p50_ns": v, **more} for v in values]}


def test_ratios_are_taken_within_rounds():
    """Ratios are computed within each round: a round in which the machine is half
    as fast does not change them."""
    result = {"cases": [
        made_up("native", "native", "limit", 32, [10, 20, 10]),
        made_up("native", "native", "emit", 32, [11, 22, 11])]}
    target, = [t for t in targets.evaluate(result)
               if t["figure"].startswith("native emit of 32 bytes, against")]
    assert abs(target["value"] - 1.1) < 1e-9
    assert target["reached"] is False


def test_overhead_is_of_the_same_round():
    """The overhead is computed within each round: twice the time, or half the
    rate, in every round is 100 % without deviation."""
    class Case:
        def __init__(self, values, more):
            self.rows = [{"value": v} for v in values]
            self.options = {"more_is_better": more}
    for values, more in (([2, 8], False), ([0.5, 2], True)):
        cost = stats.overhead(Case(values, more), Case([1, 4], more))
        assert cost == {"mean": 100, "n": 2, "sd": 0}


def run_of(tmp_path, name, emit, processor="one", factor=1):
    path = tmp_path / name
    path.write_text(json.dumps({
        "started": "now", "profile": "made up", "rounds": 3,
        "environment": {"processor": processor, "load before": "0"},
        "cases": [made_up("native", "native", "limit", 32,
                          [factor * v for v in (10, 20, 10)]),
                  made_up("native", "native", "emit", 32, emit)]}))
    return path


@pytest.mark.parametrize("emit, agree", [
    ([11, 22, 11], True),               # equal figures
    ([12, 24, 12], True),               # within the spread of runs
    ([14, 28, 14], False),
    ([14, 22, 14], False),              # only one run has a wide spread
])
def test_runs_agree(tmp_path, emit, agree):
    """bench --compare succeeds if the median of each ratio of one run lies within
    the spread of the other run, both ways."""
    one = run_of(tmp_path, "a", [11, 22, 11])
    done = bench("--compare", one, run_of(tmp_path, "b", emit), check=False)
    assert done.returncode == (0 if agree else 1), done.stderr
    assert ("not within the other's spread: native" in done.stdout) != agree


def test_other_machines_do_not_compare(tmp_path):
    done = bench("--compare", run_of(tmp_path, "a", [1, 1, 1]),
                 run_of(tmp_path, "b", [1, 1, 1], "another"), check=False)
    assert done.returncode == 1 and "different machines" in done.stderr


def test_tcg_draws_no_conclusions():
    cases = [made_up("tcg", "payload", c, 32, [v])
             for c, v in (("shm", 40), ("hypercall", 50), ("virtio", 60))]
    assert not conclusions.conclude(
        targets.Figures({"cases": cases}))
    assert all(t["reached"] is None
               for t in targets.evaluate({"cases": cases}))


@pytest.mark.parametrize("after, worse", [
    ([[11, 22, 11], [22, 44, 22]], False),      # equal in each round
    ([[14, 28, 14], [26, 52, 26]], True),
    ([[14, 28, 14], [18, 36, 18]], False),      # worse once, better once
])
def test_runs_in_turns(tmp_path, after, worse):
    """bench --before --after: a regression counts only if both pairs of runs have it.  In
    the second run of --after the machine is half as fast, which is no regression."""
    before = [run_of(tmp_path, f"before{n}", [11, 22, 11]) for n in (1, 2)]
    after = [run_of(tmp_path, f"after{n}", emit, factor=n)
             for n, emit in enumerate(after, 1)]
    done = bench("--before", *before, "--after", *after, check=False)
    assert done.returncode == worse, done.stderr
    assert ("! " in done.stdout) == worse, done.stdout


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_what_is_gone_is_worse(tmp_path, runs):
    before, after = (run_of(tmp_path, n, [11, 22, 11]) for n in "ab")
    result = json.loads(after.read_text())
    result["cases"] = result["cases"][:1]
    after.write_text(json.dumps(result))
    done = bench("--before", *[before] * runs, "--after", *[after] * runs,
                 check=False)
    assert done.returncode == 1 and "!    inf" in done.stdout, done


def test_runs_in_turns_are_pairs(tmp_path):
    one = run_of(tmp_path, "a", [1, 1, 1])
    done = bench("--before", one, check=False)
    assert done.returncode == 2 and "go together" in done.stderr
    done = bench("--before", one, "--after", one, one, check=False)
    assert done.returncode == 1 and "as many each" in done.stderr
