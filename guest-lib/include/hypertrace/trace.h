/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: ht_trace(), for programs on Linux
 *
 * Each program and shared object that includes this file finds the library
 * when it starts, if there is one, and tells it of its classes.  It need not
 * be linked to it (-lhypertrace does no harm); one that is linked statically
 * is compiled with -DHT_STATIC and linked with libhypertrace.a.
 *
 * The host says which classes it wants, at any time; what is emitted of others
 * costs a load and a branch, is not an event and is not counted.
 *
 * Each thread has a stream, opened at its first event and closed at its end.
 * A device that goes, a suspend, fork(), closed descriptors, a full ring: none
 * of that disturbs the program, and what could not be recorded is counted, if
 * the process has a stream by its end: without one it cannot tell.  Not counted
 * is the event that a thread is writing while its device goes.
 * A child of fork() is silent until it calls exec().
 *
 * The device is the one of $HYPERTRACE_DEVICE, "/dev/hypertraceN", or else the
 * first that can be opened; it must be there when the program starts.
 */
#ifndef HYPERTRACE_TRACE_H
#define HYPERTRACE_TRACE_H

#ifdef __cplusplus
#pragma GCC system_header
#endif

#include "hypertrace/event.h"

#if !defined(HT_STATIC) && !defined(HT_LIBRARY)
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct ht_module;

/**
 * struct ht_runtime - what the library does for ht_trace()
 * @begin: a stream for this thread, which @slot is set to if it is its own;
 *         NULL: the event is discarded, and counted
 * @end: to be called after an event if @begin was, or the event was discarded
 * @remove: forget a module's classes; none of its events is being emitted
 */
struct ht_runtime {
    struct ht_stream *(*begin)(struct ht_stream **slot);
    void (*end)(struct ht_stream **slot, struct ht_stream *s);
    void (*remove)(struct ht_module *module);
};

/**
 * struct ht_module - a program or shared object that has classes
 * @begin: pointers to its classes
 * @end: behind the last
 * @next: the library's
 * @runtime: set by the library
 * @reserved: 0
 */
struct ht_module {
    struct ht_class *const *begin;
    struct ht_class *const *end;
    struct ht_module *next;
    const struct ht_runtime *runtime;
    void *reserved[4];
};

/**
 * ht_module_add() - make a module's classes known
 * @module: stays in place until it is removed; its runtime is set
 *
 * Called when the program starts, or a shared object is loaded.
 */
void ht_module_add(struct ht_module *module);

/* For programs in other languages ------------------------------------------ */

/**
 * ht_event_new() - make an event class at run time
 * @name: as &struct ht_class says
 * @fields: @nr_fields of them, copied, as is @name
 * @nr_fields: 0 to HT_FIELDS_MAX
 * @loglevel: 0 to 14
 *
 * Context: may block; not in a signal handler.
 *
 * Return: the class, for good; NULL: out of memory, or too many fields.
 */
struct ht_class *ht_event_new(const char *name, const struct ht_field *fields,
                              unsigned nr_fields, unsigned loglevel);

/**
 * ht_event_is_on() - would events of a class be recorded?
 * @cls: the class
 */
bool ht_event_is_on(const struct ht_class *cls);

/**
 * ht_event_emit() - emit an event, as ht_trace() does
 * @cls: the class
 * @payload: its fields packed as the specification says
 * @size: bytes
 *
 * Return: whether it was committed; if not, it was discarded or is not wanted.
 */
bool ht_event_emit(const struct ht_class *cls, const void *payload,
                   uint32_t size);

/**
 * ht_trace_discarded() - events for which this process had no stream
 *
 * The host is told when a stream can be opened, or by a message each 500 ms
 * that none can, and when the program exits.  One that is killed before, or may
 * not open the device, is the only one that knows.
 *
 * Return: how many are not told to the host yet.
 */
uint64_t ht_trace_discarded(void);

/**
 * ht_trace_stamps() - read the clock for some events only
 * @n: as ht_stream_stamps() says
 *
 * Of this thread's stream, whose next event reads it, and of streams that are
 * opened from now on.  To be called where a burst of events begins, and with 1
 * where it ends.  Before the first call @n is that of the environment variable
 * HYPERTRACE_STAMPS, or 1.
 *
 * Context: any thread; not in a signal handler.
 *
 * Return: 0; -EINVAL.
 */
int ht_trace_stamps(unsigned n);

#ifndef HT_LIBRARY

/* What each program and shared object has ---------------------------------- */

#define HT_PER_MODULE   __attribute__((weak, visibility("hidden")))

/* Set by the linker: the bounds of a section */
extern struct ht_class *const __start_ht_classes[] HT_PER_MODULE;
extern struct ht_class *const __stop_ht_classes[] HT_PER_MODULE;

extern struct ht_module ht_module HT_PER_MODULE;
HT_PER_MODULE struct ht_module ht_module = { 0, 0, 0, 0, { 0, 0, 0, 0 } };

/*
 * This thread's stream, if it has one of its own.  Initial-exec: a dynamic
 * model could allocate memory in the middle of an event.
 */
extern __thread struct ht_stream *ht_thread_stream
    __attribute__((weak, visibility("hidden"), tls_model("initial-exec")));
__attribute__((weak, visibility("hidden"), tls_model("initial-exec")))
__thread struct ht_stream *ht_thread_stream = 0;

/* Each file of a module has these two; the first that runs does the work. */
static __attribute__((constructor)) void ht_module_start(void)
{
    void (*add)(struct ht_module *module);

    if (ht_module.begin || &__start_ht_classes[0] == &__stop_ht_classes[0]) {
        return;
    }
    ht_module.begin = __start_ht_classes;
    ht_module.end = __stop_ht_classes;
#ifdef HT_STATIC
    add = ht_module_add;
#else
    *(void **)&add = dlsym(0, "ht_module_add");         /* RTLD_DEFAULT */
    if (!add) {
        void *library = dlopen("libhypertrace.so.0", RTLD_NOW);

        *(void **)&add = library ? dlsym(library, "ht_module_add") : 0;
    }
#endif
    if (add) {
        add(&ht_module);
    }
}

static __attribute__((destructor)) void ht_module_stop(void)
{
    if (ht_module.runtime) {
        ht_module.runtime->remove(&ht_module);
    }
}

/*
 * The first parameter is there for the comma before the next.  Between begin
 * and end nothing of the program's runs: what holds the stream lets go of it.
 */
#undef HT_EV_TRACE
#define HT_EV_TRACE(ident, ...)                                             \
    __attribute__((unused))                                                 \
    static inline void ht_trace_##ident(int ht_unused_                      \
                                 HT_EV_EACH(HT_EV_PARAM, ##__VA_ARGS__))    \
    {                                                                       \
        struct ht_stream *ht_s_ = ht_thread_stream;                         \
        bool ht_end_ = !ht_s_;                                              \
                                                                            \
        (void)ht_unused_;                                                   \
        if (ht_unlikely(ht_end_)) {                                         \
            ht_s_ = ht_module.runtime->begin(&ht_thread_stream);            \
        }                                                                   \
        if (ht_likely(ht_s_)) {                                             \
            ht_end_ |= !ht_emit_##ident(ht_s_ HT_EV_EACH(HT_EV_ARG,         \
                                                         ##__VA_ARGS__));   \
            if (ht_unlikely(ht_end_)) {                                     \
                ht_module.runtime->end(&ht_thread_stream, ht_s_);           \
            }                                                               \
        }                                                                   \
    }

#endif /* HT_LIBRARY */

#ifdef __cplusplus
}
#endif

/* Tracing ------------------------------------------------------------------ */

/**
 * ht_event_enabled() - would an event be recorded?
 * @ident: of HT_EVENT()
 *
 * For what is expensive to find out and only there to be traced.  Loads a byte
 * that the host may change at any time, without order: it is a hint.
 */
#define ht_event_enabled(ident) \
    ht_unlikely(__atomic_load_n(__atomic_load_n(&ht_class_##ident.on,       \
                                                __ATOMIC_RELAXED),          \
                                __ATOMIC_RELAXED) == 1)

/**
 * ht_trace() - emit an event
 * @ident: of HT_EVENT()
 * @...: its fields, evaluated only if the event is wanted, and before anything
 *       else: they may throw, longjmp(), end the thread, emit events
 *
 * HT_EVENT() comes behind the inclusion of this file.
 *
 * Leaves errno alone.  The first event of a thread, and of a process after the
 * device was away, opens a stream, which waits for the device, for seconds if
 * its host hangs; no other event waits.
 * Context: any thread; a signal handler.
 */
#define ht_trace(ident, ...)                                                \
    do {                                                                    \
        if (ht_event_enabled(ident)) {                                      \
            ht_trace_##ident(0, ##__VA_ARGS__);                             \
        }                                                                   \
    } while (0)

#endif /* HYPERTRACE_TRACE_H */
