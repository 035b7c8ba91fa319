/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find pairs of events
 */
#include <gio/gio.h>
#include <string.h>

#include "hypertrace/pattern.h"
#include "model/gaps.h"
#include "model/kinds.h"
#include "model/pairs.h"
#include "model/patterns.h"

#define WORDS_MAX       4
/*
 * Maximum number of events A that wait for a B: a hostile guest may have any
 * number of events A without a B.
 */
#define WAITING_MAX     (1u << 20)
#define NESTED_MAX      64

enum { FROM, TO };

/* A word of the key; @name has the names of the field in A and in B */
typedef struct Word {
    enum { TASK, CPU, FIELD } what;
    char *name[2];
    /* the word is a PID: the key has the task's unique number instead */
    bool is_pid;
} Word;

/* The fields that the words of the key mean in the events of a class */
typedef struct Fields {
    const HtFtField *words[WORDS_MAX];
    const HtFtField *drop;      /* field with the name HtPairs.drop */
} Fields;

typedef struct Key {
    /*
     * values of the key's words; for a PID, the task's unique number from
     * ht_model_task_id()
     */
    uint64_t words[WORDS_MAX];
} Key;

/* An event A for which no event B has come yet */
typedef struct Start {
    /* key in HtPairs.waiting; must be the first member */
    Key key;
    /* with HtPairs.nests: the waiting A of the same key that came before */
    struct Start *outer;
    uint64_t ns;
    uint32_t cpu;
    uint32_t depth;
    int32_t pid;
} Start;

struct HtPairs {
    HtModel *m;
    HtGaps *gaps;
    HtNames *events[2];
    char *key;
    Word words[WORDS_MAX];
    unsigned nr_words;
    /*
     * name of a field of B that has a PID: B also drops the waiting A of that
     * task; NULL: none
     */
    const char *drop;
    /* an A does not replace a waiting A of the same key, but nests in it */
    bool nests;
    bool by_cpu;
    /* [FROM] for A, [TO] for B: table from the type of an event to Fields */
    GHashTable *fields[2];
    GHashTable *waiting;        /* table from Key to Start */
    /* number of Start in @waiting, also of those in Start.outer */
    unsigned nr_waiting;
    unsigned boot, segment;
    bool seen[2];
    HtPairsCounts counts;
};

/*
 * Default keys. The first entry whose patterns match A and B is used, if there
 * is no --key or if --key names the same key.
 */
static const struct {
    const char *from, *to, *key, *drop;
    bool nests;
} usual[] = {
    /* a task that is switched out drops its waiting wakeup */
    { "sched_wak*", "sched_switch", "pid=next_pid", "prev_pid", false },
    { "sched_switch", "sched_switch", "prev_pid=next_pid", NULL, false },
    { "sched_waking", "sched_wakeup", "pid", NULL, false },
    { "irq_handler_entry", "irq_handler_exit", "cpu,irq", NULL, false },
    { "softirq_entry", "softirq_exit", "cpu,vec", NULL, false },
    { "softirq_raise", "softirq_e*", "cpu,vec", NULL, false },
    { "initcall_start", "initcall_finish", "task,func", NULL, false },
    { "funcgraph_entry", "funcgraph_exit", "task,func", NULL, true },
    { HT_KIND_RETADDR, "funcgraph_exit", "task,func", NULL, true },
    { "block_rq_*", "block_rq_*", "dev,sector", NULL, false },
    { "*", "*", "task", NULL, false },
};

static const char *event_name(const char *s)
{
    const char *colon = strchr(s, ':');

    return colon ? colon + 1 : s;
}

static const char *choose(HtPairs *p, const char *from, const char *to,
                          const char *key)
{
    unsigned i = 0;

    while (!ht_pattern_match(usual[i].from, event_name(from)) ||
           !ht_pattern_match(usual[i].to, event_name(to))) {
        i++;
    }
    if (!key || !strcmp(key, usual[i].key)) {
        p->drop = usual[i].drop;
        p->nests = usual[i].nests;
        key = usual[i].key;
    }
    return key;
}

static bool read_key(HtPairs *p, GError **errp)
{
    g_auto(GStrv) words = g_strsplit(p->key, ",", -1);
    unsigned i;

    for (i = 0; words[i]; i++) {
        const char *other = strchr(words[i], '=');
        Word *w = &p->words[p->nr_words];

        if (i == WORDS_MAX || !*words[i] || other == words[i] ||
            (other && !other[1])) {
            g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--key=%s: give 1 to %d words separated by commas:"
                        " task, cpu, a field of both events, or FIELD=FIELD"
                        " (a field of A and a field of B)",
                        p->key, WORDS_MAX);
            return false;
        }
        w->what = !strcmp(words[i], "task") ? TASK :
                  !strcmp(words[i], "cpu") ? CPU : FIELD;
        w->name[FROM] = other ? g_strndup(words[i], other - words[i]) :
                        g_strdup(words[i]);
        w->name[TO] = g_strdup(other ? other + 1 : words[i]);
        w->is_pid = w->what == TASK ||
                    (w->what == FIELD && g_str_has_suffix(words[i], "pid"));
        p->by_cpu |= w->what == CPU;
        p->nr_words++;
    }
    return true;
}

static guint hash_key(gconstpointer data)
{
    const Key *k = data;
    uint64_t h = 0;
    unsigned i;

    for (i = 0; i < WORDS_MAX; i++) {
        h = (h ^ k->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

static gboolean same_key(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(Key));
}

static void free_start(gpointer data)
{
    Start *s = data;

    while (s) {
        Start *outer = s->outer;

        g_free(s);
        s = outer;
    }
}

HtPairs *ht_pairs_new(HtModel *m, const char *from, const char *to,
                      const char *key, GError **errp)
{
    HtPairs *p = g_new0(HtPairs, 1);
    unsigned side;

    p->m = m;
    p->key = g_strdup(choose(p, from, to, key));
    p->events[FROM] = ht_names_new(from);
    p->events[TO] = ht_names_new(to);
    for (side = 0; side < 2; side++) {
        p->fields[side] = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    }
    p->waiting = g_hash_table_new_full(hash_key, same_key, NULL, free_start);
    if (!read_key(p, errp)) {
        ht_pairs_free(p);
        return NULL;
    }
    p->gaps = ht_gaps_new(m);
    return p;
}

void ht_pairs_free(HtPairs *p)
{
    unsigned i;

    if (!p) {
        return;
    }
    for (i = 0; i < WORDS_MAX; i++) {
        g_free(p->words[i].name[FROM]);
        g_free(p->words[i].name[TO]);
    }
    for (i = 0; i < 2; i++) {
        ht_names_free(p->events[i]);
        g_hash_table_destroy(p->fields[i]);
    }
    g_hash_table_destroy(p->waiting);
    ht_gaps_free(p->gaps);
    g_free(p->key);
    g_free(p);
}

const char *ht_pairs_key(const HtPairs *p)
{
    return p->key;
}

static const HtFtField *find_field(const HtEventClass *c, const char *name,
                                   GError **errp)
{
    const HtFtField *f = c->format ? ht_ft_event_field(c->format, name) : NULL;
    g_autoptr(GString) have = NULL;
    unsigned i;

    if (f && f->kind == HT_FT_INT) {
        return f;
    }
    have = g_string_new(NULL);
    for (i = 0; c->format && i < c->format->nr_fields; i++) {
        if (c->format->fields[i].kind == HT_FT_INT) {
            g_string_append_printf(have, ", %s", c->format->fields[i].name);
        }
    }
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--key: the event %s has no numeric field '%s'; a key may"
                " have: task, cpu%s", c->name, name, have->str);
    return NULL;
}

static const Fields *class_fields(HtPairs *p, const HtEventClass *c, int side,
                                  GError **errp)
{
    gpointer type = GUINT_TO_POINTER(c->type);
    Fields *f = g_hash_table_lookup(p->fields[side], type);
    unsigned i;

    if (f) {
        return f;
    }
    f = g_new0(Fields, 1);
    for (i = 0; i < p->nr_words; i++) {
        if (p->words[i].what == FIELD) {
            f->words[i] = find_field(c, p->words[i].name[side], errp);
            if (!f->words[i]) {
                g_free(f);
                return NULL;
            }
        }
    }
    if (side == TO && p->drop && c->format) {
        f->drop = ht_ft_event_field(c->format, p->drop);
    }
    g_hash_table_insert(p->fields[side], type, f);
    return f;
}

static uint64_t field_value(const HtFtField *f, const HtModelEvent *ev)
{
    return ht_ft_field_uint(f, ev->rec.data, ev->rec.size);
}

static uint64_t task_value(const HtPairs *p, int32_t pid,
                           const HtModelEvent *ev)
{
    return ht_model_task_id(p->m, pid, ev->rec.cpu);
}

/*
 * Compute the key of an event. @pid is set to the first PID in the key; if the
 * key has no PID, to the PID of the task that was running.
 */
static Key make_key(const HtPairs *p, const Fields *f, const HtModelEvent *ev,
                    int32_t *pid)
{
    Key k = { { 0 } };
    bool any = false;
    unsigned i;

    *pid = ev->rec.pid;

    for (i = 0; i < p->nr_words; i++) {
        const Word *w = &p->words[i];
        uint64_t v = w->what == CPU ? ev->rec.cpu :
                     w->what == TASK ? (uint64_t)(int64_t)ev->rec.pid :
                     field_value(f->words[i], ev);

        k.words[i] = w->is_pid ? task_value(p, v, ev) : v;
        if (w->is_pid && !any) {
            *pid = v;
            any = true;
        }
    }
    return k;
}

static void remove_start(HtPairs *p, const Key *k)
{
    Start *s = g_hash_table_lookup(p->waiting, k);

    if (s) {
        p->nr_waiting -= s->depth;
        g_hash_table_remove(p->waiting, k);
    }
}

/*
 * Drop all waiting events A and count them as alone: at the end of the
 * recording, and at each begin of a boot or of a segment of the guest's clock,
 * which no pair spans.
 */
static void forget_all(HtPairs *p)
{
    p->counts.from_alone += p->nr_waiting;
    p->nr_waiting = 0;
    g_hash_table_remove_all(p->waiting);
}

static void begin(HtPairs *p, const Key *k, int32_t pid,
                  const HtModelEvent *ev)
{
    Start *s, *before = g_hash_table_lookup(p->waiting, k);

    if (before && !p->nests) {
        p->counts.from_alone++;
        remove_start(p, k);
        before = NULL;
    }
    if (p->nr_waiting >= WAITING_MAX ||
        (before && before->depth >= NESTED_MAX)) {
        p->counts.left_out++;
        return;
    }
    s = g_new(Start, 1);
    *s = (Start) {
        .key = *k,
        .outer = before,
        .ns = ev->rec.ns,
        .cpu = ev->rec.cpu,
        .depth = before ? before->depth + 1 : 1,
        .pid = pid,
    };
    p->nr_waiting++;
    if (before) {
        g_hash_table_steal(p->waiting, k);
    }
    g_hash_table_insert(p->waiting, &s->key, s);
}

static bool end(HtPairs *p, const Key *k, const HtModelEvent *ev, HtPair *pair)
{
    Start *s = g_hash_table_lookup(p->waiting, k), *outer;
    bool ok;

    if (!s) {
        p->counts.to_alone++;
        return false;
    }
    ok = !ht_gaps_between(p->gaps, ev, p->by_cpu ? ev->rec.cpu : HT_GAPS_ANY,
                          s->ns, ev->rec.ns);
    p->counts.across_gaps += !ok;
    *pair = (HtPair) {
        .boot = ev->boot,
        .from_ns = s->ns,
        .to_ns = MAX(ev->rec.ns, s->ns),
        .from_cpu = s->cpu,
        .to_cpu = ev->rec.cpu,
        .pid = s->pid,
    };
    pair->task = ht_model_task(p->m, pair->pid);
    p->nr_waiting--;
    outer = s->outer;
    g_hash_table_steal(p->waiting, k);
    if (outer) {
        g_hash_table_insert(p->waiting, &outer->key, outer);
    }
    g_free(s);
    return ok;
}

bool ht_pairs_event(HtPairs *p, const HtModelEvent *ev, HtPair *pair,
                    GError **errp)
{
    bool found = false;
    const Fields *f;
    int32_t pid;
    Key k;

    if (ev->boot != p->boot || ev->rec.segment != p->segment) {
        forget_all(p);
        p->boot = ev->boot;
        p->segment = ev->rec.segment;
    }
    /* If the event is B and also A, it ends a pair before it begins one. */
    if (ht_names_event(p->events[TO], ev->class)) {
        p->seen[TO] = true;
        f = class_fields(p, ev->class, TO, errp);
        if (!f) {
            return false;
        }
        k = make_key(p, f, ev, &pid);
        found = end(p, &k, ev, pair);
        if (f->drop) {
            k = (Key) { { task_value(p, field_value(f->drop, ev), ev) } };
            p->counts.from_alone += g_hash_table_contains(p->waiting, &k);
            remove_start(p, &k);
        }
    }
    if (ht_names_event(p->events[FROM], ev->class)) {
        p->seen[FROM] = true;
        f = class_fields(p, ev->class, FROM, errp);
        if (!f) {
            return false;
        }
        k = make_key(p, f, ev, &pid);
        begin(p, &k, pid, ev);
    }
    return found;
}

HtPairsCounts ht_pairs_end(HtPairs *p)
{
    forget_all(p);
    p->counts.no_from = !p->seen[FROM];
    p->counts.no_to = !p->seen[TO];
    return p->counts;
}
