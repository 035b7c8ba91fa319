/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: from a guest's memory into a recording
 */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "hypertrace/base.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/recording.h"
#include "hypertrace/symbols.h"
#include "record-session.h"

/* Places to look at in a go: 64 MiB and more take one. */
#define SEARCH_LOOKS    4096
/* A guest that was reset may have its ring elsewhere. */
#define SEARCH_AGAIN_NS UINT64_C(1000000000)
/* More are no boots but somebody's game. */
#define RINGS_MAX       16

/* A ring that was found */
typedef struct Ring {
    HtSession *session;
    const HtFtMem *mem;
    uint64_t offset;
    HtFtFollow *follow;
    uint32_t epoch_base;        /* boots that older rings had */
    bool taken;                 /* goes into the recording */
} Ring;

/* One memory and the search in it */
typedef struct Place {
    const HtFtMem *mem;
    HtFtSearch search;
} Place;

struct HtSession {
    HtRecWriter *writer;
    GKeyFile *info;
    const HtKernel *kernel;
    GPtrArray *places;
    GPtrArray *rings;
    uint64_t next_search;
    uint32_t cpus;              /* in info */
    uint32_t epochs;            /* boots with an address in info */
    GError *error;
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t now(void *opaque)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Ring *ring = opaque;
    HtFtPiece of_all = *p;

    if (ring->taken && !ring->session->error) {
        of_all.epoch += ring->epoch_base;
        ht_rec_writer_piece(ring->session->writer, &of_all,
                            &ring->session->error);
    }
}

static const HtFtFollowOps follow_ops = { .piece = piece, .now = now };

static void free_ring(void *opaque)
{
    Ring *ring = opaque;

    ht_ft_follow_free(ring->follow);
    g_free(ring);
}

static void free_place(void *opaque)
{
    Place *p = opaque;

    ht_ft_search_clear(&p->search);
    g_free(p);
}

static bool write_info(HtSession *s, GError **error)
{
    gsize size;
    g_autofree char *text = g_key_file_to_data(s->info, &size, NULL);

    return ht_rec_writer_file(s->writer, "info", text, size, error);
}

static void set_u64(HtSession *s, const char *group, const char *key,
                    uint64_t value)
{
    g_key_file_set_uint64(s->info, group, key, value);
}

static void set_hex(HtSession *s, const char *key, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIx64, value);

    g_key_file_set_string(s->info, "kernel", key, text);
}

static void set_string(HtSession *s, const char *group, const char *key,
                       const char *value)
{
    if (value) {
        g_key_file_set_string(s->info, group, key, value);
    }
}

static void set_start(HtSession *s, const HtSessionInfo *info)
{
    struct utsname host;

    g_key_file_set_integer(s->info, "recording", "version", HT_REC_VERSION);
    set_string(s, "recording", "command", info->command);
    set_string(s, "recording", "source", info->source);
    g_key_file_set_integer(s->info, "recording", "poll-us", info->poll_us);
    set_u64(s, "recording", "started-realtime", clock_ns(CLOCK_REALTIME));
    set_u64(s, "recording", "started-monotonic", clock_ns(CLOCK_MONOTONIC));
    set_u64(s, "recording", "started-boottime", clock_ns(CLOCK_BOOTTIME));
    if (!uname(&host)) {
        set_string(s, "recording", "host", host.nodename);
    }
    set_string(s, "guest", "cmdline", info->words);
    if (info->kernel) {
        set_string(s, "guest", "release", info->kernel->release);
        set_string(s, "guest", "machine", info->kernel->machine);
        set_string(s, "guest", "version", info->kernel->version);
        set_string(s, "guest", "image", info->kernel->hash);
    }
}

static bool write_kernel(HtSession *s, GError **error)
{
    const HtKernel *k = s->kernel;

    return !k || (ht_rec_writer_file(s->writer, "formats", k->formats,
                                     k->formats_size, error) &&
                  ht_rec_writer_file(s->writer, "kallsyms", k->kallsyms,
                                     k->kallsyms_size, error));
}

/* Which ring this is, and the symbol whose address its header has */
static void set_ring(HtSession *s, const HtFtRing *ring)
{
    bool old = ring->layout == HT_FT_LAYOUT_6_11;
    g_autoptr(HtSymbols) symbols = NULL;
    uint64_t addr;

    g_key_file_set_integer(s->info, "guest", "page-size", ring->subbuf_size);
    set_string(s, "guest", "layout", ht_ft_layout_name(ring->layout));
    if (!s->kernel) {
        return;
    }
    symbols = ht_symbols_parse(s->kernel->kallsyms, s->kernel->kallsyms_size,
                               NULL);
    if (symbols && ht_symbols_address(symbols, old ? "rb_meta_init_text_addr" :
                                      "_text", &addr)) {
        set_hex(s, "text", addr);
    }
}

/* The address of each boot, and processors, as soon as they are there */
static bool update_info(HtSession *s, const Ring *ring)
{
    const HtFtRing *r = ht_ft_follow_ring(ring->follow);
    uint32_t n = ring->epoch_base + ht_ft_follow_epoch(ring->follow) + 1;
    bool changed = r->cpus > s->cpus;
    uint64_t text;
    char key[32];

    if (changed) {
        s->cpus = r->cpus;
        g_key_file_set_integer(s->info, "guest", "cpus", s->cpus);
    }
    if (n <= s->epochs) {
        return changed;
    }
    text = ht_ft_follow_text(ring->follow);
    s->epochs = n;
    if (text) {
        snprintf(key, sizeof(key), "text-%u", n - 1);
        set_hex(s, key, text);
    }
    return true;
}

static void take(HtSession *s, Ring *ring)
{
    if (!s->epochs) {
        set_ring(s, ht_ft_follow_ring(ring->follow));
    }
    ring->epoch_base = s->epochs;
    ring->taken = true;
}

static bool known(const HtSession *s, const HtFtMem *mem, uint64_t offset)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        const Ring *ring = s->rings->pdata[i];

        if (ring->mem == mem && ring->offset == offset) {
            return true;
        }
    }
    return false;
}

static void add_ring(HtSession *s, const HtFtMem *mem, HtFtRing *found)
{
    Ring *ring = g_new0(Ring, 1);

    ring->session = s;
    ring->mem = mem;
    ring->offset = found->offset;
    ring->follow = ht_ft_follow_new(mem, found, &follow_ops, ring);
    g_ptr_array_add(s->rings, ring);
}

static void search(HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        Place *p = s->places->pdata[i];

        while (s->rings->len < RINGS_MAX &&
               ht_ft_search_go(&p->search, SEARCH_LOOKS)) {
            ;
        }
        while (p->search.rings->len) {
            HtFtRing *ring = g_ptr_array_steal_index(p->search.rings, 0);

            if (s->rings->len < RINGS_MAX &&
                !known(s, p->mem, ring->offset)) {
                add_ring(s, p->mem, ring);
            } else {
                ht_ft_ring_free(ring);
            }
        }
        if (p->search.done) {
            ht_ft_search_clear(&p->search);
            ht_ft_search_init(&p->search, p->mem, HT_FT_SEARCH_FAST);
        }
    }
}

static bool any_taken(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        if (((Ring *)s->rings->pdata[i])->taken) {
            return true;
        }
    }
    return false;
}

/*
 * One that changes is a kernel's; a copy in a page cache or one that an older
 * boot left does not.
 */
static bool look_at(HtSession *s, unsigned i, GError **error)
{
    Ring *ring = s->rings->pdata[i];

    if (!ring->taken) {
        if (ht_ft_follow_look(ring->follow) >= 0 &&
            ht_ft_follow_alive(ring->follow)) {
            HtFtRing *again = ht_ft_ring_at(ring->mem, ring->offset, NULL);

            if (!again) {
                return true;
            }
            /* from its begin, this time into the recording */
            ht_ft_follow_free(ring->follow);
            ring->follow = ht_ft_follow_new(ring->mem, again, &follow_ops,
                                            ring);
            take(s, ring);
        } else {
            return true;
        }
    }
    do {
        ht_ft_follow_look(ring->follow);
    } while (ht_ft_follow_more(ring->follow) && !s->error);
    return !update_info(s, ring) || write_info(s, error);
}

bool ht_session_look(HtSession *s, GError **error)
{
    uint64_t t = now(NULL);
    unsigned i;

    if (t >= s->next_search) {
        search(s);
        s->next_search = any_taken(s) ? t + SEARCH_AGAIN_NS : 0;
    }
    for (i = 0; i < s->rings->len; i++) {
        if (!look_at(s, i, error)) {
            return false;
        }
    }
    if (s->error) {
        g_propagate_error(error, g_steal_pointer(&s->error));
        return false;
    }
    return ht_rec_writer_flush(s->writer, error);
}

HtSession *ht_session_new(const HtSessionInfo *info, GError **error)
{
    g_autoptr(HtSession) s = g_new0(HtSession, 1);

    s->rings = g_ptr_array_new_with_free_func(free_ring);
    s->info = g_key_file_new();
    s->kernel = info->kernel;
    s->places = g_ptr_array_new_with_free_func(free_place);
    s->writer = ht_rec_writer_new(info->dir, error);
    if (!s->writer) {
        return NULL;
    }
    set_start(s, info);
    if (!write_kernel(s, error) || !write_info(s, error)) {
        return NULL;
    }
    return g_steal_pointer(&s);
}

void ht_session_add(HtSession *s, const HtFtMem *mem)
{
    Place *p = g_new0(Place, 1);

    p->mem = mem;
    ht_ft_search_init(&p->search, mem, HT_FT_SEARCH_FAST);
    g_ptr_array_add(s->places, p);
}

void ht_session_remove(HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        if (((Ring *)s->rings->pdata[i])->mem == mem) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
    for (i = s->places->len; i-- > 0;) {
        if (((Place *)s->places->pdata[i])->mem == mem) {
            g_ptr_array_remove_index(s->places, i);
        }
    }
}

HtSessionStats ht_session_stats(const HtSession *s)
{
    HtSessionStats sum = { .boots = s->epochs };
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        const Ring *ring = s->rings->pdata[i];
        HtFtStats stats = ht_ft_follow_stats(ring->follow, -1);

        if (ring->taken) {
            sum.found = true;
            sum.events += stats.events;
            sum.gaps += stats.gaps;
            sum.lost += stats.lost;
        }
    }
    sum.bytes = ht_rec_writer_bytes(s->writer);
    return sum;
}

bool ht_session_finish(HtSession *s, const char *end, GError **error)
{
    unsigned i;

    /* twice: see ht_ft_follow_look() */
    s->next_search = 0;
    if (!ht_session_look(s, error) || !ht_session_look(s, error)) {
        return false;
    }
    /* a guest that was dead already, whose only ring this is */
    for (i = 0; !any_taken(s) && i < s->rings->len; i++) {
        Ring *ring = s->rings->pdata[i];
        HtFtRing *again = ht_ft_ring_at(ring->mem, ring->offset, NULL);

        if (again) {
            ht_ft_follow_free(ring->follow);
            ring->follow = ht_ft_follow_new(ring->mem, again, &follow_ops,
                                            ring);
            take(s, ring);
            if (!ht_session_look(s, error) || !ht_session_look(s, error)) {
                return false;
            }
        }
    }
    set_string(s, "recording", "end", end);
    set_u64(s, "recording", "ended-realtime", clock_ns(CLOCK_REALTIME));
    return write_info(s, error);
}

void ht_session_free(HtSession *s)
{
    if (s) {
        g_ptr_array_free(s->rings, true);
        g_ptr_array_free(s->places, true);
        ht_rec_writer_free(s->writer);
        g_key_file_free(s->info);
        g_clear_error(&s->error);
        g_free(s);
    }
}
