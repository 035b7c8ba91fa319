# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures measured on the host without a guest, by the programs of
tests/bench."""

import json
import os
import subprocess
from pathlib import Path

from bench.plan import SIZES, Case
from vm.machine import Failure

# {name of a row of emit-bench: (table, series, x) of its case in the comparison}
ROWS = {
    "clock": ("native", "the clock alone", 0),
    "limit": ("native", "limit", 32),
    "emit-text": ("native", "text", 18),
    "emit-32-noclock": ("native", "without a clock", 32),
    "emit-8-noclock": ("native", "without a clock", 8),
    "emit-32-stamps": ("native", "clock for each 8th event", 32),
    "emit-8-stamps": ("native", "clock for each 8th event", 8),
    "stores-32": ("native", "clock and an emit's stores", 32),
    "discarded": ("native", "discarded", 32),
    "emit-32-live": ("native", "paced live consumer", 32),
    "emit-32-asleep": ("native", "sleeping consumer", 32),
    "emit-32-spun": ("native", "spinning consumer", 32),
    "stores-8-noclock": ("native", "its stores alone, without a clock", 8),
    "limit-live": ("native", "limit, copied every 20 µs", 32),
    "limit-live-ahead": ("native", "limit, copied, lines fetched ahead", 32),
    "lttng-ust": ("native", "LTTng-UST static tracepoint", 32),
    **{f"emit-{size}": ("native", "emit", size) for size in SIZES},
    "empty": ("tracepoint", "none: the loop alone", "off"),
    "trace-off": ("tracepoint", "ht_trace()", "no device"),
    "trace-host-off": ("tracepoint", "ht_trace()", "off"),
    "trace-32": ("tracepoint", "ht_trace()", "on"),
    "lttng-ust-off": ("tracepoint", "LTTng-UST", "off"),
    "usdt-off": ("tracepoint", "USDT", "off"),
    "usdt": ("tracepoint", "USDT, recorded by the kernel", "on"),
}
PEERS = {"lttng-ust": "lttng-ust", "lttng-ust-off": "lttng-ust",
         "usdt": "usdt", "usdt-off": "usdt"}
USDT = Path(__file__).resolve().parents[2] / "tests/bench/usdt.sh"

SHORT_ROUNDS = 9


def program(name):
    return Path(os.environ["HT_BUILD"]) / "tests/bench" / name


def _json(argv, env=None):
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=env,
                          timeout=600)
    if done.returncode:
        raise Failure(f"{argv[0]}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Native:
    """Runs emit-bench and host-bench: each call of measure() adds one round to the
    cases."""

    def __init__(self, events, peers, env=None):
        self.events = events
        self.peers = peers
        self.env = env
        self.by_name = {
            name: Case(table, series, x, "native")
            for name, (table, series, x) in ROWS.items()}

    @property
    def cases(self):
        return [c for c in self.by_name.values() if c.rows]

    def measure(self):
        # Let emit-bench run SHORT_ROUNDS short rounds instead of a long one: their
        # median ignores rounds in which another program ran.
        bench = program("emit-bench")
        result = _json([*([USDT, bench] if "usdt" in self.peers else []),
                        bench, "--json", "--rounds", str(SHORT_ROUNDS),
                        "--events", str(self.events // SHORT_ROUNDS)],
                       self.env)
        for name, row in result["rows"].items():
            if name in self.by_name and (name not in PEERS or
                                         PEERS[name] in self.peers):
                self.by_name[name].rows.append(
                    {"p50_ns": row["ns"], "ns": row["ns"]})
        if program("host-bench").exists():
            for name, row in _json([program("host-bench"),
                                    "--json"], self.env)["rows"].items():
                self.by_name.setdefault(
                    f"host-{name}",
                    Case("host", name, 32, "native")).rows.append(row)
