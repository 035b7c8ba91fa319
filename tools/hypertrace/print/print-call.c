/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse calls of the kernel's functions in print formats
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-parse.h"

#define NAMES_MAX       1024
/* Maximum number of arguments of an unknown function */
#define ARGUMENTS_MAX   16

/* Parse "(name)" after __get_str or a similar function of a field. */
static char *name_argument(HtPrintParse *p)
{
    g_autofree char *name = NULL;

    if (!pp_expect(p, "(")) {
        return NULL;
    }
    name = pp_word(p);
    if (!name || !pp_expect(p, ")")) {
        pp_fail(p, NULL, "a name of a field is missing");
        return NULL;
    }
    return g_steal_pointer(&name);
}

static HtPrintNode *call_field(HtPrintParse *p, HtPrintOp op)
{
    g_autofree char *name = name_argument(p);

    return name ? pp_field(p, op, name) : NULL;
}

static HtPrintNode *argument(HtPrintParse *p, const char *before)
{
    return pp_expect(p, before) ? ht_print_expression(p) : NULL;
}

static void clear_name(gpointer data)
{
    g_free(((HtPrintName *)data)->text);
}

/*
 * Parse the entries "{ value, "name" }" of __print_flags() or
 * __print_symbolic(). Keep the first NAMES_MAX entries that have a name and a
 * value that is a known constant.
 */
static bool names(HtPrintParse *p, GArray *all)
{
    while (ht_print_accept(p, ",")) {
        HtPrintName name = { 0 };
        HtPrintNode *value;
        bool known;

        if (!pp_expect(p, "{")) {
            return false;
        }
        if (ht_print_accept(p, "}")) {
            continue;           /* a list without names has the entry "{ }" */
        }
        value = ht_print_expression(p);
        /*
         * Some lists end with "{ -1, NULL }": accept an expression in place of
         * the text.
         */
        if (value && pp_expect(p, ",") && !ht_print_string(p, &name.text) &&
            !p->error) {
            ht_print_node_free(ht_print_expression(p));
        }
        ht_print_accept(p, ",");
        if (!value || p->error || !pp_expect(p, "}")) {
            ht_print_node_free(value);
            g_free(name.text);
            pp_fail(p, NULL, "a name of a value is missing");
            return false;
        }
        known = pp_is_constant(value) && !value->unknown;
        name.value = value->value;
        ht_print_node_free(value);
        if (known && name.text && all->len < NAMES_MAX) {
            g_array_append_val(all, name);
        } else {
            g_free(name.text);
        }
    }
    return pp_expect(p, ")");
}

static HtPrintNode *call_names(HtPrintParse *p, HtPrintOp op)
{
    HtPrintNode *a = argument(p, "(");
    HtPrintNode *n = a ? pp_node(p, op) : NULL;
    PpType t;

    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    t = pp_type_of(a);
    n->a = a;
    n->bytes = t.bytes;
    n->names = g_array_new(false, false, sizeof(HtPrintName));
    g_array_set_clear_func(n->names, clear_name);
    if (op == HT_OP_FLAGS && (!pp_expect(p, ",") ||
                              !ht_print_string(p, &n->text))) {
        return pp_fail(p, n, "a separator of flags is missing");
    }
    return names(p, n->names) ? n : pp_fail(p, n, "names are missing");
}

static HtPrintNode *call_bytes(HtPrintParse *p, HtPrintOp op,
                               const char *separator)
{
    HtPrintNode *n = argument(p, "(");

    n = n ? pp_place(p, op, n) : NULL;
    if (!n) {
        return NULL;
    }
    n->text = g_strdup(separator);
    n->a = argument(p, ",");
    n->b = n->a && op == HT_OP_ARRAY ? argument(p, ",") : NULL;
    return n->a && (n->b || op != HT_OP_ARRAY) && pp_expect(p, ")") ? n :
           pp_fail(p, n, "an argument is missing");
}

/* Parse the arguments of __print_dynamic_array(name, size of an element) */
static HtPrintNode *call_dynamic_array(HtPrintParse *p)
{
    g_autofree char *name = pp_expect(p, "(") ? pp_word(p) : NULL;
    HtPrintNode *n = name ? pp_field(p, HT_OP_ARRAY, name) : NULL;

    if (!n) {
        return pp_fail(p, NULL, "a name of a field is missing");
    }
    n->text = g_strdup(",");
    n->a = pp_constant(p, UINT32_MAX, (PpType) { 4, false, 0 });
    n->b = argument(p, ",");
    return n->a && n->b && pp_expect(p, ")") ? n :
           pp_fail(p, n, "an argument is missing");
}

static HtPrintNode *call_table(HtPrintParse *p, const char *other,
                               const char * const *texts)
{
    HtPrintNode *a = argument(p, "(");
    HtPrintNode *n = a && pp_expect(p, ")") ? pp_node(p, HT_OP_NAMED) : NULL;
    unsigned i;

    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    n->a = a;
    n->text = g_strdup(other);
    n->names = g_array_new(false, false, sizeof(HtPrintName));
    g_array_set_clear_func(n->names, clear_name);
    for (i = 0; texts[i]; i++) {
        HtPrintName name = { i, g_strdup(texts[i]) };

        g_array_append_val(n->names, name);
    }
    return n;
}

static HtPrintNode *call_hypercall(HtPrintParse *p)
{
    /* Names of Xen's hypercalls, by number */
    static const char * const texts[] = {
        "(set_trap_table)", "(mmu_update)", "(set_gdt)", "(stack_switch)",
        "(set_callbacks)", "(fpu_taskswitch)", "(sched_op_compat)",
        "(dom0_op)", "(set_debugreg)", "(get_debugreg)",
        "(update_descriptor)", "(memory_op)", "(multicall)",
        "(update_va_mapping)", "(set_timer_op)", "(event_channel_op_compat)",
        "(xen_version)", "(console_io)", "(physdev_op_compat)",
        "(grant_table_op)", "(vm_assist)", "(update_va_mapping_otherdomain)",
        "(iret)", "(vcpu_op)", "(set_segment_base)", "(mmuext_op)",
        "(acm_op)", "(nmi_op)", "(sched_op)", "(callback_op)",
        "(xenoprof_op)", "(event_channel_op)", "(physdev_op)", "(hvm_op)",
        NULL
    };

    return call_table(p, "", texts);
}

static HtPrintNode *call_memory_error(HtPrintParse *p)
{
    static const char * const texts[] = {
        "Corrected", "Uncorrected", "Deferred", "Fatal", NULL
    };

    return call_table(p, "Info", texts);
}

/*
 * Parse nvme_trace_disk_name(p, field). The first argument is the kernel's
 * buffer for output and is skipped.
 */
static HtPrintNode *call_disk(HtPrintParse *p)
{
    HtPrintNode *n = pp_expect(p, "(") && pp_accept_word(p, "p") ?
                     argument(p, ",") : NULL;

    n = n ? pp_place(p, HT_OP_DISK, n) : pp_fail(p, NULL, "no name of a disk");
    return n && pp_expect(p, ")") ? n : pp_fail(p, n, "')' is missing");
}

/*
 * Parse the arguments of a call. Return the first one, and skip further ones.
 */
static HtPrintNode *call_same(HtPrintParse *p)
{
    HtPrintNode *n = argument(p, "(");

    while (n && ht_print_accept(p, ",")) {
        HtPrintNode *other = ht_print_expression(p);

        if (!other) {
            return pp_fail(p, n, "an argument is missing");
        }
        ht_print_node_free(other);
    }
    return n && pp_expect(p, ")") ? n : pp_fail(p, n, "')' is missing");
}

static HtPrintNode *call_seconds(HtPrintParse *p, unsigned op)
{
    const PpType t = { 8, false, 0 };
    HtPrintNode *n = call_same(p);

    return pp_binary(p, op, n, n ? pp_constant(p, 1000000000, t) : NULL);
}

static HtPrintNode *call_swap(HtPrintParse *p, unsigned bytes)
{
    HtPrintNode *a = call_same(p), *n = a ? pp_node(p, HT_OP_UNARY) : NULL;

    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    n->a = a;
    n->value = HT_OP_SWAP;
    n->bytes = bytes;
    n->is_signed = false;
    return n;
}

/*
 * Parse a call of an unknown function: its name and arguments are printed in
 * place of its result. Such a call may be a whole argument of the format, the
 * second or third operand of "?:", or an argument of another unknown function;
 * known_calls() in print-format.c checks this.
 */
static HtPrintNode *call_unknown(HtPrintParse *p, const char *name)
{
    HtPrintNode *n = pp_node(p, HT_OP_CALL), *last = n;
    unsigned count = 0;

    if (!n) {
        return NULL;
    }
    p->calls++;
    n->text = g_strdup(name);
    if (!pp_expect(p, "(")) {
        return pp_fail(p, n, "'(' is missing");
    }
    while (!ht_print_accept(p, ")")) {
        HtPrintNode *a = count && !pp_expect(p, ",") ? NULL :
                         ht_print_expression(p);

        if (!a || ++count > ARGUMENTS_MAX) {
            ht_print_node_free(a);
            return pp_fail(p, n, "an argument of %s() is missing", name);
        }
        if (a->unknown) {
            /*
             * The argument is a name that the format does not define, such as
             * the buffer for output: leave it out.
             */
            ht_print_node_free(a);
            continue;
        }
        if (last->a) {
            last->b = pp_node(p, HT_OP_CALL);
            last = last->b;
        }
        if (!last) {
            ht_print_node_free(a);
            return pp_fail(p, n, "the format is too long");
        }
        last->a = a;
    }
    return n;
}

HtPrintNode *pp_sizeof(HtPrintParse *p)
{
    const PpType t = { 8, false, 0 };
    const char *before = p->p;
    HtPrintNode *n;
    uint64_t bytes;
    bool known;
    PpType of;

    if (ht_print_accept(p, "(") && pp_type(p, &of, &known) && known &&
        of.bytes && ht_print_accept(p, ")")) {
        return pp_constant(p, of.bytes, t);
    }
    p->p = before;
    n = pp_unary(p);
    if (!n) {
        return NULL;
    }
    bytes = n->op == HT_OP_FIELD ? n->field.size : pp_type_of(n).bytes;
    ht_print_node_free(n);
    return bytes ? pp_constant(p, bytes, t) :
           pp_fail(p, NULL, "the size of a type is not known");
}

HtPrintNode *pp_call(HtPrintParse *p, const char *name)
{
    static const char * const same[] = {
        "__builtin_expect", "pte_val", "pmd_val", "pud_val", "p4d_val",
        "pgd_val", "native_make_pte", "native_make_pmd", "native_make_pud",
        "native_make_p4d", "native_make_pgd", "jiffies_to_msecs",
        "le16_to_cpu", "le32_to_cpu", "le64_to_cpu", "__le16_to_cpu",
        "__le32_to_cpu", "__le64_to_cpu",
    };
    static const struct {
        const char *name;
        unsigned bytes;
    } swaps[] = {
        { "__builtin_bswap16", 2 }, { "__builtin_bswap32", 4 },
        { "__builtin_bswap64", 8 }, { "__fswab16", 2 }, { "__fswab32", 4 },
        { "__fswab64", 8 }, { "__swab16", 2 }, { "__swab32", 4 },
        { "__swab64", 8 }, { "be16_to_cpu", 2 }, { "be32_to_cpu", 4 },
        { "be64_to_cpu", 8 }, { "__be16_to_cpu", 2 }, { "__be32_to_cpu", 4 },
        { "__be64_to_cpu", 8 }, { "ntohs", 2 }, { "ntohl", 4 },
    };
    HtPrintNode *n;
    unsigned i;

    if (!strcmp(name, "__get_str") || !strcmp(name, "__get_rel_str") ||
        !strcmp(name, "__get_dynamic_array") ||
        !strcmp(name, "__get_rel_dynamic_array") ||
        !strcmp(name, "__get_sockaddr") ||
        !strcmp(name, "__get_rel_sockaddr")) {
        return call_field(p, HT_OP_FIELD);
    } else if (!strcmp(name, "__get_bitmask") ||
               !strcmp(name, "__get_rel_bitmask")) {
        return call_field(p, HT_OP_BITMASK);
    } else if (!strcmp(name, "__get_cpumask") ||
               !strcmp(name, "__get_rel_cpumask")) {
        return call_field(p, HT_OP_CPUMASK);
    } else if (!strcmp(name, "__get_dynamic_array_len") ||
               !strcmp(name, "__get_rel_dynamic_array_len")) {
        return call_field(p, HT_OP_LENGTH);
    } else if (g_str_has_prefix(name, "__print_flags")) {
        return call_names(p, HT_OP_FLAGS);
    } else if (g_str_has_prefix(name, "__print_symbolic")) {
        return call_names(p, HT_OP_SYMBOLIC);
    } else if (!strcmp(name, "__print_hex")) {
        return call_bytes(p, HT_OP_HEX, " ");
    } else if (!strcmp(name, "__print_hex_str")) {
        return call_bytes(p, HT_OP_HEX, "");
    } else if (!strcmp(name, "__print_array")) {
        return call_bytes(p, HT_OP_ARRAY, ",");
    } else if (!strcmp(name, "__print_dynamic_array")) {
        return call_dynamic_array(p);
    } else if (!strcmp(name, "__print_ns_to_secs")) {
        return call_seconds(p, '/');
    } else if (!strcmp(name, "__print_ns_without_secs")) {
        return call_seconds(p, '%');
    } else if (!strcmp(name, "sizeof")) {
        return pp_sizeof(p);
    } else if (!strcmp(name, "nvme_trace_disk_name")) {
        return call_disk(p);
    } else if (!strcmp(name, "xen_hypercall_name")) {
        return call_hypercall(p);
    } else if (!strcmp(name, "mc_event_error_type")) {
        return call_memory_error(p);
    } else if (!strcmp(name, "__builtin_constant_p")) {
        n = call_same(p);
        ht_print_node_free(n);
        return n ? pp_constant(p, 0, (PpType) { 4, true, 0 }) : NULL;
    }
    for (i = 0; i < G_N_ELEMENTS(same); i++) {
        if (!strcmp(name, same[i])) {
            return call_same(p);
        }
    }
    for (i = 0; i < G_N_ELEMENTS(swaps); i++) {
        if (!strcmp(name, swaps[i].name)) {
            return call_swap(p, swaps[i].bytes);
        }
    }
    return call_unknown(p, name);
}
