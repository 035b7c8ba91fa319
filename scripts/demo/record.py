# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's recorder: LTTng makes a trace of each round of a guest, for ht-verify.

Without LTTng, this recorder is not used: the CTF backend of each device then makes one
trace of all rounds.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from vm.lttng_session import UNPRIVILEGED, PrivateSession, missing_programs
from vm.machine import Failure

# Size and number of LTTng's sub-buffers, which each device has for each CPU of the host:
# they have room for a burst of the default length. LTTng discards and counts events for
# which there is no room.
SUBBUF_SIZE = "1M"
SUBBUF_COUNT = 16


class Lttng:
    """One session per round, in one private daemon.

    Each device has its own LTTng channel, so that LTTng counts discarded events for each
    device.
    """

    backend = "lttng"

    def __init__(self):
        self.directory = None
        self._name = None
        # The daemon's own session is not used: start() creates a session for each
        # round.
        self._daemon = PrivateSession(events=(), start=False,
                                      name="unused")

    @staticmethod
    def problem():
        missing = missing_programs()
        return f"{', '.join(missing)} not installed" if missing else None

    def __enter__(self):
        self._daemon.__enter__()
        # If root runs the demo, its private LTTng daemon runs as an unprivileged user,
        # who must own this folder.
        self.directory = Path(tempfile.mkdtemp(prefix="ht-demo-", dir="/tmp"))
        self.directory.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.directory, UNPRIVILEGED,
                     UNPRIVILEGED)
        return self

    def __exit__(self, *exc):
        try:
            self._daemon.__exit__(*exc)
            if self._daemon.output:
                shutil.rmtree(Path(self._daemon.output).parent,
                              ignore_errors=True)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def env(self):
        return self._daemon.env()

    def start(self, name, devices):
        lttng = self._daemon.lttng
        self._name = name
        lttng("create", name, f"--output={self.directory / name}")
        self._daemon.make_channels(
            {d: (SUBBUF_SIZE, SUBBUF_COUNT) for d in devices}, name)
        for d in devices:
            self._daemon.enable(f"{d}:*", channel=d, session=name)
        lttng("start", name)

    def stop(self):
        """End the LTTng session of a round; return the folder of its trace."""
        self._daemon.lttng("stop", self._name)
        self._daemon.lttng("destroy", self._name)
        return self.directory / self._name


def verifier():
    program = Path(os.environ["HT_BUILD"]) / "tools/ht-verify/ht-verify"
    if not program.exists():
        raise Failure(f"{program} was not built: install libbabeltrace2's"
                      " development package and build again")
    return program


def verify(directory):
    program = verifier()
    p = subprocess.run([program, "--json", directory], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True,
                       text=True)
    if p.returncode not in (0, 1):
        raise Failure(f"ht-verify: {p.stderr.strip()}")
    return json.loads(p.stdout)["inputs"][0]
