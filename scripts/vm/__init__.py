# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines that the demo, the benchmarks and the tests run."""
