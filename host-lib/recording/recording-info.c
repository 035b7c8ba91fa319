/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: set the keys of a recording's file "info", its description
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "hypertrace/base.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/recording.h"

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * Store the present time by three clocks.  Read the clocks 8 times, and use the
 * readings that took the least time together.
 */
static void set_clocks(GKeyFile *keys)
{
    uint64_t best = UINT64_MAX, mono = 0, real = 0, boot = 0;
    unsigned i;

    for (i = 0; i < 8; i++) {
        uint64_t begin = read_clock(CLOCK_MONOTONIC), r, b, end;

        r = read_clock(CLOCK_REALTIME);
        b = read_clock(CLOCK_BOOTTIME);
        end = read_clock(CLOCK_MONOTONIC);
        if (end - begin < best) {
            best = end - begin;
            mono = begin + best / 2;
            real = r;
            boot = b;
        }
    }
    g_key_file_set_uint64(keys, "recording", "started-realtime", real);
    g_key_file_set_uint64(keys, "recording", "started-monotonic", mono);
    g_key_file_set_uint64(keys, "recording", "started-boottime", boot);
}

void ht_rec_info_begin(GKeyFile *keys, const char *command, const char *source,
                       uint32_t poll_us)
{
    g_autofree char *boot = ht_host_boot();

    g_key_file_set_integer(keys, "recording", "version", HT_REC_VERSION);
    if (command) {
        g_key_file_set_string(keys, "recording", "command", command);
    }
    if (source) {
        g_key_file_set_string(keys, "recording", "source", source);
    }
    g_key_file_set_integer(keys, "recording", "poll-us", poll_us);
    set_clocks(keys);
    if (boot) {
        g_key_file_set_string(keys, "recording", "host-boot", boot);
    }
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
