/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the parts of a program that prints
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-program.h"

static const HtFtField common[] = {
    { .name = "common_type", .offset = 0, .size = 2, .kind = HT_FT_INT },
    { .name = "common_flags", .offset = 2, .size = 1, .kind = HT_FT_INT },
    { .name = "common_preempt_count", .offset = 3, .size = 1,
      .kind = HT_FT_INT },
    { .name = "common_pid", .offset = 4, .size = 4, .kind = HT_FT_INT,
      .is_signed = true },
};

HtPrintNode *ht_print_node_new(HtPrintOp op)
{
    HtPrintNode *n = g_new0(HtPrintNode, 1);

    n->op = op;
    n->field_nr = HT_PRINT_NO_FIELD;
    return n;
}

void ht_print_node_free(HtPrintNode *n)
{
    if (n) {
        ht_print_node_free(n->a);
        ht_print_node_free(n->b);
        ht_print_node_free(n->c);
        g_free(n->text);
        g_clear_pointer(&n->names, g_array_unref);
        g_free(n);
    }
}

bool ht_print_set_field_nr(HtPrintNode *n, const HtFtEvent *e, uint32_t nr)
{
    if (nr >= e->nr_fields + G_N_ELEMENTS(common)) {
        return false;
    }
    n->field_nr = nr;
    n->field = nr < e->nr_fields ? e->fields[nr] : common[nr - e->nr_fields];
    n->field.name = n->field.type = NULL;
    return true;
}

bool ht_print_set_field(HtPrintNode *n, const HtFtEvent *e, const char *name)
{
    const HtFtField *f = ht_ft_event_field(e, name);
    unsigned i;

    if (f) {
        return ht_print_set_field_nr(n, e, f - e->fields);
    }
    for (i = 0; i < G_N_ELEMENTS(common); i++) {
        if (!strcmp(name, common[i].name)) {
            return ht_print_set_field_nr(n, e, e->nr_fields + i);
        }
    }
    return false;
}

static void clear_name(gpointer data)
{
    g_free(((HtPrintName *)data)->text);
}

GArray *ht_print_names_new(void)
{
    GArray *names = g_array_new(false, false, sizeof(HtPrintName));

    g_array_set_clear_func(names, clear_name);
    return names;
}

static void clear_piece(gpointer data)
{
    HtPrintPiece *p = data;

    g_free(p->text);
    ht_print_node_free(p->width_arg);
    ht_print_node_free(p->precision_arg);
    ht_print_node_free(p->arg);
}

HtPrint *ht_print_empty(void)
{
    HtPrint *print = g_new0(HtPrint, 1);

    print->pieces = g_array_new(false, true, sizeof(HtPrintPiece));
    g_array_set_clear_func(print->pieces, clear_piece);
    return print;
}

void ht_print_free(HtPrint *p)
{
    if (p) {
        g_array_unref(p->pieces);
        g_free(p);
    }
}
