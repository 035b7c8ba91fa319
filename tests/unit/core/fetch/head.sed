# SPDX-License-Identifier: GPL-2.0-or-later
# head is loaded again behind its check
s/\*head = h;/*head = read64(\&ring->guest.head);/
