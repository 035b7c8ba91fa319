/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the backend that looks for events, and tells flight recorders
 *
 * As a backend it costs who produces nothing, and sees what any device or ring
 * delivers.  A guest can emit as many as it likes: there is a time between two,
 * in which runs are not even looked into, and recorders have a limit.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/atomic.h"
#include "qemu/bitmap.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "block/aio.h"
#include "hypertrace/backend.h"
#include "hypertrace/pattern.h"
#include "hypertrace/trigger.h"

OBJECT_DECLARE_SIMPLE_TYPE(HypertraceTriggerBackend, HYPERTRACE_BACKEND_TRIGGER)

#define INTERVAL_S      10
#define INTERVAL_S_MAX  86400

struct HypertraceTriggerBackend {
    HypertraceBackend parent_obj;

    char *events;
    uint32_t interval;          /* seconds */
    HtPatterns *patterns;
    int64_t next_ns;            /* not before; atomic */
    bool under_way;             /* to the main loop; atomic */
    uint64_t fired;             /* atomic */
};

typedef struct TriggerSession {
    const char *device;
    const HtClassTable *classes;
    bool any;
    DECLARE_BITMAP(wanted, HT_CLASSES_MAX + 1);
} TriggerSession;

/* On its way to the main loop */
typedef struct Fired {
    HypertraceTriggerBackend *t;
    HtTriggerEvent ev;
} Fired;

static NotifierList listeners = NOTIFIER_LIST_INITIALIZER(listeners);

void ht_trigger_listen(Notifier *n)
{
    notifier_list_add(&listeners, n);
}

/* Context: BQL */
static void other_bh(void *opaque)
{
    notifier_list_notify(&listeners, NULL);
}

void ht_trigger_other(void)
{
    aio_bh_schedule_oneshot(qemu_get_aio_context(), other_bh, NULL);
}

static bool trigger_setup(HypertraceBackend *b, Error **errp)
{
    HypertraceTriggerBackend *t = HYPERTRACE_BACKEND_TRIGGER(b);
    g_autofree char *why = NULL;

    if (!t->events) {
        error_setg(errp, "events=PATTERNS says which events make recordings");
        return false;
    }
    if (t->interval > INTERVAL_S_MAX) {
        error_setg(errp, "interval=%" PRIu32 " is out of range: 0 to %d",
                   t->interval, INTERVAL_S_MAX);
        return false;
    }
    t->patterns = ht_patterns_new(t->events, &why);
    if (!t->patterns) {
        error_setg(errp, "events=%s: %s", t->events, why);
        return false;
    }
    return true;
}

static void *trigger_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                            Error **errp)
{
    TriggerSession *s = g_new0(TriggerSession, 1);

    s->device = info->name;
    s->classes = info->classes;
    return s;
}

static void trigger_detach(HypertraceBackend *b, void *session)
{
    g_free(session);
}

static bool trigger_wants(HypertraceBackend *b, void *session,
                          const HtClass *c)
{
    return ht_patterns_match(HYPERTRACE_BACKEND_TRIGGER(b)->patterns, c->name);
}

static bool trigger_add_class(HypertraceBackend *b, void *session,
                              const HtClass *c, Error **errp)
{
    TriggerSession *s = session;

    if (trigger_wants(b, s, c)) {
        set_bit(c->id, s->wanted);
        s->any = true;
    }
    return true;
}

/* Context: BQL */
static void fired_bh(void *opaque)
{
    Fired *f = opaque;

    qatomic_set(&f->t->under_way, false);
    notifier_list_notify(&listeners, &f->ev);
    object_unref(OBJECT(f->t));
    g_free(f);
}

/* Whether it is this event that is told of; others may look at the same time */
static bool take_turn(HypertraceTriggerBackend *t)
{
    int64_t now = get_clock();

    if (qatomic_xchg(&t->under_way, true)) {
        return false;
    }
    if (now < qatomic_read(&t->next_ns)) {
        qatomic_set(&t->under_way, false);
        return false;
    }
    qatomic_set(&t->next_ns, now + t->interval * NANOSECONDS_PER_SECOND);
    return true;
}

static void fire(HypertraceTriggerBackend *t, TriggerSession *s,
                 const HtClass *c)
{
    Fired *f = g_new(Fired, 1);

    qatomic_inc(&t->fired);
    object_ref(OBJECT(t));
    *f = (Fired) { t, { .device = s->device, .class = c->name } };
    aio_bh_schedule_oneshot(qemu_get_aio_context(), fired_bh, f);
}

static void trigger_deliver(HypertraceBackend *b, void *session,
                            const HtRun *run)
{
    HypertraceTriggerBackend *t = HYPERTRACE_BACKEND_TRIGGER(b);
    TriggerSession *s = session;
    HtRunIter it;
    HtEvent ev;

    if (!run->events || !s->any || get_clock() < qatomic_read(&t->next_ns)) {
        return;
    }
    ht_run_iter_init(&it, run, s->classes);
    while (ht_run_next(&it, &ev)) {
        if (test_bit(ev.cls->id, s->wanted)) {
            if (take_turn(t)) {
                fire(t, s, ev.cls);
            }
            return;             /* of a run one is enough */
        }
    }
}

static char *get_events(Object *obj, Error **errp)
{
    return g_strdup(HYPERTRACE_BACKEND_TRIGGER(obj)->events);
}

static void set_events(Object *obj, const char *value, Error **errp)
{
    HypertraceTriggerBackend *t = HYPERTRACE_BACKEND_TRIGGER(obj);

    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        g_free(t->events);
        t->events = g_strdup(value);
    }
}

static void get_interval(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &HYPERTRACE_BACKEND_TRIGGER(obj)->interval,
                      errp);
}

static void set_interval(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        visit_type_uint32(v, name, &HYPERTRACE_BACKEND_TRIGGER(obj)->interval,
                          errp);
    }
}

static void get_fired(Object *obj, Visitor *v, const char *name,
                      void *opaque, Error **errp)
{
    uint64_t fired = qatomic_read(&HYPERTRACE_BACKEND_TRIGGER(obj)->fired);

    visit_type_uint64(v, name, &fired, errp);
}

static void trigger_init(Object *obj)
{
    HYPERTRACE_BACKEND_TRIGGER(obj)->interval = INTERVAL_S;
}

static void trigger_finalize(Object *obj)
{
    HypertraceTriggerBackend *t = HYPERTRACE_BACKEND_TRIGGER(obj);

    ht_patterns_free(t->patterns);
    g_free(t->events);
}

static void trigger_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->setup = trigger_setup;
    k->attach = trigger_attach;
    k->detach = trigger_detach;
    k->add_class = trigger_add_class;
    k->wants = trigger_wants;
    k->deliver = trigger_deliver;

    object_class_property_add_str(oc, "events", get_events, set_events);
    object_class_property_set_description(oc, "events",
        "patterns of the events that make recordings, as 'oops_*,!oops_ok'");
    object_class_property_add(oc, "interval", "uint32", get_interval,
                              set_interval, NULL, NULL);
    object_class_property_set_description(oc, "interval",
        "seconds in which no other event does, 0 to 86400 (default: 10)");
    object_class_property_add(oc, "fired", "uint64", get_fired, NULL, NULL,
                              NULL);
    object_class_property_set_description(oc, "fired",
        "events that flight recorders were told of");
}

static const TypeInfo trigger_info = {
    .name = TYPE_HYPERTRACE_BACKEND_TRIGGER,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .instance_size = sizeof(HypertraceTriggerBackend),
    .instance_init = trigger_init,
    .instance_finalize = trigger_finalize,
    .class_init = trigger_class_init,
};

static void trigger_register_types(void)
{
    type_register_static(&trigger_info);
}

type_init(trigger_register_types)
