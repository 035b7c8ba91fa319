/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decide which classes are on, and keep the text of settings
 * (NAME=VALUE) that emitters in the guest read
 */
#include "hypertrace/base.h"
#include "hypertrace/enable.h"

void ht_enable_init(HtEnable *e, const HtEnableConfig *cfg)
{
    e->cfg = *cfg;
    e->seq = 0;
    e->count = 0;
}

void ht_enable_destroy(HtEnable *e)
{
    g_free(e->settings);
    g_free(e->events);
    ht_patterns_free(e->patterns);
}

/*
 * Decide whether a class is on.  If the decision changes, or a new class is on,
 * write the class's enable byte and return true
 */
static bool decide(HtEnable *e, uint32_t id)
{
    const HtClass *c = ht_class_table_get(e->cfg.classes, id);
    bool on;

    if (id > e->count) {
        e->match[id] = ht_patterns_match(e->patterns, c->name);
        e->on[id] = false;
    }
    on = e->match[id] && e->cfg.wants(e->cfg.opaque, c);
    if (e->on[id] == on) {
        return false;
    }
    e->on[id] = on;
    e->cfg.write(e->cfg.opaque, c, on);
    return true;
}

void ht_enable_tell(HtEnable *e)
{
    e->seq++;
    e->cfg.changed(e->cfg.opaque, e->seq);
}

uint8_t ht_enable_register(HtEnable *e, const HtClass *c)
{
    bool known = c->id <= e->count, others = false, changed;

    /*
     * Decide only about @c and the new classes before it, because a guest may
     * register thousands of classes.
     */
    while (e->count + 1 < c->id) {
        others |= decide(e, e->count + 1);
        e->count++;
    }
    changed = decide(e, c->id);
    e->count = MAX(e->count, c->id);
    if (others || (changed && known)) {
        ht_enable_tell(e);
    }
    return e->on[c->id] ? HT_ENABLE_ON : 0;
}

bool ht_enable_decide(HtEnable *e)
{
    uint32_t count = ht_class_table_count(e->cfg.classes), id;
    bool changed = false;

    /*
     * Include classes that were loaded without a decision, from a migration or
     * from an earlier host.
     */
    for (id = 1; id <= count; id++) {
        changed |= decide(e, id);
        e->count = MAX(e->count, id);
    }
    if (changed) {
        ht_enable_tell(e);
    }
    return changed;
}

/* Test whether any class is off although the patterns select it */
static bool any_off(const HtEnable *e)
{
    uint32_t id;

    for (id = 1; id <= e->count; id++) {
        if (e->match[id] && !e->on[id]) {
            return true;
        }
    }
    return false;
}

int64_t ht_enable_poll(HtEnable *e, int64_t now_ms)
{
    bool changed = ht_enable_decide(e);

    if (changed || e->count != e->polled) {
        e->polled = e->count;
        e->quick_until_ms = now_ms + HT_ENABLE_QUICK_MS;
    }
    return now_ms + (any_off(e) || now_ms < e->quick_until_ms ?
                     HT_ENABLE_OFF_MS : HT_ENABLE_ON_MS);
}

bool ht_enable_set_events(HtEnable *e, const char *events, char **why)
{
    HtPatterns *p = NULL;
    uint32_t id;

    if (events) {
        p = ht_patterns_new(events, why);
        if (!p) {
            return false;
        }
    }
    ht_patterns_free(e->patterns);
    g_free(e->events);
    e->patterns = p;
    e->events = g_strdup(events);
    for (id = 1; id <= e->count; id++) {
        e->match[id] = ht_patterns_match(p, ht_class_table_get(e->cfg.classes,
                                                               id)->name);
    }
    return true;
}

/*
 * Check that a word is a name, '=', and any number of visible ASCII characters.
 * Returns NULL, or the problem, for g_free()
 */
static char *setting_problem(const char *word)
{
    size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"), i;

    for (i = 0; word[i]; i++) {
        if (word[i] < '!' || word[i] > '~') {
            return g_strdup_printf("the character after '%.*s' is not a visible"
                                   " ASCII character", (int)i, word);
        }
    }
    if (name == 0 || word[name] != '=') {
        return g_strdup_printf("'%s' is not NAME=VALUE, the name being of"
                               " letters, digits and '_', '.', '-'", word);
    }
    return NULL;
}

bool ht_enable_set_settings(HtEnable *e, const char *settings, char **why)
{
    g_auto(GStrv) words = g_strsplit(settings, " ", -1);
    unsigned i;

    if (strlen(settings) > HT_SETTINGS_MAX) {
        *why = g_strdup_printf("%zu bytes are more than %u", strlen(settings),
                               HT_SETTINGS_MAX);
        return false;
    }
    for (i = 0; words[i]; i++) {
        *why = setting_problem(words[i]);
        if (*why) {
            return false;
        }
    }
    g_free(e->settings);
    e->settings = g_strdup(settings);
    return true;
}
