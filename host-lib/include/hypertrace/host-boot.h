/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the id of the host's boot
 */
#ifndef HYPERTRACE_HOST_BOOT_H
#define HYPERTRACE_HOST_BOOT_H

/**
 * ht_host_boot: get the id of the host's present boot
 *
 * Returns: a text that is unique to the boot, for g_free(); NULL if the host
 * does not provide an id
 */
char *ht_host_boot(void);

#endif /* HYPERTRACE_HOST_BOOT_H */
