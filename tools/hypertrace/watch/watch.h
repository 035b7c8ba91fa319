/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: follow virtual machines with recorders
 */
#ifndef HYPERTRACE_WATCH_H
#define HYPERTRACE_WATCH_H

#include "watch/settings.h"

/**
 * ht_watch_run() - follow virtual machines until SIGTERM or SIGINT, then end
 * the recorders
 *
 * Return: the exit status
 */
int ht_watch_run(const HtWatchSettings *settings);

#endif
