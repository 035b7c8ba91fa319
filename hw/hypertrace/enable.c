/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decide which classes are on, and notify the guest
 *
 * The bytes are a hint and are written without ordering.  If a guest sees a
 * change late, it emits events that no backend wants, which the backends drop,
 * or misses events that were wanted for a moment.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/timer.h"
#include "device.h"
#include "trace.h"

#define POLL_MS 20

/* One timer for all devices; BQL */
static QTAILQ_HEAD(, HypertraceDevice) polled =
    QTAILQ_HEAD_INITIALIZER(polled);
static QEMUTimer *timer;

/* The guest can write the page: never read it back. */
static void page_write(HypertraceDevice *dev, uint32_t id, bool on)
{
    uint64_t offset = dev->caps.enable_offset + id;

    qatomic_set(dev->ring_ram + offset, on ? HT_ENABLE_ON : 0);
    memory_region_set_dirty(dev->ring_mr, offset, 1);
}

static void page_write_all(HypertraceDevice *dev)
{
    const HtEnable *e = &dev->enable;
    uint8_t *page = dev->ring_ram + dev->caps.enable_offset;
    uint32_t id;

    for (id = 0; id < HT_ENABLE_SIZE; id++) {
        qatomic_set(page + id, id <= e->count && e->on[id] ? HT_ENABLE_ON : 0);
    }
    memory_region_set_dirty(dev->ring_mr, dev->caps.enable_offset,
                            HT_ENABLE_SIZE);
}

/* Notify drivers that keep their own copy; others ignore this. */
static void tell(HypertraceDevice *dev)
{
    dev->caps.enable_seq++;
    virtio_notify_config(VIRTIO_DEVICE(dev));
}

/* Decide about a class; returns true if the guest's view changes */
static bool decide(HypertraceDevice *dev, uint32_t id)
{
    const HtClass *c = ht_class_table_get(dev->trace->classes, id);
    HtEnable *e = &dev->enable;
    bool on;

    if (id > e->count) {
        e->match[id] = ht_patterns_match(e->patterns, c->name);
        e->on[id] = false;
    }
    on = e->match[id] && ht_dispatch_wants(dev->dispatch, c);
    if (e->on[id] == on) {
        return false;
    }
    e->on[id] = on;
    trace_hypertrace_enable(dev->trace->name, id, c->name, on);
    if (dev->ring_mr && e->running) {
        page_write(dev, id, on);
    }
    return true;
}

/* Decide about all classes, including those that a migration loaded */
static bool decide_all(HypertraceDevice *dev)
{
    uint32_t count = ht_class_table_count(dev->trace->classes), id;
    HtEnable *e = &dev->enable;
    bool changed = false;

    for (id = 1; id <= count; id++) {
        changed |= decide(dev, id);
        e->count = MAX(e->count, id);
    }
    return changed;
}

static void poll(void *opaque)
{
    HypertraceDevice *dev;

    QTAILQ_FOREACH(dev, &polled, enable.next) {
        if (decide_all(dev)) {
            tell(dev);
        }
    }
    if (!QTAILQ_EMPTY(&polled)) {
        timer_mod(timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + POLL_MS);
    }
}

/* Start or stop polling for a device, if this may have changed */
static void watch(HypertraceDevice *dev)
{
    HtEnable *e = &dev->enable;
    bool want = e->running && e->count && ht_dispatch_chooses(dev->dispatch);

    if (want == e->polled) {
        return;
    }
    e->polled = want;
    if (!want) {
        QTAILQ_REMOVE(&polled, dev, enable.next);
        return;
    }
    if (!timer) {
        timer = timer_new_ms(QEMU_CLOCK_REALTIME, poll, NULL);
    }
    if (QTAILQ_EMPTY(&polled)) {
        timer_mod(timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + POLL_MS);
    }
    QTAILQ_INSERT_TAIL(&polled, dev, enable.next);
}

uint8_t ht_enable_class(HypertraceDevice *dev, const HtClass *c)
{
    HtEnable *e = &dev->enable;
    bool known = c->id <= e->count, others = false, changed;

    /* Only the new ones: a guest may register thousands at once. */
    while (e->count + 1 < c->id) {
        others |= decide(dev, e->count + 1);
        e->count++;
    }
    changed = decide(dev, c->id);
    e->count = MAX(e->count, c->id);
    if (others || (changed && known)) {
        tell(dev);              /* the registering driver has the reply */
    }
    watch(dev);
    return e->on[c->id] ? HT_ENABLE_ON : 0;
}

void ht_enable_start(HypertraceDevice *dev)
{
    dev->enable.running = true;
    decide_all(dev);
    ht_enable_reset(dev);
    watch(dev);
}

void ht_enable_stop(HypertraceDevice *dev)
{
    dev->enable.running = false;
    watch(dev);
}

void ht_enable_reset(HypertraceDevice *dev)
{
    if (!dev->enable.running) {
        return;                 /* stream RAM may be loaded next */
    }
    if (dev->ring_mr) {
        page_write_all(dev);
    }
    if (dev->enable.count || dev->enable.settings) {
        tell(dev);
    }
}

bool ht_enable_set_events(HypertraceDevice *dev, const char *events,
                          Error **errp)
{
    HtEnable *e = &dev->enable;
    g_autofree char *why = NULL;
    HtPatterns *p = NULL;
    uint32_t id;

    if (events) {
        p = ht_patterns_new(events, &why);
        if (!p) {
            error_setg(errp, "events: %s", why);
            return false;
        }
    }
    ht_patterns_free(e->patterns);
    g_free(e->events);
    e->patterns = p;
    e->events = g_strdup(events);
    for (id = 1; id <= e->count; id++) {
        e->match[id] = ht_patterns_match(p, ht_class_table_get(
                                             dev->trace->classes, id)->name);
    }
    if (e->running && decide_all(dev)) {
        tell(dev);
    }
    return true;
}

/* Check a word: a name, '=', and visible characters */
static bool check_setting(const char *word, Error **errp)
{
    size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"), i;

    for (i = 0; word[i]; i++) {
        if (word[i] < '!' || word[i] > '~') {
            error_setg(errp, "settings: the character after '%.*s'"
                       " is not a visible ASCII character", (int)i, word);
            return false;
        }
    }
    if (name == 0 || word[name] != '=') {
        error_setg(errp, "settings: '%s' is not NAME=VALUE, the name being of"
                   " letters, digits and '_', '.', '-'", word);
        return false;
    }
    return true;
}

bool ht_enable_set_settings(HypertraceDevice *dev, const char *settings,
                            Error **errp)
{
    HtEnable *e = &dev->enable;
    g_auto(GStrv) words = g_strsplit(settings, " ", -1);
    unsigned i;

    if (strlen(settings) > HT_SETTINGS_MAX) {
        error_setg(errp, "settings: %zu bytes are more than %u",
                   strlen(settings), HT_SETTINGS_MAX);
        return false;
    }
    for (i = 0; words[i]; i++) {
        if (!check_setting(words[i], errp)) {
            return false;
        }
    }
    g_free(e->settings);
    e->settings = g_strdup(settings);
    if (e->running) {
        tell(dev);
    }
    return true;
}

enum ht_status ht_enable_read_settings(HypertraceDevice *dev,
                                       struct ht_msg_settings *m,
                                       size_t *size)
{
    const char *text = dev->enable.settings ?: "";
    size_t length = strlen(text);

    if (*size < sizeof(*m) || ldl_le_p(&m->count) != *size - sizeof(*m) ||
        ldl_le_p(&m->count) < length) {
        return HT_STATUS_INVAL;
    }
    memcpy(m->text, text, length);
    stl_le_p(&m->count, length);
    stl_le_p(&m->seq, dev->caps.enable_seq);
    *size = sizeof(*m) + length;
    return HT_STATUS_OK;
}

void ht_enable_finalize(HypertraceDevice *dev)
{
    g_free(dev->enable.settings);
    ht_patterns_free(dev->enable.patterns);
    g_free(dev->enable.events);
}

enum ht_status ht_enable_read(HypertraceDevice *dev, struct ht_msg_enabled *m,
                              size_t *size)
{
    const HtEnable *e = &dev->enable;
    uint32_t first, count, i;

    if (*size < sizeof(*m) || ldl_le_p(&m->count) != *size - sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    first = ldl_le_p(&m->first);
    count = first > e->count ? 0 :
            MIN(ldl_le_p(&m->count), e->count + 1 - first);
    for (i = 0; i < count; i++) {
        m->on[i] = e->on[first + i] ? HT_ENABLE_ON : 0;
    }
    stl_le_p(&m->count, count);
    stl_le_p(&m->seq, dev->caps.enable_seq);
    *size = sizeof(*m) + count;
    return HT_STATUS_OK;
}
