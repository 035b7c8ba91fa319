#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Add up the results of all test runners: what check prints last."""

import argparse
import json
import os
import sys
import xml.etree.ElementTree as ElementTree


class Results:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_junit(self, kind, path):
        """Count the cases of a JUnit file; return suites with a failure."""
        bad = set()
        for suite in ElementTree.parse(path).getroot().iter('testsuite'):
            for case in suite.iter('testcase'):
                name = f"{kind}: {case.get('classname') or ''} {case.get('name')}"
                problem = case.find('failure')
                if problem is None:
                    problem = case.find('error')
                skip = case.find('skipped')
                if problem is not None:
                    self.failed.append((name, problem.get('message') or ''))
                    bad.add(suite.get('name'))
                    bad.add(case.get('name'))
                elif skip is not None:
                    self.skipped.append((name, skip.get('message') or
                                         (skip.text or '').strip() or
                                         'the test says not why'))
                else:
                    self.passed += 1
        return bad

    def add_meson(self, kind, results):
        """A meson run: cases from JUnit, crashes from the test log."""
        junit = os.path.join(results, kind + '.junit.xml')
        log = os.path.join(results, kind + '.json')
        if not os.path.exists(log):
            return False
        bad = self.add_junit(kind, junit) if os.path.exists(junit) else set()
        with open(log, encoding='utf-8') as lines:
            for line in lines:
                test = json.loads(line)
                # A program that dies after a good case fails in no case.
                if (test['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL')
                        and not any(test['name'].endswith(b.split(' / ')[-1])
                                    for b in bad)):
                    self.failed.append((f"{kind}: {test['name']}",
                                        test['result'].lower()))
        return True

    def print(self):
        for title, cases in (('skipped', self.skipped), ('failed', self.failed)):
            if cases:
                print(f'\n{title}:')
            for name, why in cases:
                why = ' '.join(why.split())
                print(f'  {name}' + (f': {why[:200]}' if why else ''))
        print()
        sys.stdout.flush()
        print(f'{self.passed} passed, {len(self.failed)} failed, '
              f'{len(self.skipped)} skipped')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--results', help='folder of the logs')
    parser.add_argument('--lint', type=int, help='1 if lint failed, else 0')
    parser.add_argument('--failed', action='append', default=[],
                        help='a step that failed before the tests')
    parser.add_argument('kinds', nargs='*')
    args = parser.parse_args()

    total = Results()
    if args.lint == 1:
        total.failed.append(('lint', 'see above'))
    elif args.lint == 0:
        total.passed += 1
    for name in args.failed:
        total.failed.append((name, 'see above'))
    for kind in args.kinds:
        reason = os.path.join(args.results, kind + '.skipped')
        junit = os.path.join(args.results, kind + '.junit.xml')
        log = os.path.join(args.results, kind + '.log')
        if os.path.exists(reason):
            with open(reason, encoding='utf-8') as text:
                total.skipped.append((kind, text.read()))
        elif kind == 'e2e' and os.path.exists(junit):
            total.add_junit(kind, junit)
        elif kind != 'e2e' and total.add_meson(kind, args.results):
            continue
        elif os.path.exists(log):
            with open(log, encoding='utf-8', errors='replace') as text:
                lines = text.read().split('\n')
            if any('No tests defined' in line for line in lines):
                total.skipped.append((kind, 'this checkout has none'))
            else:
                total.failed.append((kind, f'did not run, see {log}'))
        else:
            total.skipped.append((kind, 'this checkout has none'))
    total.print()
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main())
