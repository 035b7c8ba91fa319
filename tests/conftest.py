# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests of all kinds: programs of meson builds are run by pytest, too."""

pytest_plugins = ["programs"]
