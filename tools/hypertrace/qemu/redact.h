/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a command line that can be shown to others
 */
#ifndef HYPERTRACE_QEMU_REDACT_H
#define HYPERTRACE_QEMU_REDACT_H

/**
 * ht_redact() - a command line as one text, without its secrets
 * @argv: words, ends with NULL
 *
 * Passwords, data of secret objects, credentials of systemd and passwords in
 * URLs become "***".
 *
 * Return: newly allocated
 */
char *ht_redact(char **argv);

#endif
