# SPDX-License-Identifier: GPL-2.0-or-later
"""Decode what hypertrace exports for Perfetto, by protoc and our schema."""

import ast
import re
import subprocess
from pathlib import Path

TOKEN = re.compile(rb'\s*(?:([A-Za-z_0-9]+)\s*(\{)|([A-Za-z_0-9]+):\s*'
                   rb'("(?:[^"\\]|\\.)*"|\S+)|(\}))')


def value(text):
    if text.startswith(b'"'):
        # protoc writes octal escapes, as Python reads them
        return ast.literal_eval("b" + text.decode("latin1")).decode(
            "utf-8", "surrogateescape")
    if text in (b"true", b"false"):
        return text == b"true"
    return int(text, 0)


def packets(path, schema=Path(__file__).with_name("perfetto.proto")):
    """The packets of a trace, each as {field: [values]}."""
    with open(path, "rb") as trace:
        text = subprocess.run(
            ["protoc", f"--proto_path={schema.parent}", "--decode=Trace",
             schema.name], stdin=trace, check=True,
            stdout=subprocess.PIPE).stdout
    stack = [{}]
    for m in TOKEN.finditer(text):
        opened, brace, name, scalar, closed = m.groups()
        if brace:
            stack.append({})
            stack[-2].setdefault(opened.decode(), []).append(stack[-1])
        elif closed:
            stack.pop()
        else:
            stack[-1].setdefault(name.decode(), []).append(value(scalar))
    assert len(stack) == 1
    return stack[0].get("packet", [])


def events(all_packets):
    """(cpu, event), in the order of the file"""
    for packet in all_packets:
        for bundle in packet.get("ftrace_events", []):
            for event in bundle.get("event", []):
                yield bundle["cpu"][0], event


def unknown(message):
    """Fields that are not in the schema, wherever they are"""
    for name, values in message.items():
        if name.isdigit():
            yield name
        for v in values:
            if isinstance(v, dict):
                yield from unknown(v)
