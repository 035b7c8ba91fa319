/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target recording: read a recording of two processors. Its files cpu0 and
 * cpu1 have pieces with any content and partly invalid headers. Events are
 * whole, pages have at most the maximum size, reading by events and reading by
 * pages find equally many events, and dates stay in range.
 */
#include "hypertrace/ftrace-dates.h"
#include "hypertrace/recording.h"
#include "fuzz.h"

static char *dir;

static void put_file(const char *name, const uint8_t *data, size_t size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    FILE *f = fopen(path, "w");

    g_assert_nonnull(f);
    g_assert_cmpuint(fwrite(data, 1, size, f), ==, size);
    fclose(f);
}

static void make_dir(void)
{
    dir = g_dir_make_tmp("fuzz-recording-XXXXXX", NULL);
    g_assert_nonnull(dir);
    put_file("info", (const uint8_t *)"[recording]\nversion=1\n", 22);
}

/*
 * Make pieces from the input, which chooses their data and members of their
 * headers. The magic and the size are right unless the input changes them.
 */
static void make_file(FuzzInput *in, GByteArray *out)
{
    while (fuzz_more(in)) {
        FuzzInput raw = fuzz_slice(in, fuzz_u8(in));
        uint8_t what = fuzz_u8(in);
        HtRecPieceHeader h = {
            .magic = HT_REC_MAGIC,
            .size = raw.end - raw.p,
            .slot = what & 3,
            .from = what & 4 ? fuzz_bits(in, 2) & ~3 : 0,
            .stamp = what & 8 ? fuzz_number(in) : 5,
            .base_ns = what & 16 ? fuzz_number(in) : 5,
            .epoch = what >> 5 & 1,
            .segment = what >> 6 & 1,
            .flags = what >> 7,
        };

        switch (fuzz_u8(in)) {
        case 1:
            h.magic = fuzz_bits(in, 4);
            h.size = fuzz_bits(in, 4);
            break;
        case 2:
            h.host_before = fuzz_number(in);
            h.host_after = fuzz_number(in);
            break;
        case 3:
            h.host_before = fuzz_bits(in, 2);
            h.host_after = h.host_before + fuzz_bits(in, 2);
            break;
        }
        g_byte_array_append(out, (uint8_t *)&h, sizeof(h));
        g_byte_array_append(out, raw.p, raw.end - raw.p);
    }
}

static uint32_t read_events(HtRecording *r)
{
    uint32_t events = 0;
    HtRecEvent ev;

    while (ht_rec_next(r, &ev)) {
        g_free(fuzz_copy(ev.data, ev.size));    /* every byte is readable */
        g_assert_cmpuint(ev.size, >=, HT_FT_EVENT_HEADER);
        g_assert_cmpuint(ev.cpu, <, ht_rec_info(r)->cpus);
        events++;
    }
    return events;
}

static uint32_t read_pages(HtRecording *r)
{
    uint32_t events = 0, cpu;
    HtRecPage p;

    for (cpu = 0; cpu < ht_rec_info(r)->cpus; cpu++) {
        while (ht_rec_next_page(r, cpu, &p)) {
            g_free(fuzz_copy(p.data, p.size));
            g_assert_cmpuint(p.size, >, 0);
            g_assert_cmpuint(p.size, <=, 65536 - HT_FT_PAGE_HEADER);
            events += p.events;
        }
    }
    return events;
}

/* Date the pieces of all processors as if they belonged to one segment */
static void read_dates(HtRecording *r, uint64_t ns)
{
    g_autoptr(HtFtDates) d = ht_ft_dates_new();
    uint64_t host, bound;
    uint32_t cpu;
    HtFtPiece p;

    for (cpu = 0; cpu < ht_rec_info(r)->cpus; cpu++) {
        while (ht_rec_next_piece(r, cpu, &p)) {
            ht_ft_dates_add(d, &p);
        }
    }
    ht_ft_dates_fit(d);
    if (ht_ft_dates_get(d, ns, &host, &bound)) {
        g_assert_cmpuint(host, <=, HT_TIME_MAX_NS);
        g_assert_cmpuint(bound, <=, HT_TIME_MAX_NS);
        g_assert_cmpuint(ht_ft_dates_worst(d, ns), >=, bound);
    } else {
        g_assert_cmpuint(ht_ft_dates_worst(d, ns), ==, UINT64_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    FuzzInput first = fuzz_slice(&in, fuzz_bits(&in, 2));
    g_autoptr(GByteArray) cpu0 = g_byte_array_new();
    g_autoptr(GByteArray) cpu1 = g_byte_array_new();
    g_autoptr(HtRecording) r = NULL;
    uint32_t events;
    uint64_t ns;

    if (!dir) {
        make_dir();
    }
    ns = fuzz_number(&first);
    make_file(&first, cpu0);
    make_file(&in, cpu1);
    put_file("cpu0", cpu0->data, cpu0->len);
    put_file("cpu1", cpu1->data, cpu1->len);
    r = ht_rec_open(dir, NULL);
    g_assert_nonnull(r);
    events = read_events(r);
    ht_rec_rewind(r);
    g_assert_cmpuint(read_pages(r), ==, events);
    ht_rec_rewind(r);
    g_assert_cmpuint(read_events(r), ==, events);
    ht_rec_rewind(r);
    read_dates(r, ns);
    return 0;
}
