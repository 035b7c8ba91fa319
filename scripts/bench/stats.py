# SPDX-License-Identifier: GPL-2.0-or-later
"""Compute figures from the rows that the rounds of a run measured: medians and their
spread, ratios, and differences."""

import statistics

# Minimum distance of each end of a ratio's stated range from the median, as a part of the
# median. Some conditions, such as alignment in memory, differ between runs but hardly within
# a run, so the rounds of one run do not show their effect.
FLOOR = 0.10


def spread(values):
    """Summary of measured values: median, quartiles, range and number"""
    values = sorted(values)
    if len(values) == 1:
        q1 = q3 = values[0]
    else:
        q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": statistics.median(values), "q1": q1, "q3": q3,
            "min": values[0], "max": values[-1], "n": len(values)}


def derived(row):
    """The figures of one round's row, such as the cost of an event and rates, by name"""
    if row.get("function") == "pair":
        each = [row[k]["p50_ns"] for k in ("first", "second") if k in row]
        return {"p50_ns": sum(each) / len(each),
                "p99_ns": max(row[k]["p99_ns"] for k in ("first", "second")
                              if k in row),
                # sum of the producers' rates, each computed from its median cost
                "events_per_s": sum(1e9 / v for v in each)}
    if row.get("function") == "macro":
        return {"value": row["value"]}
    if row.get("function") == "ways":
        return {k: row[k] for k in ("insns", "insns_least", "insns_mean", "ns")
                if k in row}
    sent = row.get("sent")
    result = {k: row[k] for k in ("ns", "p50_ns", "p90_ns", "p99_ns",
                                  "max_ns", "events_per_s", "mb_per_s",
                                  "latency_p50_ns", "latency_p99_ns")
              if k in row}
    if sent and row.get("function") == "run":
        took = row["duration_ns"]
        if row["consumer"] != "stopped":
            took += row["drain_ns"]
            host = row["host"]
            # Divide by the time from the first emit to the end of the last one, without the
            # time in which the host reads events that are in the ring after the last emit.
            result["delivered_per_s"] = (host["events"] * 1e9 /
                                         row["duration_ns"])
            result["delivered_share"] = host["events"] / (
                sent + row["discarded"])
            result["host_cpu_ns"] = row["host_cpu_ns"] / sent
            result["wakeups"] = host["wakeups"]
        result["offered_per_s"] = ((sent + row["discarded"]) * 1e9 /
                                   row["duration_ns"])
        result["events_per_s"] = sent * 1e9 / took
        result["mb_per_s"] = sent * row["event"] * 1e3 / took
        result["exits_per_event"] = row["doorbells"] / sent
        result["discarded_share"] = row["discarded"] / (
            sent + row["discarded"])
        if "woken" in row:
            result["woken"] = row["woken"]
    elif sent:
        result["events_per_s"] = sent * 1e9 / row["duration_ns"]
        if "doorbells" in row:
            result["exits_per_event"] = row["doorbells"] / sent
    if "kvm_exits" in row:
        result["kvm_exits_per_event"] = row["kvm_exits"] / sent
    return result


def summarise(rows):
    each = [derived(r) for r in rows]
    names = [k for k in each[0] if all(k in e for e in each)]
    return {k: spread([e[k] for e in each]) for k in names}


def ratio(above, below, name="p50_ns"):
    """Summary (see spread()) of the ratio of the figure @name of two cases, which is
    computed for each round; None if there is no round with both figures"""
    if not above or not below:
        return None
    pairs = [(derived(a).get(name), derived(b).get(name))
             for a, b in zip(above.rows, below.rows)]
    pairs = [(a, b) for a, b in pairs if a is not None and b]
    return spread([a / b for a, b in pairs]) if pairs else None


def overhead(case, baseline):
    """Mean and standard deviation over the rounds of a case's extra cost over @baseline,
    in percent, with the number of rounds; None if there is no round with both values"""
    each = []
    for row, base in zip(case.rows, baseline.rows):
        if row["value"] and base["value"]:
            r = row["value"] / base["value"]
            each.append(100 * ((1 / r if case.options["more_is_better"]
                                else r) - 1))
    if not each:
        return None
    return {"mean": statistics.mean(each), "n": len(each),
            "sd": statistics.stdev(each) if len(each) > 1 else 0.0}
