# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the driver in a Linux guest share."""

import json
import os
from pathlib import Path

# What the shell's "set -e" and "!" do not do together; a program that holds a
# stream is started, and ended.
PRELUDE = """
set -e
refused() {
    if "$@"; then echo "should have failed: $*"; exit 1; fi
}
hold() {
    rm -f /tmp/held
    ht-devtest "$@" >/tmp/held &
    while ! grep -q holding /tmp/held; do usleep 10000; done
}
killed() {
    kill -9 $!
    wait $! || :
}
"""


def events_module():
    return {"hypertrace-events.ko":
            Path(os.environ["HT_MODULE"]).parent / "hypertrace-events.ko"}


def stats(vm, device="ht0"):
    return vm.qmp.command("qom-get", path=f"/machine/peripheral/{device}",
                          property="stats")


def assert_sound(vm):
    assert not vm.oops(), str(vm)
    assert not vm.guest_errors, str(vm)


def rows(vm):
    return [json.loads(line) for line in vm.out.text.splitlines()
            if line.startswith("{")]
