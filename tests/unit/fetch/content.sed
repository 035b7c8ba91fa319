# SPDX-License-Identifier: GPL-2.0-or-later
# content is loaded again for its check
s/if (to <= size && to >= from) {/if (le32_to_cpu(qatomic_read(\&((struct ht_packet *)slot)->content)) <= size \&\& to >= from) {/
