/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: remove secrets from a command line
 */
#ifndef HYPERTRACE_QEMU_REDACT_H
#define HYPERTRACE_QEMU_REDACT_H

/**
 * ht_redact() - join a command line to one text without its secrets
 * @argv: words; NULL after the last
 *
 * Passwords, cookies, data of secret objects, credentials of systemd and
 * passwords in URLs become "***".
 *
 * Return: newly allocated
 */
char *ht_redact(char **argv);

#endif
