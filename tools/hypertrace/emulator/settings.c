/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: read the settings
 */
#include "hypertrace/base.h"

#include "cli/config.h"
#include "emulator/settings.h"
#include "record/plan.h"

#define GROUP           "emulator"
#define KEEP            20
#define KEEP_BYTES      (UINT64_C(8) << 30)
#define MAX_BYTES       (UINT64_C(1) << 30)
#define KEEP_MAX        1000000
#define SIZE_TEXT       "a size, as 512M or 2G"

static const char * const keys[] = {
    "qemu", "record", "recordings", "keep", "keep-size", "max-size", "events",
    "ring-size", NULL
};

static bool get_ring(GKeyFile *file, uint64_t *bytes, GError **error)
{
    static const char accepted[] = "whole MiB, 1M to 1G";

    if (!ht_config_size(file, GROUP, "ring-size", HT_RECORD_SIZE_MIN,
                        HT_RECORD_SIZE_MAX, accepted, bytes, error)) {
        return false;
    }
    if (*bytes % HT_RECORD_SIZE_MIN) {
        g_autofree char *value = g_key_file_get_value(file, GROUP, "ring-size",
                                                      NULL);

        return ht_config_refuse(error, GROUP, "ring-size", value, accepted);
    }
    return true;
}

bool ht_settings_read(HtSettings *s, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    bool ok = ht_config_load(file, NULL, "emulator.conf", error);

    *s = (HtSettings) {
        .record = true,
        .keep = KEEP,
        .keep_bytes = KEEP_BYTES,
        .max_bytes = MAX_BYTES,
        .ring_bytes = HT_RECORD_SIZE,
    };
    ht_config_environment(file, GROUP, keys);
    /* Get QEMU's path first: QEMU must run even if another setting is wrong. */
    return ht_config_text(file, GROUP, "qemu", &s->qemu, ok ? error : NULL) &&
           ok && ht_config_keys(file, GROUP, keys, error) &&
           ht_config_folder(file, GROUP, "recordings", NULL, &s->recordings,
                            error) &&
           ht_config_text(file, GROUP, "events", &s->events, error) &&
           ht_config_flag(file, GROUP, "record", &s->record, error) &&
           ht_config_number(file, GROUP, "keep", KEEP_MAX, &s->keep, error) &&
           ht_config_size(file, GROUP, "keep-size", 1, UINT64_MAX, SIZE_TEXT,
                          &s->keep_bytes, error) &&
           ht_config_size(file, GROUP, "max-size", 1, UINT64_MAX, SIZE_TEXT,
                          &s->max_bytes, error) &&
           get_ring(file, &s->ring_bytes, error);
}

void ht_settings_clear(HtSettings *s)
{
    g_free(s->qemu);
    g_free(s->recordings);
    g_free(s->events);
}
