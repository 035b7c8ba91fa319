/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find and follow a guest's ftrace ring, while the VM runs
 *
 * The memory is not read while the VM is stopped: it can belong to another QEMU
 * to which the VM was migrated, or be about to be loaded.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/error-report.h"
#include "qemu/atomic.h"
#include "qemu/module.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "migration/misc.h"
#include "qom/object_interfaces.h"
#include "system/runstate.h"
#include "system/system.h"
#include "ftrace.h"
#include "properties.h"

#define POLL_MS_MIN     1
#define POLL_MS_MAX     1000
#define POLL_MS         10
/* Interval if nothing is delivered: enough to notice new events */
#define POLL_MS_UNREAD  1000
#define BACKLOG_MIN     (1 * MiB)
#define BACKLOG_MAX     (16 * GiB)

/* Intervals of searches: while there is no ring, and later */
#define SEARCH_NS       (100 * SCALE_MS)
#define SEARCH_AGAIN_NS NANOSECONDS_PER_SECOND

void ht_ftrace_lock(HypertraceFtrace *ft)
{
    qatomic_inc(&ft->waiting);
    qemu_mutex_lock(&ft->lock);
    qatomic_dec(&ft->waiting);
    qemu_cond_signal(&ft->wake);
}

/* The thread -------------------------------------------------------------- */

/* Context: any thread, the dispatcher's lock is held */
static void have_room(void *opaque)
{
    HypertraceFtrace *ft = opaque;

    qemu_cond_signal(&ft->wake);
}

/*
 * In postcopy, a page that has not arrived would block this thread, and with it
 * a main loop that must run for the page to arrive.
 */
static bool may_look(HypertraceFtrace *ft)
{
    return !ft->paused && !ft->quit && !migration_in_incoming_postcopy();
}

/* Let waiting threads take the lock.  Context: lock held */
static void give_way(HypertraceFtrace *ft)
{
    while (qatomic_read(&ft->waiting)) {
        qemu_cond_timedwait(&ft->wake, &ft->lock, ft->poll_ms);
    }
}

/*
 * Search for rings.  If there are many that never change, such as copies of an
 * earlier ring, they take turns: @silent has those that had a turn.
 *
 * Returns false if no ring was added.  Context: lock held, but not all the time
 */
static bool search(HypertraceFtrace *ft, GHashTable *silent)
{
    unsigned round = ft->round;
    GPtrArray *found;

    ht_ftrace_make_room(ft, silent);
    qemu_mutex_unlock(&ft->lock);
    found = ht_guest_ram_search(&ft->round, round, silent);
    if (found->len < HT_FTRACE_RINGS) {
        g_hash_table_remove_all(silent);
    }
    qemu_mutex_lock(&ft->lock);
    if (round == ft->round && may_look(ft)) {
        ht_ftrace_drop_gone(ft);
        ht_ftrace_add_rings(ft, found);
        return true;
    }
    g_ptr_array_set_free_func(found, (GDestroyNotify)ht_ft_ring_free);
    g_ptr_array_free(found, true);
    return false;
}

/* Context: any */
static bool any_room(HypertraceFtrace *ft)
{
    return !ft->sinks || ht_dispatch_room(ft->dispatch);
}

/*
 * Poll all rings.  If a sink has no room, events stay in the ring until the
 * guest overwrites them; @all is set to whether each ring could be polled.
 *
 * Returns true if a ring had more.
 *
 * Context: lock held, but not all the time
 */
static bool look_around(HypertraceFtrace *ft, bool *all)
{
    bool more = false;
    guint i;

    for (i = 0; i < ft->rings->len && may_look(ft) &&
         any_room(ft); i++) {
        more |= ht_ftrace_look(ft->rings->pdata[i]);
        give_way(ft);
    }
    *all = i >= ft->rings->len && may_look(ft);
    return more;
}

static void *ftrace_thread(void *opaque)
{
    g_autoptr(GHashTable) silent = g_hash_table_new_full(
        g_int64_hash, g_int64_equal, g_free, NULL);
    HypertraceFtrace *ft = opaque;
    int64_t next_search = 0;
    bool more, all;

    rcu_register_thread();
    qemu_mutex_lock(&ft->lock);
    while (!ft->quit) {
        if (may_look(ft) && get_clock() >= next_search &&
            search(ft, silent)) {
            next_search = get_clock() + (ht_ftrace_any_taken(ft) ?
                                         SEARCH_AGAIN_NS : SEARCH_NS);
        }
        more = look_around(ft, &all);
        ht_flights_looked(ft->flights, all);
        if (!more && !ft->quit) {
            qemu_cond_timedwait(&ft->wake, &ft->lock, ft->poll_ms);
        }
    }
    qemu_mutex_unlock(&ft->lock);
    rcu_unregister_thread();
    return NULL;
}

/* End a search: its results are not added.  Context: lock held */
static void end_round(HypertraceFtrace *ft)
{
    qatomic_set(&ft->round, ft->round + 1);
}

/* The VM ------------------------------------------------------------------ */

static void vm_change(void *opaque, bool running, RunState state)
{
    HypertraceFtrace *ft = opaque;
    guint i;

    ht_ftrace_lock(ft);
    end_round(ft);
    if (!running && !ft->paused) {
        ht_ftrace_take_rest(ft, true);
        ht_flights_stopped(ft->flights, state);
    }
    if (running) {
        /* The guest's clock may have been stopped. */
        for (i = 0; i < ft->rings->len; i++) {
            HtFtWatched *w = ft->rings->pdata[i];

            ht_ft_time_reset(&w->feed.time[0]);
        }
    }
    ft->paused = !running;
    qemu_cond_signal(&ft->wake);
    qemu_mutex_unlock(&ft->lock);
}

bool ht_ftrace_is_elsewhere(void)
{
    return runstate_check(RUN_STATE_INMIGRATE) ||
           runstate_check(RUN_STATE_FINISH_MIGRATE) ||
           runstate_check(RUN_STATE_POSTMIGRATE) ||
           migration_in_incoming_postcopy();
}

/* Context: lock held */
static void cold_reset(HypertraceFtrace *ft)
{
    if (!ft->paused) {
        ht_ftrace_take_rest(ft, true);
    }
    if (ht_ftrace_any_taken(ft)) {
        ft->resets++;
    }
    if (!ht_ftrace_is_elsewhere()) {
        ht_flights_reset(ft->flights, ft->paused);
        ht_ftrace_erase(ft);
    }
}

static ResettableState *ftrace_reset_state(Object *obj)
{
    return &HYPERTRACE_FTRACE(obj)->reset_state;
}

/* Context: BQL; vCPUs do not run */
static void ftrace_reset_hold(Object *obj, ResetType type)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    /* The suspended kernel continues. */
    if (type == RESET_TYPE_WAKEUP) {
        return;
    }
    ht_ftrace_lock(ft);
    end_round(ft);
    if (type != RESET_TYPE_SNAPSHOT_LOAD) {
        cold_reset(ft);
    }
    /* The loaded memory has another ring. */
    ht_ftrace_drop_all(ft);
    qemu_mutex_unlock(&ft->lock);
}

/* The object -------------------------------------------------------------- */

static bool check_range(const char *name, uint64_t value, uint64_t min,
                        uint64_t max, Error **errp)
{
    if (value < min || value > max) {
        error_setg(errp, "%s=%" PRIu64 " is out of range: %" PRIu64 " to %"
                   PRIu64, name, value, min, max);
        return false;
    }
    return true;
}

static bool read_formats(HypertraceFtrace *ft, Error **errp)
{
    g_autoptr(GError) err = NULL;
    char *text = NULL;
    gsize size;

    if (!ft->formats_file) {
        warn_report("hypertrace: no formats= file for '%s': events are"
                    " bytes", ft->trace->name);
        return true;
    }
    if (g_file_get_contents(ft->formats_file, &text, &size, &err)) {
        ft->formats_text = text;
        ft->formats = ht_ft_formats_parse(text, size, &err);
    }
    if (!ft->formats) {
        error_setg(errp, "formats=%s cannot be used: %s", ft->formats_file,
                   err->message);
        error_append_hint(errp, "'hypertrace formats KERNEL' writes such a"
                          " file.\n");
        return false;
    }
    return true;
}

static bool record(HypertraceFtrace *ft, Error **errp)
{
    if (ft->flight_options.dir) {
        ft->flights = ht_flights_new(ft, errp);
    }
    /* Each recording has its own copy of the text, if there are recordings. */
    g_clear_pointer(&ft->formats_text, g_free);
    return ft->flights || !ft->flight_options.dir;
}

static bool attach(HypertraceFtrace *ft, Error **errp)
{
    g_autoptr(GPtrArray) backends = NULL;

    if (!ft->backend && ft->flights) {
        return true;
    }
    ft->info = (HtDeviceInfo) {
        .name = ft->trace->name,
        .vm_name = qemu_name ?: "vm",
        .channel = "ftrace",
        .classes = ft->trace->classes,
        .streams = HT_FT_STREAMS,
    };
    backends = ht_backends_find(OBJECT(ft), ft->trace->name, ft->backend,
                                errp);
    if (!backends) {
        return false;
    }
    ft->sinks = ht_sinks_new(&ft->info, backends, ft->backlog, HT_FT_RUN_MAX,
                             have_room, ft, errp);
    if (!ft->sinks) {
        return false;
    }
    ft->dispatch = ht_sinks_dispatch(ft->sinks);
    return true;
}

static void ftrace_complete(UserCreatable *uc, Error **errp)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(uc);
    const char *id = object_get_canonical_path_component(OBJECT(ft));

    if (!ft->poll_set) {
        ft->poll_ms = ft->flight_options.dir && !ft->backend ?
                      POLL_MS_UNREAD : POLL_MS;
    }
    if (!check_range("poll-ms", ft->poll_ms, POLL_MS_MIN, POLL_MS_MAX, errp) ||
        !check_range("backlog", ft->backlog, BACKLOG_MIN, BACKLOG_MAX,
                     errp)) {
        return;
    }
    ft->trace = ht_trace_claim(id, errp);
    if (!ft->trace || !read_formats(ft, errp) ||
        !ht_ftrace_runs_init(ft, errp) || !record(ft, errp) ||
        !attach(ft, errp)) {
        return;                 /* ftrace_finalize() undoes it */
    }
    ft->complete = true;
    ft->paused = !runstate_is_live(runstate_get());
    ft->vmstate = qemu_add_vm_change_state_handler(vm_change, ft);
    qemu_register_resettable(OBJECT(ft));
    qemu_thread_create(&ft->thread, "hypertrace-ftrace", ftrace_thread, ft,
                       QEMU_THREAD_JOINABLE);
}

static void ftrace_finalize(Object *obj)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    if (ft->complete) {
        ht_ftrace_lock(ft);
        end_round(ft);
        ft->quit = true;
        qemu_cond_signal(&ft->wake);
        qemu_mutex_unlock(&ft->lock);
        qemu_thread_join(&ft->thread);
        qemu_unregister_resettable(obj);
        qemu_del_vm_change_state_handler(ft->vmstate);
        if (!ft->paused) {
            ht_ftrace_take_rest(ft, false);
        }
        ht_ftrace_drop_all(ft);
    }
    /* a default backend, a child, was dropped with all properties */
    ht_sinks_free(ft->sinks);
    if (ft->trace) {
        ht_trace_release(ft->trace);
    }
    ht_flights_free(ft->flights);
    ht_ft_formats_free(ft->formats);
    g_free(ft->formats_text);
    g_ptr_array_free(ft->rings, true);
    qemu_cond_destroy(&ft->wake);
    qemu_mutex_destroy(&ft->lock);
    g_free(ft->backend);
    g_free(ft->formats_file);
    g_free(ft->flight_options.dir);
    g_free(ft->flight_options.triggers);
}

static void ftrace_init(Object *obj)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    ft->backlog = 64 * MiB;
    ft->flight_options.limit = 16;
    ft->rings = g_ptr_array_new();
    qemu_mutex_init(&ft->lock);
    qemu_cond_init(&ft->wake);
}

static bool settable(HypertraceFtrace *ft, Error **errp)
{
    if (ft->complete) {
        error_setg(errp, "cannot change a property of a "
                   TYPE_HYPERTRACE_FTRACE " in use");
        return false;
    }
    return true;
}

#define STRING_PROPERTY(name, field)                                        \
    static char *get_##name(Object *obj, Error **errp)                      \
    {                                                                       \
        return g_strdup(HYPERTRACE_FTRACE(obj)->field);                     \
    }                                                                       \
                                                                            \
    static void set_##name(Object *obj, const char *value, Error **errp)    \
    {                                                                       \
        HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);                      \
                                                                            \
        if (settable(ft, errp)) {                                           \
            g_free(ft->field);                                              \
            ft->field = g_strdup(value);                                    \
        }                                                                   \
    }

STRING_PROPERTY(backend, backend)
STRING_PROPERTY(formats, formats_file)
STRING_PROPERTY(flight, flight_options.dir)
STRING_PROPERTY(triggers, flight_options.triggers)

#define UINT32_PROPERTY(name_, field)                                       \
    static void get_##name_(Object *obj, Visitor *v, const char *name,      \
                            void *opaque, Error **errp)                     \
    {                                                                       \
        visit_type_uint32(v, name, &HYPERTRACE_FTRACE(obj)->field, errp);   \
    }                                                                       \
                                                                            \
    static void set_##name_(Object *obj, Visitor *v, const char *name,      \
                            void *opaque, Error **errp)                     \
    {                                                                       \
        HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);                      \
                                                                            \
        if (settable(ft, errp)) {                                           \
            visit_type_uint32(v, name, &ft->field, errp);                   \
        }                                                                   \
    }

UINT32_PROPERTY(silence, flight_options.silence)
UINT32_PROPERTY(recordings, flight_options.limit)

static void get_poll_ms(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &HYPERTRACE_FTRACE(obj)->poll_ms, errp);
}

static void set_poll_ms(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    if (settable(ft, errp)) {
        ft->poll_set = visit_type_uint32(v, name, &ft->poll_ms, errp);
    }
}

static void get_backlog(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    visit_type_size(v, name, &HYPERTRACE_FTRACE(obj)->backlog, errp);
}

static void set_backlog(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    if (settable(ft, errp)) {
        visit_type_size(v, name, &ft->backlog, errp);
    }
}

static void get_classes(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

    if (ft->trace) {
        ht_classes_visit(v, name, ft->trace->classes, NULL, 0, errp);
    } else {
        error_setg(errp, "the object is not complete");
    }
}

static void ftrace_class_init(ObjectClass *oc, HtClassData *data)
{
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    USER_CREATABLE_CLASS(oc)->complete = ftrace_complete;
    rc->get_state = ftrace_reset_state;
    rc->phases.hold = ftrace_reset_hold;
    object_class_property_add_str(oc, "backend", get_backend, set_backend);
    object_class_property_set_description(oc, "backend",
        "ids of hypertrace backends, separated by ':' (default: LTTng; none"
        " with flight)");
    object_class_property_add_str(oc, "formats", get_formats, set_formats);
    object_class_property_set_description(oc, "formats",
        "file with the guest kernel's event formats");
    object_class_property_add(oc, "poll-ms", "uint32", get_poll_ms,
                              set_poll_ms, NULL, NULL);
    object_class_property_set_description(oc, "poll-ms",
        "milliseconds between two looks, 1 to 1000 (default: 10; 1000 without"
        " a backend)");
    object_class_property_add(oc, "backlog", "size", get_backlog,
                              set_backlog, NULL, NULL);
    object_class_property_set_description(oc, "backlog",
        "bytes that may wait for each backend (default: 64M)");
    object_class_property_add_str(oc, "flight", get_flight, set_flight);
    object_class_property_set_description(oc, "flight",
        "directory for recordings of what is in the ring when something"
        " happens");
    object_class_property_add_str(oc, "triggers", get_triggers, set_triggers);
    object_class_property_set_description(oc, "triggers",
        "what makes a recording, separated by ':' (default:"
        " panic:reset:watchdog:error)");
    object_class_property_add(oc, "silence", "uint32", get_silence,
                              set_silence, NULL, NULL);
    object_class_property_set_description(oc, "silence",
        "seconds without an event that make a recording (default: 0, never)");
    object_class_property_add(oc, "recordings", "uint32", get_recordings,
                              set_recordings, NULL, NULL);
    object_class_property_set_description(oc, "recordings",
        "how many are made that nobody asked for (default: 16)");
    object_class_property_add(oc, "classes", "HypertraceClasses",
                              get_classes, NULL, NULL, NULL);
    object_class_property_set_description(oc, "classes",
        "classes of the events that were delivered so far");
}

static const TypeInfo ftrace_info = {
    .name = TYPE_HYPERTRACE_FTRACE,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(HypertraceFtrace),
    .instance_init = ftrace_init,
    .instance_finalize = ftrace_finalize,
    .class_init = ftrace_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { TYPE_RESETTABLE_INTERFACE },
        { }
    },
};

static void ftrace_register_types(void)
{
    type_register_static(&ftrace_info);
}

type_init(ftrace_register_types)
