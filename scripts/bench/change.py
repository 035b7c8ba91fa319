# SPDX-License-Identifier: GPL-2.0-or-later
"""Did a change make anything worse? Runs before the change alternate with runs
after it.

The first run before the change is compared with the first run after it, and so on, by
the ratio of their figures; shown are the median and quartiles over these pairs.  The
cost of an emit is first divided by that of the limit loop in the same round, if
compare.py does so.  The limit loop reads the clock and stores 40 bytes and the head, as
an emit of 32 bytes does, but checks nothing.
"""

import json
import math
import sys

from bench.compare import BASELESS, bases, same_machine
from bench.stats import ratio, spread
from bench.targets import Figures

# {name of a measured figure: True if a lower value is better}
FIGURES = {"p50_ns": True, "delivered_per_s": False, "latency_p50_ns": True,
           "host_cpu_ns": True, "insns": True}
WORSE = 1.1


def costs(result):
    """{(case, figure): median over the rounds}, in which a lower value is always
    better: for a figure of which more is better, it is 1 / median. The cost p50_ns
    of a case is divided by that of the limit loop if compare.py does so for the
    case's table."""
    f = Figures(result)
    near = bases(f)
    found = {}
    for key, case in f.cases.items():
        name = ", ".join(str(k) for k in key)
        if "limit" in key[1:3] or key[1] == "base":
            # Leave out the limit loop, also where it was measured between other cases
            # (table "base"): it shows the speed of the machine, not of hypertrace.
            continue
        for figure, less in FIGURES.items():
            s = case.summary.get(figure)
            if not s or (less and not s["median"]):
                continue
            if figure == "p50_ns" and key in near and key[1] not in BASELESS:
                r = ratio(case, near[key])
                if r:
                    found[name, "p50_ns / limit"] = r["median"]
                continue
            found[name, figure] = s["median"] if less else \
                1 / s["median"] if s["median"] else math.inf
    return found


def changes(before, after):
    """{(case, figure): spread of after / before over the pairs of runs}; a higher ratio
    is worse

    If a figure is missing in a run after the change, or a rate of delivery is 0
    there, the ratio of its pair is infinite.  If a figure is missing in a run before
    the change, or a rate of delivery is 0 there, the figure is left out.
    """
    pairs = [(costs(b), costs(a)) for b, a in zip(before, after)]
    had = [key for key in pairs[0][0]
           if all(b.get(key, math.inf) < math.inf for b, _ in pairs)]
    return {key: spread([a.get(key, math.inf) / b[key] for b, a in pairs])
            for key in had}


def show(before, after):
    """Print how each figure differs between the runs before and after; return 1 if a figure is
    worse, else 0."""
    if len(before) != len(after):
        sys.exit("error: --before and --after are runs in turns: as many each")
    before, after = ([json.loads(p.read_text()) for p in paths]
                     for paths in (before, after))
    for result in before + after:
        same_machine(before[0], result)
    found = changes(before, after)
    if not found:
        sys.exit("error: the runs have no figure in common")
    worse = 0
    print("after / before, more is worse: median [quartiles] of "
          f"{len(before)} pairs of runs")
    for (case, figure), s in sorted(found.items(),
                                    key=lambda i: -i[1]["median"]):
        # If the lower quartile of the ratios is 1 or less, the figure is not worse.
        # "not q1 <= 1" is also true if infinite ratios make q1 a NaN.
        bad = s["median"] > WORSE and not s["q1"] <= 1
        worse += bad
        print(f"{'!' if bad else ' '} {s['median']:6.3f} [{s['q1']:.3f} - "
              f"{s['q3']:.3f}]  {case}: {figure}")
    print(f"{worse} of {len(found)} figures are more than {WORSE} times worse")
    return 1 if worse else 0
