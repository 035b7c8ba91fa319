# SPDX-License-Identifier: GPL-2.0-or-later
"""A pytest plugin that runs the test programs of a meson build.

pytest gets the file meson-info/intro-tests.json of the build, and runs each
program that wanted() selects as one test, beside the tests in Python and under the
same limit of jobs. A program that prints TAP gives one report for each of its cases. It
gives one more report, a failed one, if it fails without a failed case, runs for too long,
has no plan, or did not run all cases of its plan. The last line of pytest's output counts
all reports.
"""

import json
import os
import random
import re
import subprocess
import time

import pytest

# QEMU's own tests that test all devices of QEMU, and so also the device hypertrace
QEMUS_OWN = {"device-introspect-test", "qom-test", "qmp-cmd-test"}
CASE = re.compile(r"(not )?ok\b(?: \d+)?(?: -)? ?(.*?)(?: # SKIP ?(.*))?$",
                  re.I)
# A program's time limit is PATIENCE times its limit in meson, because the machine may be
# busy.
PATIENCE = 4
# Limit of a test in seconds, if pytest-timeout is not installed
TEST_MAX = 1200


def pytest_collect_file(file_path, parent):
    if file_path.name == "intro-tests.json":
        return Build.from_parent(parent, path=file_path, nodeid="programs")
    return None


def wanted(test, projects):
    """Return true if this plugin must run the test. In QEMU's build these are the tests of the
    device and QEMUS_OWN, for x86-64; in a build with fuzz targets only these targets; in other
    builds all tests. projects: {project: set of its test suites}"""
    if "qemu" in projects:
        kind, _, name = test["name"].rpartition("/")
        return kind == "qtest-x86_64" and (
            name.startswith("hypertrace") or name in QEMUS_OWN)
    if "fuzz" in projects.get("hypertrace", ()):
        return "hypertrace:fuzz" in test["suite"]
    return True


class Build(pytest.File):
    def collect(self):
        tests = json.loads(self.path.read_text())
        projects = {}
        for project, _, suite in (s.partition(":")
                                  for t in tests for s in t["suite"]):
            projects.setdefault(project, set()).add(suite)
        for test in tests:
            if wanted(test, projects):
                yield Program.from_parent(self, name=test["name"], test=test)


class Program(pytest.Item):
    def __init__(self, test, **kwargs):
        super().__init__(**kwargs)
        self.test = test
        self.build = self.path.parents[1]

    def reportinfo(self):
        return self.path, None, self.name

    def limit(self):
        """Return the program's time limit in seconds. It is shorter than that of the test, so
        that this plugin reports a program that does not end."""
        test_max = self.config.getoption("timeout", None) or TEST_MAX
        return min(PATIENCE * self.test["timeout"], 0.8 * test_max)

    def execute(self):
        """Run the program; return its exit status (None after a timeout), its output, and
        what it wrote to its error stream.

        The streams are separate, because GLib writes a message to the error stream in
        pieces, and the line of a case may fall between two of them.
        """
        # As meson does, let glibc fill memory that a program allocates or frees.
        env = {"MALLOC_PERTURB_": str(random.randint(1, 255)), **os.environ,
               **self.test["env"]}
        try:
            p = subprocess.run(
                self.test["cmd"], cwd=self.test["workdir"] or self.build,
                env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, check=False,
                timeout=self.limit())
            status, texts = p.returncode, (p.stdout, p.stderr)
        except subprocess.TimeoutExpired as e:
            status, texts = None, (e.stdout, e.stderr)
        except OSError as e:
            # 127, as from a shell that does not find a program
            return 127, "", f"{e}\n"
        return status, *((t or b"").decode(errors="replace") for t in texts)

    def reports(self):
        began = time.time()
        status, output, errors = self.execute()
        text = (output + errors)[-20000:]
        duration = time.time() - began

        def report(outcome, why=None):
            # The first report has the time of the whole program, further ones have 0.
            # For a skip, pytest needs the place and the reason, for a failure a text.
            longrepr = (self.name, None, why) if outcome == "skipped" else why
            return pytest.TestReport(
                self.nodeid, self.location, {}, outcome, longrepr, "call",
                duration=0 if found else duration)

        found, planned = [], None
        if self.test["protocol"] == "tap":
            for line in output.splitlines():
                if plan := re.match(r"1\.\.(\d+)(?: # SKIP ?(.*))?", line):
                    planned = int(plan[1])
                    if not planned:
                        found.append(report("skipped", plan[2]))
                elif case := CASE.match(line):
                    failed, name, skip = case.groups()
                    if failed:
                        found.append(report("failed",
                                            f"{name}\n{text}"))
                    elif skip is not None:
                        found.append(report("skipped", f"{name}: {skip}"))
                    else:
                        found.append(report("passed"))
        elif status == 77:
            return [report("skipped", text.strip() or "no reason is given")]
        elif status == 0:
            return [report("passed")]
        failures = [r for r in found if r.failed]
        if status is None:
            why = "runs for too long"
        elif status and not failures:
            why = f"exit status {status}"
        elif planned is None and self.test["protocol"] == "tap":
            why = "no plan of its cases"
        elif planned and len(found) != planned:
            why = f"{len(found)} of {planned} cases ran"
        else:
            return found
        return [*found, report("failed", f"{why}\n{text}")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if not isinstance(item, Program):
        return None
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in item.reports():
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, exitstatus):
    """Write the totals of a completed run, "PASSED FAILED SKIPPED", to the file that the
    environment variable HT_TOTALS names, for the script that called pytest."""
    path = os.environ.get("HT_TOTALS")
    if path and exitstatus in (pytest.ExitCode.OK,
                               pytest.ExitCode.TESTS_FAILED):
        def count(*outcomes):
            return sum(len(terminalreporter.stats.get(o, ()))
                       for o in outcomes)
        with open(path, "w", encoding="ascii") as file:
            print(count("passed", "xpassed"), count("failed", "error"),
                  count("skipped", "xfailed"), file=file)
