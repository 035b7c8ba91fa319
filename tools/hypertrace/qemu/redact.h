/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: remove known kinds of secrets from a command line
 */
#ifndef HYPERTRACE_QEMU_REDACT_H
#define HYPERTRACE_QEMU_REDACT_H

/**
 * ht_redact() - join a command line to one text, and hide secrets in it
 * @argv: words; NULL after the last
 *
 * These become "***": values of the properties "password", "passwd",
 * "user-password", "cookie", "cookie-data" and "data" (of secret objects),
 * credentials of systemd, and passwords in URLs. Other secrets stay.
 *
 * Return: newly allocated
 */
char *ht_redact(char **argv);

#endif
