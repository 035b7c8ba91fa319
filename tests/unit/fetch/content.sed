# SPDX-License-Identifier: GPL-2.0-or-later
# content is loaded again for its check
s/if (to <= size && to >= from) {/if (ht_le32(ht_atomic_read(\&((struct ht_packet *)slot)->content)) <= size \&\& to >= from) {/
