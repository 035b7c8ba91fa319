/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an ftrace ring that a guest's module sent, as a recording
 */
#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-history.h"
#include "hypertrace/ftrace-page.h"
#include "hypertrace/ftrace-ring.h"

/* As readers of recordings have it */
#define PAGE_MAX 65536u

/* Of a format */
#define TEXT_MAX (1u << 20)

typedef struct Cpu {
    uint32_t next;              /* the number of the next page */
    bool lost;                  /* records before it are missing */
    uint64_t end_ns;
} Cpu;

struct HtFtHistory {
    HtRecWriter *w;
    bool begun;
    uint32_t epoch;
    Cpu cpus[HT_FT_CPUS_MAX];
    GHashTable *texts;          /* system:event: GString, whole ones */
    size_t texts_size;
    char *name;                 /* of the text that comes, or NULL */
    GString *text;
    HtFtHistoryStats stats;
};

HtFtHistory *ht_ft_history_new(HtRecWriter *w)
{
    HtFtHistory *h = g_new0(HtFtHistory, 1);

    h->w = w;
    h->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    h->text = g_string_new(NULL);
    return h;
}

void ht_ft_history_free(HtFtHistory *h)
{
    if (h) {
        g_hash_table_destroy(h->texts);
        g_string_free(h->text, true);
        g_free(h->name);
        g_free(h);
    }
}

/* Processors whose last events are missing */
static uint64_t open_gaps(const HtFtHistory *h)
{
    uint64_t n = 0;
    unsigned i;

    for (i = 0; i < HT_FT_CPUS_MAX; i++) {
        n += h->cpus[i].lost;
    }
    return n;
}

uint32_t ht_ft_history_begin(HtFtHistory *h)
{
    h->stats.gaps += open_gaps(h);
    if (h->begun && h->epoch < HT_FT_HISTORY_MAX - 1) {
        h->epoch++;
    }
    h->begun = true;
    memset(h->cpus, 0, sizeof(h->cpus));
    return h->epoch;
}

/* Up to the end, or to a record that is none */
static void walk(HtFtPiece *p)
{
    HtFtRecord rec;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    p->begin_ns = p->base_ns;
    while (ht_ft_iter_next(&it, &rec) == HT_FT_EVENT) {
        if (p->events++ == 0) {
            p->begin_ns = rec.ns;
        }
    }
    p->end_ns = it.ns;
    p->size = it.pos & ~3u;
}

bool ht_ft_history_page(HtFtHistory *h, uint32_t cpu, uint32_t seq,
                        const uint8_t *page, size_t size, GError **error)
{
    HtFtPage head;
    HtFtPiece p;
    bool whole;
    Cpu *c;

    if (cpu >= HT_FT_CPUS_MAX || size > PAGE_MAX) {
        h->stats.bad++;
        return true;
    }
    c = &h->cpus[cpu];
    c->lost |= seq != c->next;
    c->next = seq + 1;
    if (!ht_ft_page_parse(page, size, &head)) {
        h->stats.bad++;
        c->lost = true;
        return true;
    }
    p = (HtFtPiece) {
        .cpu = cpu,
        .slot = seq,
        .size = head.size,
        .data = page + HT_FT_PAGE_HEADER,
        .stamp = head.stamp,
        .base_ns = head.stamp,
        .epoch = h->epoch,
        .flags = c->lost || head.missed ? HT_FT_PIECE_LOST : 0,
        .lost_from_ns = c->end_ns,
        .lost_estimate = head.missed_count,
    };
    walk(&p);
    whole = p.size == (head.size & ~3u);
    c->lost = !whole || (!p.events && p.flags);
    h->stats.bad += !whole;
    if (!p.events) {
        return true;
    }
    c->end_ns = p.end_ns;
    h->stats.events += p.events;
    h->stats.pages++;
    h->stats.gaps += p.flags != 0;
    h->stats.largest = MAX(h->stats.largest, size);
    return ht_rec_writer_piece(h->w, &p, error);
}

/* A name that goes into a line of the formats */
static bool name_ok(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon && colon != name && colon[1] && !strchr(name, '\n') &&
           strlen(name) <= 2 * HT_FT_NAME_MAX;
}

void ht_ft_history_text(HtFtHistory *h, const char *name, uint32_t offset,
                        uint32_t size, const char *part, size_t len)
{
    if (!offset) {
        g_free(h->name);
        h->name = g_strdup(name);
        g_string_truncate(h->text, 0);
    }
    if (!h->name || strcmp(name, h->name) || offset != h->text->len ||
        size > TEXT_MAX || len > size - h->text->len || !name_ok(name)) {
        g_clear_pointer(&h->name, g_free);
        return;
    }
    g_string_append_len(h->text, part, len);
    if (h->text->len < size) {
        return;
    }
    /* The first one stays: a later boot has the same, or sends it again. */
    if (!g_hash_table_contains(h->texts, name) &&
        h->texts_size + size + strlen(name) < HT_FT_FORMATS_MAX / 2) {
        h->texts_size += size + strlen(name);
        g_hash_table_insert(h->texts, g_steal_pointer(&h->name),
                            g_strndup(h->text->str, h->text->len));
    }
    g_clear_pointer(&h->name, g_free);
}

GString *ht_ft_history_formats(const HtFtHistory *h)
{
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(h->texts),
                                         (GCompareFunc)strcmp);
    GString *all = g_string_new(NULL);
    GList *l;

    for (l = names; l; l = l->next) {
        const char *name = l->data;

        g_string_append_printf(all, "system: %.*s\n%s\n",
                               (int)(strchr(name, ':') - name), name,
                               (char *)g_hash_table_lookup(h->texts, name));
    }
    return all;
}

HtFtHistoryStats ht_ft_history_stats(const HtFtHistory *h)
{
    HtFtHistoryStats stats = h->stats;

    stats.gaps += open_gaps(h);
    return stats;
}
