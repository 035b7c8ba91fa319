# SPDX-License-Identifier: GPL-2.0-or-later
# a packet header is looked at where it lies
s/packet_begin(c, header, packet, sk/packet_begin(c, *(struct ht_packet *)slot, packet, sk/
