/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what a recording says about itself
 */
#include <sys/utsname.h>
#include <time.h>

#include "hypertrace/base.h"
#include "hypertrace/recording.h"
#include "hypertrace/symbols.h"
#include "record-info.h"

static void set_clock(GKeyFile *keys, const char *key, clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    g_key_file_set_uint64(keys, "recording", key,
                          (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}

void ht_record_info_hex(GKeyFile *keys, const char *key, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIx64, value);

    g_key_file_set_string(keys, "kernel", key, text);
}

static void set_string(GKeyFile *keys, const char *group, const char *key,
                       const char *value)
{
    if (value) {
        g_key_file_set_string(keys, group, key, value);
    }
}

void ht_record_info_start(GKeyFile *keys, const HtSessionInfo *info)
{
    struct utsname host;

    g_key_file_set_integer(keys, "recording", "version", HT_REC_VERSION);
    set_string(keys, "recording", "command", info->command);
    set_string(keys, "recording", "source", info->source);
    g_key_file_set_integer(keys, "recording", "poll-us", info->poll_us);
    set_clock(keys, "started-realtime", CLOCK_REALTIME);
    set_clock(keys, "started-monotonic", CLOCK_MONOTONIC);
    set_clock(keys, "started-boottime", CLOCK_BOOTTIME);
    if (!uname(&host)) {
        set_string(keys, "recording", "host", host.nodename);
    }
    set_string(keys, "guest", "cmdline", info->words);
    if (info->kernel) {
        set_string(keys, "guest", "release", info->kernel->release);
        set_string(keys, "guest", "machine", info->kernel->machine);
        set_string(keys, "guest", "version", info->kernel->version);
        set_string(keys, "guest", "image", info->kernel->hash);
    }
}

void ht_record_info_ring(GKeyFile *keys, const HtKernel *kernel,
                         const HtFtRing *ring)
{
    bool old = ring->layout == HT_FT_LAYOUT_6_11;
    g_autoptr(HtSymbols) symbols = NULL;
    uint64_t addr;

    g_key_file_set_integer(keys, "guest", "page-size", ring->subbuf_size);
    set_string(keys, "guest", "layout", ht_ft_layout_name(ring->layout));
    if (!kernel) {
        return;
    }
    symbols = ht_symbols_parse(kernel->kallsyms, kernel->kallsyms_size, NULL);
    if (symbols && ht_symbols_address(symbols, old ? "rb_meta_init_text_addr" :
                                      "_text", &addr)) {
        ht_record_info_hex(keys, "text", addr);
    }
}
