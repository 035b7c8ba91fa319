# SPDX-License-Identifier: GPL-2.0-or-later
"""The analysis for Trace Compass, compared with exported traces.

The recording is made by make_functions() in tests/unit/recording/calls.c.
"""

import re
import subprocess

import pytest

import compass_xml
from built import need
from hypertrace import run, story

READ, WALK, LEAF, IDLE = "vfs_read", "walk", "leaf", "do_idle"
THREAD, CPU = "Threads/7/CallStack", "CPUs/1/CallStack"


class TestCompass:
    @pytest.fixture(autouse=True, scope="class")
    def prepare(self, request, tmp_path_factory):
        cls, tmp = request.cls, tmp_path_factory.mktemp("compass")
        cls.tmp = tmp
        need("babeltrace2")
        cls.recording = story("functions", tmp / "functions")

    def export(self, name, *args):
        out = self.tmp / name
        run("export", self.recording, "-o", out, *args)
        return out

    def test_schema(self):
        """The file is well-formed XML, and the paths of its levels begin with the attributes that
        its pattern sets."""
        need("xmllint")
        subprocess.run(["xmllint", "--noout", compass_xml.ANALYSIS],
                       check=True)
        root = compass_xml.Analysis().root
        assert root.tag == "tmfxml"
        assert [e.tag for e in root.find("callstack")] == [
            "callstackGroup", "callstackGroup", "pattern"]
        paths = {level.get("path").split("/")[0]
                 for level in root.iter("level")}
        starts = {path[0].get("value") for path in root.iter()
                  if [e.tag for e in path][:1] == ["stateAttribute"]}
        assert starts == paths

    def test_names(self):
        """The export's formats ctf and lttng have all events and fields that the
        analysis reads, except the events function_entry and function_exit."""
        needs = compass_xml.Analysis().needs()
        for f in "ctf", "lttng":
            metadata = (self.export(f"names.{f}", "-f", f, "--boot=1") /
                        "metadata").read_text()
            for event in "funcgraph_entry", "funcgraph_exit":
                body = re.search(rf'name = "{event}";.*?\n\}};', metadata,
                                 re.S)[0]
                fields = set(re.findall(r" _(\w+)[;\[]", body))
                assert needs[event] <= fields, (event, needs[event], fields)
        # function_entry and function_exit are events of hypertrace-sources.ko:
        # tests/e2e/test_linux_functions.py checks their fields
        assert needs.keys() == {"funcgraph_entry", "funcgraph_exit",
                                "function_entry", "function_exit"}

    def test_stacks(self):
        """The stacks are right with recursion, calls on two CPUs, lost ends and
        lost begins."""
        analysis = compass_xml.Analysis()
        seen = []
        for name, fields in compass_xml.events(
                self.export("stacks", "-f", "lttng", "--boot=1")):
            analysis.feed(name, fields)
            if name.startswith("funcgraph"):
                seen.append((list(analysis.stacks[THREAD]),
                             list(analysis.stacks[CPU])))
        assert seen == [
            ([READ], []), ([READ, WALK], []), ([READ, WALK], [IDLE]),
            ([READ, WALK, WALK], [IDLE]), ([READ, WALK, WALK], [IDLE, LEAF]),
            ([READ, WALK, WALK, LEAF], [IDLE, LEAF]),
            ([READ, WALK, WALK, LEAF], [IDLE]), ([READ, WALK, WALK], [IDLE]),
            ([READ, WALK], [IDLE]), ([READ, WALK], []), ([READ], []),
            ([], []),
            # the ends of walk and leaf are lost, then the begins of all
            ([READ], []), ([READ, WALK], []), ([READ, WALK, LEAF], []),
            ([], []), ([], []), ([], []), ([], [])], seen
        assert analysis.stacks.keys() == {THREAD, CPU}

    def test_tracer(self):
        """Events of the function tracer have function names, too."""
        names = [f["function"] for name, f in compass_xml.events(
            self.export("tracer", "-f", "ctf", "--boot=1"))
            if name == "function"]
        assert names == [READ, WALK, LEAF, LEAF]
