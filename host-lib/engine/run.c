/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the headers of a run's events, and check a stream's name
 */
#include "hypertrace/base.h"
#include "hypertrace/run.h"

bool ht_stream_name_copy(char *dst, const void *src)
{
    const uint8_t *s = src;
    size_t len = strnlen(src, HT_STREAM_NAME_MAX), i;

    for (i = 0; i < len; i++) {
        if (s[i] < ' ' || s[i] > '~') {
            return false;
        }
    }
    memcpy(dst, src, len);
    dst[len] = '\0';
    return true;
}

unsigned ht_event_header(uint8_t *p, uint32_t id, uint64_t clock, bool gap)
{
    if (gap) {
        p[0] = HT_ID_EXTENDED;
        ht_put_le32(p + 1, id);
        ht_put_le64(p + 5, clock);
        return HT_EVENT_HEADER_EXT;
    }
    if (id < HT_ID_WIDE) {
        ht_put_le32(p, id | (uint32_t)clock << 8);
        return HT_EVENT_HEADER;
    }
    ht_put_le16(p, HT_ID_WIDE | id << 8);
    ht_put_le32(p + 2, id >> 8 | (uint32_t)clock << 8);
    return HT_EVENT_HEADER_WIDE;
}

void ht_run_put_header(GByteArray *out, uint32_t id, uint64_t ns,
                       uint64_t last_ns)
{
    uint8_t head[HT_EVENT_HEADER_EXT];

    g_byte_array_append(out, head,
                        ht_event_header(head, id, ns,
                                        ns - last_ns > HT_CLOCK_MASK / 2));
}
