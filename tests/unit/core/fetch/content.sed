# SPDX-License-Identifier: GPL-2.0-or-later
# load content twice
s/to = ht_le32(ht_atomic_read(&h->content));/&\n            to = ht_le32(ht_atomic_read(\&h->content));/
