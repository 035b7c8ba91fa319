# SPDX-License-Identifier: GPL-2.0-or-later
"""./run demo as a user runs it: its output, its files, and its cleanup."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from commands import command
from demo.rounds import Run
from demo.rows import make
from vm.lttng_session import missing_programs
from vm.payload import kvm_problem

TOP = Path(__file__).resolve().parents[2]

CHANNELS = ["hypercall", "shm", "virtio"]
TIMEOUT = 600

# Names of the fields of a row, from the table in docs/demo.md
ROW_KEYS = set(re.findall(r"^\| `(\w+)` \|", (
    TOP / "docs/demo.md").read_text().partition("## A row")[2], re.M))


def demo(*args, **kwargs):
    """Run ./run demo. With env=environment(tmp_path), the demo has a
    private folder for temporary files."""
    return subprocess.run(
        command("demo", *args), check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT, **kwargs)


def environment(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return dict(os.environ, HT_SCRATCH=str(scratch))


def left_behind(tmp_path):
    """Return the folders and processes that the demo left over, after up to 10 s in which
    killed processes can end."""
    deadline = time.monotonic() + 10
    while (found := all_left(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def all_left(tmp_path):
    scratch = tmp_path / "scratch"
    found = [str(p) for p in scratch.iterdir()]
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if os.fsencode(f"HT_SCRATCH={scratch}\0") in environ.read_bytes():
                found.append(environ.with_name("cmdline").read_text())
        except OSError:
            pass            # The process has ended, or is another user's.
    return found


def check_rows(result, p, accel, channels, payloads):
    rows = [r for r in result["rows"] if r["accel"] == accel]
    assert sorted({r["channel"] for r in rows}) == channels, p.stderr
    for channel in channels:
        got = [r["payload"] for r in rows
               if r["channel"] == channel and r["batch"] == 1]
        assert got == payloads
    for r in rows:
        assert set(r) == ROW_KEYS
        assert r["sent"] > 0 and r["altered"] == 0 and not r["problems"]
        assert r["sent"] == (r["recorded"] + r["discarded"]
                             + r["lttng_discarded"])
        assert 0 < r["ns_median"] <= r["ns_p99"]


@pytest.mark.parametrize("recorder", ["lttng", "ctf"])
def test_linux(tmp_path, recorder):
    if recorder == "lttng" and missing_programs():
        pytest.skip("LTTng is not installed")
    out = tmp_path / "out.json"
    p = demo("--accel", "tcg", "--recorder", recorder, "--events", 2000,
             "--payloads", "32,mix", "--json", out, env=environment(tmp_path))
    assert p.returncode == 0, p.stderr
    result = json.loads(out.read_text())
    assert (result["ok"], result["recorder"]) == (True, recorder)
    check_rows(result, p, "tcg", CHANNELS, ["32", "mix"])
    for r in result["rows"]:
        assert r["sent"] == 2200
        assert (r["latency_median_ns"] is not None) == (recorder == "lttng")
    lines = [x.split() for x in p.stdout.splitlines()]
    for r in result["rows"]:
        assert [x for x in lines if x[:3] == [r["accel"], r["channel"],
                                              r["payload"]]], p.stdout
    assert "Compare channels in rows of kvm only" in p.stdout
    assert left_behind(tmp_path) == []


def test_kvm(tmp_path):
    problem = kvm_problem()
    if problem:
        pytest.skip(problem)
    out = tmp_path / "out.json"
    p = demo("--accel", "kvm", "--events", 1000, "--payloads", "8",
             "--json", out, "--keep", tmp_path / "kept",
             env=environment(tmp_path))
    assert p.returncode == 0, p.stderr
    result = json.loads(out.read_text())
    check_rows(result, p, "kvm", CHANNELS, ["8"])
    exits = {(r["channel"], r["batch"]): r["exits_per_1000"]
             for r in result["rows"]}
    assert exits["hypercall", 1] == 1000
    assert exits["hypercall", 10] == 100
    assert exits["shm", 1] < 100 and exits["virtio", 1] < 100
    trace, = (tmp_path / "kept/lttng").glob("*-burst") \
        if result["recorder"] == "lttng" \
        else [tmp_path / "kept"]
    q = subprocess.run(["babeltrace2", trace], check=False, text=True,
                       capture_output=True)
    assert q.returncode == 0 and "bench.e8" in q.stdout, q.stderr
    assert left_behind(tmp_path) == []


def test_without_kvm(tmp_path):
    """Without a usable KVM, --accel kvm is an error with a reason."""
    if not kvm_problem():
        pytest.skip("KVM can be used here")
    p = demo("--accel", "kvm", env=environment(tmp_path))
    assert p.returncode != 0 and "/dev/kvm" in p.stderr


def test_without_lttng(tmp_path):
    """Without LTTng on the host, the demo reports that and records CTF."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in os.environ["PATH"].split(":"):
        for tool in Path(folder).glob("*") if folder else []:
            link = tools / tool.name
            if not tool.name.startswith("lttng") and not link.exists() \
                    and not link.is_symlink():
                link.symlink_to(tool)
    out = tmp_path / "out.json"
    env = dict(environment(tmp_path), PATH=str(tools))
    p = demo("--accel", "tcg", "--events", 200, "--payloads", "8",
             "--channels", "shm", "--json", out, env=env)
    assert p.returncode == 0, p.stderr
    assert re.search("LTTng: .*not installed; recording with", p.stderr)
    assert json.loads(out.read_text())["recorder"] == "ctf"


def test_without_verifier(tmp_path):
    env = dict(environment(tmp_path), HT_BUILD=str(tmp_path))
    p = demo("--accel", "tcg", env=env)
    assert p.returncode == 1 and "ht-verify was not built" in p.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("args, what", [
    (["--channels", "shm,pigeon"], "'pigeon' is not one of"),
    (["--events", "many"], "100 to 10000000"),
    (["--events", "3"], "100 to 10000000"),
    (["--payloads", "9"], "'9' is not one of"),
    (["--keep", "."], "is there already"),
    (["--json", "no/such.json"], "no such directory"),
    (["--nonsense"], "unrecognized arguments"),
])
def test_usage(tmp_path, args, what):
    p = demo(*args, cwd=tmp_path, env=environment(tmp_path))
    assert p.returncode == 2 and what in p.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_interrupted(tmp_path):
    """Ctrl-C while the guest emits leaves no folder and no process."""
    env = environment(tmp_path)
    # let the demo receive SIGINT, which a background job of a shell ignores
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
            command("demo", "--accel", "tcg", "--payloads", "8", "--events",
                    10000000),
            stdin=subprocess.DEVNULL, env=env, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True) as p:
        signal.signal(signal.SIGINT, before)
        for line in p.stderr:
            if "payload 8" in line:
                break
        p.send_signal(signal.SIGINT)
        p.stderr.read()
        assert p.wait(60) != 0
    assert left_behind(tmp_path) == []


def a_run(told=5, **changed):
    """A run of 100 events, of which LTTng discarded 10 and the guest 5.

    told: number of events discarded by the guest that the trace reports
    changed: other values for figures of this run, which contradict the rest
    """
    stream = {"device": "shm", "stream": 0, "instance": 1, "trace": "lttng",
              "recorded": 85, "altered": 0, "duplicates": 0, "disordered": 0,
              "backward": 0, "discarded": told,
              "latency": {"median_ns": 10, "p99_ns": 20, "min_ns": 5,
                          "max_ns": 30, "negative": 0}}
    bench = {"channel": "shm", "batch": 1, "mapping": "write-back",
             "ns_median": 10, "ns_p99": 12, "ns_mean": 10,
             "events_per_s": 10**8, "payload_bytes": 8 * 95,
             "duration_ns": 1000, "doorbells": 2, "rate": 0, "sent": 95,
             "discarded": 5, "streams": [{"instance": 1}]}
    after = {"events": 95, "lost": 5, "dropped": 0, "wakeups": 3, "errors": 0,
             "clock-bound-ns": 20}
    trace = {"streams": [stream], "lttng_channels": {"shm": 10},
             "lttng_discarded_exact": True}
    for name, value in changed.items():
        for part in (stream, bench, after, trace):
            if name in part and not (part is stream and name == "discarded"):
                part[name] = value
                break
        else:
            raise KeyError(name)
    run = Run({"id": "shm"}, "tcg", "linux", "8", "burst", bench,
              dict.fromkeys(after, 0), after)
    run.trace = trace
    return run


def test_verdict_sound():
    row = make(a_run(), a_run())
    assert row["problems"] == []
    assert (row["sent"], row["recorded"], row["discarded"],
            row["lttng_discarded"], row["unaccounted"]) == (200, 170, 10, 20,
                                                            0)
    assert set(row) == ROW_KEYS


@pytest.mark.parametrize("changed, what", [
    ({"recorded": 84}, "1 events are unaccounted for"),
    ({"recorded": 86}, "-1 events are unaccounted for"),
    ({"sent": 96}, "the guest says it sent 96"),
    ({"events": 94}, "the device accepted 94"),
    ({"lost": 4}, "the device knows of 4"),
    ({"lttng_channels": {}}, "10 events are unaccounted for"),
    ({"lttng_channels": {"virtio": 10}}, "10 events are unaccounted for"),
    ({"lttng_discarded_exact": False}, "LTTng does not know"),
    ({"altered": 1}, "1 events were altered"),
    ({"duplicates": 1}, "1 events: duplicates"),
    ({"disordered": 2}, "2 events: disordered"),
    ({"backward": 3}, "3 events: backward"),
    ({"errors": 1}, "the device found 1 errors"),
    ({"told": 4}, "the trace says 4 events were discarded"),
])
def test_verdict(changed, what):
    row = make(a_run(), a_run(**changed))
    assert any(what in p for p in row["problems"]), row["problems"]
