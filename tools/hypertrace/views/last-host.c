/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: split the times at the end of a guest by what the host did
 */
#include <inttypes.h>

#include "cli/number.h"
#include "views/last.h"

void ht_last_host(HtLast *l, HtHostSplit *host)
{
    uint64_t ended = g_ascii_strtoull(ht_model_info(l->m, "recording",
                                                    "ended-monotonic"),
                                      NULL, 10);
    unsigned i;

    l->host = host;
    for (i = 0; i < l->cpus->len; i++) {
        HtLastCpu *c = &g_array_index(l->cpus, HtLastCpu, i);
        uint64_t since = ht_running_cpu(l->running, c->number)->since;

        ht_host_split_add(host, l->boot, l->segment, c->number, since, c->last,
                          &c->ran);
        /*
         * The silence lasts up to the recording's end or, for an earlier boot,
         * up to the boot's last event: the time after it may be the next
         * boot's.
         */
        if (l->boot == l->boots) {
            ht_host_split_since(host, l->boot, l->segment, c->number, c->last,
                                ended, &c->silent);
        } else {
            ht_host_split_add(host, l->boot, l->segment, c->number, c->last,
                              l->end, &c->silent);
        }
    }
    if (l->busy.to) {
        ht_host_split_add(host, l->boot, l->busy.segment, l->busy.cpu,
                          l->busy.from, l->busy.to, &l->busy_split);
    }
}

static void put_row(HtOutput *o, uint32_t cpu, const char *what,
                    const HtSplit *split)
{
    uint64_t all = ht_host_split_total(split);
    unsigned i;

    if (!all) {
        return;
    }
    g_string_append_printf(o->text, " %3" PRIu32 "  %-17s ", cpu, what);
    ht_number_duration(o->text, all, 11);
    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        ht_host_split_share(split, i, o);
    }
    g_string_append_c(o->text, '\n');
}

void ht_last_host_text(const HtLast *l, HtOutput *o)
{
    unsigned i;

    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append(o->text, "\n CPU  by the host              time");
    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        g_string_append_printf(o->text, " %9s", ht_host_split_name(i));
    }
    g_string_append_c(o->text, '\n');
    ht_output_colour(o, HT_COLOUR_NONE);
    for (i = 0; i < l->cpus->len && ht_output_room(o); i++) {
        const HtLastCpu *c = &g_array_index(l->cpus, HtLastCpu, i);

        put_row(o, c->number, "since last event", &c->silent);
        put_row(o, c->number, "ran for", &c->ran);
    }
    put_row(o, l->busy.cpu, "longest silence", &l->busy_split);
    ht_host_split_error(l->host, o);
}
