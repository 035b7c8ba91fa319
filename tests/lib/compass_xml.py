# SPDX-License-Identifier: GPL-2.0-or-later
"""Execute our XML analysis for Trace Compass without Trace Compass."""

import collections
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

ANALYSIS = Path(__file__).resolve().parents[2] / \
    "tools/hypertrace/export/trace-compass-callstack.xml"


def events(trace):
    """Yield (name, {field: value}) of each event as babeltrace2 shows it; the CPU is
    the field "cpu", and all values are texts or integers."""
    text = subprocess.run(["babeltrace2", trace], capture_output=True,
                          check=True, timeout=60).stdout.decode()
    for line in text.splitlines():
        m = re.match(r"\[.*?\] \(.*?\) (?:\S+ )?(\S+): \{ (.*?) \},"
                     r" \{ (.*) \}$", line)
        fields = {k: s if s else int(n, 0) for k, s, n in re.findall(
            r'([\w]+) = (?:"([^"]*)"|(-?\w+))', m[3])}
        yield m[1], {"cpu": int(re.search(r"cpu_id = (-?\d+)", m[2])[1]),
                     **fields}


class Analysis:
    """Executes the XML analysis, as far as the file uses the language of Trace Compass.

    stacks: {path of an attribute: the call stack that the attribute has now}
    """

    def __init__(self, path=ANALYSIS):
        self.root = ET.parse(path).getroot()
        self.pattern = self.root.find("callstack/pattern")
        handler = self.pattern.find("patternHandler")
        self.tests = {t.get("id"): t.find("if")
                      for t in handler.findall("test")}
        self.actions = {a.get("id"): a for a in handler.findall("action")}
        fsm, = handler.findall("fsm")
        self.state, = fsm.findall("state")
        assert fsm.get("initial") == self.state.get("id")
        self.transitions = self.state.findall("transition")
        self.stacks = collections.defaultdict(list)

    def needs(self):
        """Return {event: names of the fields, except cpu, that the analysis reads}."""
        needs = collections.defaultdict(set)
        for t in self.transitions:
            assert t.get("target") == self.state.get("id")
            parts = [self.actions[t.get("action")]]
            if t.get("cond"):
                parts.append(self.tests[t.get("cond")])
            for part in parts:
                needs[t.get("event")] |= {
                    f.get("name") for f in part.iter("field")} | {
                    f.get("value") for f in part.iter()
                    if f.get("type") == "eventField"} - {"cpu"}
        return dict(needs)

    def true(self, condition, fields):
        inner, = condition
        if inner.tag == "not":
            return not self.true(inner, fields)
        assert inner.tag == "condition"
        field, value = inner
        assert (field.tag, value.get("type")) == ("field", "long")
        return fields[field.get("name")] == int(value.get("value"))

    def change(self, change, fields):
        if change.find("if") is not None:
            branch = change.find("then" if self.true(change.find("if"), fields)
                                 else "else")
            return branch is not None and self.change(branch, fields)
        *path, value = change
        path = "/".join(str(fields[a.get("value")]) if
                        a.get("type") == "eventField" else a.get("value")
                        for a in path)
        stack = self.stacks[path]
        if value.get("stack") == "push":
            stack.append(fields[value.get("value")])
        elif value.get("stack") == "popAll":
            stack.clear()
        elif stack:
            stack.pop()

    def feed(self, name, fields):
        """Process an event as the analysis does: apply the first transition
        that matches it"""
        for t in self.transitions:
            if t.get("event") == name and (
                    not t.get("cond") or
                    self.true(self.tests[t.get("cond")], fields)):
                for c in self.actions[t.get("action")]:
                    self.change(c, fields)
                return
