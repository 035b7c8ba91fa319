/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what a recording of an ftrace ring says about itself
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "hypertrace/base.h"
#include "hypertrace/recording.h"

static void set_clock(GKeyFile *keys, const char *key, clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    g_key_file_set_uint64(keys, "recording", key,
                          (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}

void ht_rec_info_begin(GKeyFile *keys, const char *command, const char *source,
                       uint32_t poll_us)
{
    g_key_file_set_integer(keys, "recording", "version", HT_REC_VERSION);
    if (command) {
        g_key_file_set_string(keys, "recording", "command", command);
    }
    if (source) {
        g_key_file_set_string(keys, "recording", "source", source);
    }
    g_key_file_set_integer(keys, "recording", "poll-us", poll_us);
    set_clock(keys, "started-realtime", CLOCK_REALTIME);
    set_clock(keys, "started-monotonic", CLOCK_MONOTONIC);
    set_clock(keys, "started-boottime", CLOCK_BOOTTIME);
    g_key_file_set_string(keys, "recording", "host", g_get_host_name());
}

void ht_rec_info_ring(GKeyFile *keys, const HtFtRing *ring)
{
    g_key_file_set_integer(keys, "guest", "page-size", ring->subbuf_size);
    g_key_file_set_string(keys, "guest", "layout",
                          ht_ft_layout_name(ring->layout));
}

void ht_rec_info_text(GKeyFile *keys, uint32_t epoch, uint64_t text)
{
    char key[32], value[32];

    if (text) {
        snprintf(key, sizeof(key), "text-%" PRIu32, epoch);
        snprintf(value, sizeof(value), "%" PRIx64, text);
        g_key_file_set_string(keys, "kernel", key, value);
    }
}

void ht_rec_info_end(GKeyFile *keys, const char *end, uint64_t ns)
{
    g_key_file_set_string(keys, "recording", "end", end);
    g_key_file_set_uint64(keys, "recording", "ended-monotonic", ns);
}
