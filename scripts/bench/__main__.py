# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare hypertrace's channels with each other and with their peers.

A group of cases is measured in interleaved rounds: a round measures each case once.
Without a usable KVM, the guests' times come from TCG: they prove that a channel works,
but their ratios mean nothing.  Instructions are always counted under TCG.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import plan, stats

SCHEMA = 1
NATIVE_PEERS = ["lttng-ust", "usdt"]

PROFILES = {
    # Columns: number of rounds; ms per case; number of events per row of emit-bench; ms per
    # rate of "overload"; number of events of a latency case at the highest rate; number of
    # events of a source in a Linux guest
    "smoke": (1, 1, 100000, 5, 20, 320),
    "quick": (3, 8, 900000, 40, 250, 8000),
    "full": (11, 40, 3600000, 100, 1000, 40000),
}

# Maximum number of starts of the guest that measures the costs. Each start places the
# guest elsewhere in memory, which affects the figures; with several starts, the spread
# of the rounds includes this effect.
LAUNCHES = 3


def a_list(known):
    def parse(text):
        names = [n for n in text.split(",") if n]
        for n in names:
            if n not in known:
                raise argparse.ArgumentTypeError(
                    f"'{n}' is not one of {', '.join(known)}")
        return names
    return parse


def parse_args():
    parser = argparse.ArgumentParser(
        prog="./run bench", description=__doc__.split("\n\n")[0])
    which = parser.add_mutually_exclusive_group()
    for name, text in (("quick", "3 rounds, less than 3 minutes (default)"),
                       ("full", "11 rounds, about a quarter of an hour"),
                       ("smoke", "1 round, to check that all cases run")):
        which.add_argument(f"--{name}", dest="profile", action="store_const",
                           const=name, help=text)
    parser.add_argument("--accel", default="auto",
                        choices=["auto", "kvm", "tcg", "both"],
                        help="accelerator; auto: kvm if it works, else tcg")
    parser.add_argument("--channels", default=plan.CHANNELS,
                        type=a_list(plan.CHANNELS), metavar="LIST",
                        help="channels to measure, of "
                        + ",".join(plan.CHANNELS))
    peers = plan.PEERS + NATIVE_PEERS
    parser.add_argument("--peers", default=peers, type=a_list(peers),
                        metavar="LIST", help="peers to measure, of "
                        + ",".join(peers) + "; '' for none")
    parser.add_argument("--macro", action=argparse.BooleanOptionalAction,
                        help="also run benchmarks in a Linux guest, under TCG "
                        "if KVM emulates ring 0 (default: with --full)")
    parser.add_argument("--instructions", action="store_true",
                        help="measure only the instructions of an event in a "
                        "Linux guest")
    parser.add_argument("--rounds", type=int,
                        help="number of rounds (default: the profile's)")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="write all figures to FILE")
    parser.add_argument("--report", type=Path, metavar="DIR",
                        help="write report.html and report.md to DIR")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE",
                        help="do not measure; report on an earlier --json")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE",
                        help="do not measure; check that the ratios of two "
                        "earlier --json agree.  Status 1 if some do not")
    parser.add_argument("--before", type=Path, nargs="+", metavar="FILE",
                        help="do not measure; check that no figure of the runs "
                        "--after is worse than in these runs, which were made "
                        "in turns with them.  Status 1 if one is worse")
    parser.add_argument("--after", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--check", action="store_true",
                        help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.profile = args.profile or "quick"
    if args.macro is None:
        args.macro = args.profile == "full" and not args.instructions
    if args.rounds is not None and not 1 <= args.rounds <= 100:
        parser.error("--rounds is a number from 1 to 100")
    for name, path in [("--from", args.source)] + [
            (option, p) for option, paths in (
                ("--compare", args.compare), ("--before", args.before),
                ("--after", args.after)) for p in paths or []]:
        if path and not path.is_file():
            parser.error(f"{name} {path}: no such file")
    if bool(args.before) != bool(args.after):
        parser.error("--before and --after go together")
    for path in [args.json.parent] if args.json else []:
        if not path.is_dir():
            parser.error(f"--json: {path} is not a directory")
    return args


class Progress:
    def __init__(self, total):
        self.total, self.done = total, 0
        self.begin = time.monotonic()
        self.shown = 0
        self.tty = sys.stderr.isatty()

    def step(self, what):
        now = time.monotonic()
        if self.tty or now - self.shown >= 10:
            left = "?"
            if self.done >= 10:
                s = (now - self.begin) / self.done * (self.total - self.done)
                left = f"{int(s) // 60}:{int(s) % 60:02d}"
            text = f"[{self.done}/{self.total}] {left} left: {what}"
            sys.stderr.write(f"\r\033[K{text[:78]}" if self.tty
                             else f"   {text}\n")
            sys.stderr.flush()
            self.shown = now
        self.done += 1

    def finish(self):
        if self.tty:
            sys.stderr.write("\r\033[K")


class Bench:
    def __init__(self, args):
        self.args = args
        self.rounds, self.ms, self.native_events, self.step_ms, \
            self.latency_events, self.linux_events = PROFILES[args.profile]
        self.rounds = args.rounds or self.rounds
        self.skipped = []
        self.cases = []
        self.session = None
        self.mapping = {}

    def skip(self, what, why):
        print(f"   left out: {what}: {why}", file=sys.stderr)
        self.skipped.append({"what": what, "why": why})

    def accels(self):
        from vm.payload import kvm_problem
        problem = kvm_problem()
        wanted = {"auto": ["tcg"] if problem else ["kvm"],
                  "both": ["kvm", "tcg"]}.get(self.args.accel,
                                              [self.args.accel])
        if problem and "kvm" in wanted:
            self.skip("KVM", problem)
            wanted.remove("kvm")
        elif problem:
            self.skip("KVM, and with it all ratios", problem)
        if not wanted:
            sys.exit(f"error: nothing to measure with: {problem}")
        return wanted

    def open_session(self, stack):
        """Open LTTng's flight recorder, which records the native peer and the events of
        QEMU's backend "lttng"."""
        try:
            from vm.lttng_session import (
                PrivateSession, SessionError, missing_programs)
        except ImportError as e:
            return self.skip("LTTng", str(e))
        missing = missing_programs()
        if missing:
            return self.skip("LTTng", f"{', '.join(missing)} not installed")
        try:
            self.session = stack.enter_context(PrivateSession(
                snapshot=True, subbuf_size="256K", num_subbuf=8))
            stack.callback(shutil.rmtree,
                           Path(self.session.output).parent, True)
        except SessionError as e:
            self.skip("LTTng", str(e))
        return None

    def session_env(self):
        return self.session.env() if self.session else dict(os.environ)

    def run(self):
        from bench import env
        started = time.strftime("%Y-%m-%d %H:%M:%S %z")
        load = env.load()
        environment = env.collect()
        only_ways = self.args.instructions
        with contextlib.ExitStack() as stack:
            self.scratch = tempfile.mkdtemp(
                prefix="bench.", dir=os.environ.get("HT_SCRATCH"))
            stack.callback(shutil.rmtree, self.scratch, True)
            if not only_ways:
                self.open_session(stack)
            for n, accel in enumerate([] if only_ways else self.accels()):
                self.measure_costs(accel, native=n == 0)
                self.measure_pairs(accel)
                if accel == "kvm" or self.args.accel == "tcg":
                    self.measure_load(accel)
            if not only_ways:
                self.measure_linux(environment)
            self.measure_ways()
            if self.args.macro:
                self.measure_macro(environment)
        environment["accelerators"] = ", ".join(sorted(
            {c.accel for c in self.cases} - {"native"}))
        environment["mapping of stream memory"] = ", ".join(
            f"{k}: {v}" for k, v in sorted(self.mapping.items()))
        environment["load before"] = f"{load:.1f}"
        environment["load after"] = f"{env.load():.1f}"
        return self.result(started, environment)

    def measure_costs(self, accel, native):
        from bench.guest import Study
        from bench.native import Native
        args = self.args
        cases = plan.guest_cases(accel, args.channels, args.peers,
                                 self.ms)
        natives = Native(self.native_events, args.peers, self.session_env()) \
            if native else None
        progress = Progress(self.rounds * (len(cases) + bool(native)))
        print(f"==> costs, {accel}: {len(cases)} cases, {self.rounds} rounds",
              file=sys.stderr)
        launches = min(LAUNCHES, self.rounds)
        for n in range(launches):
            with Study(plan.devices(args.channels), accel=accel,
                       workdir=self.workdir(f"costs-{accel}-{n}")) as guest:
                for _ in range(n, self.rounds, launches):
                    if natives:
                        progress.step("native")
                        with guest.paused():
                            natives.measure()
                    for case in cases:
                        progress.step(case.id)
                        case.measure(guest)
                guest.quit()
        progress.finish()
        self.take(cases)
        if natives:
            self.take(natives.cases)

    def linux_accel(self, environment):
        """Return "tcg" for Linux guests if KVM cannot be used, if KVM emulates ring 0
        (a kernel then boots too slowly), or if the user chose TCG; else "kvm"."""
        from vm.payload import kvm_problem
        return "kvm" if not kvm_problem() and \
            "emulated" not in environment["KVM"] and \
            self.args.accel != "tcg" else "tcg"

    def measure_linux(self, environment):
        from bench import linux
        problem = linux.problem()
        if problem:
            return self.skip("sources in a Linux guest", problem)
        problem = linux.lttng_problem()
        if problem:
            self.skip("LTTng-UST in the guest", problem)
        accel = self.linux_accel(environment)
        rounds = min(self.rounds, 7)
        progress = Progress(rounds * linux.count(self.args.channels))
        print(f"==> sources in a Linux guest, {accel}: {rounds} rounds",
              file=sys.stderr)
        self.take(linux.measure(accel, self.args.channels, rounds,
                                self.linux_events,
                                self.workdir("linux"), progress.step))
        progress.finish()
        return None

    def measure_ways(self):
        from bench import ways
        problem = ways.problem()
        if problem:
            return self.skip("instructions an event", problem)
        # Counts of instructions hardly differ between rounds, so 3 rounds are enough.
        rounds = min(self.rounds, 3)
        events = min(self.linux_events, 8000)
        timed = self.args.profile != "smoke"
        progress = Progress(rounds * ways.count(self.args.channels, timed))
        print(f"==> instructions an event, tcg: {rounds} rounds",
              file=sys.stderr)
        self.take(ways.measure(self.args.channels, rounds,
                               events, self.workdir("ways"),
                               progress.step, timed))
        progress.finish()
        return None

    def measure_macro(self, environment):
        from bench import macro
        problem = macro.problem()
        if problem:
            return self.skip("macro-benchmarks", problem)
        accel = self.linux_accel(environment)
        rounds = {"smoke": 1, "quick": 2}.get(self.args.profile, 5)
        progress = Progress(rounds * macro.count(self.args.channels))
        print(f"==> macro-benchmarks, {accel}: {rounds} rounds",
              file=sys.stderr)
        self.take(macro.measure(accel, self.args.channels, rounds, 2,
                                self.workdir("macro"), progress.step))
        progress.finish()
        return None

    def measure_pairs(self, accel):
        from bench.guest import Study
        if len(os.sched_getaffinity(0)) < 2:
            return self.skip("two producers", "only one processor")
        cases = plan.pair_cases(accel, self.args.channels, self.ms)
        if not cases:
            return None
        progress = Progress(self.rounds * len(cases))
        print(f"==> two vCPUs, {accel}: {len(cases)} cases, {self.rounds} "
              "rounds", file=sys.stderr)
        with Study(plan.pair_devices(), peers=False, processors=2,
                   accel=accel, workdir=self.workdir(f"pairs-{accel}")) as vm:
            for _ in range(self.rounds):
                for case in cases:
                    progress.step(case.id)
                    case.measure(vm)
            vm.quit()
        progress.finish()
        self.take(cases)
        return None

    def measure_load(self, accel):
        from bench.guest import Study
        args = self.args
        backend = "lttng" if self.session else "null"
        if not self.session:
            self.skip("delivery latency", "needs LTTng")
        latency = list(plan.latency_cases(
            accel, args.channels, self.latency_events)) if self.session else []
        load = list(plan.overload_cases(accel, args.channels,
                                        self.step_ms))
        rounds = min(self.rounds, 7)
        progress = Progress(rounds * (len(load) + len(latency)))
        print(f"==> overload and latency, {accel}, backend {backend}: "
              f"{len(load) + len(latency)} cases, {rounds} rounds",
              file=sys.stderr)
        with Study(plan.load_devices(args.channels, backend),
                   peers=False, accel=accel, env=self.session_env(),
                   workdir=self.workdir(f"load-{accel}")) as guest:
            for _ in range(rounds):
                self.latency_round(guest, latency, progress)
                for case in load:
                    progress.step(case.id)
                    case.measure(guest)
            guest.quit()
        progress.finish()
        for case in load:
            case.options["backend"] = backend
        self.take(latency + load)

    def latency_round(self, guest, cases, progress):
        from bench.latency import percentiles, read
        for case in cases:
            progress.step(case.id)
            case.measure(guest)
            # The run may end in the guest before LTTng gets the last events: wait for them.
            guest.settle(case.device)
            # Read LTTng's flight recorder now: events of the next case may overwrite those of this
            # one.
            times = read(self.session, case.device,
                         case.options["events"])
            case.rows[-1].update(percentiles(times))

    def workdir(self, name):
        path = Path(self.scratch) / name
        path.mkdir()
        return path

    def take(self, cases):
        self.cases += cases
        for case in cases:
            for row in case.rows:
                if "mapping" in row:
                    self.mapping[row["channel"]] = row["mapping"]

    def result(self, started, environment):
        return {
            "tool": "hypertrace-bench", "schema": SCHEMA,
            "profile": self.args.profile, "rounds": self.rounds,
            "started": started,
            "ended": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "environment": environment, "skipped": self.skipped,
            "cases": [{
                "id": c.id, "accel": c.accel, "table": c.table,
                "series": c.series, "x": c.x, "device": c.device,
                "consumer": c.consumer, "options": c.options,
                "summary": stats.summarise(c.rows), "rows": c.rows,
            } for c in self.cases if c.rows],
        }


def as_text(result):
    whole = json.dumps(dict(result, cases=[]), indent=1)
    cases = ",\n  ".join(json.dumps(c) for c in result["cases"])
    return whole.replace('"cases": []', f'"cases": [\n  {cases}\n ]',
                         1) + "\n"


def main():
    args = parse_args()
    if args.check:
        return 0
    from vm.machine import Failure
    try:
        if args.compare:
            from bench.compare import compare
            return compare(*args.compare)
        if args.before:
            from bench.change import show
            return show(args.before, args.after)
        result = json.loads(args.source.read_text()) if args.source else \
            Bench(args).run()
        from bench.report import Report
        report = Report(result)
        result["targets"] = report.targets
        result["conclusions"] = report.conclusions
        if args.json:
            args.json.write_text(as_text(result))
        print(report.text())
        if args.report:
            report.write(args.report)
            print(f"==> {args.report}/report.html", file=sys.stderr)
    except Failure as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
