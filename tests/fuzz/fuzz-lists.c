/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target lists: read the event formats, the log or the ring of a hostile
 * kernel, whose memory changes before every third read.  The number of reads of
 * a call is limited, the ring's records are whole, the log's numbers increase,
 * and the formats become a printable text.
 */
#include "fuzz.h"
#include "formats-make.h"
#include "list-guest.h"
#include "log-guest.h"

/*
 * A call of the reader of formats or of the ring has a limit of reads. One read
 * of this limit may cause up to AGAIN calls of hostile_read(): a reader may
 * read a word twice, and reads a text page by page.
 */
#define AGAIN 4u

typedef struct Kernel {
    FuzzInput in;
    uint8_t *mem;
    uint64_t base;              /* address of the first byte of @mem */
    uint64_t size;
    uint64_t used;              /* number of bytes that have content */
    uint64_t reads;
    HtFtMem ft;
} Kernel;

/*
 * Overwrite a word with a copy of another word, with an address in @mem or with
 * a number, or flip one of its bits. A copied word can close a list to a
 * circle, or make two lists share a node.
 */
static void overwrite(Kernel *k)
{
    FuzzInput *in = &k->in;
    uint64_t to = fuzz_bits(in, 2) * 8 % k->used, v;

    switch (fuzz_u8(in) % 4) {
    case 0:
        v = ht_get_le64(k->mem + fuzz_bits(in, 2) * 8 % k->used);
        break;
    case 1:
        v = k->base + fuzz_bits(in, 2) * 8 % k->used;
        break;
    case 2:
        v = ht_get_le64(k->mem + to) ^ UINT64_C(1) << fuzz_u8(in) % 64;
        break;
    default:
        v = fuzz_number(in);
    }
    ht_put_le64(k->mem + to, v);
}

static int hostile_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Kernel *k = opaque;

    if (++k->reads % 3 == 0 && fuzz_more(&k->in)) {
        overwrite(k);
    }
    g_assert_cmpuint(offset, <=, k->size);
    g_assert_cmpuint(len, <=, k->size - offset);
    memcpy(buf, k->mem + offset, len);
    return 0;
}

/* Prepare @k: let the readers see a guest's memory through hostile_read(). */
static void begin(Kernel *k, FuzzInput in, uint8_t *mem, uint64_t base,
                  uint64_t size, uint64_t used)
{
    *k = (Kernel) { .in = in, .mem = mem, .base = base, .size = size,
                    .used = used & ~UINT64_C(7) };
    k->ft = (HtFtMem) { .size = size, .read = hostile_read, .opaque = k };
}

static void read_formats(FuzzInput in)
{
    static HtBtf *btf;
    const unsigned reads = 64;
    HtKernelFormatsList *list;
    HtKernelFormats *f;
    GString *text;
    FormatsGuest g;
    unsigned i;
    Kernel k;

    btf = btf ? btf : fm_btf();
    fm_init(&g, 16384);
    fm_field(&g, FM_COMMON, "unsigned short", "common_type", 0, 2);
    for (i = 0; i < 4; i++) {
        uint64_t fields = fm_event(&g, 300 + i, "system", "event", "\"%d\"");

        fm_field(&g, fields, "int", "a", 8, 4);
        fm_field(&g, fields, "char[4]", "b", 12, 4);
    }
    begin(&k, in, g.mem, FM_BASE, g.size, g.used);
    g.space.mem = &k.ft;
    f = ht_kernel_formats_new(&g.space, btf, &g.at, 4096, NULL);
    for (i = 0; i < 200; i++) {
        k.reads = 0;
        ht_kernel_formats_step(f, reads);
        g_assert_cmpuint(k.reads, <=, AGAIN * (reads + 1800));
        ht_kernel_formats_changed(f, true);
    }
    g_assert_cmpuint(ht_kernel_formats_bytes(f), <=, 16 << 20);
    list = ht_kernel_formats_list(f);
    text = ht_kernel_formats_list_text(list);
    ht_kernel_formats_list_free(list);
    for (i = 0; i < text->len; i++) {
        g_assert_true(g_ascii_isprint(text->str[i]) ||
                      strchr("\t\n", text->str[i]));
    }
    g_string_free(text, true);
    ht_kernel_formats_free(f);
    fm_clear(&g);
}

static void read_log(FuzzInput in)
{
    HtKernelLogHint hint;
    HtLogRecord record;
    HtKernelLog *log;
    uint64_t next = 0;
    unsigned i;
    LogGuest g;
    Kernel k;

    pg_init(&g);
    for (i = 0; i < 20; i++) {
        pg_print(&g, i * 4, false);
    }
    begin(&k, in, g.mem, PG_BASE, sizeof(g.mem), sizeof(g.mem));
    g.space.mem = &k.ft;
    log = ht_kernel_log_new(&g.space, &g.layout, PG_PRB);
    for (i = 0; i < 200; i++) {
        bool last = fuzz_u8(&k.in) & 1;

        k.reads = 0;
        if (ht_kernel_log_next(log, last, &record) > 0) {
            g_assert_cmpuint(record.seq, >=, next);
            next = record.seq + 1;
            free(fuzz_copy(record.text, record.len));
        }
        g_assert_cmpuint(k.reads, <=, 3072);
        if (ht_kernel_log_hint(log, &hint)) {
            ht_kernel_log_grew(&hint);
        }
    }
    ht_kernel_log_free(log);
}

static void piece(void *opaque G_GNUC_UNUSED, const HtFtPiece *p)
{
    g_autofree uint8_t *copy = fuzz_copy(p->data, p->size);
    uint32_t events = 0;
    HtFtStep step;
    HtFtRecord r;
    HtFtIter it;

    g_assert_cmpuint(p->cpu, <, LG_CPUS);
    g_assert_cmpuint(p->size, >, 0);
    g_assert_cmpuint(p->from + p->size, <=, LG_PAGE - HT_FT_PAGE_HEADER);
    ht_ft_iter_init(&it, copy, p->size, 0, p->base_ns);
    while ((step = ht_ft_iter_next(&it, &r)) == HT_FT_EVENT) {
        events++;
    }
    g_assert_cmpint(step, ==, HT_FT_END);
    g_assert_cmpuint(events, ==, p->events);
}

static void follow_ring(FuzzInput in)
{
    static const HtFtFollowOps ops = { .piece = piece };
    HtFtFollow *f;
    ListGuest g;
    unsigned i;
    Kernel k;

    lg_init(&g, 2, 3, 1);
    for (i = 0; i < 200; i++) {
        lg_event(&g, i % 2, 1000 * (i + 1), i % 32);
    }
    begin(&k, in, g.mem, LG_BASE, g.size, g.used);
    g.space.mem = &k.ft;
    f = ht_kernel_ring_follow(&g.space, &g.layout, g.array, 2, 0, &ops, &k);
    for (i = 0; i < 20; i++) {
        k.reads = 0;
        ht_ft_follow_look(f);
        g_assert_cmpuint(k.reads, <=, AGAIN * HT_KERNEL_RING_READS);
    }
    ht_ft_follow_free(f);
    lg_clear(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);

    switch (fuzz_u8(&in) % 3) {
    case 0:
        read_formats(in);
        break;
    case 1:
        read_log(in);
        break;
    default:
        follow_ring(in);
    }
    return 0;
}
