/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"
#include "record/record-info.h"

/* Shortest time in ns between two writes by ht_record_info_poll() */
#define WRITE_NS    UINT64_C(1000000000)

static void set_string(GKeyFile *keys, const char *group, const char *key,
                       const char *value)
{
    if (value) {
        g_key_file_set_string(keys, group, key, value);
    }
}

static void set_kernel(GKeyFile *keys, const HtKernel *kernel)
{
    set_string(keys, "guest", "release", kernel->release);
    set_string(keys, "guest", "machine", kernel->machine);
    set_string(keys, "guest", "version", kernel->version);
    set_string(keys, "guest", "image", kernel->hash);
}

void ht_record_info_init(HtRecordInfo *i, const HtSessionInfo *info)
{
    *i = (HtRecordInfo) { .keys = g_key_file_new() };
    ht_rec_info_begin(i->keys, info->command, info->source, info->poll_us);
    set_string(i->keys, "guest", "cmdline", info->words);
    if (info->kernel) {
        set_kernel(i->keys, info->kernel);
    }
}

void ht_record_info_clear(HtRecordInfo *i)
{
    g_clear_pointer(&i->keys, g_key_file_free);
}

void ht_record_info_cpus(HtRecordInfo *i, uint32_t cpus)
{
    if (cpus > i->cpus) {
        i->cpus = cpus;
        g_key_file_set_integer(i->keys, "guest", "cpus", cpus);
        i->changed = true;
    }
}

void ht_record_info_process(HtRecordInfo *i, pid_t pid)
{
    g_key_file_set_integer(i->keys, "recording", "process", pid);
    i->changed = true;
}

bool ht_record_info_write(HtRecordInfo *i, HtRecWriter *w, GError **error)
{
    gsize size;
    g_autofree char *text = g_key_file_to_data(i->keys, &size, NULL);

    return ht_rec_writer_file(w, "info", text, size, error);
}

bool ht_record_info_kernel(HtRecWriter *w, const HtKernel *kernel,
                           GError **error)
{
    return !kernel || ((!kernel->formats ||
                        ht_rec_writer_file(w, "formats", kernel->formats,
                                           kernel->formats_size, error)) &&
                       ht_rec_writer_file(w, "kallsyms", kernel->kallsyms,
                                          kernel->kallsyms_size, error));
}

bool ht_record_info_poll(HtRecordInfo *i, HtRecWriter *w, uint64_t now,
                         GError **error)
{
    if (!i->changed || now < i->next) {
        return true;
    }
    i->changed = false;
    i->next = now + WRITE_NS;
    return ht_record_info_write(i, w, error);
}

/*
 * Get the name of the symbol whose address the ring's header has. The info file
 * may have the name; else the layout of the ring decides.
 */
static char *symbol_of(GKeyFile *keys)
{
    g_autofree char *layout = g_key_file_get_string(keys, "guest", "layout",
                                                    NULL);
    char *symbol = g_key_file_get_string(keys, "kernel", "symbol", NULL);

    return symbol ?: g_strdup(g_strcmp0(layout, ht_ft_layout_name(
        HT_FT_LAYOUT_6_11)) ? "_text" : "rb_meta_init_text_addr");
}

static void set_text(GKeyFile *keys, const HtKernel *kernel)
{
    g_autoptr(HtSymbols) symbols = ht_symbols_parse(kernel->kallsyms,
                                                    kernel->kallsyms_size,
                                                    NULL);
    g_autofree char *symbol = symbol_of(keys), *text = NULL;
    uint64_t addr;

    if (symbols && ht_symbols_address(symbols, symbol, &addr)) {
        text = g_strdup_printf("%" PRIx64, addr);
        g_key_file_set_string(keys, "kernel", "text", text);
    }
}

void ht_record_info_ring(HtRecordInfo *i, const HtKernel *kernel,
                         const HtFtRing *ring)
{
    ht_rec_info_ring(i->keys, ring);
    if (kernel) {
        set_text(i->keys, kernel);
    }
}

/*
 * Check whether the formats of a recording can be those of @kernel: each build
 * of a kernel numbers its events, so equal numbers must mean equal events.
 */
static bool same_kernel(const HtRecInfo *info, const HtKernel *kernel)
{
    g_autoptr(HtFtFormats) a = ht_ft_formats_parse(info->formats,
                                                   info->formats_size, NULL);
    g_autoptr(HtFtFormats) b = ht_ft_formats_parse(kernel->formats,
                                                   kernel->formats_size, NULL);
    unsigned type;

    for (type = 0; a && b && type <= UINT16_MAX; type++) {
        const HtFtEvent *x = ht_ft_formats_get(a, type);
        const HtFtEvent *y = ht_ft_formats_get(b, type);

        if (x && y && (strcmp(x->name, y->name) ||
                       strcmp(x->system, y->system))) {
            return false;
        }
    }
    return a && b;
}

static bool add_file(const char *dir, const char *name, const char *text,
                     size_t size, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return g_file_set_contents_full(path, text, size,
                                    G_FILE_SET_CONTENTS_CONSISTENT, 0600,
                                    error);
}

bool ht_record_info_add(const char *dir, const HtKernel *kernel,
                        GError **error)
{
    g_autoptr(HtRecording) rec = ht_rec_open(dir, error);
    const HtRecInfo *info = rec ? ht_rec_info(rec) : NULL;
    g_autofree char *text = NULL;
    gsize size;

    if (!info) {
        return false;
    }
    if (info->formats && !same_kernel(info, kernel)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s is of another"
                    " kernel; the given one is %s", dir, kernel->release);
        return false;
    }
    set_kernel(info->keys, kernel);
    set_text(info->keys, kernel);
    text = g_key_file_to_data(info->keys, &size, NULL);
    return (info->formats ||
            add_file(dir, "formats", kernel->formats, kernel->formats_size,
                     error)) &&
           (info->kallsyms ||
            add_file(dir, "kallsyms", kernel->kallsyms, kernel->kallsyms_size,
                     error)) &&
           add_file(dir, "info", text, size, error);
}
