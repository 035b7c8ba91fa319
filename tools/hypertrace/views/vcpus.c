/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace vcpus: show what the host did with the vCPUs of its guests
 */
#include <inttypes.h>

#include "cli/command.h"
#include "cli/number.h"
#include "views/host-view.h"

static const char *const states[] = {
    "running", "runnable", "blocked", "offline",
};

static gint number_less(gconstpointer a, gconstpointer b)
{
    unsigned x = GPOINTER_TO_UINT(a), y = GPOINTER_TO_UINT(b);

    return x < y ? -1 : x > y;
}

static void put_states(const HtHostView *h, HtOutput *o)
{
    const HtRunstates *x = h->x;
    unsigned i, k;

    ht_output_heading(o, "vCPU                running        runnable"
                      "         blocked         offline         unknown"
                      "  switches");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        ht_host_view_vcpu(v, o);
        for (k = 0; k < HT_RUN_STATES; k++) {
            ht_host_view_share(h, o, v->ticks[k], ht_host_view_total(v));
        }
        ht_host_view_share(h, o, v->unknown, ht_host_view_total(v));
        g_string_append_printf(o->text, " %9" PRIu64 "\n",
                               v->intervals[HT_RUN_RUNNING]);
    }
    g_string_append_c(o->text, '\n');
    ht_output_heading(o, "Runnable since      preempted          woken");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        ht_host_view_vcpu(v, o);
        ht_host_view_share(h, o, v->preempted, v->ticks[HT_RUN_RUNNABLE]);
        ht_host_view_share(h, o, v->woken, v->ticks[HT_RUN_RUNNABLE]);
        g_string_append_c(o->text, '\n');
    }
}

static void put_exits(const HtHostView *h, HtOutput *o)
{
    const HtRunstates *x = h->x;
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        g_autoptr(GList) exits = ht_runstates_exits(v);
        GList *l;

        for (l = exits; l; l = l->next) {
            const HtExitSums *e = l->data;
            uint64_t p99;

            if (!e->count) {
                continue;
            }
            if (!any) {
                g_string_append_c(o->text, '\n');
                ht_output_heading(o, "vCPU         exit reason           "
                                  " number    total     mean     99 %"
                                  "      max");
                any = true;
            }
            ht_host_view_vcpu(v, o);
            if (*e->name) {
                ht_output_padded(o, e->name, 20);
            } else {
                g_string_append_printf(o->text, "0x%-18" PRIx32, e->reason);
            }
            g_string_append_printf(o->text, " %9" PRIu64, e->count);
            ht_number_duration(o->text, ht_host_view_ns(h, e->ticks), 9);
            ht_number_duration(o->text,
                               ht_host_view_ns(h, e->ticks / e->count), 9);
            p99 = ht_runstates_percentile(e, 99);
            ht_number_duration(o->text, ht_host_view_ns(h, p99), 9);
            ht_number_duration(o->text, ht_host_view_ns(h, e->max), 9);
            g_string_append_c(o->text, '\n');
        }
    }
}

static void put_calls(const HtHostView *h, HtOutput *o)
{
    const HtRunstates *x = h->x;
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        g_autoptr(GList) calls = g_list_sort(
            g_hash_table_get_keys(v->hypercalls), number_less);
        GList *l;

        for (l = calls; l; l = l->next) {
            const uint64_t *n = g_hash_table_lookup(v->hypercalls, l->data);

            if (!any) {
                g_string_append_c(o->text, '\n');
                ht_output_heading(o, "vCPU         hypercall    number");
                any = true;
            }
            ht_host_view_vcpu(v, o);
            g_string_append_printf(o->text, " %9u %9" PRIu64 "\n",
                                   GPOINTER_TO_UINT(l->data), *n);
        }
    }
}

static void put_host_states(const HtHostView *h, HtOutput *o)
{
    const HtRunstates *x = h->x;
    unsigned i;

    ht_output_heading(o, "vCPU                  guest           exits"
                      "            QEMU       preempted           woken"
                      "          halted         waiting         unknown");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        const uint64_t parts[] = {
            v->modes[HT_MODE_GUEST], v->modes[HT_MODE_EXIT],
            v->modes[HT_MODE_VMM], v->preempted, v->woken, v->halted,
            v->ticks[HT_RUN_BLOCKED] - v->halted, ht_host_view_unknown(v),
        };
        unsigned k;

        ht_host_view_vcpu(v, o);
        for (k = 0; k < G_N_ELEMENTS(parts); k++) {
            ht_host_view_share(h, o, parts[k], ht_host_view_total(v));
        }
        g_string_append_c(o->text, '\n');
    }
}

static void put_text(const HtHostView *h, HtOutput *o)
{
    ht_host_view_summary(h, o);
    if (h->xentrace) {
        put_states(h, o);
    } else {
        put_host_states(h, o);
    }
    ht_host_view_takers(h, o);
    put_exits(h, o);
    put_calls(h, o);
}

static void json_host(HtJson *j, const HtVcpuSums *v)
{
    ht_json_uint(j, "guest_ns", v->modes[HT_MODE_GUEST]);
    ht_json_uint(j, "exits_ns", v->modes[HT_MODE_EXIT]);
    ht_json_uint(j, "qemu_ns", v->modes[HT_MODE_VMM]);
    ht_json_uint(j, "halted_ns", v->halted);
    ht_json_uint(j, "waiting_ns", v->ticks[HT_RUN_BLOCKED] - v->halted);
}

static void json_vcpu(const HtHostView *h, HtJson *j, const HtVcpuSums *v)
{
    g_autoptr(GList) exits = ht_runstates_exits(v);
    g_autoptr(GList) calls = g_list_sort(g_hash_table_get_keys(v->hypercalls),
                                         number_less);
    GList *l;
    unsigned i;

    ht_json_open(j, NULL, '{');
    if (v->tid) {
        ht_json_uint(j, "process", v->machine);
        ht_json_int(j, "vcpu", v->vcpu);
        ht_json_uint(j, "thread", v->tid);
        json_host(j, v);
    } else {
        ht_json_uint(j, "domain", v->machine);
        ht_json_int(j, "vcpu", v->vcpu);
        ht_json_bool(j, "idle", v->machine == HT_XEN_IDLE);
    }
    ht_host_view_takers_json(h, j, v);
    for (i = 0; i < HT_RUN_STATES; i++) {
        ht_json_open(j, states[i], '{');
        ht_json_uint(j, "ns", ht_host_view_ns(h, v->ticks[i]));
        ht_json_uint(j, "intervals", v->intervals[i]);
        ht_json_close(j, '}');
    }
    ht_json_uint(j, "preempted_ns", ht_host_view_ns(h, v->preempted));
    ht_json_uint(j, "woken_ns", ht_host_view_ns(h, v->woken));
    ht_json_uint(j, "unknown_ns", ht_host_view_ns(h, ht_host_view_unknown(v)));
    ht_json_uint(j, "open_exits", v->open_exits);
    ht_json_open(j, "exits", '[');
    for (l = exits; l; l = l->next) {
        const HtExitSums *e = l->data;

        if (e->count) {
            ht_json_open(j, NULL, '{');
            ht_json_uint(j, "reason", e->reason);
            if (v->tid) {
                ht_json_str(j, "name", e->name);
            }
            ht_json_uint(j, "number", e->count);
            ht_json_uint(j, "ns", ht_host_view_ns(h, e->ticks));
            ht_json_uint(j, "mean_ns", ht_host_view_ns(h, e->ticks / e->count));
            ht_json_uint(j, "p99_ns",
                         ht_host_view_ns(h, ht_runstates_percentile(e, 99)));
            ht_json_uint(j, "max_ns", ht_host_view_ns(h, e->max));
            ht_json_close(j, '}');
        }
    }
    ht_json_close(j, ']');
    ht_json_open(j, "hypercalls", '[');
    for (l = calls; l; l = l->next) {
        const uint64_t *n = g_hash_table_lookup(v->hypercalls, l->data);

        ht_json_open(j, NULL, '{');
        ht_json_uint(j, "hypercall", GPOINTER_TO_UINT(l->data));
        ht_json_uint(j, "number", *n);
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
    ht_json_close(j, '}');
}

static void put_json(const HtHostView *h, HtOutput *o)
{
    HtJson j = { .out = o->text };
    unsigned i;

    ht_json_begin(&j);
    ht_host_view_json(h, &j);
    ht_json_open(&j, "vcpus", '[');
    for (i = 0; i < h->x->vcpus->len && ht_output_room(o); i++) {
        json_vcpu(h, &j, h->x->vcpus->pdata[i]);
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

int ht_vcpus(int argc, char **argv)
{
    HtHostView h = { 0 };
    GError *error = NULL;
    HtOutput o;
    int status;
    bool ok;

    if (ht_host_view_parse(&h, &argc, argv, "Show what the host did with the"
                           " vCPUs of its guests.", HT_VIEW_TIME |
                           HT_VIEW_OUTPUT, &status)) {
        ht_view_output(&h.v, &o);
        ok = ht_host_view_read(&h, NULL, NULL, &error);
        if (ok && h.v.json) {
            put_json(&h, &o);
        } else if (ok) {
            put_text(&h, &o);
        }
        status = ht_view_finish(&o, ok, error);
    }
    ht_host_view_free(&h);
    return status;
}
