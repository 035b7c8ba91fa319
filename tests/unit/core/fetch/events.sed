# SPDX-License-Identifier: GPL-2.0-or-later
# events are walked where they lie
s/consume(c, events, n, /consume(c, (uint8_t *)slot + from, n, /
