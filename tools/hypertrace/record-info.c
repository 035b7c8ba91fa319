/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what a recording says about itself
 */
#include "hypertrace/base.h"
#include "hypertrace/recording.h"
#include "hypertrace/symbols.h"
#include "record-info.h"

static void set_string(GKeyFile *keys, const char *group, const char *key,
                       const char *value)
{
    if (value) {
        g_key_file_set_string(keys, group, key, value);
    }
}

void ht_record_info_start(GKeyFile *keys, const HtSessionInfo *info)
{
    ht_rec_info_begin(keys, info->command, info->source, info->poll_us);
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
    g_autofree char *text = NULL;
    uint64_t addr;

    ht_rec_info_ring(keys, ring);
    if (!kernel) {
        return;
    }
    symbols = ht_symbols_parse(kernel->kallsyms, kernel->kallsyms_size, NULL);
    if (symbols && ht_symbols_address(symbols, old ? "rb_meta_init_text_addr" :
                                      "_text", &addr)) {
        text = g_strdup_printf("%" PRIx64, addr);
        g_key_file_set_string(keys, "kernel", "text", text);
    }
}
