# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that registers random classes and corrupts a stream does not break the output of the
ctf and lttng backends.

Next to this stream, the guest emits to an honest one (tests/guest/hostile/random.c).
babeltrace2 must read the CTF directory and the LTTng trace to their ends, and both must
have each event of the honest stream with the right fields.

HYPERTRACE_PROPERTY_SEEDS=N tries the seeds 1 to N.
"""

import os
import subprocess

import bt2
import pytest

import ctf_events
from scale import LONG
from vm.payload import Payload

SEEDS = range(1, 1 + int(os.environ.get("HYPERTRACE_PROPERTY_SEEDS",
                                       3 if LONG else 1)))
CONFIGURATIONS = [
    {"channel": "hypercall"},
    {"channel": "hypercall", "batch": 16},
    {"channel": "shm"},
    {"channel": "shm", "mode": "overwrite", "packets": 16},
    {"channel": "virtio"},
]


def expected(n):
    """Return the fields that event n of the honest stream must have."""
    return {
        "n": n,
        "minus": -n,
        "word": chr(ord("a") + n % 26) * (1 + n % 31),
        "list": [(n * 7 + i) & 0xffff for i in range(n % 6)],
        "half": n / 2,
        "four": [n >> i & 0xff for i in range(4)],
        "hex": ~n & 0xffff,
    }


def read_all(trace):
    """Assert that babeltrace2 reads the whole trace, and that each line of its warnings has
    the word "discarded" or "events". Return the number of lines it prints, one for each
    event."""
    with subprocess.Popen(["babeltrace2", str(trace)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "LC_ALL": "C"}) as reader:
        out, err = reader.communicate(timeout=120)
    assert reader.returncode == 0, err.decode(errors="replace")
    assert all(b"discarded" in line or b"events" in line.lower()
               for line in err.splitlines() if line.strip()), err
    return out.count(b"\n")


def of_class(trace, name):
    """Yield (event, its fields) of each event of a class, in order."""
    for msg in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(msg, bt2._EventMessageConst) and msg.event.name == name:
            yield msg.event, ctf_events.plain(msg.event.payload_field)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("properties", CONFIGURATIONS,
                         ids=lambda p: "-".join(str(v) for v in p.values()))
def test_chance(tmp_path, session, properties, seed):
    s = session(events=["ht0:*"])
    args = ["-object", f"hypertrace-backend-ctf,id=c,dir={tmp_path / 'ctf'}",
            "-object", "hypertrace-backend-lttng,id=l"]
    device = {"streams": 2, "packets": 4, "packet_size": "4k",
              "backend": "c:l"}
    with Payload(f"hostile what=chance seed={seed}", args=args,
                 devices=[{**device, **properties}],
                 workdir=tmp_path) as vm:
        vm.wait(120)
    s.finish()
    honest, = vm.named(stream="honest")
    assert honest["sent"] > 100
    want = [expected(n) for n in range(honest["sent"])]

    ctf, lttng = tmp_path / "ctf" / "ht0", tmp_path / "lttng"
    assert read_all(ctf) > honest["sent"]
    assert read_all(lttng) > honest["sent"]
    assert [fields for event, fields in of_class(ctf, "hostile.fields")
            if event.stream.id == honest["instance"]] == want
    # the honest stream has number 0: it was opened first, and stays open
    got = []
    for _, fields in of_class(lttng, "ht0:hostile.fields"):
        if fields.pop("stream") == 0:
            assert fields.pop("vcpu") == 0
            assert fields.pop("guest_ns") > 0
            got.append(fields)
    assert got == want
