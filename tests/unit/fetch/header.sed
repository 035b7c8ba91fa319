# SPDX-License-Identifier: GPL-2.0-or-later
# a packet header is looked at where it lies
s/packet_begin(c, c->buf, packet/packet_begin(c, slot, packet/
