# SPDX-License-Identifier: GPL-2.0-or-later
# walk the events in guest memory, not in the copy
s/consume(c, events, n, /consume(c, (uint8_t *)slot + from, n, /
