/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a kernel's log are read from its ring in order and whole, none
 * of them twice, whatever the writer does between two loads.  A reader that
 * polls often misses none.  A recording keeps the records unchanged.
 *
 * Only this test proves it for a ring that wraps during a read.
 */
#include "hypertrace/kernel-log.h"

#define BASE        UINT64_C(0xffff888000000000)
#define COUNT_BITS  4u
#define SIZE_BITS   10u
#define COUNT       (1u << COUNT_BITS)
#define SIZE        (1u << SIZE_BITS)
#define ID_MASK     (UINT64_MAX >> 2)

enum {
    PRB = 64, RING = 128, DESCS = 512, INFOS = 2048, DATA = 8192,
    DESC_SIZE = 24, INFO_SIZE = 88, MEMORY = 16384,
    R_COUNT_BITS = 0, R_DESCS = 8, R_INFOS = 16, R_HEAD = 24, R_TAIL = 32,
    R_SIZE_BITS = 48, R_DATA = 56,
    I_SEQ = 0, I_NS = 8, I_LEN = 16, I_FACILITY = 18, I_LEVEL = 19,
    I_CALLER = 20,
};

typedef struct Guest {
    uint8_t mem[MEMORY];
    HtFtMem ft;
    HtKernelSpace space;
    HtKernelLogLayout layout;
    /* ids of the newest (@head) and of the oldest (@tail) descriptor */
    uint64_t head, tail;
    uint64_t head_lpos, tail_lpos;
    uint64_t seq;
    void (*step)(void *opaque);
    void *opaque;
} Guest;

static int translate(void *opaque, uint64_t addr, uint64_t *offset,
                     uint64_t *left)
{
    if (addr < BASE || addr - BASE >= MEMORY) {
        return -EFAULT;
    }
    *offset = addr - BASE;
    *left = 256 - *offset % 256;
    return 0;
}

static void put(Guest *g, uint64_t at, uint64_t v)
{
    ht_put_le64(g->mem + at, v);
    if (g->step) {
        g->step(g->opaque);
    }
}

static uint64_t desc_at(uint64_t id)
{
    return DESCS + (id & (COUNT - 1)) * DESC_SIZE;
}

static void init(Guest *g)
{
    unsigned i;

    memset(g, 0, sizeof(*g));
    g->ft = (HtFtMem) { .size = MEMORY, .map = g->mem };
    g->space = (HtKernelSpace) { &g->ft, translate, g };
    g->layout = (HtKernelLogLayout) {
        .count_bits = R_COUNT_BITS, .descs = R_DESCS, .infos = R_INFOS,
        .head = R_HEAD, .tail = R_TAIL, .size_bits = R_SIZE_BITS,
        .data = R_DATA, .desc_size = DESC_SIZE, .state = 0, .begin = 8,
        .next = 16, .info_size = INFO_SIZE, .seq = I_SEQ, .ns = I_NS,
        .len = I_LEN, .facility = I_FACILITY, .caller = I_CALLER,
        .level = { .offset = I_LEVEL, .size = 1, .bit = 5, .bits = 3,
                   .count = 1, .element = 1 },
    };
    put(g, PRB, BASE + RING);
    ht_put_le32(g->mem + RING + R_COUNT_BITS, COUNT_BITS);
    ht_put_le32(g->mem + RING + R_SIZE_BITS, SIZE_BITS);
    put(g, RING + R_DESCS, BASE + DESCS);
    put(g, RING + R_INFOS, BASE + INFOS);
    put(g, RING + R_DATA, BASE + DATA);
    /*
     * The kernel's initial state: all descriptors are reusable, and the id of
     * the last one is head and tail
     */
    g->head = g->tail = (-(uint64_t)COUNT) & ID_MASK;
    for (i = 0; i < COUNT; i++) {
        put(g, DESCS + i * DESC_SIZE, 3ull << 62 | g->head);
    }
    put(g, RING + R_HEAD, g->head);
    put(g, RING + R_TAIL, g->tail);
    g->head_lpos = g->tail_lpos = (-(uint64_t)SIZE) & ~7ull;
}

/* Drop the oldest record to make room for a new one. */
static void drop_tail(Guest *g)
{
    uint64_t at = desc_at(g->tail), next = ht_get_le64(g->mem + at + 16);

    if (!(ht_get_le64(g->mem + at + 8) & 1)) {
        g->tail_lpos = next;
    }
    put(g, at, 3ull << 62 | g->tail);
    g->tail = (g->tail + 1) & ID_MASK;
    put(g, RING + R_TAIL, g->tail);
}

static void make_text(uint64_t seq, char *text, unsigned len)
{
    unsigned i;

    for (i = 0; i < len; i++) {
        text[i] = 'a' + (seq * 7 + i) % 26;
    }
}

/*
 * Write a record of @len bytes as printk() does; if @cut, leave it unfinished.
 */
static void print(Guest *g, unsigned len, bool cut)
{
    uint64_t id = (g->head + 1) & ID_MASK, at = desc_at(id), begin, next, pos;
    uint64_t info = INFOS + (id & (COUNT - 1)) * INFO_SIZE;
    unsigned need = HT_ROUND_UP(8 + len, 8);

    if (((id - g->tail) & ID_MASK) >= COUNT) {
        drop_tail(g);
    }
    put(g, RING + R_HEAD, id);
    g->head = id;
    put(g, at, id);             /* the state of the descriptor is "reserved" */
    begin = g->head_lpos;
    next = begin + need;
    pos = begin & (SIZE - 1);
    if (begin >> SIZE_BITS != next >> SIZE_BITS && next & (SIZE - 1)) {
        next = (next & ~(uint64_t)(SIZE - 1)) + need;
        pos = 0;
    }
    while (len && next - g->tail_lpos > SIZE && g->tail != id) {
        drop_tail(g);
    }
    put(g, at + 8, len ? begin : 3);
    put(g, at + 16, len ? next : 3);
    if (len) {
        g->head_lpos = next;
        put(g, DATA + pos, id);
        make_text(g->seq, (char *)g->mem + DATA + pos + 8, len);
    }
    put(g, info + I_SEQ, g->seq);
    put(g, info + I_NS, 1000 * g->seq);
    ht_put_le16(g->mem + info + I_LEN, len);
    g->mem[info + I_FACILITY] = g->seq % 24;
    g->mem[info + I_LEVEL] = (g->seq % 8) << 5;
    ht_put_le32(g->mem + info + I_CALLER,
                g->seq % 2 ? 17 : HT_LOG_CALLER_CPU | 3);
    g->seq++;
    if (!cut) {
        put(g, at, 2ull << 62 | id);
    }
}

typedef struct Reader {
    Guest g;
    HtKernelLog *log;
    GRand *rand;
    unsigned odds;
    bool reading;
    uint64_t next;
    uint64_t missing;
    GString *file;
} Reader;

static void check(Reader *r, const HtLogRecord *record)
{
    char text[SIZE];

    g_assert_cmpuint(record->seq, >=, r->next);
    r->missing += record->seq - r->next;
    r->next = record->seq + 1;
    make_text(record->seq, text, record->len);
    g_assert_cmpmem(record->text, record->len, text, record->len);
    g_assert_cmpuint(record->ns, ==, 1000 * record->seq);
    g_assert_cmpuint(record->level, ==, record->seq % 8);
    g_assert_cmpuint(record->facility, ==, record->seq % 24);
    g_assert_cmphex(record->caller, ==, record->seq % 2 ? 17 :
                    (HT_LOG_CALLER_CPU | 3));
}

static void drain(Reader *r, bool last)
{
    HtLogRecord record;

    while (ht_kernel_log_next(r->log, last, &record) > 0) {
        check(r, &record);
        ht_log_record_write(&record, r->file);
    }
}

static void step(void *opaque)
{
    Reader *r = opaque;

    if (r->log && !r->reading && r->odds &&
        !g_rand_int_range(r->rand, 0, r->odds)) {
        r->reading = true;
        drain(r, false);
        r->reading = false;
    }
}

static void start(Reader *r, uint32_t seed, unsigned odds)
{
    memset(r, 0, sizeof(*r));
    init(&r->g);
    r->rand = g_rand_new_with_seed(seed);
    r->odds = odds;
    r->file = g_string_new(NULL);
    r->log = ht_kernel_log_new(&r->g.space, &r->g.layout, BASE + PRB);
    r->g.step = step;
    r->g.opaque = r;
}

static void finish(Reader *r)
{
    ht_kernel_log_free(r->log);
    g_rand_free(r->rand);
    g_string_free(r->file, true);
}

static void test_follow(gconstpointer data)
{
    unsigned odds = GPOINTER_TO_UINT(data), i;
    uint32_t seed;
    Reader r;

    for (seed = 1; seed <= 10; seed++) {
        start(&r, seed, odds);
        for (i = 0; i < 3000; i++) {
            unsigned len = g_rand_int_range(r.rand, 0, 90);

            print(&r.g, i % 17 ? len : 0, false);
        }
        r.odds = 0;
        drain(&r, false);
        drain(&r, false);
        g_assert_cmpuint(r.next, ==, 3000);
        /* a reader that polls after every few steps misses no record */
        if (odds <= 10) {
            g_assert_cmpuint(r.missing, ==, 0);
        } else {
            g_assert_cmpuint(r.missing, >, 0);
        }
        finish(&r);
    }
}

/*
 * A record that was never finished delays later records until the last read.
 */
static void test_cut(void)
{
    Reader r;

    start(&r, 1, 0);
    print(&r.g, 10, false);
    print(&r.g, 11, true);
    print(&r.g, 12, false);
    drain(&r, false);
    g_assert_cmpuint(r.next, ==, 1);
    drain(&r, true);
    g_assert_cmpuint(r.next, ==, 3);
    g_assert_cmpuint(r.missing, ==, 1);
    finish(&r);
}

/*
 * Records with arbitrary bytes are written to a recording and read back
 * unchanged.
 */
static void test_file(void)
{
    static const char text[] = "one\ntwo\\x20 \x01\xff;,end";
    g_autofree char *dir = g_dir_make_tmp("log-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    g_autoptr(GString) file = g_string_new("no line\n1,2\n");
    g_autoptr(GError) error = NULL;
    HtLogRecord a = { 5, 123456789, 2, 6, 3, HT_LOG_CALLER_CPU | 1, text,
                      sizeof(text) - 1 }, b;
    HtLogReader *r;
    FILE *f;

    g_assert_null(ht_log_reader_open(dir, &error));
    g_assert_no_error(error);
    ht_log_record_write(&a, file);
    ht_log_record_write(&a, file);
    /* cut off the end of the last line */
    g_string_truncate(file, file->len - 3);
    g_assert_true(g_file_set_contents(path, file->str, file->len, NULL));
    r = ht_log_reader_open(dir, &error);
    g_assert_no_error(error);
    g_assert_true(ht_log_reader_next(r, &b));
    g_assert_cmpmem(b.text, b.len, text, sizeof(text) - 1);
    g_assert_cmpuint(b.seq, ==, 5);
    g_assert_cmpuint(b.ns, ==, 123456789);
    g_assert_cmpuint(b.boot, ==, 2);
    g_assert_cmpuint(b.level, ==, 6);
    g_assert_cmpuint(b.facility, ==, 3);
    g_assert_cmphex(b.caller, ==, HT_LOG_CALLER_CPU | 1);
    g_assert_false(ht_log_reader_next(r, &b));
    /* the line that was cut off grows: it is read when it is complete */
    f = fopen(path, "a");
    fputs("nd", f);
    fflush(f);
    g_assert_false(ht_log_reader_next(r, &b));
    fputs("\n6,", f);
    fclose(f);
    g_assert_true(ht_log_reader_next(r, &b));
    g_assert_cmpmem(b.text, b.len, text, sizeof(text) - 1);
    g_assert_false(ht_log_reader_next(r, &b));
    ht_log_reader_close(r);
    unlink(path);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/kernel-log/often", GUINT_TO_POINTER(5),
                         test_follow);
    g_test_add_data_func("/kernel-log/rarely", GUINT_TO_POINTER(900),
                         test_follow);
    g_test_add_func("/kernel-log/cut", test_cut);
    g_test_add_func("/kernel-log/file", test_file);
    return g_test_run();
}
