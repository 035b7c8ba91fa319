/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: settings
 */
#include "hypertrace/base.h"
#include <pwd.h>

#include "cli/near.h"
#include "cli/number.h"
#include "hypertrace/recording.h"
#include "qemu/qemu-opts.h"
#include "record/flight-dir.h"
#include "watch/settings.h"

#define GROUP           "watch"
#define RULE            "vm "           /* group of a rule: "vm PATTERN" */
#define SYSTEM_FILE     "/etc/hypertrace/watch.conf"
#define SYSTEM_FOLDER   "/var/lib/hypertrace/watch"
#define SIZE            (UINT64_C(16) << 20)
#define KEEP            10
#define MAX_VMS         32
#define MAX_VMS_MOST    10000
#define MAX_MEMORY      (UINT64_C(1) << 30)
#define MAX_DISK        (UINT64_C(4) << 30)
/* Size of the kernel's log, formats and symbols in a recording */
#define KERNEL_BYTES    (UINT64_C(16) << 20)

static const char * const watch_keys[] = {
    "dir", "size", "keep", "silence", "max-memory", "max-disk", "max-vms",
    "name", "user", NULL
};
static const char * const rule_keys[] = { "user", "size", "silence", NULL };

static bool refuse(GError **error, const char *group, const char *key,
                   const char *value, const char *accepted)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "[%s] %s=%s: give %s", group, key, value, accepted);
    return false;
}

static bool get_size(GKeyFile *file, const char *group, const char *key,
                     uint64_t least, uint64_t most, const char *accepted,
                     uint64_t *bytes, GError **error)
{
    g_autofree char *value = g_key_file_get_string(file, group, key, NULL);

    return !value || (ht_opts_size(value, 'M', bytes) && *bytes >= least &&
                      *bytes <= most) ||
           refuse(error, group, key, value, accepted);
}

/* Get "size" and "silence", which a rule inherits. */
static bool get_recorder(GKeyFile *file, const char *group, HtWatchRule *r,
                         GError **error)
{
    g_autofree char *silence = g_key_file_get_string(file, group, "silence",
                                                     NULL);
    bool negative;

    if (!get_size(file, group, "size", HT_REC_QUEUE_MIN, HT_REC_QUEUE_MAX,
                  "1M to 64G", &r->size, error)) {
        return false;
    }
    return !silence ||
           (ht_number_time("silence", silence, &r->silence_ns, &negative,
                           NULL) && !negative) ||
           refuse(error, group, "silence", silence, "a time, as 30s");
}

static bool get_user(const char *group, const char *name, HtWatchRule *r,
                     GError **error)
{
    const struct passwd *user = name ? getpwnam(name) : NULL;
    guint64 uid;

    r->any_user = !name;
    if (user) {
        r->user = user->pw_uid;
    } else if (name && g_ascii_string_to_unsigned(name, 10, 0, UINT32_MAX - 1,
                                                  &uid, NULL)) {
        r->user = uid;
    } else if (name) {
        return refuse(error, group, "user", name,
                      "the name or the number of a user");
    }
    return true;
}

static void free_rule(void *opaque)
{
    HtWatchRule *r = opaque;

    g_free(r->name);
    g_free(r);
}

/* Add a rule for each user in @users, or for all users. */
static bool add_rules(HtWatchSettings *s, const HtWatchRule *model,
                      const char *group, const char *name, char **users,
                      GError **error)
{
    unsigned i = 0;

    do {
        HtWatchRule *r = g_memdup2(model, sizeof(*model));

        r->name = g_strdup(name);
        g_ptr_array_add(s->rules, r);
        if (!get_user(group, users ? users[i] : NULL, r, error)) {
            return false;
        }
    } while (users && users[++i]);
    return true;
}

static bool check_keys(GKeyFile *file, const char *group,
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

/*
 * Get a list, or NULL if it is not given. An empty list is refused: without a
 * list, all users are meant.
 */
static bool get_list(GKeyFile *file, const char *group, const char *key,
                     char ***list, GError **error)
{
    *list = g_key_file_get_string_list(file, group, key, NULL, NULL);
    if (!g_key_file_has_key(file, group, key, NULL) ||
        (*list && **list && !g_strv_contains((const char * const *)*list,
                                             ""))) {
        return true;
    }
    return refuse(error, group, key, "", strcmp(key, "user") ?
                  "one or more patterns, as web*;db*" :
                  "one or more users, as alice;bob; leave it out for all "
                  "users");
}

/* A group "vm PATTERN" is a rule. */
static bool add_group(HtWatchSettings *s, GKeyFile *file, const char *group,
                      const HtWatchRule *model, GError **error)
{
    g_auto(GStrv) users = NULL;
    HtWatchRule r = *model;

    if (!g_str_has_prefix(group, RULE) || !group[strlen(RULE)]) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "there is no "
                    "group [%s]: give [" GROUP "] or [" RULE "PATTERN]",
                    group);
        return false;
    }
    return check_keys(file, group, rule_keys, error) &&
           get_recorder(file, group, &r, error) &&
           get_list(file, group, "user", &users, error) &&
           add_rules(s, &r, group, group + strlen(RULE), users, error);
}

/* The settings "name" and "user" are the rules of the command line. */
static bool add_names(HtWatchSettings *s, GKeyFile *file,
                      const HtWatchRule *model, GError **error)
{
    g_auto(GStrv) names = NULL, users = NULL;
    unsigned i;

    if (!get_list(file, GROUP, "name", &names, error) ||
        !get_list(file, GROUP, "user", &users, error)) {
        return false;
    }
    for (i = 0; names && names[i]; i++) {
        if (!add_rules(s, model, GROUP, names[i], users, error)) {
            return false;
        }
    }
    return names || !users || add_rules(s, model, GROUP, "*", users, error);
}

static bool get_rules(HtWatchSettings *s, GKeyFile *file, GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    HtWatchRule model = { .size = SIZE };
    unsigned i;

    if (!get_recorder(file, GROUP, &model, error) ||
        !add_names(s, file, &model, error)) {
        return false;
    }
    for (i = 0; groups[i]; i++) {
        if (strcmp(groups[i], GROUP) &&
            !add_group(s, file, groups[i], &model, error)) {
            return false;
        }
    }
    if (!s->rules->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "no virtual "
                    "machine is chosen: give --name PATTERN or --user USER, or "
                    "write a group [" RULE "PATTERN] into " SYSTEM_FILE);
        return false;
    }
    return true;
}

/* The required version of GLib does not have g_get_user_state_dir(). */
static char *default_dir(void)
{
    const char *state = g_getenv("XDG_STATE_HOME");

    if (geteuid() == 0) {
        return g_strdup(SYSTEM_FOLDER);
    }
    return state && *state ? g_build_filename(state, "hypertrace", "watch",
                                              NULL) :
           g_build_filename(g_get_home_dir(), ".local", "state", "hypertrace",
                            "watch", NULL);
}

static bool read_file(GKeyFile *file, const char *path, GError **error)
{
    g_autofree char *own = g_build_filename(g_get_user_config_dir(),
                                            "hypertrace", "watch.conf", NULL);
    const char *name = path ? path :
                       g_file_test(own, G_FILE_TEST_EXISTS) ? own :
                       SYSTEM_FILE;
    g_autoptr(GError) local = NULL;

    if (g_key_file_load_from_file(file, name, G_KEY_FILE_NONE, &local) ||
        (!path && g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT))) {
        return true;
    }
    g_propagate_prefixed_error(error, g_steal_pointer(&local), "%s: ", name);
    return false;
}

static void merge(GKeyFile *file, GKeyFile *options)
{
    g_auto(GStrv) keys = g_key_file_get_keys(options, GROUP, NULL, NULL);
    unsigned i;

    for (i = 0; keys && keys[i]; i++) {
        g_autofree char *value = g_key_file_get_value(options, GROUP, keys[i],
                                                      NULL);

        g_key_file_set_value(file, GROUP, keys[i], value);
    }
}

static bool get_count(GKeyFile *file, const char *key, unsigned most,
                      unsigned *count, GError **error)
{
    g_autofree char *value = g_key_file_get_string(file, GROUP, key, NULL);
    g_autofree char *accepted = g_strdup_printf("1 to %u", most);
    guint64 n = *count;

    if (value && !g_ascii_string_to_unsigned(value, 10, 1, most, &n, NULL)) {
        return refuse(error, GROUP, key, value, accepted);
    }
    *count = n;
    return true;
}

/* Get the largest size of the rules. */
static uint64_t largest_size(const HtWatchSettings *s)
{
    uint64_t most = 0;
    unsigned i;

    for (i = 0; i < s->rules->len; i++) {
        most = MAX(most, ((HtWatchRule *)s->rules->pdata[i])->size);
    }
    return most;
}

uint64_t ht_watch_settings_recording(const HtWatchSettings *s)
{
    return largest_size(s) + KERNEL_BYTES;
}

/* A limit that no recording fits in would remove each one at once. */
static bool check_limits(const HtWatchSettings *s, GError **error)
{
    uint64_t recording = ht_watch_settings_recording(s);
    uint64_t size = largest_size(s);

    if (s->max_disk < 2 * recording) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "max-disk is "
                    "smaller than two recordings: give at least %" PRIu64
                    "M, or a smaller size", 2 * recording >> 20);
        return false;
    }
    if (s->max_memory < size) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "max-memory is "
                    "smaller than size: give at least %" PRIu64 "M, or a "
                    "smaller size", size >> 20);
        return false;
    }
    return true;
}

bool ht_watch_settings_read(HtWatchSettings *s, GKeyFile *options,
                            const char *path, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();

    *s = (HtWatchSettings) {
        .keep = KEEP,
        .max_vms = MAX_VMS,
        .max_memory = MAX_MEMORY,
        .max_disk = MAX_DISK,
        .rules = g_ptr_array_new_with_free_func(free_rule),
    };
    if (!read_file(file, path, error)) {
        return false;
    }
    merge(file, options);
    s->dir = g_key_file_get_string(file, GROUP, "dir", NULL);
    if (!s->dir) {
        s->dir = default_dir();
    }
    if (!g_path_is_absolute(s->dir)) {
        return refuse(error, GROUP, "dir", s->dir, "an absolute path");
    }
    return check_keys(file, GROUP, watch_keys, error) &&
           get_count(file, "keep", HT_FLIGHT_KEEP_MAX, &s->keep, error) &&
           get_count(file, "max-vms", MAX_VMS_MOST, &s->max_vms, error) &&
           get_size(file, GROUP, "max-memory", 1 << 20, UINT64_MAX,
                    "1M or more", &s->max_memory, error) &&
           get_size(file, GROUP, "max-disk", 1 << 20, UINT64_MAX, "1M or more",
                    &s->max_disk, error) &&
           get_rules(s, file, error) && check_limits(s, error);
}

void ht_watch_settings_clear(HtWatchSettings *s)
{
    g_free(s->dir);
    g_ptr_array_free(s->rules, true);
}

bool ht_watch_settings_has_user(const HtWatchSettings *s, uid_t uid)
{
    unsigned i;

    for (i = 0; i < s->rules->len; i++) {
        const HtWatchRule *r = s->rules->pdata[i];

        if (r->any_user || r->user == uid) {
            return true;
        }
    }
    return false;
}

const HtWatchRule *ht_watch_settings_match(const HtWatchSettings *s,
                                           const char *name, uid_t uid)
{
    unsigned i;

    for (i = 0; i < s->rules->len; i++) {
        const HtWatchRule *r = s->rules->pdata[i];

        if ((r->any_user || r->user == uid) &&
            g_pattern_match_simple(r->name, name)) {
            return r;
        }
    }
    return NULL;
}
