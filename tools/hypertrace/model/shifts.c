/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel's address (KASLR) from the events of a boot
 */
#include <string.h>

#include "hypertrace/recording.h"
#include "model/shifts.h"

/* Maximum number of initcalls to compare; later ones may be of modules. */
#define FUNCTIONS 32u

struct HtShifts {
    char *dir;
    const HtSymbols *symbols;
    uint16_t type;              /* type of the event initcall_start */
    /*
     * field with the function's address in this event; NULL: no shift can be
     * found
     */
    const HtFtField *func;
    /* reader of the recording; NULL until ht_shifts_of() is called */
    HtRecording *rec;
    unsigned boot;
    /* addresses of the first initcalls of boot @boot, without repetitions */
    uint64_t addrs[FUNCTIONS];
    unsigned count;
    /* table from a boot to its shift, if that was found */
    GHashTable *known;
    bool ended;
};

HtShifts *ht_shifts_new(const char *dir, const HtFtFormats *formats,
                        const HtSymbols *symbols)
{
    HtShifts *s = g_new0(HtShifts, 1);
    unsigned i;

    s->dir = g_strdup(dir);
    s->symbols = symbols;
    s->known = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (i = 0; formats && i < ht_ft_formats_count(formats); i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);

        if (!strcmp(e->system, "initcall") &&
            !strcmp(e->name, "initcall_start")) {
            s->type = e->id;
            s->func = ht_ft_event_field(e, "func");
        }
    }
    s->ended = !s->func || !symbols;
    return s;
}

void ht_shifts_free(HtShifts *s)
{
    if (s) {
        ht_rec_close(s->rec);
        g_hash_table_destroy(s->known);
        g_free(s->dir);
        g_free(s);
    }
}

static void decide(HtShifts *s)
{
    uint64_t shift;

    if (ht_symbols_shift(s->symbols, s->addrs, s->count, &shift)) {
        g_hash_table_insert(s->known, GUINT_TO_POINTER(s->boot),
                            g_memdup2(&shift, sizeof(shift)));
    }
}

static void add(HtShifts *s, uint64_t addr)
{
    unsigned i;

    for (i = 0; i < s->count; i++) {
        if (s->addrs[i] == addr) {
            return;
        }
    }
    if (s->count < FUNCTIONS) {
        s->addrs[s->count++] = addr;
        if (s->count == FUNCTIONS) {
            decide(s);
        }
    }
}

static void read_on(HtShifts *s)
{
    HtRecEvent ev;
    bool more;

    if (!s->rec) {
        s->rec = ht_rec_open(s->dir, NULL);
    }
    more = s->rec && ht_rec_next(s->rec, &ev);
    if (!more || ev.epoch + 1 != s->boot) {
        if (s->count < FUNCTIONS) {
            decide(s);
        }
        s->count = 0;
        s->ended = !more;
        s->boot = more ? ev.epoch + 1 : 0;
    }
    if (more && ev.type == s->type) {
        add(s, ht_ft_field_uint(s->func, ev.data, ev.size));
    }
}

bool ht_shifts_of(HtShifts *s, unsigned boot, uint64_t *shift)
{
    const uint64_t *known;

    while (!(known = g_hash_table_lookup(s->known, GUINT_TO_POINTER(boot))) &&
           !s->ended && s->boot <= boot) {
        read_on(s);
    }
    if (known) {
        *shift = *known;
    }
    return known;
}
