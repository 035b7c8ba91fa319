/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: writing and reading the events of a run
 */
#include "hypertrace/base.h"
#include "hypertrace/run.h"

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

bool ht_run_next(HtRunIter *it, HtEvent *ev)
{
    uint32_t id;

    if (it->p == it->end) {
        return false;
    }
    if (G_LIKELY(it->p[0] < HT_ID_WIDE)) {
        uint32_t header = ht_get_le32(it->p);

        id = header & 0xff;
        it->ns += ((header >> 8) - (uint32_t)it->ns) & HT_CLOCK_MASK;
        it->p += HT_EVENT_HEADER;
    } else if (it->p[0] == HT_ID_WIDE) {
        uint32_t stamp = ht_get_le32(it->p + 2) >> 8;

        id = ht_get_le16(it->p + 1);
        it->ns += (stamp - (uint32_t)it->ns) & HT_CLOCK_MASK;
        it->p += HT_EVENT_HEADER_WIDE;
    } else {
        id = ht_get_le32(it->p + 1);
        it->ns = ht_get_le64(it->p + 5);
        it->p += HT_EVENT_HEADER_EXT;
    }
    /* ht_walk() found both valid; the run is private to the host. */
    ev->cls = it->classes->by_id[id];
    ev->ns = it->ns;
    ev->payload = it->p;
    ev->size = ht_class_payload(ev->cls, it->p, it->end - it->p);
    it->p += ev->size;
    return true;
}
