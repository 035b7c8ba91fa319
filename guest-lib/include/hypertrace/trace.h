/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: ht_trace(), for programs on Linux
 *
 * A program or shared object that includes this file loads the library when it
 * starts, and registers its classes there.  Linking to the library
 * (-lhypertrace) is optional.  A program that is linked statically uses the
 * flags of "pkg-config --static hypertrace".
 *
 * The host chooses the classes that it wants, and may change its choice at any
 * time.  An event of a class that the host does not want costs two loads, a
 * compare and a branch, and is not counted as discarded.
 *
 * Each thread has a stream, which is opened at the thread's first event that
 * the host wants, and closed when the thread ends.  Threads for which the
 * device has no stream share one.  Unplugged devices, a suspend, closed
 * descriptors and full rings do not disturb the program.  The library counts
 * discarded events and reports their number to the host, unless it cannot open
 * the device, the host does not answer until the program's end, or the program
 * is killed or calls _exit() before the report.  An event that a thread writes
 * while its device is removed may be lost without being counted.
 *
 * A child of fork() opens streams of its own.
 *
 * A signal handler that interrupts an event may call siglongjmp() or cancel its
 * thread.  The thread loses that event.  Then the thread discards and counts
 * its next events, for about 100 ms but at most 65 events, and gets another
 * stream.
 *
 * $HYPERTRACE_DEVICE selects the device: "/dev/hypertraceN" or "none"; the
 * default is the first of /dev/hypertrace0 to 31 that can be opened.  The
 * library looks for a device when the program starts.  While there is no
 * device, or while its host does not answer, the next events look for one
 * again, at least 500 ms apart, and each event costs a function call and the
 * evaluation of its arguments.  On an x86 machine that is not virtual, events
 * do so only if $HYPERTRACE_DEVICE names a device.
 */
#ifndef HYPERTRACE_TRACE_H
#define HYPERTRACE_TRACE_H

#ifdef __cplusplus
#pragma GCC system_header
#endif

#include "hypertrace/event.h"

#ifndef HT_LIBRARY
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct ht_module;

/**
 * enum ht_trace_state - whether tracing is on, and why not
 * @HT_TRACE_ON: the host wants events of this program
 * @HT_TRACE_UNWANTED: the host wants no events of this program now
 * @HT_TRACE_NO_STREAM: this thread got no stream, usually because every stream
 *                      of the device is in use
 * @HT_TRACE_NO_LIBRARY: libhypertrace.so.0 was not found
 * @HT_TRACE_DISABLED: HYPERTRACE_DEVICE is "none"
 * @HT_TRACE_NO_DEVICE: there is no device, or its driver is not loaded
 * @HT_TRACE_DENIED: no permission to open the device, or a system call that the
 *                   library needs at its start has failed
 * @HT_TRACE_NO_ANSWER: the device's host does not answer
 * @HT_TRACE_INCOMPATIBLE: the device has another version, or using it failed
 *                         with an error that no other state describes
 */
enum ht_trace_state {
    HT_TRACE_ON,
    HT_TRACE_UNWANTED,
    HT_TRACE_NO_STREAM,
    HT_TRACE_NO_LIBRARY,
    HT_TRACE_DISABLED,
    HT_TRACE_NO_DEVICE,
    HT_TRACE_DENIED,
    HT_TRACE_NO_ANSWER,
    HT_TRACE_INCOMPATIBLE,
};

/**
 * struct ht_runtime - the library's functions for ht_trace()
 * @begin: get a stream for an event of @cls; stores it in @slot if it is this
 *         thread's own.  NULL: the host does not want the event, the process
 *         has never found a device, or the event was discarded and counted
 * @end: called after an attempt to write an event to the stream @s.  If @s was
 *       returned by @begin or @end, the caller must call this.  If @s was in
 *       @slot, the caller must call this only if the event was discarded
 *       (@done is false).  Returns another stream for the same event, or NULL
 * @remove: forget a module's classes; no thread may be emitting its events
 * @status: ht_trace_status()
 */
struct ht_runtime {
    struct ht_stream *(*begin)(struct ht_stream **slot,
                               const struct ht_class *cls);
    struct ht_stream *(*end)(struct ht_stream **slot, struct ht_stream *s,
                             const struct ht_class *cls, bool done);
    void (*remove)(struct ht_module *module);
    enum ht_trace_state (*status)(const char **why);
};

/**
 * struct ht_module - a program or shared object that has classes
 * @begin: start of an array of pointers to its classes
 * @end: end of that array
 * @next: next module in the library's list
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
 * ht_module_add() - register a module's classes with the library
 * @module: must stay in place until it is removed; its @runtime is set, unless
 *          the library could not be initialized
 *
 * Called when the program starts, or a shared object is loaded.
 */
void ht_module_add(struct ht_module *module);

/* For programs in other languages ------------------------------------------ */

/**
 * ht_event_parse() - make an event class from a description
 * @text: the name; a colon and the level, unless the level is "debug"; and the
 *        fields, each a kind and a name, with a semicolon between two fields:
 *
 *            "hello u32 n; text who"
 *            "disk.error:err x64 sector; u8{read=0, write=1} op; u16[4] tags"
 *
 *        Kinds are those of event.h, but instead of seq, array, enum and flags:
 *        "u16[]" is a sequence, "u16[4]" an array, "chars[16]" text in an
 *        array, and labels in braces name values, or bits if "|" separates
 *        the labels.
 *
 * Context: may block; not in a signal handler.
 *
 * Return: the class, which is never freed; NULL: not a valid description, out
 * of memory, the library could not be initialized, or the process has made
 * 1,023 such classes already.
 */
struct ht_class *ht_event_parse(const char *text);

/**
 * enum ht_value_type - type of a value
 * @HT_VALUE_UNSIGNED: in ht_value.u
 * @HT_VALUE_SIGNED: in ht_value.s
 * @HT_VALUE_FLOAT: in ht_value.f
 * @HT_VALUE_MEMORY: at ht_value.p: text or elements, ht_value.size bytes
 */
enum ht_value_type {
    HT_VALUE_UNSIGNED = 1,
    HT_VALUE_SIGNED   = 2,
    HT_VALUE_FLOAT    = 3,
    HT_VALUE_MEMORY   = 4,
};

/**
 * struct ht_value - the value of one field
 * @u: a value of type HT_VALUE_UNSIGNED
 * @s: a value of type HT_VALUE_SIGNED
 * @f: a value of type HT_VALUE_FLOAT
 * @p: address of a value of type HT_VALUE_MEMORY
 * @size: with HT_VALUE_MEMORY: size of the memory in bytes; a multiple of the
 *        size of an element
 * @type: enum ht_value_type
 */
struct ht_value {
    union {
        uint64_t u;
        int64_t s;
        double f;
        const void *p;
    };
    uint32_t size;
    uint32_t type;
};

/**
 * ht_event_values() - check the values of an event, and emit it
 * @cls: the class
 * @values: one value for each field
 * @n: number of @values
 *
 * The values are checked even if the event is off.
 *
 * Context: as ht_trace().
 *
 * Return: 1: committed; 0: discarded, or not wanted; -EINVAL: @n or a value
 * does not fit the class.
 */
int ht_event_values(const struct ht_class *cls, const struct ht_value *values,
                    unsigned n);

/**
 * ht_event_is_on() - test whether to emit events of a class
 * @cls: the class
 *
 * The result is a hint, as that of ht_event_enabled().
 */
bool ht_event_is_on(const struct ht_class *cls);

/**
 * ht_trace_discarded() - get the number of discarded events not yet reported
 *
 * The number counts events for which this process had no stream, and events
 * whose stream was closed before the host got their number.  The library
 * reports the number to the host when it opens a stream, by messages at least
 * 500 ms apart while it cannot open a stream, and when the program exits.  No
 * report is made if the program is killed or may not open the device, or if the
 * host does not answer until the program's end.
 *
 * Return: the number.
 */
uint64_t ht_trace_discarded(void);

/**
 * ht_trace_stamps() - read the clock for some events only
 * @n: see ht_stream_stamps()
 *
 * Applies to this thread's stream, whose next event reads the clock, and to all
 * streams that any thread opens later.  Call it at the start of a burst of
 * events, and with an @n of 1 at the end.  Before the first call, the value is
 * that of the environment variable HYPERTRACE_STAMPS, by default 1.
 *
 * Context: any thread; not in a signal handler.
 *
 * Return: 0; -EINVAL: @n is out of range.
 */
int ht_trace_stamps(unsigned n);

/**
 * ht_trace_status() - get whether tracing is on, and why not
 * @why: set to a text, "on" or "off: ..."; or NULL
 *
 * Looks for a device if the process has none yet.  With HYPERTRACE_DEBUG=1 in
 * the environment, the library prints the text to stderr if it has changed when
 * a module or class is added, an event has looked for a device, or a thread
 * could not open its stream.
 *
 * Context: may block; not in a signal handler.
 */
enum ht_trace_state ht_trace_status(const char **why);

#ifndef HT_LIBRARY

/* Parts of each program and shared object ---------------------------------- */

#define HT_PER_MODULE   __attribute__((weak, visibility("hidden")))

/* Start and end of the section "ht_classes"; the linker defines the symbols */
extern struct ht_class *const __start_ht_classes[] HT_PER_MODULE;
extern struct ht_class *const __stop_ht_classes[] HT_PER_MODULE;

extern struct ht_module ht_module HT_PER_MODULE;
HT_PER_MODULE struct ht_module ht_module = { 0, 0, 0, 0, { 0, 0, 0, 0 } };

/* This thread's stream, if it has one of its own */
extern __thread struct ht_stream *ht_thread_stream
    __attribute__((weak, visibility("hidden"))) HT_TLS_MODEL;
__attribute__((weak, visibility("hidden"))) HT_TLS_MODEL
__thread struct ht_stream *ht_thread_stream = 0;

/*
 * The first two are NULL if the library was neither linked nor loaded when this
 * module was loaded; dlsym is NULL in a static program that lacks it.
 */
extern __typeof__(ht_module_add) ht_module_add __attribute__((weak));
extern __typeof__(ht_trace_status) ht_trace_status __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

/*
 * Each source file that includes this file has ht_module_start() and
 * ht_module_stop().  The first ht_module_start() of a module that runs
 * registers the classes of all files of the module.
 */
static __attribute__((constructor)) void ht_module_start(void)
{
    static const char none[] = "hypertrace: tracing is off: libhypertrace.so.0 "
                               "was not found\n";
    void (*add)(struct ht_module *module) = ht_module_add;
    void *(*load)(const char *name, int flags) = 0;
    const char *debug;
    void *library;

    if (ht_module.begin || &__start_ht_classes[0] == &__stop_ht_classes[0]) {
        return;
    }
    ht_module.begin = __start_ht_classes;
    ht_module.end = __stop_ht_classes;
    /*
     * A static program may lack ht_module_add() and dlsym().  Get dlopen() by
     * dlsym(), because a reference would link dlopen() into the program.
     */
    if (!add && dlsym) {
        *(void **)&load = dlsym(0, "dlopen");           /* 0 is RTLD_DEFAULT */
    }
    if (load) {
        library = load("libhypertrace.so.0", RTLD_NOW);
        *(void **)&add = library ? dlsym(library, "ht_module_add") : 0;
    }
    if (add) {
        add(&ht_module);
        return;
    }
    debug = getenv("HYPERTRACE_DEBUG");
    if (debug && debug[0] == '1' && write(2, none, sizeof(none) - 1) < 0) {
        return;                 /* ignore that the write has failed */
    }
}

static inline enum ht_trace_state ht_module_status(const char **why)
{
    if (ht_module.runtime) {
        return ht_module.runtime->status(why);
    }
    if (ht_trace_status) {
        return ht_trace_status(why);
    }
    if (why) {
        *why = "off: libhypertrace.so.0 was not found";
    }
    return HT_TRACE_NO_LIBRARY;
}

/* Let a program that is not linked to the library call ht_trace_status(). */
#define ht_trace_status(why)    ht_module_status(why)

static __attribute__((destructor)) void ht_module_stop(void)
{
    if (ht_module.runtime) {
        ht_module.runtime->remove(&ht_module);
    }
}

/*
 * ht_trace_<ident>() has an unused first parameter, so that a comma comes
 * before each field.  Between begin() and end() the function runs no code of
 * the program, such as a field's expression, so only a signal handler can keep
 * it from calling end().
 */
#undef HT_EV_TRACE
#define HT_EV_TRACE(scope, ident, ...)                                      \
    __attribute__((unused))                                                 \
    HT_EV_CODE_##scope void ht_trace_##ident(int ht_unused_                 \
                                 HT_EV_EACH(HT_EV_PARAM, ##__VA_ARGS__))    \
    {                                                                       \
        struct ht_stream *ht_s_ = ht_thread_stream;                         \
        bool ht_end_ = !ht_s_;                                              \
                                                                            \
        (void)ht_unused_;                                                   \
        if (ht_unlikely(ht_end_)) {                                         \
            ht_s_ = ht_module.runtime->begin(&ht_thread_stream,             \
                                             &ht_class_##ident);            \
        }                                                                   \
        while (ht_likely(ht_s_)) {                                          \
            bool ht_done_ = ht_emit_##ident(ht_s_                           \
                                 HT_EV_EACH(HT_EV_ARG, ##__VA_ARGS__));     \
                                                                            \
            ht_end_ |= !ht_done_;                                           \
            if (ht_likely(!ht_end_)) {                                      \
                break;                                                      \
            }                                                               \
            ht_s_ = ht_module.runtime->end(&ht_thread_stream, ht_s_,        \
                                           &ht_class_##ident, ht_done_);    \
        }                                                                   \
    }

#endif /* HT_LIBRARY */

#ifdef __cplusplus
}
#endif

/* Tracing ------------------------------------------------------------------ */

/**
 * ht_event_enabled() - test whether to emit an event
 * @ident: identifier given to HT_EVENT()
 *
 * Use it to skip work that is needed for the event only.  The result is a hint:
 * the host may change the class's enable byte at any time.  It is also true
 * while events look for a device.
 */
#define ht_event_enabled(ident) \
    ht_unlikely(__atomic_load_n(__atomic_load_n(&ht_class_##ident.on,       \
                                                __ATOMIC_RELAXED),          \
                                __ATOMIC_RELAXED) == 1)

/**
 * ht_trace() - emit an event
 * @ident: identifier given to HT_EVENT()
 * @...: values of its fields.  The expressions are evaluated only if
 *       ht_event_enabled() is true, and before the library is called, so they
 *       may throw, call longjmp(), end the thread or emit events
 *
 * Include this file before HT_EVENT().
 *
 * Does not change errno.  An event of a thread without an open stream looks for
 * a device if none is known, and opens a stream: for example the first event,
 * or the first one after a suspend.  It waits for the device's replies, for
 * seconds if the device's host hangs.  If this fails, later events of the
 * thread try again, at least 500 ms apart.  No other event waits for a reply.
 *
 * Context: any thread; a signal handler.
 */
#define ht_trace(ident, ...)                                                \
    do {                                                                    \
        if (ht_event_enabled(ident)) {                                      \
            ht_trace_##ident(0, ##__VA_ARGS__);                             \
        }                                                                   \
    } while (0)

#endif /* HYPERTRACE_TRACE_H */
