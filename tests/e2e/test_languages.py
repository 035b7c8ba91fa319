# SPDX-License-Identifier: GPL-2.0-or-later
"""Run examples/hello.py and examples/hello.rs in a Linux guest, with each channel."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import ctf_events
from bench.linux import with_libraries
from vm.machine import TOP, VM
from linux_guest import (
    LD, assert_sound, needs_glibc, shared_library)

CHANNELS = ["hypercall", "shm", "virtio"]
# Emit an event with a floating-point and a signed number, a sequence, an array and a
# text, and check that wrong values are refused.
TYPES = """
from array import array
import hypertrace
types = hypertrace.Event("types f64 f; s8 s; u16[] q; u16[2] a; text t")
assert types and hypertrace.status()[0] == 0
assert hypertrace.host_stats() is None      # QEMU's device does not tell
assert types(0.5, -1, array("H", [1, 2, 3]), array("H", [4, 5]), b"text")
for wrong in (0.5, 128, array("H"), array("H", [4, 5]), "text"), (1 << 64,) * 5:
    try:
        types(*wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
"""
# Debian's Python: its modules are below /usr, as PYTHONHOME in python() requires.
PYTHON = "/usr/bin/python3"

pytestmark = needs_glibc


def python(tmp_path):
    """Return (files for a guest that runs Python, commands for the guest). The files are
    the interpreter, the scripts, and the modules that they import."""
    if not Path(PYTHON).exists():
        pytest.skip(f"no {PYTHON}")
    out = subprocess.run(
        [PYTHON, "-I", "-S", "-c", "import array, ctypes, struct, sys; print("
         "*(m.__file__ for m in sys.modules.values() if "
         "getattr(m, '__file__', None)), sep='\\n')"],
        check=True, capture_output=True, text=True).stdout.splitlines()
    real = os.path.realpath(PYTHON)
    native = [f for f in out if f.endswith(".so")]
    files = {**with_libraries([real, *native]), **shared_library(),
             "sys/hello.py": TOP / "examples/hello.py",
             "sys/hypertrace.py": TOP / "guest-lib/python/hypertrace.py"}
    for path in out:
        files[f"sys{path}"] = path
    (tmp_path / "values.py").write_text(TYPES)
    files["sys/values.py"] = tmp_path / "values.py"
    run = (f"PYTHONHOME=/ht/sys/usr {LD} /ht/sys/{os.path.basename(real)} -S "
           "/ht/sys/")
    return files, [f"{run}hello.py", f"{run}values.py"]


def rust(tmp_path):
    if not shutil.which("rustc"):
        pytest.skip("no rustc")
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    library, = shared_library().values()
    (libraries / "libhypertrace.so").symlink_to(library)
    subprocess.run(["rustc", TOP / "examples/hello.rs", "-L", libraries, "-l",
                    "hypertrace", "-o", tmp_path / "hello-rs"], check=True)
    return ({**with_libraries([tmp_path / "hello-rs"]), **shared_library()},
            [f"{LD} /ht/sys/hello-rs"])


@pytest.mark.parametrize("language", ["python", "rust"])
def test_example(tmp_path, language):
    files, commands = {"python": python, "rust": rust}[language](tmp_path)
    job = "set -e\n" + "".join(
        f"HYPERTRACE_DEVICE=/dev/hypertrace{n} {command}\n"
        for n in range(len(CHANNELS)) for command in commands)
    with VM(devices=[{"channel": c} for c in CHANNELS], job=job, files=files,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        traces = [ctf_events.read(vm.trace(f"ht{n}"))
                  for n in range(len(CHANNELS))]
    for streams in traces:
        found = {name: [fields for s in streams.values()
                        for of, fields in s.events if of == name]
                 for name in ("hello", "types")}
        assert found["hello"] == [{"n": n, "who": "world"} for n in range(10)]
        assert found["types"] == [
            {"f": 0.5, "s": -1, "q": [1, 2, 3], "a": [4, 5], "t": "text"}
        ] * (language == "python")
