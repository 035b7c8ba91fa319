/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the id of the host's boot
 */
#include <glib.h>

#include "hypertrace/ctf-writer.h"

/* Recordings and traces with the same boot id share the host's clocks. */
#define HOST_BOOT "/proc/sys/kernel/random/boot_id"

char *ht_host_boot(void)
{
    char *boot = NULL;

    g_file_get_contents(HOST_BOOT, &boot, NULL, NULL);
    return boot ? g_strstrip(boot) : NULL;
}
