/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: reading the events of a run
 */
#include "hypertrace/base.h"
#include "hypertrace/run.h"

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
