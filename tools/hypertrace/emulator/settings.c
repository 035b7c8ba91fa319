/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: settings
 */
#include "hypertrace/base.h"
#include "emulator/settings.h"
#include "qemu/qemu-opts.h"
#include "record/plan.h"

#define GROUP           "emulator"
#define SYSTEM_FILE     "/etc/hypertrace/emulator.conf"
#define SYSTEM_FOLDER   "/var/lib/hypertrace"
#define KEEP            20
#define KEEP_BYTES      (UINT64_C(8) << 30)
#define MAX_BYTES       (UINT64_C(1) << 30)
#define KEEP_MAX        1000000

/*
 * Get a setting. A variable of the environment overrides the file: for example,
 * HYPERTRACE_KEEP_SIZE overrides "keep-size".
 */
static char *get(GKeyFile *file, const char *name)
{
    g_autofree char *upper = g_ascii_strup(name, -1);
    g_autofree char *variable = g_strconcat("HYPERTRACE_", upper, NULL);
    const char *value;

    g_strdelimit(variable, "-", '_');
    value = g_getenv(variable);
    return value ? g_strdup(value) :
           g_key_file_get_string(file, GROUP, name, NULL);
}

static bool refuse(GError **error, const char *name, const char *value,
                   const char *accepted)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "the setting '%s' is '%s': give %s", name, value, accepted);
    return false;
}

static bool get_size(GKeyFile *file, const char *name, uint64_t *bytes,
                     GError **error)
{
    g_autofree char *value = get(file, name);

    return !value || (ht_opts_size(value, 'M', bytes) && *bytes) ||
           refuse(error, name, value, "a size, as 512M or 2G");
}

static bool get_number(GKeyFile *file, const char *name, uint64_t *n,
                       GError **error)
{
    g_autofree char *value = get(file, name);

    return !value ||
           g_ascii_string_to_unsigned(value, 10, 1, KEEP_MAX, n, NULL) ||
           refuse(error, name, value, "a number from 1 to 1000000");
}

static bool get_flag(GKeyFile *file, const char *name, bool *flag,
                     GError **error)
{
    g_autofree char *value = get(file, name);

    if (value && strcmp(value, "yes") && strcmp(value, "no")) {
        return refuse(error, name, value, "yes or no");
    }
    *flag = !value || !strcmp(value, "yes");
    return true;
}

/*
 * Get the default folder of recordings. g_get_user_state_dir() is not used,
 * because it needs a newer GLib than the one that the build requires.
 */
static char *default_folder(void)
{
    const char *state = g_getenv("XDG_STATE_HOME");

    if (geteuid() == 0) {
        return g_strdup(SYSTEM_FOLDER);
    }
    return state && *state ? g_build_filename(state, "hypertrace", NULL) :
           g_build_filename(g_get_home_dir(), ".local", "state", "hypertrace",
                            NULL);
}

static bool read_file(GKeyFile *file, GError **error)
{
    g_autofree char *own = g_build_filename(g_get_user_config_dir(),
                                            "hypertrace", "emulator.conf",
                                            NULL);
    const char *path = g_file_test(own, G_FILE_TEST_EXISTS) ? own :
                       SYSTEM_FILE;
    g_autoptr(GError) local = NULL;

    if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &local) ||
        g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        return true;
    }
    g_propagate_prefixed_error(error, g_steal_pointer(&local), "%s: ", path);
    return false;
}

bool ht_settings_read(HtSettings *s, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    bool ok = read_file(file, error);

    *s = (HtSettings) {
        .qemu = get(file, "qemu"),
        .recordings = get(file, "recordings"),
        .keep = KEEP,
        .keep_bytes = KEEP_BYTES,
        .max_bytes = MAX_BYTES,
        .events = get(file, "events"),
        .ring_bytes = HT_RECORD_SIZE,
    };
    if (!s->recordings) {
        s->recordings = default_folder();
    }
    if (!ok || !get_flag(file, "record", &s->record, error) ||
        !get_number(file, "keep", &s->keep, error) ||
        !get_size(file, "keep-size", &s->keep_bytes, error) ||
        !get_size(file, "max-size", &s->max_bytes, error) ||
        !get_size(file, "ring-size", &s->ring_bytes, error)) {
        return false;
    }
    if (!g_path_is_absolute(s->recordings)) {
        return refuse(error, "recordings", s->recordings, "an absolute path");
    }
    if (s->ring_bytes < HT_RECORD_SIZE_MIN ||
        s->ring_bytes > HT_RECORD_SIZE_MAX ||
        s->ring_bytes % HT_RECORD_SIZE_MIN) {
        g_autofree char *value = get(file, "ring-size");

        return refuse(error, "ring-size", value, "whole MiB, 1M to 1G");
    }
    return true;
}

void ht_settings_clear(HtSettings *s)
{
    g_free(s->qemu);
    g_free(s->recordings);
    g_free(s->events);
}
