# SPDX-License-Identifier: GPL-2.0-or-later
"""./run bench: compare the channels with each other and with their peers."""
