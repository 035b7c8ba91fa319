/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"

#include "cli/command.h"
#include "cli/number.h"
#include "hypertrace/memory.h"
#include "record/options.h"
#include "record/programs.h"

#define LTTNG_CHARS     G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-"
/*
 * Maximum length of a guest's name, because LTTng allows 255 bytes for provider
 * and class together
 */
#define LTTNG_NAME_MAX  64

bool ht_record_duration(const char *option, const char *text, uint64_t *ns,
                        int *status)
{
    g_autoptr(GError) error = NULL;
    bool negative;

    if (!ht_number_time(option, text, ns, &negative, &error) || negative ||
        !*ns) {
        *status = ht_usage_error("%s '%s': give a time, as 10s, 500ms or 5min",
                                 option, text);
        return false;
    }
    return true;
}

bool ht_record_memory(const char *option, const char *text, uint64_t *bytes,
                      int *status)
{
    uint64_t n = HT_MEMORY_SIZE;

    if (text && (!ht_number_size(text, 'M', &n) || n < HT_PROGRAMS_SIZE_MIN ||
                 n > HT_MEMORY_SIZE_MAX || n & (n - 1))) {
        *status = ht_usage_error("%s='%s': give a power of two from 8M to 64G",
                                 option, text);
        return false;
    }
    *bytes = n;
    return true;
}

bool ht_record_lttng_name(const char *text, char **name, int *status)
{
    if (!text) {
        return true;
    }
    if (!*text || strlen(text) > LTTNG_NAME_MAX ||
        strspn(text, LTTNG_CHARS) != strlen(text)) {
        *status = ht_usage_error("--lttng='%s': give a name of 1 to %d letters,"
                                 " digits, '_', '.' or '-'", text,
                                 LTTNG_NAME_MAX);
        return false;
    }
    g_free(*name);
    *name = g_strdup(text);
    return true;
}

char *ht_record_lttng_default(const char *name)
{
    return g_strcanon(g_strndup(name, LTTNG_NAME_MAX), LTTNG_CHARS, '_');
}
