/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "hypertrace/kernel-functions.h"
#include "record/functions.h"

/* Maximum of depth=: the kernel's FTRACE_RETFUNC_DEPTH */
#define DEPTH_MAX       50

const char *ht_record_functions_option(const HtRecordFunctions *f)
{
    return f->graph ? "--graph" : "--functions";
}

/*
 * Parse an element of the option's list: a function's name, a pattern, or, for
 * --graph, "depth=N".
 */
static bool add_part(HtRecordFunctions *f, const char *part, GString *names)
{
    static const char chars[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS
                                "_.$*?";
    guint64 n;

    if (f->graph && g_str_has_prefix(part, "depth=")) {
        if (!g_ascii_string_to_unsigned(part + strlen("depth="), 10, 1,
                                        DEPTH_MAX, &n, NULL)) {
            return false;
        }
        f->depth = n;
        return true;
    }
    if (!*part || strspn(part, chars) != strlen(part)) {
        return false;
    }
    g_string_append_printf(names, "%s%s", names->len ? "," : "", part);
    return true;
}

bool ht_record_functions_parse(HtRecordFunctions *f, const char *text,
                               bool graph, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GString) names = g_string_new(NULL);
    unsigned i;

    *f = (HtRecordFunctions) { .graph = graph };
    for (i = 0; parts[i] && add_part(f, parts[i], names); i++) {
        ;
    }
    if (parts[i] || !names->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s '%s': give functions with commas between, as %s",
                    ht_record_functions_option(f), text, graph ?
                    "acpi_init or 'pci_*,depth=3'; a depth is 1 to "
                    G_STRINGIFY(DEPTH_MAX) : "'acpi_*,pci_scan_slot'");
        return false;
    }
    f->names = g_string_free(g_steal_pointer(&names), false);
    return true;
}

void ht_record_functions_clear(HtRecordFunctions *f)
{
    g_clear_pointer(&f->names, g_free);
}

bool ht_record_functions_check(const HtRecordFunctions *f,
                               const HtKernelImage *image, GError **error)
{
    g_autoptr(HtKernelFunctions) all = ht_kernel_functions_new(image);
    g_auto(GStrv) parts = g_strsplit(f->names, ",", -1);
    unsigned i, named;

    for (i = 0; parts[i]; i++) {
        if (ht_kernel_functions_match(all, parts[i], &named)) {
            continue;
        }
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s '%s': Linux "
                    "%s %s", ht_record_functions_option(f), parts[i],
                    ht_kernel_image_release(image), named ?
                    "cannot trace this function: it is marked notrace" :
                    "has no such function: it may be inlined, part of a "
                    "module, or of another version of Linux");
        return false;
    }
    return true;
}

char *ht_record_functions_words(const HtRecordFunctions *f)
{
    g_autofree char *depth = f->depth ?
        g_strdup_printf(" ftrace_graph_max_depth=%u", f->depth) : NULL;

    return f->graph ?
           g_strdup_printf("ftrace=function_graph ftrace_graph_filter=%s%s",
                           f->names, depth ? depth : "") :
           g_strdup_printf("ftrace=function ftrace_filter=%s", f->names);
}
