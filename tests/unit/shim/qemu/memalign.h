/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HT_SHIM_MEMALIGN_H
#define HT_SHIM_MEMALIGN_H

#define qemu_memalign(alignment, size) aligned_alloc(alignment, size)
#define qemu_vfree(p) free(p)

#endif
