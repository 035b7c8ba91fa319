# SPDX-License-Identifier: GPL-2.0-or-later
"""Do the ratios of two runs agree within the spread that each run states?

The spread of a ratio is the range of its rounds, and at least the part FLOOR of the
median above and below the median.  FLOOR allows for conditions that differ between runs
but not within a run.  Quartiles describe one run only, so they are not used here.
"""

import json
import sys

from bench.stats import FLOOR, ratio, spread
from bench.targets import Figures, evaluate

SAME = ("processor", "processors", "kernel", "QEMU", "KVM")

# Tables with figures that are not divided by the limit loop's cost: figures of the limit
# loop itself ("base"), figures that are measured in other rounds than the limit loop, and
# figures that do not depend on the processor's speed alone
BASELESS = ("base", "latency", "linux", "macro", "one event", "overload",
            "producers", "ways")


class _Base:
    """The cost of the limit loop near a case: for each round, the mean of the loop's
    last measurement before the case and its first measurement after the case"""

    def __init__(self, before, after):
        self.rows = [{"p50_ns": (a["p50_ns"] + b["p50_ns"]) / 2}
                     for a, b in zip(before.rows, after.rows)]


def bases(f):
    """{case: the measurement of the limit loop by which the case's cost is divided}

    f.cases must be in the order of a round.
    """
    near = {}
    limit = f.get("native", "native", "limit", 32)
    base = [c for c in f.cases.values() if (c.accel, c.table) ==
            ("kvm", "base")]
    seen = 0
    for key, case in f.cases.items():
        if case.accel == "native" and limit and case is not limit:
            near[key] = limit
        elif case.table == "base":
            seen += 1
        elif case.accel == "kvm" and base:
            near[key] = _Base(base[max(seen - 1, 0)],
                              base[min(seen, len(base) - 1)])
    return near


def ratios(result):
    """{name: spread} of the ratios of the targets, and of the cost of each case outside
    BASELESS divided by that of the limit loop"""
    f = Figures(result)
    found = {}
    for t in evaluate(result):
        if "ratio" in t:
            m, low, high = t["ratio"]
            found[t["figure"]] = {"median": m, "min": low, "max": high}
    near = bases(f)
    for key, case in f.cases.items():
        accel, table, series, x = key
        if table in BASELESS or key not in near or \
                series.startswith("latency"):
            continue
        r = ratio(case, near[key])
        if r:
            found[f"{accel}, {table}: {series}, {x}, against the limit"] = r
    return found


def stated(s):
    """The range that is stated for a ratio: from its lowest to its highest value, but at
    least FLOOR * median on each side of the median"""
    return (min(s["min"], s["median"] * (1 - FLOOR)),
            max(s["max"], s["median"] * (1 + FLOOR)))


def disagreements(a, b):
    a, b = ratios(a), ratios(b)
    both = [name for name in a if name in b]
    bad = []
    for name in both:
        (a_low, a_high), (b_low, b_high) = stated(a[name]), stated(b[name])
        if not (b_low <= a[name]["median"] <= b_high and
                a_low <= b[name]["median"] <= a_high):
            bad.append((name, a[name], b[name]))
    return both, bad


def _show(s):
    low, high = stated(s)
    return f"{s['median']:.3g} ({low:.3g} to {high:.3g})"


def same_machine(one, two):
    for key in SAME:
        if one["environment"].get(key) != two["environment"].get(key):
            sys.exit(f"error: runs of different machines do not compare: "
                     f"{key} is {one['environment'].get(key)}, and "
                     f"{two['environment'].get(key)}")


def compare(a, b):
    one, two = (json.loads(p.read_text()) for p in (a, b))
    same_machine(one, two)
    for path, result in ((a, one), (b, two)):
        e = result["environment"]
        print(f"{path}: {result['started']}, profile {result['profile']}, "
              f"{result['rounds']} rounds, load before {e['load before']}")
    both, bad = disagreements(one, two)
    if not both:
        sys.exit("error: the runs have no ratio in common")
    share = [abs(x["median"] / y["median"] - 1) for x, y in (
        (ratios(one)[n], ratios(two)[n]) for n in both)]
    s = spread(share)
    print(f"{len(both)} ratios; their medians differ by {100 * s['median']:.1f}"
          f" % (quartiles {100 * s['q1']:.1f} to {100 * s['q3']:.1f} %, at "
          f"most {100 * s['max']:.0f} %)")
    for name, x, y in bad:
        print(f"  not within the other's spread: {name}: {_show(x)}, "
              f"{_show(y)}")
    print(f"{len(both) - len(bad)} of {len(both)} ratios agree within the "
          "stated spread")
    return 1 if bad else 0
