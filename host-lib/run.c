/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: writing and reading the events of a run
 */
#include "hypertrace/base.h"
#include "hypertrace/run.h"

void ht_run_put_header(GByteArray *out, uint32_t id, uint64_t ns,
                       uint64_t last_ns)
{
    uint8_t head[HT_EVENT_HEADER_EXT];

    if (id < HT_ID_EXTENDED && ns - last_ns <= HT_CLOCK_MASK / 2) {
        ht_put_le32(head, (uint32_t)ns << 8 | id);
        g_byte_array_append(out, head, HT_EVENT_HEADER);
    } else {
        head[0] = HT_ID_EXTENDED;
        ht_put_le32(head + 1, id);
        ht_put_le64(head + 5, ns);
        g_byte_array_append(out, head, HT_EVENT_HEADER_EXT);
    }
}

bool ht_run_next(HtRunIter *it, HtEvent *ev)
{
    uint32_t id;

    if (it->p == it->end) {
        return false;
    }
    if (it->p[0] != HT_ID_EXTENDED) {
        uint32_t header = ht_get_le32(it->p);

        id = header & 0xff;
        it->ns += ((header >> 8) - (uint32_t)it->ns) & HT_CLOCK_MASK;
        it->p += HT_EVENT_HEADER;
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
