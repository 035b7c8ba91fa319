/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: read and check the settings
 */
#include "hypertrace/base.h"
#include <pwd.h>

#include "cli/config.h"
#include "cli/number.h"
#include "hypertrace/pattern.h"
#include "hypertrace/recording.h"
#include "model/match.h"
#include "record/flight-dir.h"
#include "watch/settings.h"

#define GROUP           "watch"
/* first characters of a group's name that make the group a rule */
#define RULE            "vm "
#define SYSTEM_FILE     "/etc/hypertrace/watch.conf"
#define SIZE            (UINT64_C(16) << 20)
#define KEEP            10
#define MAX_VMS         32
#define MAX_VMS_MOST    10000
#define MAX_MEMORY      (UINT64_C(1) << 30)
#define MAX_DISK        (UINT64_C(4) << 30)
/*
 * Assumed size of the kernel's log, formats and symbols in a recording, in
 * bytes
 */
#define KERNEL_BYTES    (UINT64_C(16) << 20)

static const char * const watch_keys[] = {
    "dir", "size", "keep", "silence", "match", "max-memory", "max-disk",
    "max-vms", "name", "user", NULL
};
static const char * const rule_keys[] = {
    "user", "size", "silence", "match", NULL
};

/* Get the rule's "match"; if the group lacks it, keep the inherited one. */
static bool get_match(GKeyFile *file, const char *group, HtWatchRule *r,
                      GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) local = NULL;
    g_autoptr(HtMatch) match = NULL;

    if (!ht_config_text(file, group, "match", &text, error)) {
        return false;
    }
    if (!text) {
        return true;
    }
    match = ht_match_new("match", text, &local);
    if (!match) {
        g_autofree char *accepted =
            g_strdup_printf("an event, as 'NAME where FIELD == 1', or a line "
                            "of the kernel's log, as 'log:REGEX' (%s)",
                            local->message);

        return ht_config_refuse(error, group, "match", text, accepted);
    }
    g_free(r->match);
    r->match = g_steal_pointer(&text);
    return true;
}

/*
 * Get the settings "size", "silence" and "match" of a group. A rule inherits
 * them from the group "watch" if its own group lacks them.
 */
static bool get_recorder(GKeyFile *file, const char *group, HtWatchRule *r,
                         GError **error)
{
    g_autofree char *silence = NULL;
    bool negative;

    if (!ht_config_size(file, group, "size", HT_REC_QUEUE_MIN,
                        HT_REC_QUEUE_MAX, "1M to 64G", &r->size, error) ||
        !ht_config_text(file, group, "silence", &silence, error) ||
        !get_match(file, group, r, error)) {
        return false;
    }
    return !silence ||
           (ht_number_time("silence", silence, &r->silence_ns, &negative,
                           NULL) && !negative) ||
           ht_config_refuse(error, group, "silence", silence,
                            "a time, as 30s");
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
        return ht_config_refuse(error, group, "user", name,
                                "the name or the number of a user");
    }
    return true;
}

static void free_rule(void *opaque)
{
    HtWatchRule *r = opaque;

    g_free(r->name);
    g_free(r->match);
    g_free(r);
}

static bool add_rules(HtWatchSettings *s, const HtWatchRule *model,
                      const char *group, const char *name, char **users,
                      GError **error)
{
    unsigned i = 0;

    do {
        HtWatchRule *r = g_memdup2(model, sizeof(*model));

        r->name = g_strdup(name);
        r->match = g_strdup(model->match);
        g_ptr_array_add(s->rules, r);
        if (!get_user(group, users ? users[i] : NULL, r, error)) {
            return false;
        }
    } while (users && users[++i]);
    return true;
}

/*
 * Get a list of users.  Refuse an empty one, because a missing list means all
 * users.
 */
static bool get_users(GKeyFile *file, const char *group, char ***users,
                      GError **error)
{
    return ht_config_list(file, group, "user", "one or more users, as "
                          "alice;bob; leave it out for all users", users,
                          error);
}

static bool add_group(HtWatchSettings *s, GKeyFile *file, const char *group,
                      const HtWatchRule *model, GError **error)
{
    g_auto(GStrv) users = NULL;
    HtWatchRule r = *model;
    bool ok;

    if (!g_str_has_prefix(group, RULE) || !group[strlen(RULE)]) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "there is no "
                    "group [%s]: give [" GROUP "] or [" RULE "PATTERN]",
                    group);
        return false;
    }
    r.match = g_strdup(model->match);
    ok = ht_config_keys(file, group, rule_keys, error) &&
         get_recorder(file, group, &r, error) &&
         get_users(file, group, &users, error) &&
         add_rules(s, &r, group, group + strlen(RULE), users, error);
    g_free(r.match);
    return ok;
}

/*
 * Add rules for the settings "name" and "user" of the group "watch", which the
 * options --name and --user set. Without a name, the rules are for all machines
 * of the users.
 */
static bool add_names(HtWatchSettings *s, GKeyFile *file,
                      const HtWatchRule *model, GError **error)
{
    g_auto(GStrv) names = NULL, users = NULL;
    unsigned i;

    if (!ht_config_list(file, GROUP, "name", "one or more patterns, as "
                        "web*;db*", &names, error) ||
        !get_users(file, GROUP, &users, error)) {
        return false;
    }
    for (i = 0; names && names[i]; i++) {
        if (!add_rules(s, model, GROUP, names[i], users, error)) {
            return false;
        }
    }
    return names || !users || add_rules(s, model, GROUP, "*", users, error);
}

static bool add_all(HtWatchSettings *s, GKeyFile *file, HtWatchRule *model,
                    GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    unsigned i;

    if (!get_recorder(file, GROUP, model, error) ||
        !add_names(s, file, model, error)) {
        return false;
    }
    for (i = 0; groups[i]; i++) {
        if (strcmp(groups[i], GROUP) &&
            !add_group(s, file, groups[i], model, error)) {
            return false;
        }
    }
    return true;
}

static bool get_rules(HtWatchSettings *s, GKeyFile *file, GError **error)
{
    HtWatchRule model = { .size = SIZE };
    bool ok = add_all(s, file, &model, error);

    g_free(model.match);
    if (!ok) {
        return false;
    }
    if (!s->rules->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "no virtual "
                    "machine is chosen: give --name PATTERN or --user USER, or "
                    "write a group [" RULE "PATTERN] into " SYSTEM_FILE);
        return false;
    }
    return true;
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

/*
 * Refuse limits that are too small. ht_watch_disk_trim() keeps room for another
 * recording free in max-disk, so max-disk must have room for two: otherwise a
 * large recording would be removed at once. max-memory must have room for the
 * events of one machine.
 */
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
    uint64_t keep = KEEP, max_vms = MAX_VMS;
    bool ok;

    *s = (HtWatchSettings) {
        .max_memory = MAX_MEMORY,
        .max_disk = MAX_DISK,
        .rules = g_ptr_array_new_with_free_func(free_rule),
    };
    if (!ht_config_load(file, path, "watch.conf", error)) {
        return false;
    }
    merge(file, options);
    ok = ht_config_folder(file, GROUP, "dir", "watch", &s->dir, error) &&
         ht_config_keys(file, GROUP, watch_keys, error) &&
         ht_config_number(file, GROUP, "keep", HT_FLIGHT_KEEP_MAX, &keep,
                          error) &&
         ht_config_number(file, GROUP, "max-vms", MAX_VMS_MOST, &max_vms,
                          error) &&
         ht_config_size(file, GROUP, "max-memory", 1 << 20, UINT64_MAX,
                        "1M or more", &s->max_memory, error) &&
         ht_config_size(file, GROUP, "max-disk", 1 << 20, UINT64_MAX,
                        "1M or more", &s->max_disk, error) &&
         get_rules(s, file, error) && check_limits(s, error);
    s->keep = keep;
    s->max_vms = max_vms;
    return ok;
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
            ht_pattern_match(r->name, name)) {
            return r;
        }
    }
    return NULL;
}
