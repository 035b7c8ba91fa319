/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target log: format events as text. For any content of a guest's fields,
 * the text of an event is one line of valid UTF-8, and each character before
 * the newline is printable.
 */
#include "hypertrace/base.h"
#include "hypertrace/log-format.h"
#include "fuzz.h"

static void check_line(const char *text, size_t size, const HtEvent *ev)
{
    const char *p = text, *end = text + size - 1;

    g_assert_cmpuint(size, >, 0);
    g_assert_cmpint(*end, ==, '\n');
    g_assert_nonnull(strstr(text, ev->cls->name));
    g_assert_true(g_utf8_validate(text, size, NULL));
    while (p < end) {
        g_assert_true(g_unichar_isprint(g_utf8_get_char(p)));
        p = g_utf8_next_char(p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t ids[] = {
        CT_NUMBER, CT_TEXT, CT_SEQUENCE, CT_EMPTY, FUZZ_MANY,
    };
    FuzzInput in = fuzz_input(data, size);
    HtStreamInfo stream = { .index = fuzz_u8(&in), .vcpu = fuzz_u8(&in) - 1 };

    while (fuzz_more(&in)) {
        HtEvent ev = {
            .cls = ht_class_table_get(fuzz_classes(),
                                      ids[fuzz_u8(&in) % G_N_ELEMENTS(ids)]),
            .ns = fuzz_number(&in),
        };
        ssize_t payload = fuzz_payload(ev.cls, in.p, in.end - in.p);
        g_autofree uint8_t *copy = NULL;
        char *text = NULL;
        size_t length;
        FILE *f;

        if (payload < 0) {
            break;
        }
        copy = fuzz_copy(in.p, payload);
        in.p += payload;
        ev.payload = copy;
        ev.size = payload;
        f = open_memstream(&text, &length);
        g_assert_nonnull(f);
        ht_log_event(f, "ht0", &stream, &ev);
        fclose(f);
        check_line(text, length, &ev);
        free(text);
    }
    return 0;
}
