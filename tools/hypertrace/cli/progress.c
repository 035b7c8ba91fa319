/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/progress.h"

/*
 * LONG_US: time in us from ht_progress_begin() until the line may be shown;
 * PERIOD_US: minimum time in us between two updates of the line
 */
#define LONG_US     1000000
#define PERIOD_US   200000

/*
 * Earliest time of the next update in us, on the clock of
 * g_get_monotonic_time(); 0: no update is permitted
 */
static int64_t next;
static bool shown;

void ht_progress_begin(void)
{
    next = isatty(STDERR_FILENO) ? g_get_monotonic_time() + LONG_US : 0;
}

void ht_progress_show(unsigned part)
{
    int64_t now = next ? g_get_monotonic_time() : 0;

    if (next && now >= next) {
        fprintf(stderr, "\r%s: %u %% read\033[K", g_get_prgname(),
                MIN(part, 1000) / 10);
        fflush(stderr);
        shown = true;
        next = now + PERIOD_US;
    }
}

void ht_progress_clear(void)
{
    if (shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        shown = false;
    }
}

void ht_progress_end(void)
{
    ht_progress_clear();
    next = 0;
}
