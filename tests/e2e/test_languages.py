# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples in other languages, in a Linux guest with each channel."""

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
PYTHON = "/usr/bin/python3"     # Debian's, whose library is in one folder

pytestmark = needs_glibc


def python():
    """The interpreter, and the parts of its library that the example uses"""
    if not Path(PYTHON).exists():
        pytest.skip(f"no {PYTHON}")
    out = subprocess.run(
        [PYTHON, "-I", "-S", "-c", "import ctypes, struct, sys; print("
         "*(m.__file__ for m in sys.modules.values() if "
         "getattr(m, '__file__', None)), sep='\\n')"],
        check=True, capture_output=True, text=True).stdout.splitlines()
    real = os.path.realpath(PYTHON)
    native = [f for f in out if f.endswith(".so")]
    files = {**with_libraries([real, *native]), **shared_library(),
             "sys/hello.py": TOP / "examples/hello.py"}
    for path in out:
        files[f"sys{path}"] = path
    return files, (f"PYTHONHOME=/ht/sys/usr {LD} /ht/sys/"
                   f"{os.path.basename(real)} -S /ht/sys/hello.py")


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
            f"{LD} /ht/sys/hello-rs")


@pytest.mark.parametrize("language", ["python", "rust"])
def test_example(tmp_path, language):
    files, command = python() if language == "python" else rust(tmp_path)
    job = "set -e\n" + "".join(
        f"HYPERTRACE_DEVICE=/dev/hypertrace{n} {command}\n"
        for n in range(len(CHANNELS)))
    with VM(devices=[{"channel": c} for c in CHANNELS], job=job, files=files,
            workdir=tmp_path / "vm") as vm:
        vm.wait()
        assert_sound(vm)
        traces = [ctf_events.read(vm.trace(f"ht{n}"))
                  for n in range(len(CHANNELS))]
    for streams in traces:
        found = [fields for s in streams.values()
                 for name, fields in s.events if name == "hello"]
        assert found == [{"n": n, "who": "world"} for n in range(10)]
