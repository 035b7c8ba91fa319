# SPDX-License-Identifier: GPL-2.0-or-later
"""Decode hypertrace's exports for Perfetto by protoc and our schema."""

import ast
import re
import subprocess
from pathlib import Path

TOKEN = re.compile(rb'\s*(?:([A-Za-z_0-9]+)\s*(\{)|([A-Za-z_0-9]+):\s*'
                   rb'("(?:[^"\\]|\\.)*"|\S+)|(\}))')


def value(text):
    if text.startswith(b'"'):
        # protoc prints bytes as octal escapes, which Python also knows
        return ast.literal_eval("b" + text.decode("latin1")).decode(
            "utf-8", "surrogateescape")
    if text in (b"true", b"false"):
        return text == b"true"
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def packets(path, schema=Path(__file__).with_name("perfetto.proto")):
    """Return the packets of a trace, each as {field: [values]}; the value of a message is
    such a dict, too."""
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
    """Yield (cpu, event) of each ftrace event, in the order of the file."""
    for packet in all_packets:
        for bundle in packet.get("ftrace_events", []):
            for event in bundle.get("event", []):
                yield bundle["cpu"][0], event


def annotation(a):
    """Return the value of a DebugAnnotation as a Python value; without a value, the
    annotation is an empty array."""
    (kind, values), = [(k, v) for k, v in a.items() if k != "name"] or [
        ("array_values", [])]
    if kind == "array_values":
        return [annotation(v) for v in values]
    if kind == "dict_entries":
        return {v["name"][0]: annotation(v) for v in values}
    return values[0]


def instants(all_packets):
    """Yield (machine, name of the track, timestamp, name, {field: value}) of each TrackEvent
    of the type instant; machine is 0 for packets without a machine's number."""
    tracks = {d["uuid"][0]: d["name"][0] for p in all_packets
              for d in p.get("track_descriptor", [])}
    for p in all_packets:
        for e in p.get("track_event", []):
            if e["type"] == [3]:
                yield (p.get("machine_id", [0])[0], tracks[e["track_uuid"][0]],
                       p["timestamp"][0], e["name"][0],
                       {a["name"][0]: annotation(a)
                        for a in e.get("debug_annotations", [])})


def machines(all_packets):
    return {p.get("machine_id", [0])[0]: p["system_info"][0]["machine_name"][0]
            for p in all_packets if "system_info" in p}


def bounds(all_packets):
    """Return {machine: maximum error of its dates in ns}."""
    return {int(a["key"][0].split(".")[2]): a["long_value"][0]
            for p in all_packets for t in p.get("trace_attributes", [])
            for a in t["attribute"]
            if a["key"][0].startswith("hypertrace.bound_ns.")}


def unknown(message):
    """Yield the numbers of the fields that the schema lacks, of a message and of the
    messages within it."""
    for name, values in message.items():
        if name.isdigit():
            yield name
        for v in values:
            if isinstance(v, dict):
                yield from unknown(v)
