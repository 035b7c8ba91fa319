# SPDX-License-Identifier: GPL-2.0-or-later
"""./run demo: one workload over the three channels, side by side."""
