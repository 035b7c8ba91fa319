# SPDX-License-Identifier: GPL-2.0-or-later
"""./run soak: emit on all channels for a long time, and account for each event."""
