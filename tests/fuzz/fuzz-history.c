/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages and texts as a guest's module may send them: a recording of what is
 * right in them is whole, and has as many events as were counted
 */
#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-history.h"
#include "hypertrace/ftrace-page.h"
#include "fuzz.h"

#define CPUS 4

static char *dir;

static void clear(void)
{
    static const char * const names[] = {
        "info", "cpu0", "cpu1", "cpu2", "cpu3", "cpu1023",
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        unlink(path);
    }
}

/* A page whose head is right, or any bytes */
static void put_page(FuzzInput *in, HtFtHistory *h, uint8_t what)
{
    FuzzInput raw = fuzz_slice(in, fuzz_bits(in, 2));
    size_t left = raw.end - raw.p;
    g_autoptr(GByteArray) page = g_byte_array_new();
    uint32_t cpu = what >> 2 & (CPUS - 1), seq = fuzz_u8(in);
    uint64_t head[2] = { fuzz_number(in), left };
    g_autofree uint8_t *copy = NULL;

    if (what & 16) {
        head[1] |= HT_FT_MISSED_EVENTS;
    }
    if (!(what & 32)) {
        g_byte_array_append(page, (uint8_t *)head, sizeof(head));
    }
    if (what & 64) {
        cpu = what & 128 ? 1023 : fuzz_number(in) | 1024;
    }
    g_byte_array_append(page, raw.p, left);
    copy = fuzz_copy(page->data, page->len);
    g_assert_true(ht_ft_history_page(h, cpu, seq, copy, page->len, NULL));
}

static void put_text(FuzzInput *in, HtFtHistory *h)
{
    FuzzInput name = fuzz_slice(in, fuzz_u8(in));
    FuzzInput part = fuzz_slice(in, fuzz_bits(in, 2));
    g_autofree char *text = g_strndup((char *)name.p, name.end - name.p);
    g_autofree char *copy = fuzz_copy(part.p, part.end - part.p);
    uint32_t offset = fuzz_number(in);

    ht_ft_history_text(h, text, offset, fuzz_number(in), copy,
                       part.end - part.p);
}

static void check(const HtFtHistory *h)
{
    HtFtHistoryStats stats = ht_ft_history_stats(h);
    GString *text = ht_ft_history_formats(h);
    g_autoptr(HtFtFormats) formats = NULL;
    g_autoptr(HtRecording) r = NULL;
    uint64_t events = 0;
    HtRecEvent ev;

    g_assert_cmpuint(text->len, <=, HT_FT_FORMATS_MAX);
    formats = ht_ft_formats_parse(text->str, text->len, NULL);
    g_string_free(text, true);
    r = ht_rec_open(dir, NULL);
    g_assert_nonnull(r);
    while (ht_rec_next(r, &ev)) {
        events++;
    }
    g_assert_cmpuint(events, ==, stats.events);
    g_assert_cmpuint(ht_rec_damaged(r), ==, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    g_autoptr(HtFtHistory) h = NULL;
    HtRecWriter *w;

    if (!dir) {
        dir = g_dir_make_tmp("fuzz-history-XXXXXX", NULL);
    }
    clear();
    w = ht_rec_writer_new(dir, NULL);
    g_assert_nonnull(w);
    h = ht_ft_history_new(w);
    while (fuzz_more(&in)) {
        uint8_t what = fuzz_u8(&in);

        switch (what & 3) {
        case 0:
            ht_ft_history_begin(h);
            break;
        case 1:
            put_text(&in, h);
            break;
        default:
            put_page(&in, h, what);
        }
    }
    g_assert_true(ht_rec_writer_file(w, "info", "[recording]\nversion=1\n", -1,
                                     NULL));
    ht_rec_writer_free(w);
    check(h);
    return 0;
}
