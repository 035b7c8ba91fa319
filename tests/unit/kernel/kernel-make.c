/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel-make.h"
#include "btf-make.h"

/* number and text of the only token of more than one character */
#define TOKEN       1
#define TOKEN_TEXT  "sys_"

#define X86_LINK    UINT64_C(0xffffffff80000000)
#define DIRECT      UINT64_C(0xffff900000000000)

/* Offsets of a kernel's parts from _text, in bytes */
enum {
    AT_BANNER = KM_BANNER, AT_TABLE = KM_SYSCALLS, AT_READ = 0x3000,
    AT_TOP = 0x4000, AT_L3 = 0x5000, AT_L2 = 0x6000, AT_DIRECT_L3 = 0x7000,
    AT_TK = 0x8000, AT_JIFFIES = 0x9000, AT_DIRECT = 0x9008,
    AT_MAX_PFN = 0x9010, AT_STATE = 0x9018, AT_CPUS = 0x9020,
    AT_INIT = 0xa000, AT_PRB = 0xb000, AT_LOG = 0xb008,
    AT_DESCS = 0xb100, AT_INFOS = 0xb400, AT_LOG_TEXT = 0xc000,
    AT_FILL = 0x10000, AT_TABLES = 0x30000,
};

/* Offset of stack_canary in struct task_struct, in bytes */
#define TASK_CANARY 64u

/*
 * LOG_DESCS: number of the log's descriptors. The others: sizes, and offsets in
 * the structures of the log, in bytes
 */
enum {
    LOG_DESCS = 16, LOG_TEXT = 4096, DESC_SIZE = 24, INFO_SIZE = 88,
    LOG_AT_DESCS = 8, LOG_AT_INFOS = 16, LOG_AT_HEAD = 24, LOG_AT_TAIL = 32,
    LOG_AT_TEXT_BITS = 40, LOG_AT_TEXT = 48,
};
#define LOG_ID_MASK (UINT64_MAX >> 2)
#define LOG_NO_ID   ((-(uint64_t)LOG_DESCS) & LOG_ID_MASK)

static void put32(GByteArray *a, uint32_t v)
{
    uint8_t bytes[4];

    ht_put_le32(bytes, v);
    g_byte_array_append(a, bytes, 4);
}

static void put64(GByteArray *a, uint64_t v)
{
    put32(a, v);
    put32(a, v >> 32);
}

static void align(GByteArray *a)
{
    while (a->len % 8) {
        g_byte_array_append(a, (const uint8_t *)"", 1);
    }
}

void km_add(GArray *symbols, uint64_t addr, char type, const char *name)
{
    KmSymbol s = { .addr = addr, .type = type };

    g_strlcpy(s.name, name, sizeof(s.name));
    g_array_append_val(symbols, s);
}

void km_fill(GArray *symbols, uint64_t addr, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("sys_call_%u", i);

        km_add(symbols, addr + 16 * i, 't', name);
    }
}

/* Append a symbol's type and name: the number of tokens, then the tokens */
static void put_name(GByteArray *out, const KmSymbol *s)
{
    g_autofree char *text = g_strdup_printf("%c%s", s->type, s->name);
    g_autoptr(GByteArray) tokens = g_byte_array_new();
    const char *p = text;
    uint8_t len[2], c;

    while (*p) {
        if (g_str_has_prefix(p, TOKEN_TEXT)) {
            c = TOKEN;
            p += strlen(TOKEN_TEXT);
        } else {
            c = *p++;
        }
        g_byte_array_append(tokens, &c, 1);
    }
    len[0] = tokens->len < 128 ? tokens->len : (tokens->len & 127) | 128;
    len[1] = tokens->len >> 7;
    g_byte_array_append(out, len, tokens->len < 128 ? 1 : 2);
    g_byte_array_append(out, tokens->data, tokens->len);
}

static void put_offsets(GByteArray *out, const GArray *symbols,
                        KmLayout layout, uint64_t text)
{
    uint64_t place;
    unsigned i;

    align(out);
    place = text + out->len;
    for (i = 0; i < symbols->len; i++) {
        uint64_t addr = g_array_index(symbols, KmSymbol, i).addr;

        if (layout == KM_7_2) {
            put32(out, addr - (place + 4 * i));
        } else if (layout == KM_6_12) {
            put32(out, addr - text);
        } else {
            put32(out, addr >> 63 ? text - 1 - addr : addr);
        }
    }
    align(out);
    if (layout != KM_7_2) {
        put64(out, text);
    }
}

void km_kallsyms(GByteArray *out, const GArray *symbols, KmLayout layout,
                 uint64_t text)
{
    bool early = layout == KM_5_10 || layout == KM_6_1_DEBIAN;
    g_autoptr(GArray) markers = g_array_new(false, false, sizeof(uint32_t));
    uint16_t places[256];
    uint32_t names;
    unsigned i;

    if (early) {
        put_offsets(out, symbols, layout, text);
    }
    align(out);
    put32(out, symbols->len);
    align(out);
    names = out->len;
    for (i = 0; i < symbols->len; i++) {
        if (i % 256 == 0) {
            uint32_t at = out->len - names;

            g_array_append_val(markers, at);
        }
        put_name(out, &g_array_index(symbols, KmSymbol, i));
    }
    align(out);
    for (i = 0; i < markers->len; i++) {
        put32(out, g_array_index(markers, uint32_t, i));
    }
    align(out);
    for (i = 0; layout == KM_6_1_DEBIAN && i < symbols->len; i++) {
        uint8_t seq[3] = { i >> 16, i >> 8, i };

        g_byte_array_append(out, seq, 3);
    }
    align(out);
    names = out->len;
    for (i = 0; i < 256; i++) {
        char one[2] = { g_ascii_isgraph(i) ? i : 0, 0 };
        const char *token = i == TOKEN ? TOKEN_TEXT : one;

        places[i] = out->len - names;
        g_byte_array_append(out, (const uint8_t *)token, strlen(token) + 1);
    }
    align(out);
    for (i = 0; i < 256; i++) {
        uint8_t bytes[2];

        ht_put_le16(bytes, places[i]);
        g_byte_array_append(out, bytes, 2);
    }
    if (!early) {
        put_offsets(out, symbols, layout, text);
    }
}

static void make_log_types(BtfMake *m, uint32_t u32, uint32_t u64)
{
    uint32_t u8 = bm_int(m, "unsigned char", 1, false);
    uint32_t u16 = bm_int(m, "short unsigned int", 2, false);
    uint32_t descs, text;

    text = bm_struct(m, "prb_data_blk_lpos", 16);
    bm_member(m, "begin", u64, 0);
    bm_member(m, "next", u64, 8);
    bm_struct(m, "prb_desc", DESC_SIZE);
    bm_member(m, "state_var", u64, 0);
    bm_member(m, "text_blk_lpos", text, 8);
    bm_struct(m, "printk_info", INFO_SIZE);
    bm_member(m, "seq", u64, 0);
    bm_member(m, "ts_nsec", u64, 8);
    bm_member(m, "text_len", u16, 16);
    bm_member(m, "facility", u8, 18);
    bm_member(m, "level", u8, 19);
    bm_member(m, "caller_id", u32, 20);
    descs = bm_struct(m, "prb_desc_ring", LOG_AT_TEXT_BITS);
    bm_member(m, "count_bits", u32, 0);
    bm_member(m, "descs", u64, LOG_AT_DESCS);
    bm_member(m, "infos", u64, LOG_AT_INFOS);
    bm_member(m, "head_id", u64, LOG_AT_HEAD);
    bm_member(m, "tail_id", u64, LOG_AT_TAIL);
    text = bm_struct(m, "prb_data_ring", 16);
    bm_member(m, "size_bits", u32, 0);
    bm_member(m, "data", u64, LOG_AT_TEXT - LOG_AT_TEXT_BITS);
    bm_struct(m, "printk_ringbuffer", LOG_AT_TEXT_BITS + 16);
    bm_member(m, "desc_ring", descs, 0);
    bm_member(m, "text_data_ring", text, LOG_AT_TEXT_BITS);
}

static GBytes *make_btf(uint32_t xtime)
{
    uint32_t u32, u64;
    BtfMake m;

    bm_init(&m);
    u32 = bm_int(&m, "unsigned int", 4, false);
    u64 = bm_int(&m, "long unsigned int", 8, false);
    bm_struct(&m, "seqcount", 4);
    bm_member(&m, "sequence", u32, 0);
    bm_type(&m, "seqcount_raw_spinlock_t", BM_TYPEDEF, 0, false, 3);
    bm_struct(&m, "timekeeper", 256);
    bm_member(&m, "xtime_sec", u64, xtime);
    bm_struct(&m, "task_struct", 128);
    bm_member(&m, "stack_canary", u64, TASK_CANARY);
    make_log_types(&m, u32, u64);
    return bm_finish(&m);
}

static int by_address(const void *a, const void *b)
{
    const KmSymbol *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

void km_kernel(KmKernel *k, uint32_t timekeeper, bool with_btf)
{
    static const struct {
        uint64_t at;
        const char *name;
    } parts[] = {
        { 0, "_text" }, { AT_BANNER, "linux_banner" },
        { AT_TABLE, "sys_call_table" }, { AT_READ, "__x64_sys_read" },
        { AT_TOP, "init_top_pgt" }, { AT_L3, "level3_kernel_pgt" },
        { AT_L2, "level2_kernel_pgt" }, { AT_TK, "tk_core" },
        { AT_JIFFIES, "jiffies_64" }, { AT_DIRECT, "page_offset_base" },
        { AT_MAX_PFN, "max_pfn" }, { AT_CPUS, "nr_cpu_ids" },
        { AT_STATE, "system_state" },
        { AT_INIT, "init_task" }, { AT_PRB, "prb" }, { KM_SIZE, "_end" },
    };
    /* the name of the kernel's builder is not ASCII */
    static const char banner[] = "Linux version 6.12.0-test (\u00fc@y) #1\n";
    g_autoptr(GArray) symbols = g_array_new(false, false, sizeof(KmSymbol));
    g_autoptr(GBytes) btf = make_btf(timekeeper), copy = NULL;
    g_autoptr(GError) error = NULL;
    unsigned i;

    km_fill(symbols, KM_TEXT + AT_FILL, 2500);
    for (i = 0; i < G_N_ELEMENTS(parts); i++) {
        km_add(symbols, KM_TEXT + parts[i].at, 'D', parts[i].name);
    }
    km_add(symbols, 0x1000, 'A', "a_percpu_variable");
    g_array_sort(symbols, by_address);

    k->bytes = g_byte_array_new();
    g_byte_array_set_size(k->bytes, AT_TABLES);
    memset(k->bytes->data, 0, k->bytes->len);
    k->bytes->data[0] = 0xfc;   /* the scan skips a page of zeroes at _text */
    memcpy(k->bytes->data + AT_BANNER, banner, sizeof(banner));
    ht_put_le64(k->bytes->data + AT_TABLE, KM_TEXT + AT_READ);
    km_kallsyms(k->bytes, symbols, KM_5_10, KM_TEXT);
    align(k->bytes);
    if (with_btf) {
        g_byte_array_append(k->bytes, g_bytes_get_data(btf, NULL),
                            g_bytes_get_size(btf));
    }
    g_assert_cmpuint(k->bytes->len, <=, KM_SIZE);
    copy = g_bytes_new(k->bytes->data, k->bytes->len);
    k->image = ht_kernel_image_from_memory(copy, HT_MACHINE_X86_64, KM_TEXT,
                                           &error);
    g_assert_no_error(error);
    g_assert_true(!ht_kernel_image_btf(k->image) == !with_btf);
    k->seconds = AT_TK + 8 + timekeeper;
    k->jiffies = AT_JIFFIES;
    k->canary = AT_INIT + TASK_CANARY;
}

void km_kernel_free(KmKernel *k)
{
    g_byte_array_unref(k->bytes);
    ht_kernel_image_unref(k->image);
}

static void place_log(uint8_t *kernel, uint64_t slide)
{
    uint8_t *log = kernel + AT_LOG;
    unsigned i;

    ht_put_le64(kernel + AT_PRB, KM_TEXT + slide + AT_LOG);
    ht_put_le32(log, __builtin_ctz(LOG_DESCS));
    ht_put_le64(log + LOG_AT_DESCS, KM_TEXT + slide + AT_DESCS);
    ht_put_le64(log + LOG_AT_INFOS, KM_TEXT + slide + AT_INFOS);
    ht_put_le64(log + LOG_AT_HEAD, LOG_NO_ID);
    ht_put_le64(log + LOG_AT_TAIL, LOG_NO_ID);
    ht_put_le32(log + LOG_AT_TEXT_BITS, __builtin_ctz(LOG_TEXT));
    ht_put_le64(log + LOG_AT_TEXT, KM_TEXT + slide + AT_LOG_TEXT);
    for (i = 0; i < LOG_DESCS; i++) {
        /* the state "reusable" */
        ht_put_le64(kernel + AT_DESCS + i * DESC_SIZE, 3ull << 62 | LOG_NO_ID);
    }
}

void km_print(uint8_t *kernel, uint64_t ns, const char *text)
{
    uint64_t id = (ht_get_le64(kernel + AT_LOG + LOG_AT_HEAD) + 1) &
                  LOG_ID_MASK;
    unsigned seq = (id - LOG_NO_ID - 1) & LOG_ID_MASK, len = strlen(text);
    unsigned size = LOG_TEXT / LOG_DESCS;
    uint8_t *desc = kernel + AT_DESCS + id % LOG_DESCS * DESC_SIZE;
    uint8_t *info = kernel + AT_INFOS + id % LOG_DESCS * INFO_SIZE;
    uint8_t *block = kernel + AT_LOG_TEXT + seq * size;

    g_assert_cmpuint(seq, <, LOG_DESCS);
    g_assert_cmpuint(len, <=, size - 8);
    ht_put_le64(kernel + AT_LOG + LOG_AT_HEAD, id);
    ht_put_le64(block, id);
    memcpy(block + 8, text, len);
    ht_put_le64(desc + 8, seq * size);
    ht_put_le64(desc + 16, (seq + 1) * size);
    ht_put_le64(info, seq);
    ht_put_le64(info + 8, ns);
    ht_put_le16(info + 16, len);
    /* the state "final" */
    ht_put_le64(desc, 2ull << 62 | id);
}

void km_place(const KmKernel *k, uint8_t *ram, uint64_t size, uint64_t phys,
              uint64_t slide, uint64_t seconds)
{
    uint8_t *p = ram + phys;
    unsigned i;

    g_assert_cmpuint(phys + KM_SIZE, <=, size);
    memset(p, 0, KM_SIZE);
    memcpy(p, k->bytes->data, k->bytes->len);
    ht_put_le64(p + AT_TABLE, KM_TEXT + AT_READ + slide);
    /* map the kernel's own 2 MiB, and 1 GiB of the direct map */
    ht_put_le64(p + AT_TOP + 511 * 8, (phys + AT_L3) | 0x63);
    ht_put_le64(p + AT_L3 + 510 * 8, (phys + AT_L2) | 0x63);
    i = (KM_TEXT + slide - X86_LINK) >> 21;
    ht_put_le64(p + AT_L2 + i * 8, phys | 0xe3);
    ht_put_le64(p + AT_TOP + (DIRECT >> 39 & 511) * 8,
                (phys + AT_DIRECT_L3) | 0x63);
    ht_put_le64(p + AT_DIRECT_L3, 0 | 0xe3);
    ht_put_le64(p + AT_DIRECT, DIRECT);
    ht_put_le64(p + k->seconds, seconds);
    ht_put_le64(p + AT_JIFFIES, seconds * 250);
    ht_put_le64(p + AT_MAX_PFN, size >> 12);
    ht_put_le32(p + AT_STATE, 2);
    ht_put_le64(p + k->canary, 0x1234567 + phys + seconds);
    ht_put_le32(p + AT_CPUS, 2);
    place_log(p, slide);
}

void km_map(uint8_t *ram, uint64_t phys, uint64_t *free, uint64_t addr,
            uint64_t to)
{
    uint8_t *table = ram + phys + AT_TOP;
    int level;

    for (level = 3; level > 0; level--) {
        uint8_t *entry = table + (addr >> (12 + 9 * level) & 511) * 8;

        if (!(ht_get_le64(entry) & 1)) {
            memset(ram + *free, 0, 4096);
            ht_put_le64(entry, *free | 0x63);
            *free += 4096;
        }
        table = ram + (ht_get_le64(entry) & ~UINT64_C(4095));
    }
    ht_put_le64(table + (addr >> 12 & 511) * 8, to | 0x63);
}
