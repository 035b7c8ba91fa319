/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: the device and the classes of ht_trace()
 *
 * No descriptor is kept, since a program may close all that it does not know.
 * A stream lives as long as it is mapped: the mapping holds the open file.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "linux-sys.h"
#include "linux-trace.h"
#include "linux-user.h"

#define NODES_MAX       32

static const uint8_t off;

/*
 * Guards what follows.  Who loads a module waits for it, an event does not; it
 * is held while classes are registered.
 */
static int locked;
static struct ht_module *modules;
static char path[64];
static uint32_t generation;     /* of the device with our classes; 0: none */

/* Classes of the library and of ht_event_new(), in the order of their making */
static struct ht_class *made[1024];
static unsigned nr_made;

/*
 * The enable page, mapped at the same address whichever device it is of, and
 * never unmapped: threads look at it.  While its device is away, the driver has
 * what was on stay on, and all be on if there is another device to look for.
 */
static uint8_t *enable;

static struct ht_device device;
static void *doorbells[HT_STREAMS_MAX];

/* For the port's functions, in the thread that opens */
static __thread struct opening {
    int fd;
    struct ht_node_map *map;
} opening __attribute__((tls_model("initial-exec")));

static bool try_lock(void)
{
    return !__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE);
}

/* Sleep: to yield lets no thread run that has a lower priority. */
static void lock(void)
{
    while (!try_lock()) {
        ht_sys_sleep_ns(500000);
    }
}

static void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

/* The port ----------------------------------------------------------------- */

static int trace_control(struct ht_device *dev, struct ht_msg *msg,
                         uint32_t size)
{
    (void)dev;
    return ht_node_control(opening.fd, msg, size);
}

static int trace_map(struct ht_device *dev, uint32_t stream,
                     struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_node_map *map = opening.map;
    int r = ht_node_map(opening.fd, dev, stream, map, ring, packets);

    if (r) {
        return r;
    }
    /* A child does not use it, and shall not keep the stream open. */
    ht_sys_madvise(map->ring, map->size, MADV_DONTFORK);
    if (map->doorbell) {
        ht_sys_madvise(map->doorbell, HT_PAGE, MADV_DONTFORK);
    }
    doorbells[stream] = map->doorbell;
    return 0;
}

static void trace_doorbell(struct ht_device *dev, uint32_t stream)
{
    (void)dev;
    /* Memory first: the host looks at it before this store returns. */
    ht_store_fence();
    *(volatile uint32_t *)doorbells[stream] = stream;
}

/* If the device cannot be opened any more, the driver's timer does this. */
static int trace_submit(struct ht_device *dev, struct ht_stream *s,
                        uint64_t from, uint64_t to)
{
    int fd = ht_sys_open(path, O_RDWR | O_CLOEXEC);

    (void)dev;
    (void)from;
    (void)to;
    if (fd >= 0) {
        (void)ht_node_submit(fd, s);
        ht_sys_close(fd);
    }
    return 0;
}

static void trace_reap(struct ht_device *dev, struct ht_stream *s)
{
    trace_submit(dev, s, 0, 0);
}

/* For an event as for others: most answers take microseconds */
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
    /* Pairs with ht_trace_open(): capabilities and ids are there before. */
    __atomic_store_n(&generation, to, __ATOMIC_RELEASE);
}

/* Context: locked; @opening.fd is the device */
static int map_enable(void)
{
    int r = ht_node_map_enable(opening.fd, enable, &enable), error;

    if (r && enable) {
        /* What was there is not any more. */
        ht_sys_map_at(enable, HT_ENABLE_SIZE, PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &error);
    }
    return r;
}

/*
 * All with one message.  If the host does not answer, they are registered again
 * when a stream or a class is next wanted.
 *
 * Context: locked, the device is open
 */
static int register_classes(struct ht_class *const *classes, unsigned n)
{
    int r = ht_register_all(&device, classes, n);
    unsigned i;

    for (i = 0; i < n; i++) {
        if (classes[i]) {
            switch_class(classes[i],
                         classes[i]->id ? enable + classes[i]->id : &off);
        }
    }
    if (r == -ETIMEDOUT || r == -EBUSY) {
        set_generation(0);
        return r;
    }
    return 0;
}

static int register_module(struct ht_module *m)
{
    return register_classes(m->begin, m->end - m->begin);
}

/* Context: locked, the device is open and just turned out to be this one */
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

void ht_trace_silence(void)
{
    struct ht_class *const *cls;
    struct ht_module *m;
    unsigned i;

    for (i = 0; i < nr_made; i++) {
        switch_class(made[i], &off);
    }
    for (m = modules; m; m = m->next) {
        for (cls = m->begin; cls < m->end; cls++) {
            if (*cls) {
                switch_class(*cls, &off);
            }
        }
    }
}

/* The device --------------------------------------------------------------- */

static void node_path(unsigned n)
{
    static const char prefix[] = "/dev/hypertrace";
    char *p = path + sizeof(prefix) - 1;

    ht_copy(path, prefix, sizeof(prefix) - 1);
    if (n >= 10) {
        *p++ = '0' + n / 10;
    }
    *p++ = '0' + n % 10;
    *p = '\0';
}

/*
 * The one that is known, or else the first, if the user did not choose.
 *
 * Context: locked
 */
static int open_any(struct ht_ioc_info *info)
{
    static bool chosen;
    const char *user;
    unsigned n;
    int fd;

    if (!path[0]) {
        user = secure_getenv("HYPERTRACE_DEVICE");
        if (user && *user && strlen(user) < sizeof(path)) {
            chosen = true;
            strcpy(path, user);
        }
    }
    fd = path[0] ? ht_node_open(path, info) : -ENODEV;
    for (n = 0; fd < 0 && !chosen && n < NODES_MAX; n++) {
        node_path(n);
        fd = ht_node_open(path, info);
    }
    return fd;
}

/* Context: locked; @opening.fd is a device with @info */
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

int ht_trace_open(struct ht_stream *s, struct ht_node_map *map,
                  const struct ht_stream_params *params)
{
    /* A signal handler may open while its thread does. */
    const struct opening interrupted = opening;
    struct ht_ioc_info info;
    int r = 0;

    opening.fd = path[0] ? ht_node_open(path, &info) : -ENODEV;
    if (opening.fd < 0 ||
        info.generation != __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) {
        if (!try_lock()) {
            r = -EAGAIN;
        } else {
            if (opening.fd < 0) {
                opening.fd = open_any(&info);
            }
            r = opening.fd < 0 ? opening.fd : use_device(&info);
            unlock();
        }
    }
    if (!r) {
        map->ring_offset = info.ring_offset;
        opening.map = map;
        r = ht_stream_open(&device, s, params);
    }
    if (opening.fd >= 0) {
        ht_sys_close(opening.fd);
    }
    opening = interrupted;
    return r;
}

bool ht_trace_report(uint64_t count)
{
    const struct opening interrupted = opening;
    struct ht_ioc_info info;
    int r = -ENODEV;

    opening.fd = path[0] ? ht_node_open(path, &info) : -ENODEV;
    if (opening.fd >= 0) {
        if (info.generation == __atomic_load_n(&generation,
                                               __ATOMIC_ACQUIRE)) {
            r = ht_tell_discarded(&device, count);
        }
        ht_sys_close(opening.fd);
    }
    opening = interrupted;
    /* a host that is slow counts them later */
    return r == 0 || r == -ETIMEDOUT;
}

/* Modules ------------------------------------------------------------------ */

/* Context: locked.  What is there already is registered with its device. */
static bool open_to_register(void)
{
    struct ht_ioc_info info;

    if (!ht_trace_init()) {
        return false;
    }
    opening.fd = open_any(&info);
    if (opening.fd < 0) {
        return false;
    }
    if (use_device(&info)) {
        ht_sys_close(opening.fd);
        return false;
    }
    return true;
}

/* In a child, who had the lock may not be there. */
static bool lock_modules(void)
{
    const bool child = ht_trace_child();

    if (!child) {
        lock();
    }
    return !child;
}

void ht_module_add(struct ht_module *module)
{
    if (!lock_modules()) {
        return;
    }
    module->runtime = &ht_trace_runtime;
    if (open_to_register()) {
        register_module(module);
        ht_sys_close(opening.fd);
    }
    module->next = modules;
    modules = module;
    unlock();
}

void ht_trace_remove(struct ht_module *module)
{
    const bool is_locked = lock_modules();
    struct ht_class *const *cls;
    struct ht_module **p;

    for (p = &modules; *p; p = &(*p)->next) {
        if (*p == module) {
            *p = module->next;
            break;
        }
    }
    for (cls = module->begin; cls < module->end; cls++) {
        if (*cls) {
            switch_class(*cls, &off);
        }
    }
    if (is_locked) {
        unlock();
    }
    ht_trace_tell();
}

void ht_trace_builtin(struct ht_class *cls)
{
    made[nr_made++] = cls;
}

bool ht_event_is_on(const struct ht_class *cls)
{
    return __atomic_load_n(__atomic_load_n(&cls->on, __ATOMIC_ACQUIRE),
                           __ATOMIC_RELAXED) == 1;
}

struct ht_class *ht_event_new(const char *name, const struct ht_field *fields,
                              unsigned nr_fields, unsigned loglevel)
{
    struct ht_class *cls;
    struct ht_field *copy;
    unsigned i;

    if (nr_fields > HT_FIELDS_MAX || !name) {
        return NULL;
    }
    cls = calloc(1, sizeof(*cls));
    copy = calloc(nr_fields + 1, sizeof(*copy));
    if (!cls || !copy) {
        goto fail;
    }
    for (i = 0; i < nr_fields; i++) {
        copy[i] = fields[i];
        copy[i].name = strdup(fields[i].name);
        if (!copy[i].name) {
            goto fail;
        }
    }
    cls->name = strdup(name);
    cls->fields = copy;
    cls->nr_fields = nr_fields;
    cls->loglevel = loglevel;
    cls->on = &off;
    if (!cls->name || !lock_modules()) {
        goto fail;
    }
    i = nr_made;
    if (i < sizeof(made) / sizeof(made[0])) {
        if (open_to_register()) {
            register_classes(&cls, 1);
            ht_sys_close(opening.fd);
        }
        made[nr_made++] = cls;
    }
    unlock();
    if (i < sizeof(made) / sizeof(made[0])) {
        return cls;
    }

fail:
    for (i = 0; copy && i < nr_fields; i++) {
        free((void *)copy[i].name);
    }
    free(copy);
    if (cls) {
        free((void *)cls->name);
    }
    free(cls);
    return NULL;
}

void ht_trace_name(char *name, const char *comm, int tid)
{
    char digits[12];
    unsigned n = 0, len;

    for (len = 0; comm[len]; len++) {
        name[len] = comm[len];
    }
    name[len++] = '/';
    if (tid <= 0) {
        ht_copy(name + len, "shared", 7);
        return;
    }
    while (tid) {
        digits[n++] = '0' + tid % 10;
        tid /= 10;
    }
    while (n) {
        name[len++] = digits[--n];
    }
    name[len] = '\0';
}
