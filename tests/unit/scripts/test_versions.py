# SPDX-License-Identifier: GPL-2.0-or-later
"""The build, the packages and the modules have one version.

DKMS lists the modules with the version in dkms.conf; the modules themselves contain no
version.
"""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PLACES = {
    "meson.build": r"^        version: '([^']+)'",
    "guest-lib/meson.build": r"^ +version: '([^']+)'",
    "guest-linux/dkms.conf": r'^PACKAGE_VERSION="([^"]+)"',
    "debian/changelog": r"^hypertrace \(([^)]+)\)",
    "packaging/hypertrace.spec": r"^Version: +(\S+)",
}


def test_versions_agree():
    found = {path: re.search(pattern, (TOP / path).read_text(), re.M)[1]
             for path, pattern in PLACES.items()}
    assert len(set(found.values())) == 1, found
