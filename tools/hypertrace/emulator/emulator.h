/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: if this program was started by a link named
 * qemu-system-ARCH, run QEMU and record its guest
 */
#ifndef HYPERTRACE_EMULATOR_H
#define HYPERTRACE_EMULATOR_H

#include <stdbool.h>

/** ht_is_emulator() - whether this program was started by the name of a QEMU */
bool ht_is_emulator(const char *argv0);

/**
 * ht_emulator() - become QEMU, with a recorder beside it
 * @argv: QEMU's arguments
 *
 * The process runs QEMU by exec, so PID, descriptors, signals, standard streams
 * and exit status are QEMU's own. Only with QEMU's option -daemonize, another
 * process starts QEMU and records its guest, and this process waits until QEMU
 * is in the background. If no recording is wanted or can be prepared, QEMU runs
 * by exec with the arguments unchanged.
 *
 * Return: only if QEMU could not be run, or with -daemonize: the exit status
 */
int ht_emulator(int argc, char **argv);

#endif
