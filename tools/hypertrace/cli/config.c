/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read files of settings
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/config.h"
#include "cli/file.h"
#include "cli/near.h"
#include "cli/number.h"

#define SYSTEM_FILES    "/etc/hypertrace"
#define SYSTEM_STATE    "/var/lib/hypertrace"

bool ht_config_load(GKeyFile *file, const char *path, const char *name,
                    GError **error)
{
    g_autofree char *own = g_build_filename(g_get_user_config_dir(),
                                            "hypertrace", name, NULL);
    g_autofree char *system = g_build_filename(SYSTEM_FILES, name, NULL);
    const char *used = path ? path :
                       g_file_test(own, G_FILE_TEST_EXISTS) ? own : system;
    g_autoptr(GError) local = NULL;
    g_autofree char *text = NULL;
    gsize size;

    if (!ht_file_read(used, &text, &size, &local)) {
        if (!path && g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
            return true;
        }
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (!g_key_file_load_from_data(file, text, size, G_KEY_FILE_NONE, error)) {
        g_prefix_error(error, "%s: ", used);
        return false;
    }
    return true;
}

void ht_config_environment(GKeyFile *file, const char *group,
                           const char * const *keys)
{
    for (; *keys; keys++) {
        g_autofree char *upper = g_ascii_strup(*keys, -1);
        g_autofree char *variable = g_strconcat("HYPERTRACE_", upper, NULL);
        const char *value = g_getenv(g_strdelimit(variable, "-", '_'));

        if (value) {
            g_key_file_set_string(file, group, *keys, value);
        }
    }
}

bool ht_config_keys(GKeyFile *file, const char *group,
                    const char * const *known, GError **error)
{
    g_auto(GStrv) keys = g_key_file_get_keys(file, group, NULL, NULL);
    unsigned i, j;

    for (i = 0; keys && keys[i]; i++) {
        if (!g_strv_contains(known, keys[i])) {
            g_autoptr(GString) hint = g_string_new(NULL);
            HtNear near = { .name = keys[i] };

            for (j = 0; known[j]; j++) {
                ht_near_add(&near, known[j]);
            }
            ht_near_text(&near, hint);
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "[%s] has no setting '%s'%s", group, keys[i],
                        hint->str);
            return false;
        }
    }
    return true;
}

bool ht_config_refuse(GError **error, const char *group, const char *key,
                      const char *value, const char *accepted)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "[%s] %s=%s: give %s", group, key, value, accepted);
    return false;
}

static bool refuse_escapes(GKeyFile *file, const char *group, const char *key,
                           GError **error)
{
    g_autofree char *raw = g_key_file_get_value(file, group, key, NULL);

    return ht_config_refuse(error, group, key, raw, "UTF-8 with the escapes "
                            "\\s, \\n, \\t, \\r and \\\\ only");
}

/*
 * Check @error of a GLib function that reads a setting: return false if GLib
 * failed to decode the value, true if it succeeded or the setting is missing.
 * The result of the GLib function cannot be used for this: after a failure, it
 * is NULL in some versions of GLib, and the undecoded value in others.
 */
static bool is_decoded(const GError *error)
{
    return !error ||
           g_error_matches(error, G_KEY_FILE_ERROR,
                           G_KEY_FILE_ERROR_KEY_NOT_FOUND) ||
           g_error_matches(error, G_KEY_FILE_ERROR,
                           G_KEY_FILE_ERROR_GROUP_NOT_FOUND);
}

bool ht_config_text(GKeyFile *file, const char *group, const char *key,
                    char **value, GError **error)
{
    g_autoptr(GError) local = NULL;

    *value = g_key_file_get_string(file, group, key, &local);
    return is_decoded(local) || refuse_escapes(file, group, key, error);
}

bool ht_config_list(GKeyFile *file, const char *group, const char *key,
                    const char *accepted, char ***list, GError **error)
{
    g_autofree char *raw = g_key_file_get_value(file, group, key, NULL);
    g_autoptr(GError) local = NULL;

    *list = g_key_file_get_string_list(file, group, key, NULL, &local);
    if (!is_decoded(local)) {
        return refuse_escapes(file, group, key, error);
    }
    if (!g_key_file_has_key(file, group, key, NULL)) {
        return true;
    }
    return (*list && **list &&
            !g_strv_contains((const char * const *)*list, "")) ||
           ht_config_refuse(error, group, key, raw, accepted);
}

bool ht_config_size(GKeyFile *file, const char *group, const char *key,
                    uint64_t least, uint64_t most, const char *accepted,
                    uint64_t *bytes, GError **error)
{
    g_autofree char *value = NULL;
    uint64_t n;

    if (!ht_config_text(file, group, key, &value, error)) {
        return false;
    }
    if (!value) {
        return true;
    }
    if (!ht_number_size(value, 'M', &n) || n < least || n > most) {
        return ht_config_refuse(error, group, key, value, accepted);
    }
    *bytes = n;
    return true;
}

bool ht_config_number(GKeyFile *file, const char *group, const char *key,
                      uint64_t most, uint64_t *n, GError **error)
{
    g_autofree char *value = NULL;
    g_autofree char *accepted = g_strdup_printf("1 to %" PRIu64, most);
    guint64 number;

    if (!ht_config_text(file, group, key, &value, error)) {
        return false;
    }
    if (!value) {
        return true;
    }
    if (!g_ascii_string_to_unsigned(value, 10, 1, most, &number, NULL)) {
        return ht_config_refuse(error, group, key, value, accepted);
    }
    *n = number;
    return true;
}

bool ht_config_flag(GKeyFile *file, const char *group, const char *key,
                    bool *flag, GError **error)
{
    g_autofree char *value = NULL;

    if (!ht_config_text(file, group, key, &value, error)) {
        return false;
    }
    if (value && strcmp(value, "yes") && strcmp(value, "no")) {
        return ht_config_refuse(error, group, key, value, "yes or no");
    }
    *flag = value ? !strcmp(value, "yes") : *flag;
    return true;
}

/*
 * Get the state folder, see ht_config_folder(). g_get_user_state_dir() is
 * missing in the oldest supported GLib.
 */
static char *state_folder(void)
{
    const char *state = g_getenv("XDG_STATE_HOME");

    if (geteuid() == 0) {
        return g_strdup(SYSTEM_STATE);
    }
    return state && *state ? g_build_filename(state, "hypertrace", NULL) :
           g_build_filename(g_get_home_dir(), ".local", "state", "hypertrace",
                            NULL);
}

bool ht_config_folder(GKeyFile *file, const char *group, const char *key,
                      const char *below, char **folder, GError **error)
{
    bool ok = ht_config_text(file, group, key, folder, error);

    if (!*folder) {
        g_autofree char *state = state_folder();

        *folder = g_build_filename(state, below, NULL);
    }
    return ok && (g_path_is_absolute(*folder) ||
                  ht_config_refuse(error, group, key, *folder,
                                   "an absolute path"));
}
