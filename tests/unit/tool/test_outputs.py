# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that write several outputs: each output is written, or the command line is refused."""

import json
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from hypertrace import ENV, TOOL, run, story

# Command lines with two outputs to one place, and words of the message
CLASHES = {
    ("boot", "--json", "--svg=-"): "--json and --svg cannot both write to standard output",
    ("boot", "--json", "--svg=/dev/stdout"): "--json and --svg",
    ("boot", "--json", "--junit=-", "--max=9s"): "--json and --junit",
    ("boot", "-o", "-", "--svg=-"): "--output and --svg",
    ("boot", "--svg=-", "--junit=-", "--max=9s"): "--svg and --junit",
    ("boot", "--svg=out", "--junit=./out", "--max=9s"): "cannot both write to './out'",
    ("boot", "--json", "-o", "out", "--svg=out"): "--output and --svg",
    ("flame", "--folded", "--svg=-"): "--folded and --svg",
    ("flame", "--folded", "--speedscope=-"): "--folded and --speedscope",
    ("flame", "--speedscope=-", "--svg=-"): "--svg and --speedscope",
    ("flame", "-o", "-", "--svg=-"): "--output and --svg",
    ("flame", "-o", "out.svg", "--speedscope=out.svg"): "--svg and --speedscope",
}


@pytest.fixture(name="rec", scope="module")
def recording(tmp_path_factory):
    return story("story", tmp_path_factory.mktemp("outputs") / "story")


@pytest.mark.parametrize("args", CLASHES)
def test_two_outputs_in_one_place(rec, tmp_path, args):
    """A command line with two outputs to standard output, or to one file, is refused, and nothing
    is written."""
    p = run(*args, rec, status=2, cwd=tmp_path)
    assert CLASHES[args] in p.stderr.decode()
    assert not p.stdout and not list(tmp_path.iterdir())


def test_outputs_in_two_places(rec, tmp_path):
    """If one output goes to standard output, the others are still written."""
    page, json_page = tmp_path / "page", tmp_path / "json"
    for command, args in (("boot", ["--boot=1"]), ("flame", [])):
        expected = run(command, *args, rec).stdout
        picture = run(command, *args, rec, "--svg=-", "-o", page).stdout
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert page.read_bytes() == expected
    run("boot", "--boot=1", rec, "--json", "-o", json_page, "--svg=-")
    assert json.loads(json_page.read_text())["phases"]
    # Several outputs may go to /dev/null, even if standard output is /dev/null, too.
    subprocess.run([TOOL, "boot", "--boot=1", rec, "--json", "--svg=/dev/null",
                    "--junit=/dev/null", "--max=99s"], stdout=subprocess.DEVNULL, env=ENV,
                   check=True, timeout=60)
