/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: get event formats and symbols of a kernel image, and cache them
 *
 * The cache is $XDG_CACHE_HOME/hypertrace/kernels/HASH/{info,formats,kallsyms}.
 * A new entry is written to a temporary folder, which is then renamed to HASH,
 * so that other processes do not read an entry that is half written.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "cli/command.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"
#include "kernel/kernel.h"

/*
 * Maximum time in seconds to boot a kernel until it has printed its data, all
 * attempts together. On an idle machine, an attempt takes about 10 s.
 */
#define DEADLINE_S 180

static const char * const files[] = { "info", "formats", "kallsyms" };

void ht_kernel_free(HtKernel *k)
{
    if (k) {
        g_free(k->hash);
        g_free(k->release);
        g_free(k->machine);
        g_free(k->version);
        g_free(k->formats);
        g_free(k->kallsyms);
        g_free(k);
    }
}

static char *cache_dir(void)
{
    return g_build_filename(g_get_user_cache_dir(), "hypertrace", "kernels",
                            NULL);
}

static bool read_file(const char *dir, const char *name, char **text,
                      size_t *size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return g_file_get_contents(path, text, size, NULL);
}

static HtKernel *read_cache(const char *hash)
{
    g_autofree char *base = cache_dir();
    g_autofree char *dir = g_build_filename(base, hash, NULL);
    g_autofree char *path = g_build_filename(dir, "info", NULL);
    g_autoptr(GKeyFile) info = g_key_file_new();
    g_autoptr(HtKernel) k = g_new0(HtKernel, 1);

    if (!g_key_file_load_from_file(info, path, G_KEY_FILE_NONE, NULL) ||
        !read_file(dir, "formats", &k->formats, &k->formats_size) ||
        !read_file(dir, "kallsyms", &k->kallsyms, &k->kallsyms_size)) {
        return NULL;
    }
    k->hash = g_strdup(hash);
    k->release = g_key_file_get_string(info, "kernel", "release", NULL);
    k->machine = g_key_file_get_string(info, "kernel", "machine", NULL);
    k->version = g_key_file_get_string(info, "kernel", "version", NULL);
    return k->release && k->machine && k->version ? g_steal_pointer(&k) :
           NULL;
}

static void remove_dir(const char *dir)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(dir, files[i], NULL);

        unlink(path);
    }
    rmdir(dir);
}

/*
 * Store a kernel's data in the cache. If a file cannot be written, print why.
 * Do not fail: the caller has the data.
 */
static void write_cache(const HtKernel *k)
{
    g_autofree char *base = cache_dir();
    g_autofree char *final = g_build_filename(base, k->hash, NULL);
    g_autofree char *tmp = g_build_filename(base, ".new-XXXXXX", NULL);
    g_autofree char *info = NULL, *formats = NULL, *kallsyms = NULL;
    g_autoptr(GKeyFile) keys = g_key_file_new();
    g_autoptr(GError) error = NULL;

    if (g_mkdir_with_parents(base, 0777) || !g_mkdtemp_full(tmp, 0777)) {
        ht_error("cannot write to %s: %s", base, g_strerror(errno));
        return;
    }
    g_key_file_set_string(keys, "kernel", "release", k->release);
    g_key_file_set_string(keys, "kernel", "machine", k->machine);
    g_key_file_set_string(keys, "kernel", "version", k->version);
    info = g_build_filename(tmp, "info", NULL);
    formats = g_build_filename(tmp, "formats", NULL);
    kallsyms = g_build_filename(tmp, "kallsyms", NULL);
    if (!g_key_file_save_to_file(keys, info, &error) ||
        !g_file_set_contents(formats, k->formats, k->formats_size, &error) ||
        !g_file_set_contents(kallsyms, k->kallsyms, k->kallsyms_size,
                             &error)) {
        ht_error("%s", error->message);
        remove_dir(tmp);
    } else {
        /*
         * If there is an entry now, it is damaged, or another process has made
         * it meanwhile: replace it.
         */
        remove_dir(final);
        if (rename(tmp, final)) {
            remove_dir(tmp);
        }
    }
}

/*
 * Copy the next line of a guest's text, and advance *@text past it. Replace
 * bytes that are not printable by '?', because the line is shown on terminals.
 * Returns NULL if no line end is left, or if the line has more than 1024 bytes.
 */
static char *take_line(char **text, char *end)
{
    char *nl = memchr(*text, '\n', end - *text), *line, *p;

    if (!nl || nl - *text > 1024) {
        return NULL;
    }
    line = g_strndup(*text, nl - *text);
    for (p = line; *p; p++) {
        if (!g_ascii_isprint(*p)) {
            *p = '?';
        }
    }
    *text = nl + 1;
    return line;
}

static bool parse(HtKernel *k, char *text, size_t size, GError **error)
{
    static const char mark[] = "\nkallsyms:\n";
    g_autoptr(HtFtFormats) formats = NULL;
    g_autoptr(HtSymbols) symbols = NULL;
    char *end = text + size, *kallsyms;

    k->release = take_line(&text, end);
    k->machine = k->release ? take_line(&text, end) : NULL;
    k->version = k->machine ? take_line(&text, end) : NULL;
    kallsyms = k->version ? g_strstr_len(text, end - text, mark) : NULL;
    if (!kallsyms) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the output of the kernel's guest is not complete");
        return false;
    }
    k->formats_size = kallsyms + 1 - text;
    k->formats = g_strndup(text, k->formats_size);
    kallsyms += strlen(mark);
    k->kallsyms_size = end - kallsyms;
    k->kallsyms = g_strndup(kallsyms, k->kallsyms_size);
    formats = ht_ft_formats_parse(k->formats, k->formats_size, error);
    symbols = formats ? ht_symbols_parse(k->kallsyms, k->kallsyms_size,
                                         error) : NULL;
    return symbols;
}

bool ht_image_read(const char *path, HtImage *image, GBytes **content,
                   GError **error)
{
    g_autofree char *data = NULL;
    size_t size;

    /* Copy the file: it may be changed or replaced while it is used. */
    if (!ht_image_load(path, &data, &size, error)) {
        g_prefix_error(error, "the kernel: ");
        return false;
    }
    if (!ht_image_identify(data, size, image, error)) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    if (content) {
        *content = g_bytes_new_take(g_steal_pointer(&data), size);
    }
    return true;
}

HtKernel *ht_kernel_get(const char *path, const char *qemu,
                        const char *busybox, GError **error)
{
    g_autoptr(HtKernel) k = NULL;
    g_autoptr(GBytes) content = NULL;
    g_autofree char *text = NULL, *hash = NULL;
    HtImage image;
    size_t size;

    if (!ht_image_read(path, &image, &content, error)) {
        return NULL;
    }
    hash = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, content);
    k = read_cache(hash);
    if (k) {
        return g_steal_pointer(&k);
    }
    ht_notice("booting %s once for its event formats; this takes some seconds",
              path);
    text = ht_kernel_guest(content, &image, qemu, busybox, DEADLINE_S, &size,
                           error);
    if (!text) {
        return NULL;
    }
    k = g_new0(HtKernel, 1);
    k->hash = g_steal_pointer(&hash);
    if (!parse(k, text, size, error)) {
        return NULL;
    }
    write_cache(k);
    return g_steal_pointer(&k);
}

/* Convert symbols to the format of /proc/kallsyms. */
static GString *symbols_text(const HtSymbols *symbols)
{
    GString *text = g_string_new(NULL);
    const char *name;
    uint64_t addr;
    unsigned i;
    char type;

    for (i = 0; (name = ht_symbols_get(symbols, i, &addr, &type)); i++) {
        g_string_append_printf(text, "%016" PRIx64 " %c %s\n", addr, type,
                               name);
    }
    return text;
}

HtKernel *ht_kernel_of_image(HtKernelImage *image)
{
    HtKernel *k = g_new0(HtKernel, 1);
    GString *text = symbols_text(ht_kernel_image_symbols(image));

    k->release = g_strdup(ht_kernel_image_release(image));
    k->machine = g_strdup(ht_machine_name(ht_kernel_image_machine(image)));
    k->version = g_strdup(ht_kernel_image_version(image));
    k->kallsyms_size = text->len;
    k->kallsyms = g_string_free(text, false);
    return k;
}
