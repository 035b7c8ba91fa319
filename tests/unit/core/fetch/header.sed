# SPDX-License-Identifier: GPL-2.0-or-later
# read the packet header from guest memory again, not from the copy
s/packet_begin(c, header, packet, sk/packet_begin(c, *(struct ht_packet *)slot, packet, sk/
