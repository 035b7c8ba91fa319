/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: find the device of ht_trace(), and register
 * the classes there
 *
 * ht_trace() keeps no descriptor open, because programs may close descriptors
 * that they do not know.  The mapping of a stream references the open file, so
 * the stream stays open until it is unmapped.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "linux-process.h"
#include "linux-sys.h"
#include "linux-user.h"

#define NODES_MAX       32

/*
 * Which device HYPERTRACE_DEVICE selects: none, the device at @path, or any
 */
static enum {
    CHOICE_UNKNOWN,             /* HYPERTRACE_DEVICE was not read yet */
    CHOICE_NONE,
    CHOICE_USER,
    /*
     * HYPERTRACE_DEVICE is not set, empty, too long, or ignored because the
     * program has more rights than its caller: use any device
     */
    CHOICE_ANY,
    /* as CHOICE_ANY, and no device can appear later */
    CHOICE_ANY_NOW,
} choice;

static const uint8_t off;

/*
 * Enable byte of classes that no host has accepted or refused yet: on, so that
 * their events look for a device
 */
static const uint8_t unknown = HT_ENABLE_ON;

/*
 * Lock for changes of the variables from @modules to @had_device, except @maps.
 * The value identifies the process of the thread that holds the lock; NULL: it
 * is free.  In a child of fork(), a lock that a thread of the parent held
 * counts as free.  The lock is held while classes are registered.  A thread
 * that loads a module waits for the lock; an event does not.
 */
static const void *locked;
static struct ht_module *modules;
static char path[64];
/*
 * ht_ioc_info.generation of the device on which the classes of this process are
 * registered; 0: on none
 */
static uint32_t generation;

/* Classes of the library and of ht_event_parse(), in the order of creation */
static struct ht_class *made[1024];
static unsigned nr_made;

/*
 * The enable page, which the driver maps into this process.  The page is never
 * unmapped, because threads read it; that of another device is mapped at the
 * same address.  If the device is removed or suspended, the driver replaces the
 * page by a copy of the last bytes.  When another device is present, another
 * host has attached, or the device is back, all bytes of this page are on.
 * Then the next event of any class finds its stream closed, and looks for a
 * device.
 */
static uint8_t *enable;

static struct ht_device device;
static struct ht_node_map *maps[HT_STREAMS_MAX];

/* Result of the last search for a device: 0, or a negative errno */
static int found = -ENODEV;
/*
 * A search has found a device, even if it could not be opened or did not answer
 */
static bool had_device;

/*
 * Descriptor of the device and mappings of the stream that trace_control() and
 * trace_map() use while this thread opens a stream or sends messages
 */
static __thread struct opening {
    int *fd;
    struct ht_node_map *map;
} opening HT_TLS_MODEL;

static bool try_lock(void)
{
    const void *const process = ht_this_process();
    const void *holder = __atomic_load_n(&locked, __ATOMIC_RELAXED);

    return holder != process &&
           __atomic_compare_exchange_n(&locked, &holder, process, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void unlock(void)
{
    __atomic_store_n(&locked, NULL, __ATOMIC_RELEASE);
}

/* The port ----------------------------------------------------------------- */

static int trace_control(struct ht_device *dev, struct ht_msg *msg,
                         uint32_t size)
{
    (void)dev;
    return ht_node_control(*opening.fd, msg, size);
}

static int trace_map(struct ht_device *dev, uint32_t stream,
                     struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_node_map *map = opening.map;
    int r = ht_node_map(*opening.fd, dev, stream, map, ring, packets);

    if (r) {
        return r;
    }
    /* A child of fork() must not use the stream, nor keep it open. */
    r = ht_sys_madvise(map->ring, map->size, MADV_DONTFORK);
    if (!r && map->doorbell) {
        r = ht_sys_madvise(map->doorbell, HT_PAGE, MADV_DONTFORK);
    }
    if (r) {
        ht_node_unmap(map);
        return r;
    }
    maps[stream] = map;
    return 0;
}

static void trace_doorbell(struct ht_device *dev, uint32_t stream)
{
    (void)dev;
    /* Order stores to the ring before the doorbell, at which the host reads. */
    ht_store_fence();
    *(volatile uint32_t *)maps[stream]->doorbell = stream;
}

/*
 * Open the device for this submission only.  On failure, the driver's timer
 * submits the events later.
 */
static int trace_submit(struct ht_device *dev, struct ht_stream *s,
                        uint64_t from, uint64_t to)
{
    int fd = ht_sys_open(path, O_RDWR | O_CLOEXEC);

    (void)from;
    (void)to;
    if (fd >= 0) {
        (void)ht_node_submit(fd, dev, maps[s->index], s);
        ht_sys_close(fd);
    }
    return 0;
}

static void trace_reap(struct ht_device *dev, struct ht_stream *s)
{
    if (ht_node_may_reap(maps[s->index])) {
        trace_submit(dev, s, 0, 0);
    }
}

static const struct ht_port_ops trace_ops = {
    .control = trace_control,
    .map = trace_map,
    .doorbell = trace_doorbell,
    .submit = trace_submit,
    .reap = trace_reap,
    .relax = ht_linux_relax,
};

/* Classes ------------------------------------------------------------------ */

static void switch_class(struct ht_class *cls, const uint8_t *to)
{
    __atomic_store_n(&cls->on, to, __ATOMIC_RELEASE);
}

static void set_generation(uint32_t to)
{
    /*
     * Store the capabilities and ids before @generation.  Pairs with the
     * load-acquires in open_device(), ht_trace_attached() and
     * ht_trace_report().
     */
    __atomic_store_n(&generation, to, __ATOMIC_RELEASE);
}

/* Context: the lock is held; @opening.fd is a descriptor of the device */
static int map_enable(void)
{
    int r = ht_node_map_enable(*opening.fd, enable, &enable), error;

    if (r && enable) {
        /*
         * The enable page cannot be mapped: replace the mapping of the previous
         * device by zeroes, which switches all classes with an id off.
         */
        ht_sys_map_at(enable, HT_ENABLE_SIZE, PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &error);
    }
    return r;
}

/*
 * Register @classes, several in one exchange.  A class that the host refused is
 * off.  If the host does not answer, a class without an id is on, so that its
 * events try again.
 *
 * Context: the lock is held; the device is open
 */
static int register_classes(struct ht_class *const *classes, unsigned n)
{
    int r = ht_register_all(&device, classes, n);
    const bool answered = !r || r == -EINVAL || r == -ENOSPC || r == -EIO;
    unsigned i;

    for (i = 0; i < n; i++) {
        if (classes[i]) {
            switch_class(classes[i], classes[i]->id ? enable + classes[i]->id :
                                     answered ? &off : &unknown);
        }
    }
    if (!answered) {
        set_generation(0);
    }
    return answered ? 0 : r;
}

static int register_module(struct ht_module *m)
{
    return register_classes(m->begin, m->end - m->begin);
}

/*
 * Register all classes of this process on a device that does not have them.
 * @new: generation of the device
 *
 * Context: the lock is held; the device is open
 */
static int register_all(uint32_t new)
{
    struct ht_module *m;
    int r = register_classes(made, nr_made);

    for (m = modules; m && !r; m = m->next) {
        r = register_module(m);
    }
    if (!r) {
        set_generation(new);
    }
    return r;
}

/* The device --------------------------------------------------------------- */

static void put_number(char *p, unsigned n)
{
    char digits[12];
    unsigned i = 0;

    do {
        digits[i++] = '0' + n % 10;
        n /= 10;
    } while (n);
    while (i) {
        *p++ = digits[--i];
    }
    *p = '\0';
}

static void node_path(char *to, unsigned n)
{
    static const char prefix[] = "/dev/hypertrace";

    ht_copy(to, prefix, sizeof(prefix) - 1);
    put_number(to + sizeof(prefix) - 1, n);
}

/* Test whether a device can appear later */
static bool may_come(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    /* CPUID's hypervisor bit */
    return __get_cpuid(1, &a, &b, &c, &d) && c >> 31;
#else
    return true;
#endif
}

/* Context: the lock is held */
static void choose_device(void)
{
    const char *user;

    if (choice != CHOICE_UNKNOWN) {
        return;
    }
    user = secure_getenv("HYPERTRACE_DEVICE");
    choice = may_come() ? CHOICE_ANY : CHOICE_ANY_NOW;
    if (user && !strcmp(user, "none")) {
        choice = CHOICE_NONE;
    } else if (user && *user && strlen(user) < sizeof(path)) {
        choice = CHOICE_USER;
        strcpy(path, user);
    }
}

/*
 * Open the device that the user has chosen, or that was opened last.  If that
 * fails, try /dev/hypertrace0 to 31, unless the user has chosen one.  Returns a
 * descriptor, the error of a device that could not be opened, or -ENODEV if
 * there is no device.
 *
 * Context: the lock is held
 */
static int open_any(struct ht_ioc_info *info)
{
    char node[sizeof(path)];
    int fd = -ENODEV, r;
    unsigned n;

    if (path[0]) {
        fd = ht_node_open(path, info);
    }
    for (n = 0; fd < 0 && choice >= CHOICE_ANY && n < NODES_MAX; n++) {
        node_path(node, n);
        r = ht_node_open(node, info);
        if (r >= 0) {
            strcpy(path, node);
        }
        if (r >= 0 || (r != -ENOENT && r != -ENODEV && r != -ENXIO)) {
            fd = r;
        }
    }
    return fd == -ENOENT || fd == -ENXIO ? -ENODEV : fd;
}

/* Context: the lock is held; *@opening.fd is an open device with @info */
static int use_device(const struct ht_ioc_info *info)
{
    int r;

    if (info->generation == generation) {
        return 0;
    }
    device.ops = &trace_ops;
    memcpy(&device.caps, info->caps, sizeof(device.caps));
    r = ht_device_init(&device);
    if (!r) {
        r = map_enable();
    }
    return r ? r : register_all(info->generation);
}

bool ht_trace_attached(void)
{
    return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

bool ht_trace_had_device(void)
{
    return __atomic_load_n(&had_device, __ATOMIC_RELAXED);
}

/*
 * Open a device, and register all classes if it does not have them.  The
 * descriptor *@opening.fd stays open.
 *
 * Context: the lock is held
 */
static int find_device(struct ht_ioc_info *info)
{
    int r;

    choose_device();
    *opening.fd = choice == CHOICE_NONE ? -ENODEV : open_any(info);
    r = *opening.fd < 0 ? *opening.fd : use_device(info);
    __atomic_store_n(&found, r, __ATOMIC_RELAXED);
    if (*opening.fd >= 0 || r != -ENODEV) {
        __atomic_store_n(&had_device, true, __ATOMIC_RELAXED);
    }
    return r;
}

/*
 * Open the device that this process used before. If this process used no
 * device, or cannot open that one, open another, unless HYPERTRACE_DEVICE has a
 * value. Another device, or one that was suspended or has another host now,
 * does not have the classes of this process: register all of them.
 */
static int open_device(struct ht_ioc_info *info)
{
    int r = 0;

    opening.fd = ht_trace_descriptor();
    if (!opening.fd) {
        return -EAGAIN;
    }
    if (path[0] && ht_trace_attached()) {
        *opening.fd = ht_node_open(path, info);
    }
    if (*opening.fd < 0 ||
        info->generation != __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) {
        if (!try_lock()) {
            return -EAGAIN;
        }
        if (*opening.fd < 0) {
            r = find_device(info);
        } else {
            r = use_device(info);
        }
        unlock();
    }
    return r;
}

static void close_device(void)
{
    if (opening.fd) {
        ht_trace_close_descriptor(opening.fd);
        opening.fd = NULL;
    }
}

int ht_trace_attach(void)
{
    struct ht_ioc_info info;
    int r = open_device(&info);

    close_device();
    return r;
}

int ht_trace_open(struct ht_stream *s, struct ht_node_map *map,
                  const struct ht_stream_params *params)
{
    const uint32_t before = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    struct ht_ioc_info info;
    int r = open_device(&info);

    if (!r && info.generation != before) {
        /*
         * open_device() may have mapped the enable page.  This mapping keeps
         * the open file, so a stream of this file would stay open for as long:
         * open the device again for the stream.
         */
        close_device();
        r = open_device(&info);
    }
    if (!r) {
        map->ring_offset = info.ring_offset;
        opening.map = map;
        r = ht_stream_open(&device, s, params);
    }
    close_device();
    return r;
}

bool ht_trace_report(uint64_t count)
{
    struct ht_ioc_info info;
    int r = -ENODEV;

    opening.fd = path[0] && ht_trace_attached() ? ht_trace_descriptor() : NULL;
    if (opening.fd) {
        *opening.fd = ht_node_open(path, &info);
        if (*opening.fd >= 0 &&
            info.generation == __atomic_load_n(&generation,
                                               __ATOMIC_ACQUIRE)) {
            r = ht_tell_discarded(&device, count);
        }
        close_device();
    }
    /* After a timeout, assume that the host executes the message later. */
    return r == 0 || r == -ETIMEDOUT;
}

/* Modules ------------------------------------------------------------------ */

/*
 * Wait for the lock, outside of events.  Block signals, because a handler must
 * not call siglongjmp() while the lock is held.  Sleep instead of yielding, so
 * that a holder with a lower priority can run.
 * @opens: set to true if the caller may open a device
 *
 * Return: true if the caller has the lock.
 */
static bool lock_modules(uint64_t *mask, bool *opens)
{
    if (!ht_trace_init()) {
        return false;
    }
    *opens = ht_trace_begin_opening(mask);
    if (!*opens) {
        ht_sys_block_signals(mask);
    }
    while (!try_lock()) {
        ht_sys_sleep_ns(500000);
    }
    return true;
}

static void unlock_modules(const uint64_t *mask, bool opens)
{
    unlock();
    if (opens) {
        ht_trace_end_opening(mask);
    } else {
        ht_sys_restore_signals(mask);
    }
}

/*
 * Register new classes.  If that fails, their events look for a device later,
 * unless the user chose none or no device can appear later.
 *
 * Context: after lock_modules(), which set @opens
 */
static void register_added(struct ht_class *const *classes, unsigned n,
                           bool opens)
{
    struct ht_ioc_info info;
    const uint8_t *on = &unknown;
    unsigned i;
    int r = -EAGAIN;

    opening.fd = opens ? ht_trace_descriptor() : NULL;
    if (opening.fd) {
        r = find_device(&info);
        if (!r) {
            r = register_classes(classes, n);
        }
        close_device();
    }
    if (r && (choice == CHOICE_NONE || choice == CHOICE_ANY_NOW)) {
        on = &off;
    }
    for (i = 0; r && i < n; i++) {
        if (classes[i] && !classes[i]->id) {
            switch_class(classes[i], on);
        }
    }
}

void ht_module_add(struct ht_module *module)
{
    uint64_t mask;
    bool opens;

    if (!lock_modules(&mask, &opens)) {
        return;
    }
    module->runtime = &ht_trace_runtime;
    register_added(module->begin, module->end - module->begin, opens);
    module->next = modules;
    modules = module;
    unlock_modules(&mask, opens);
    ht_trace_debug();
}

void ht_trace_remove(struct ht_module *module)
{
    struct ht_class *const *cls;
    struct ht_module **p;
    uint64_t mask;
    bool opens;

    if (lock_modules(&mask, &opens)) {
        for (p = &modules; *p; p = &(*p)->next) {
            if (*p == module) {
                *p = module->next;
                break;
            }
        }
        unlock_modules(&mask, opens);
    }
    for (cls = module->begin; cls < module->end; cls++) {
        if (*cls) {
            switch_class(*cls, &off);
        }
    }
    ht_trace_tell();
}

void ht_trace_builtin(struct ht_class *cls)
{
    made[nr_made++] = cls;
}

bool ht_trace_add_class(struct ht_class *cls)
{
    bool opens, done = false;
    uint64_t mask;

    cls->on = &off;
    if (lock_modules(&mask, &opens)) {
        done = nr_made < sizeof(made) / sizeof(made[0]);
        if (done) {
            register_added(&cls, 1, opens);
            made[nr_made++] = cls;
        }
        unlock_modules(&mask, opens);
    }
    ht_trace_debug();
    return done;
}

void ht_trace_name(char *name, const char *comm, int tid)
{
    unsigned len;

    for (len = 0; comm[len]; len++) {
        name[len] = comm[len];
    }
    name[len++] = '/';
    if (tid <= 0) {
        ht_copy(name + len, "shared", 7);
    } else {
        put_number(name + len, tid);
    }
}

/* Status ------------------------------------------------------------------- */

/* Context: the lock is held */
static bool any_class_on(void)
{
    struct ht_class *const *cls;
    struct ht_module *m;
    unsigned i;

    /* Skip made[0], which is the library's own class. */
    for (i = 1; i < nr_made; i++) {
        if (ht_event_is_on(made[i])) {
            return true;
        }
    }
    for (m = modules; m; m = m->next) {
        for (cls = m->begin; cls < m->end; cls++) {
            if (*cls && ht_event_is_on(*cls)) {
                return true;
            }
        }
    }
    return false;
}

/* Convert the result of find_device() to a state; 0 becomes HT_TRACE_ON */
static enum ht_trace_state state_of(int r)
{
    switch (r) {
    case 0:
        return HT_TRACE_ON;
    case -ENODEV:
        return HT_TRACE_NO_DEVICE;
    case -EACCES:
    case -EPERM:
        return HT_TRACE_DENIED;
    case -ETIMEDOUT:
    case -EBUSY:
    case -EAGAIN:
        return HT_TRACE_NO_ANSWER;
    default:
        return HT_TRACE_INCOMPATIBLE;
    }
}

static enum ht_trace_state current_state(void)
{
    enum ht_trace_state state;
    bool wanted = true;

    if (!ht_this_process()) {
        return HT_TRACE_DENIED;
    }
    if (choice == CHOICE_NONE) {
        return HT_TRACE_DISABLED;
    }
    state = state_of(__atomic_load_n(&found, __ATOMIC_RELAXED));
    if (state == HT_TRACE_ON && try_lock()) {
        wanted = any_class_on();
        unlock();
    }
    return !wanted ? HT_TRACE_UNWANTED :
           state == HT_TRACE_ON && ht_trace_no_stream() ? HT_TRACE_NO_STREAM :
           state;
}

static const char *const reasons[] = {
    [HT_TRACE_ON] = "on",
    [HT_TRACE_UNWANTED] =
        "off: the host wants none of this program's events",
    [HT_TRACE_NO_STREAM] =
        "off: every stream of the device is in use",
    [HT_TRACE_NO_LIBRARY] = "off: libhypertrace.so.0 was not found",
    [HT_TRACE_DISABLED] = "off: HYPERTRACE_DEVICE is none",
    [HT_TRACE_NO_DEVICE] =
        "off: there is no device; is hypertrace.ko loaded?",
    [HT_TRACE_DENIED] =
        "off: the device may not be opened: permissions of /dev/hypertrace0, "
        "or a seccomp filter",
    [HT_TRACE_NO_ANSWER] = "off: the host does not answer",
    [HT_TRACE_INCOMPATIBLE] =
        "off: device and library are of different versions",
};

enum ht_trace_state ht_trace_status(const char **why)
{
    enum ht_trace_state state;
    uint64_t mask;

    if (ht_trace_init() && !ht_trace_attached() &&
        ht_trace_begin_opening(&mask)) {
        ht_trace_attach();
        ht_trace_end_opening(&mask);
    }
    state = current_state();
    if (why) {
        *why = reasons[state];
    }
    return state;
}

void ht_trace_debug(void)
{
    static int debug = -1, said = -1;
    const char *s, *parts[] = { "hypertrace: tracing is ", NULL, "\n" };
    enum ht_trace_state state;
    unsigned i;

    if (debug < 0) {
        s = secure_getenv("HYPERTRACE_DEBUG");
        debug = s && !strcmp(s, "1");
    }
    if (!debug) {
        return;
    }
    state = current_state();
    if (__atomic_exchange_n(&said, (int)state, __ATOMIC_RELAXED) ==
        (int)state) {
        return;
    }
    parts[1] = reasons[state];
    for (i = 0; i < 3; i++) {
        ht_sys(__NR_write, 2, (long)parts[i], strlen(parts[i]), 0, 0, 0);
    }
}
