# SPDX-License-Identifier: GPL-2.0-or-later
# load head again after its check
s/\*head = h;/*head = read64(\&ring->guest.head);/
