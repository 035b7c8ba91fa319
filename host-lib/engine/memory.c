/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: serve a guest over memory alone
 *
 * A poll reads each word that the guest writes in page 0 at most once.  This
 * host never reads back a word that it wrote there itself.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/control.h"
#include "hypertrace/memory.h"
#include "hypertrace/memory-directory.h"
#include "hypertrace/memory-layout.h"
#include "hypertrace/streams.h"
#include "hypertrace/thread.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

/* Minimum time in ns between two advances of ht_memory.beat */
#define BEAT_NS         INT64_C(2000000)

/*
 * Minimum interval in ns at which ht_memory_poll() reports the discarded events
 * of streams, and asks HtMemoryConfig.wants again which classes to switch on
 */
#define TELL_NS         INT64_C(20000000)

/* Duration of the measurement of the host's counter in ns */
#define MEASURE_NS      INT64_C(2000000)

typedef struct Map Map;

struct HtMemory {
    HtMemoryConfig cfg;
    /* private copy of the capabilities, with epoch 0 */
    struct ht_caps caps;
    /* this host's descriptor of the memory; it holds the flock */
    int fd;
    uint64_t size;
    uint8_t *base;
    struct ht_memory *page;
    /* the memory's entry of @maps; NULL: SIGBUS is not handled */
    Map *map;
    HtServer *server;
    HtDirectory directory;
    uint64_t epoch;
    /* ht_memory_attach() made this: another host has laid out the memory */
    bool attached;
    bool serves;                /* ht_memory_start() has published the epoch */
    bool left;
    /* private copy of the guest's request, HT_MAILBOX_SIZE bytes */
    uint8_t *request;
    /* number of the last exchange, as in ht_memory.done */
    uint32_t done;
    uint64_t beat;
    int64_t beat_ns;
    int64_t eager_ns;           /* host time until which polls do not pause */
    int64_t told_ns;            /* host time of the last report; see TELL_NS */
    /* index of the stream that the next poll begins with */
    uint32_t first;
    /* by class id: the previous host had switched the inherited class off */
    bool was_off[HT_CLASSES_MAX + 1];
};

#define set_error(error, ...) \
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, __VA_ARGS__)

/* The host's counter ------------------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
#define COUNTER HT_COUNTER_TSC
static uint64_t host_counter(void)
{
    return __rdtsc();
}
#else
#define COUNTER HT_COUNTER_CNTVCT
static uint64_t host_counter(void)
{
    uint64_t v = 0;

#ifdef __aarch64__
    __asm__ __volatile__("isb; mrs %0, cntvct_el0" : "=r" (v));
#endif
    return v;
}
#endif

/*
 * Measure the rate of the host's counter in Hz, and keep it for the process.
 * This is the first guess for the rate of the guest's counter, which the server
 * measures later.
 */
static uint64_t host_hz(void)
{
    static uint64_t known;
    int64_t ns0 = ht_now_ns(), ns;
    uint64_t c0 = host_counter(), ticks, hz = ht_atomic_read(&known);

    if (hz) {
        return hz;
    }
    do {
        ns = ht_now_ns() - ns0;
        ticks = host_counter() - c0;
    } while (ns < MEASURE_NS);
    hz = CLAMP(ticks * 1e9 / ns, HT_TIME_HZ_MIN, HT_TIME_HZ_MAX);
    ht_atomic_set(&known, hz);
    return hz;
}

/* Layout ------------------------------------------------------------------- */

/*
 * Fill in the offsets of all parts of the memory, and the constant members, but
 * not c->streams.  Returns the number of streams that fit, at most
 * HT_STREAMS_MAX; 0 if there is no room or the geometry is not valid
 */
static uint32_t layout(struct ht_caps *c, uint64_t size)
{
    if (!ht_power_of_two(size, HT_MEMORY_SIZE_MIN, HT_MEMORY_SIZE_MAX) ||
        c->mode > HT_MODE_OVERWRITE || !ht_layout(c)) {
        return 0;
    }
    c->channel = HT_CHANNEL_MEMORY;
    c->batch = 1;
    c->flush_ms = HT_MEMORY_IDLE_NS / 1000000;
    c->max_classes = HT_CLASSES_MAX;
    c->max_message = HT_MESSAGE_MAX;
    c->doorbell_offset = 0;
    c->doorbell_stride = 0;
    return MIN((size - c->ring_offset) / c->ring_stride, HT_STREAMS_MAX);
}

/* Files -------------------------------------------------------------------- */

static bool size_valid(uint64_t size, GError **error)
{
    if (!ht_power_of_two(size, HT_MEMORY_SIZE_MIN, HT_MEMORY_SIZE_MAX)) {
        set_error(error, "%" PRIu64 " bytes are not a power of two between"
                  " 2 MiB and 64 GiB", size);
        return false;
    }
    return true;
}

int ht_memory_memfd(uint64_t size, GError **error)
{
    int fd;

    if (!size_valid(size, error)) {
        return -1;
    }
    fd = memfd_create("hypertrace-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        set_error(error, "cannot make a memfd of %" PRIu64 " MiB: %s",
                  size >> 20, g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

int ht_memory_make_file(const char *path, uint64_t size, GError **error)
{
    int fd, ret;

    if (!size_valid(size, error)) {
        return -1;
    }
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        set_error(error, "cannot create '%s': %s", path, g_strerror(errno));
        return -1;
    }
    /*
     * Allocate the disk space now: if space is missing when a page is first
     * written, this process or the emulator gets SIGBUS.
     */
    ret = posix_fallocate(fd, 0, size);
    if (ret) {
        set_error(error, "cannot allocate %" PRIu64 " MiB for '%s': %s",
                  size >> 20, path, g_strerror(ret));
        close(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

/*
 * Open the file another time for the lock.  A lock of @fd would also belong to
 * the emulator, if it has inherited @fd.
 */
static int open_locked(int fd, GError **error)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    int own = open(path, O_RDWR | O_CLOEXEC);

    if (own < 0) {
        set_error(error, "cannot open the memory: %s", g_strerror(errno));
        return -1;
    }
    if (flock(own, LOCK_EX | LOCK_NB) < 0) {
        set_error(error, "%s", errno == EWOULDBLOCK ?
                  "another host serves this memory" : g_strerror(errno));
        close(own);
        return -1;
    }
    return own;
}

/*
 * Truncated files.  If another process truncates a mapped file, which it can if
 * the file is not sealed, an access to a missing page raises SIGBUS.
 */

#define MAPS_MAX        16

struct Map {
    /* start of the mapped memory; NULL: this entry of @maps is free */
    uint8_t *base;
    uint64_t size;
    /* the SIGBUS handler has replaced the memory's pages */
    bool gone;
};

/*
 * Entries are added and removed under @maps_lock.  on_sigbus() reads them, and
 * sets Map.gone, without the lock.
 */
static Map maps[MAPS_MAX];
static GMutex maps_lock;
static struct sigaction old_action;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    uint8_t *at = info->si_addr;
    unsigned i;

    (void)sig;
    (void)context;
    for (i = 0; i < MAPS_MAX; i++) {
        Map *map = &maps[i];
        uint8_t *base = ht_atomic_load_acquire(&map->base);

        if (base && at >= base && at < base + map->size &&
            mmap(base, map->size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != MAP_FAILED) {
            ht_atomic_set(&map->gone, true);
            return;
        }
    }
    /*
     * The address is not in a memory of @maps, or the memory could not be
     * replaced: restore the previous action.  After the return the access is
     * repeated, and raises the signal again.
     */
    sigaction(SIGBUS, &old_action, NULL);
}

/*
 * Add a memory to @maps.  The first call installs the SIGBUS handler of the
 * process.  Returns the memory's entry; NULL: no entry is free, so a SIGBUS in
 * this memory is not handled
 */
static Map *protect(uint8_t *base, uint64_t size)
{
    struct sigaction action = { .sa_sigaction = on_sigbus,
                                .sa_flags = SA_SIGINFO };
    static bool installed;
    Map *found = NULL;
    unsigned i;

    g_mutex_lock(&maps_lock);
    if (!installed) {
        installed = sigaction(SIGBUS, &action, &old_action) == 0;
    }
    for (i = 0; i < MAPS_MAX && !found; i++) {
        found = maps[i].base ? NULL : &maps[i];
    }
    if (found) {
        found->size = size;
        found->gone = false;
        /*
         * Pairs with the load-acquire in on_sigbus(), which reads @size after
         * @base.
         */
        ht_atomic_store_release(&found->base, base);
    }
    g_mutex_unlock(&maps_lock);
    return found;
}

static void unprotect(Map *map)
{
    if (map) {
        g_mutex_lock(&maps_lock);
        ht_atomic_store_release(&map->base, NULL);
        g_mutex_unlock(&maps_lock);
    }
}

bool ht_memory_truncated(const HtMemory *m)
{
    return m->map && ht_atomic_read(&m->map->gone);
}

static HtMemory *map(int fd, const HtMemoryConfig *cfg, GError **error)
{
    HtMemory *m = g_new0(HtMemory, 1);
    struct stat st;

    m->cfg = *cfg;
    m->fd = open_locked(fd, error);
    if (m->fd < 0) {
        g_free(m);
        return NULL;
    }
    if (fstat(m->fd, &st) < 0) {
        set_error(error, "cannot get the size: %s", g_strerror(errno));
        ht_memory_free(m);
        return NULL;
    }
    if (!size_valid(st.st_size, error)) {
        ht_memory_free(m);
        return NULL;
    }
    m->size = st.st_size;
    m->base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (m->base == MAP_FAILED) {
        m->base = NULL;
        set_error(error, "cannot map %" PRIu64 " MiB: %s", m->size >> 20,
                  g_strerror(errno));
        ht_memory_free(m);
        return NULL;
    }
    m->map = protect(m->base, m->size);
    m->page = (struct ht_memory *)m->base;
    return m;
}

/* Serving ------------------------------------------------------------------ */

static void beat(HtMemory *m, int64_t now)
{
    if (m->serves && now - m->beat_ns >= BEAT_NS) {
        m->beat_ns = now;
        ht_atomic_set(&m->page->beat, ht_le64(++m->beat));
    }
}

/*
 * HtServerOps.deliver.  Advance the beat here as well: a poll that executes
 * TAKEOVER delivers the content of all rings.
 */
static void deliver(void *opaque, const HtRun *run)
{
    HtMemory *m = opaque;

    beat(m, ht_now_ns());
    m->cfg.deliver(m->cfg.opaque, run);
}

/* HtServerOps.wants */
static bool wants(void *opaque, const HtClass *c)
{
    HtMemory *m = opaque;

    return !m->cfg.wants ||
           m->cfg.wants(m->cfg.opaque, c, !m->was_off[c->id]);
}

/*
 * HtServerOps.added.  Write the class to the directory before the guest gets
 * the class's id
 */
static void added(void *opaque, const HtClass *c)
{
    HtMemory *m = opaque;

    ht_directory_add_class(&m->directory, c);
}

/* HtServerOps.opened */
static void opened(void *opaque, const HtStreamInfo *info)
{
    HtMemory *m = opaque;

    ht_directory_set_stream(&m->directory, info, ht_now_ns());
}

/* HtServerOps.unreported */
static void unreported(void *opaque, uint64_t count)
{
    HtMemory *m = opaque;

    ht_directory_set_discarded(&m->directory, count);
}

/* HtServerOps.changed */
static void changed(void *opaque, uint32_t seq)
{
    HtMemory *m = opaque;

    ht_atomic_set(&m->page->caps.enable_seq, ht_le32(seq));
}

/* HtServerOps.log */
static void report(void *opaque, const char *text)
{
    HtMemory *m = opaque;

    if (m->cfg.log) {
        m->cfg.log(m->cfg.opaque, text);
    }
}

static const HtServerOps server_ops = {
    .deliver = deliver,
    .wants = wants,
    .added = added,
    .opened = opened,
    .unreported = unreported,
    .changed = changed,
    .log = report,
};

static struct ht_ring_control *ring_at(const HtMemory *m, uint32_t i)
{
    return ht_layout_ring(&m->caps, m->base, i);
}

static HtServer *new_server(HtMemory *m, uint64_t hz)
{
    struct ht_ring_control *rings[HT_STREAMS_MAX];
    const HtServerConfig cfg = {
        .streams = m->caps.streams,
        .packet_size = m->caps.packet_size,
        .packets = m->caps.packets,
        .mode = m->caps.mode,
        .rings = rings,
        .enable = m->base + m->caps.enable_offset,
        .hz = hz,
        .ppm = HT_TIME_PPM_MAX,
        .opening_ns = HT_OPENING_NS,
        .class_bytes = HT_DIRECTORY_CLASSES,
        .inherits = m->attached,
        .ops = &server_ops,
        .opaque = m,
    };
    uint32_t i;

    for (i = 0; i < m->caps.streams; i++) {
        rings[i] = ring_at(m, i);
    }
    return ht_server_new(&cfg);
}

/*
 * Prepare to become the guest's host.  For ht_memory_attach() this writes
 * nothing to the memory; for ht_memory_create() it closes the rings
 */
static bool prepare(HtMemory *m, GError **error)
{
    while (!m->epoch) {
        if (getrandom(&m->epoch, sizeof(m->epoch), 0) != sizeof(m->epoch)) {
            set_error(error, "getrandom: %s", g_strerror(errno));
            return false;
        }
    }
    m->request = g_malloc(HT_MAILBOX_SIZE);
    m->directory.base = m->base + ht_layout_directory(&m->caps);
    m->beat = ht_le64(ht_atomic_read(&m->page->beat));
    m->beat_ns = ht_now_ns() - BEAT_NS;
    m->server = new_server(m, host_hz());
    return true;
}

/* Test whether no entry before @in[@n] has the same instance */
static bool is_new(const HtInherited *in, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        if (in[i].info.instance == in[n].info.instance) {
            return false;
        }
    }
    return true;
}

/*
 * Find the streams that the previous host has left open.  If the directory,
 * which the guest may have written to, has no valid entry for such a stream,
 * add the producer's count of discarded events, up to a limit, to @lost.
 */
static unsigned open_instances(HtMemory *m, HtInherited *in, uint64_t *lost)
{
    unsigned n = 0, invalid = 0;
    uint32_t i;

    for (i = 0; i < m->caps.streams; i++) {
        const struct ht_ring_control *ring = ring_at(m, i);

        if (ht_le32(ht_atomic_read(&ring->host.state)) != HT_STREAM_OPENED) {
            continue;
        }
        if (ht_directory_stream(&m->directory, i, &in[n]) && is_new(in, n)) {
            n++;
        } else {
            *lost += MIN(ht_le64(ht_atomic_read(&ring->guest.lost)),
                         HT_LOST_MAX / HT_STREAMS_MAX);
            invalid++;
        }
    }
    if (invalid) {
        g_autofree char *text =
            g_strdup_printf("%u streams of the previous recorder are not "
                            "continued: their description is not valid",
                            invalid);

        report(m, text);
    }
    return n;
}

/*
 * Note which classes the previous host had switched off, by its enable bytes,
 * which the guest may have changed
 */
static void read_enable(HtMemory *m)
{
    const uint8_t *enable = m->base + m->caps.enable_offset;
    uint32_t id;

    for (id = 1; id <= HT_CLASSES_MAX; id++) {
        m->was_off[id] = ht_atomic_read(enable + id) != HT_ENABLE_ON;
    }
}

/*
 * Take over the previous host's classes, and its clock if there is one.
 * Returns: false if the classes are not valid
 */
static bool inherit_classes(HtMemory *m)
{
    g_autoptr(GByteArray) classes = ht_directory_classes(&m->directory);
    g_autofree char *why = NULL;
    HtTimeSegment clock;
    uint32_t count;
    bool valid;

    read_enable(m);
    valid = ht_server_inherit_classes(m->server, classes->data, classes->len,
                                      &why);
    count = ht_class_table_count(ht_server_classes(m->server));
    /* Only ids up to @count are inherited: forget the bytes of all others. */
    memset(m->was_off + count + 1, 0, HT_CLASSES_MAX - count);
    if (!valid) {
        g_autofree char *text =
            g_strdup_printf("events of the previous recorder are lost: %s",
                            why);

        report(m, text);
        return false;
    }
    if (ht_directory_clock(&m->directory, &clock)) {
        ht_server_inherit_clock(m->server, &clock);
    }
    return true;
}

static void inherit(HtMemory *m)
{
    g_autofree HtInherited *in = g_new0(HtInherited, m->caps.streams);
    uint64_t discards = ht_directory_discarded(&m->directory);
    unsigned n = open_instances(m, in, &discards), i;

    if (!n || !inherit_classes(m)) {
        n = 0;
        ht_directory_clear(&m->directory, discards);
    }
    for (i = 0; i < n; i++) {
        if (!m->cfg.recorded ||
            !m->cfg.recorded(m->cfg.opaque, &in[i].info, &in[i].recorded)) {
            in[i].recorded = (HtRecorded) { .events = HT_RUN_UNKNOWN };
        }
    }
    ht_server_inherit(m->server, in, n);
    ht_server_inherit_discarded(m->server, discards);
}

/*
 * The guest may wait for a reply of the previous host.  The guest loads `done`,
 * then the epoch.  This host therefore stores the epoch first: a guest that
 * sees the new `done` also sees the new epoch, and ignores the reply.  A
 * request that the guest sends meanwhile names the old epoch, and
 * serve_mailbox() does not execute it.
 */
void ht_memory_start(HtMemory *m)
{
    struct ht_memory *p = m->page;

    ht_atomic_set(&p->caps.enable_seq, 0);
    ht_host_page_clear(m->base + m->caps.enable_offset);
    if (m->attached) {
        inherit(m);
    } else {
        ht_directory_clear(&m->directory, 0);
    }
    m->done = ht_le32(ht_atomic_load_acquire(&p->go));
    /* Pairs with the load-acquire of caps.epoch in ht_link_attach(). */
    ht_atomic_store_release(&p->caps.epoch, ht_le64(m->epoch));
    /* Pairs with the load-acquire of done in the guest's await(). */
    ht_atomic_store_release(&p->done, ht_le32(m->done));
    m->serves = true;
    beat(m, ht_now_ns());
}

HtMemory *ht_memory_create(int fd, const HtMemoryConfig *cfg, GError **error)
{
    HtMemory *m = map(fd, cfg, error);
    struct ht_caps le;
    uint64_t hz;

    if (!m) {
        return NULL;
    }
    hz = host_hz();
    m->caps.packet_size = cfg->packet_size ? cfg->packet_size :
                                             HT_MEMORY_PACKET_SIZE;
    m->caps.packets = cfg->packets ? cfg->packets : HT_MEMORY_PACKETS;
    m->caps.mode = cfg->mode;
    m->caps.counter = COUNTER;
    /*
     * A short event header has 24 bits of the counter.  Limit the gap before an
     * event with such a header to 2^23 ticks, and also to 2^23 ns.
     */
    m->caps.max_gap = MAX(MIN(hz, UINT64_C(1000000000)) / 1e9 *
                          ((HT_CLOCK_MASK + 1) / 2), 1);
    m->caps.streams = layout(&m->caps, m->size);
    if (!m->caps.streams) {
        set_error(error, "%" PRIu64 " MiB have no room for a ring of %" PRIu32
                  " packets of %" PRIu32 " bytes", m->size >> 20,
                  m->caps.packets, m->caps.packet_size);
        ht_memory_free(m);
        return NULL;
    }
    ht_caps_swap(&le, &m->caps);
    memcpy(&m->page->caps, &le, sizeof(le));
    if (!prepare(m, error)) {
        ht_memory_free(m);
        return NULL;
    }
    return m;
}

/*
 * Check @c, a private copy: the guest may write the original in page 0.
 * Returns: NULL, or the reason why this host cannot serve the memory
 */
static const char *check_caps(const struct ht_caps *c, uint64_t size)
{
    const char *why = ht_layout_check(c, size);
    struct ht_caps want = *c;

    if (!why && (!layout(&want, size) || memcmp(c, &want, sizeof(want)) ||
                 c->counter != COUNTER || c->max_gap < 1 ||
                 c->max_gap > (HT_CLOCK_MASK + 1) / 2)) {
        why = "page 0 of the memory is not that of a recorder";
    }
    return why;
}

HtMemory *ht_memory_attach(int fd, const HtMemoryConfig *cfg, GError **error)
{
    HtMemory *m = map(fd, cfg, error);
    struct ht_caps le;
    const char *why;

    if (!m) {
        return NULL;
    }
    memcpy(&le, &m->page->caps, sizeof(le));
    ht_caps_swap(&m->caps, &le);
    why = check_caps(&m->caps, m->size);
    if (why) {
        set_error(error, "%s", why);
        ht_memory_free(m);
        return NULL;
    }
    m->caps.epoch = 0;
    m->attached = true;
    if (!prepare(m, error)) {
        ht_memory_free(m);
        return NULL;
    }
    return m;
}

/* Execute or skip one request; return false if there is no new request */
static bool serve_mailbox(HtMemory *m)
{
    /* Pairs with the guest's store-release of go after the request. */
    uint32_t go = ht_le32(ht_atomic_load_acquire(&m->page->go));
    uint8_t *box = m->base + m->caps.mailbox_offset;
    uint32_t bytes;
    size_t replied;
    HtTimeMap map;

    if (go == m->done) {
        return false;
    }
    /* Skip a request to the previous host: the guest ignores its reply. */
    if (ht_le64(ht_atomic_read(&m->page->to)) == m->epoch) {
        bytes = ht_le32(ht_atomic_read(&m->page->bytes));
        bytes = MIN(bytes, HT_MAILBOX_SIZE);
        memcpy(m->request, box, bytes);
        replied = ht_server_exchange(m->server, m->request, bytes);
        memcpy(box + HT_MAILBOX_SIZE, m->request, replied);
        ht_server_time(m->server, &map);
        if (map.count) {
            ht_directory_set_clock(&m->directory, &map.seg[map.count - 1]);
        }
    }
    m->done = go;
    /* Pairs with the guest's load-acquire of done before it reads the reply. */
    ht_atomic_store_release(&m->page->done, ht_le32(go));
    return true;
}

/*
 * Consume from one stream after the other, until HT_MEMORY_POLL_BYTES were
 * consumed.
 * Returns: true if so much was consumed that the next poll should follow at
 * once
 */
static bool serve_streams(HtMemory *m)
{
    const uint32_t n = m->caps.streams;
    const uint64_t ring = (uint64_t)m->caps.packet_size * m->caps.packets;
    uint64_t total = 0;
    bool busy = false;
    uint32_t i;

    for (i = 0; i < n && total < HT_MEMORY_POLL_BYTES; i++) {
        uint32_t stream = (m->first + i) % n;
        size_t done = ht_server_consume(m->server, stream,
                                        HT_MEMORY_STREAM_BYTES);

        total += done;
        busy |= done > ring / 8 || done >= HT_MEMORY_STREAM_BYTES;
    }
    /*
     * If this poll has used up its bytes, the next poll begins with the first
     * stream that this poll has not reached.
     */
    m->first = (m->first + i) % n;
    return busy || total >= HT_MEMORY_POLL_BYTES;
}

int64_t ht_memory_poll(HtMemory *m)
{
    int64_t now = ht_now_ns();
    bool busy;

    beat(m, now);
    if (serve_mailbox(m)) {
        m->eager_ns = ht_now_ns() + HT_MEMORY_EAGER_NS;
    }
    busy = serve_streams(m);
    if (now - m->told_ns >= TELL_NS) {
        m->told_ns = now;
        ht_server_tell(m->server);
        if (m->cfg.wants) {
            ht_server_decide(m->server);
        }
    }
    return busy || ht_now_ns() < m->eager_ns ? 0 : HT_MEMORY_IDLE_NS;
}

void ht_memory_tell(HtMemory *m, HtHostPage *p)
{
    ht_host_page_begin(p, m->base + m->caps.enable_offset, m->epoch);
}

unsigned ht_memory_leave(HtMemory *m)
{
    m->left = true;
    if (m->serves) {
        ht_host_page_clear(m->base + m->caps.enable_offset);
    }
    return ht_server_leave(m->server);
}

void ht_memory_free(HtMemory *m)
{
    if (!m) {
        return;
    }
    if (m->server) {
        if (!m->left) {
            ht_memory_leave(m);
        }
        ht_server_free(m->server);
    }
    unprotect(m->map);
    if (m->base) {
        munmap(m->base, m->size);
    }
    close(m->fd);
    g_free(m->request);
    g_free(m);
}

HtServer *ht_memory_server(HtMemory *m)
{
    return m->server;
}

const struct ht_caps *ht_memory_caps(const HtMemory *m)
{
    return &m->caps;
}
