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
 * Unless QEMU goes to the background, the process runs QEMU by exec, so PID,
 * descriptors, signals, standard streams and exit status are QEMU's own. If the
 * guest cannot be recorded, QEMU runs with the arguments unchanged.
 *
 * Return: only if QEMU could not be run, or went to the background: the exit
 * status
 */
int ht_emulator(int argc, char **argv);

#endif
