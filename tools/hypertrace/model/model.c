/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the events of a recording, with their classes and tasks
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/number.h"
#include "cli/progress.h"
#include "hypertrace/base.h"
#include "hypertrace/symbols.h"
#include "model/fields.h"
#include "model/model.h"
#include "model/shifts.h"
#include "model/tasks.h"

/*
 * KASLR moves a kernel by a multiple of this number of bytes: the step of KASLR
 * on arm64 with UEFI. The step on x86-64 is a multiple of it.
 */
#define SLIDE           UINT64_C(0x10000)
/* Number of events between two calls of ht_progress_show() */
#define PROGRESS_EVENTS 65536

struct HtModel {
    HtRecording *rec;
    /* formats of the events; NULL: events are printed as bytes */
    HtFtFormats *formats;
    /* the kernel's symbols; NULL: addresses are printed as numbers */
    HtSymbols *symbols;
    /* reasons why the recording's formats and symbols are damaged, or NULL */
    GError *bad_formats, *bad_symbols;
    /* finds the address of a boot's kernel if the recording lacks it */
    HtShifts *shifts;
    HtTasks *tasks;
    HtEventClass *classes[1 << 16];
    GHashTable *texts;          /* texts that ht_model_info() has returned */
    /*
     * if @any is true: the event that was returned last, for which
     * ht_tasks_after() must be called before the next event is read
     */
    HtModelEvent last;
    bool any;
    unsigned boot;              /* boot of the event that was returned last */
    /* number of events read since ht_model_rewind() */
    uint64_t events;
    /*
     * ht_model_shift() has found that @symbols belongs to another kernel than a
     * boot of the recording; false: not known
     */
    bool other_kernel;
    /* result of the last ht_model_shift() */
    unsigned shift_boot;
    bool shift_known;
    uint64_t shift;
};

/* Parse the formats and symbols, both of which are optional. */
static void parse_texts(HtModel *m)
{
    const HtRecInfo *info = ht_rec_info(m->rec);

    if (info->formats) {
        m->formats = ht_ft_formats_parse(info->formats, info->formats_size,
                                         &m->bad_formats);
    }
    if (info->kallsyms_size) {
        m->symbols = ht_symbols_parse(info->kallsyms, info->kallsyms_size,
                                      &m->bad_symbols);
    }
}

HtModel *ht_model_open(const char *dir, GError **errp)
{
    g_autoptr(HtModel) m = NULL;
    HtRecording *rec = ht_rec_open(dir, errp);

    if (!rec) {
        return NULL;
    }
    m = g_new0(HtModel, 1);
    m->rec = rec;
    m->tasks = ht_tasks_new(HT_TASKS_MAX);
    m->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    parse_texts(m);
    m->shifts = ht_shifts_new(dir, m->formats, m->symbols);
    return g_steal_pointer(&m);
}

void ht_model_free(HtModel *m)
{
    unsigned i;

    if (!m) {
        return;
    }
    for (i = 0; i < G_N_ELEMENTS(m->classes); i++) {
        g_clear_pointer(&m->classes[i], ht_event_class_free);
    }
    ht_shifts_free(m->shifts);
    g_clear_pointer(&m->formats, ht_ft_formats_free);
    g_clear_pointer(&m->symbols, ht_symbols_free);
    g_clear_error(&m->bad_formats);
    g_clear_error(&m->bad_symbols);
    g_hash_table_destroy(m->texts);
    ht_tasks_free(m->tasks);
    ht_rec_close(m->rec);
    g_free(m);
}

HtEventClass *ht_event_class_new(const HtFtFormats *formats, uint16_t type)
{
    HtEventClass *c = g_new0(HtEventClass, 1);
    unsigned i;

    c->type = type;
    c->format = formats ? ht_ft_formats_get(formats, type) : NULL;
    if (!c->format) {
        c->system = "";
        c->name = g_strdup_printf("type-%u", type);
        return c;
    }
    c->system = c->format->system;
    c->name = c->format->name;
    c->kind = ht_kind_find(c->system, c->name);
    for (i = 0; i < HT_KIND_FIELDS; i++) {
        const char *name = ht_kind_field(c->kind, c->system, i);

        c->field[i] = name ? ht_ft_event_field(c->format, name) : NULL;
    }
    return c;
}

void ht_event_class_free(HtEventClass *c)
{
    ht_print_free(c->print);
    if (!c->format) {
        g_free((char *)c->name);
    }
    g_free(c);
}

static inline HtEventClass *class_of(HtModel *m, uint16_t type)
{
    HtEventClass **c = &m->classes[type];

    if (!*c) {
        *c = ht_event_class_new(m->formats, type);
    }
    return *c;
}

HtEventClass *ht_model_class(HtModel *m, uint16_t type)
{
    return class_of(m, type);
}

bool ht_model_next(HtModel *m, HtModelEvent *ev)
{
    if (m->any) {
        ht_tasks_after(m->tasks, &m->last);
        m->any = false;
    }
    if (!ht_rec_next(m->rec, &ev->rec)) {
        return false;
    }
    if (++m->events % PROGRESS_EVENTS == 0) {
        ht_progress_show(ht_rec_progress(m->rec));
    }
    ev->boot = ev->rec.epoch + 1;
    ev->class = class_of(m, ev->rec.type);
    ev->task = ht_tasks_before(m->tasks, ev);
    m->boot = ev->boot;
    if (ht_tasks_has_after(ev->class->kind)) {
        m->last = *ev;
        m->any = true;
    }
    return true;
}

void ht_model_rewind(HtModel *m)
{
    ht_rec_rewind(m->rec);
    ht_tasks_clear(m->tasks);
    m->events = 0;
    m->any = false;
}

HtRecording *ht_model_recording(HtModel *m)
{
    return m->rec;
}

const HtFtFormats *ht_model_formats(const HtModel *m)
{
    return m->formats;
}

const HtTask *ht_model_task(const HtModel *m, int32_t pid)
{
    return ht_tasks_find(m->tasks, pid);
}

static uint64_t task_id(int32_t pid, uint32_t cpu, uint32_t id)
{
    /*
     * An idle task has a number that depends only on its processor. If another
     * task has no unique number (@id is 0), use its PID.
     */
    return !pid ? UINT64_C(1) << 40 | cpu :
           id ? id : UINT64_C(1) << 41 | (uint32_t)pid;
}

uint64_t ht_model_task_id(HtModel *m, int32_t pid, uint32_t cpu)
{
    return task_id(pid, cpu, pid ? ht_tasks_id(m->tasks, pid) : 0);
}

uint64_t ht_event_task_id(const HtModelEvent *ev)
{
    return task_id(ev->rec.pid, ev->rec.cpu, ev->task->id);
}

GHashTable *ht_model_tasks(const HtModel *m, unsigned boot)
{
    return ht_tasks_all(m->tasks, boot);
}

const char *ht_model_info(HtModel *m, const char *group, const char *key)
{
    g_autofree char *both = g_strdup_printf("%s/%s", group, key);
    const char *known = g_hash_table_lookup(m->texts, both);
    char *text;

    if (known) {
        return known;
    }
    text = g_key_file_get_string(ht_rec_info(m->rec)->keys, group, key, NULL);
    text = text ? text : g_strdup("");
    g_hash_table_insert(m->texts, g_steal_pointer(&both), text);
    return text;
}

static bool is_whole(HtModel *m)
{
    return !*ht_model_info(m, "recording", "cut") && !ht_rec_error(m->rec) &&
           !ht_rec_damaged(m->rec) && !ht_rec_unread(m->rec);
}

/* Check whether the recorder polled a running guest, not a memory image. */
static bool is_live(HtModel *m)
{
    const char *poll = ht_model_info(m, "recording", "poll-us");

    return *poll && strcmp(poll, "0");
}

bool ht_model_guest_ended(HtModel *m)
{
    const char *end = ht_model_info(m, "recording", "end");

    return is_whole(m) && (g_str_has_prefix(end, "QEMU") ||
                           (!*end && !is_live(m)));
}

static bool is_empty(HtModel *m)
{
    HtRecEnd end;

    return !m->events && !ht_rec_end(m->rec, &end) &&
           !ht_rec_damaged(m->rec) && !ht_rec_unread(m->rec);
}

void ht_model_trouble(HtModel *m, GString *out)
{
    const char *cut = ht_model_info(m, "recording", "cut");
    const char *end = ht_model_info(m, "recording", "end");
    uint64_t damaged = ht_rec_damaged(m->rec), rest = ht_rec_unread(m->rec);

    if (m->symbols && m->boot) {
        uint64_t shift;

        ht_model_shift(m, m->boot, &shift);
    }
    if (m->other_kernel) {
        g_string_append(out, "the recording has the symbols of another kernel"
                        " than its events: addresses are shown as numbers,"
                        " and fields may be wrong; give 'hypertrace record"
                        " --kernel' the kernel that the guest boots\n");
    }
    if (m->bad_symbols) {
        g_string_append_printf(out, "the recording's symbols are damaged (%s):"
                               " addresses are shown as numbers\n",
                               m->bad_symbols->message);
    }
    if (m->bad_formats) {
        g_string_append_printf(out, "the recording's formats of events are"
                               " damaged (%s): events are shown without names"
                               " and fields\n", m->bad_formats->message);
    }
    if (ht_rec_info(m->rec)->cpus_left_out) {
        uint32_t n = ht_rec_info(m->rec)->cpus_left_out;

        g_string_append_printf(out, "the recording has %" PRIu32 " processor%s"
                               " with numbers from %u on, which %s not"
                               " read\n", n, ht_number_s(n), HT_FT_CPUS_MAX,
                               ht_number_form(n, "is", "are"));
    }
    if (ht_rec_error(m->rec)) {
        g_string_append_printf(out, "the recording could not be read to its"
                               " end: %s\n",
                               g_strerror(ht_rec_error(m->rec)));
    }
    if (*cut) {
        g_string_append_printf(out, "the recorder stopped before the guest:"
                               " %s\n", cut);
    } else if (!*end && is_live(m)) {
        g_string_append(out, "the recorder was killed or still records: later"
                        " events of the guest may be missing\n");
    }
    /*
     * If the info file has no "end", the recorder stopped early, was killed or
     * still records. The last piece may then be incomplete, which is no damage.
     */
    if (damaged || (rest && *end)) {
        g_string_append_printf(out, "%" PRIu64 " byte%s of the recording %s"
                               " damaged; their events are missing\n",
                               damaged + rest, ht_number_s(damaged + rest),
                               ht_number_form(damaged + rest, "is", "are"));
    }
    if (is_empty(m)) {
        g_string_append(out, *ht_model_info(m, "guest", "layout") ?
                        "the guest's ring is empty: either no event was"
                        " enabled (see 'hypertrace record --event'), or the"
                        " kernel is locked down (lockdown=confidentiality"
                        " refuses tracing)\n" :
                        "the recording has no events\n");
    } else if (!m->formats && !m->bad_formats) {
        g_string_append(out, "the recording has no formats of events, so that"
                        " their names and fields are not known; 'hypertrace"
                        " last --kernel FILE' adds those of the guest's"
                        " kernel\n");
    }
}

static bool find_shift(HtModel *m, unsigned boot, uint64_t *shift)
{
    g_autofree char *key = g_strdup_printf("text-%u", boot - 1);
    const char *run = ht_model_info(m, "kernel", key);
    const char *symbol = ht_model_info(m, "kernel", "text");
    uint64_t a, b;

    if (!g_ascii_string_to_unsigned(run, 16, 1, UINT64_MAX, &a, NULL) ||
        !g_ascii_string_to_unsigned(symbol, 16, 1, UINT64_MAX, &b, NULL)) {
        return ht_shifts_of(m->shifts, boot, shift);
    }
    *shift = a - b;
    if (*shift % SLIDE) {
        m->other_kernel = true;
        return false;
    }
    return true;
}

bool ht_model_shift(HtModel *m, unsigned boot, uint64_t *shift)
{
    if (boot != m->shift_boot) {
        m->shift = 0;
        m->shift_known = find_shift(m, boot, &m->shift);
        m->shift_boot = boot;
    }
    *shift = m->shift;
    return m->shift_known;
}

static const char *find_symbol(HtModel *m, unsigned boot, uint64_t addr,
                               uint64_t *offset)
{
    uint64_t shift;

    return m->symbols && ht_model_shift(m, boot, &shift) ?
           ht_symbols_find(m->symbols, addr - shift, offset) : NULL;
}

uint64_t ht_model_function(HtModel *m, unsigned boot, uint64_t addr,
                           GString *out)
{
    uint64_t offset = 0;
    const char *name = find_symbol(m, boot, addr, &offset);

    if (out && name) {
        g_string_append(out, name);
    } else if (out) {
        g_string_append_printf(out, "0x%" PRIx64, addr);
    }
    return name ? addr - offset : addr;
}

void ht_model_symbol(HtModel *m, unsigned boot, uint64_t addr, GString *out)
{
    uint64_t offset;
    const char *name = find_symbol(m, boot, addr, &offset);

    if (!name) {
        g_string_append_printf(out, "0x%" PRIx64, addr);
    } else if (offset) {
        g_string_append_printf(out, "%s+0x%" PRIx64, name, offset);
    } else {
        g_string_append(out, name);
    }
}

const char *ht_event_text(const HtModelEvent *ev, unsigned field, gsize *len)
{
    const HtFtField *f = ev->class->field[field];
    const char *s = NULL;

    *len = 0;
    if (f) {
        s = ht_ft_field_str(f, ev->rec.data, ev->rec.size, len);
    }
    return s ? s : "";
}

bool ht_event_has_lines(const HtModelEvent *ev)
{
    return ev->class->kind == HT_KIND_KERNEL_STACK ||
           ev->class->kind == HT_KIND_USER_STACK;
}

/*
 * Print a stack with all its frames: the kernel's print format has only eight.
 */
static void print_stack(HtModel *m, const HtModelEvent *ev, GString *out)
{
    const HtFtField *f = ev->class->field[HT_F_STACK_CALLERS];
    const HtFtField *size = ev->class->field[HT_F_STACK_SIZE];
    uint64_t i, left = f && f->offset < ev->rec.size ?
                       (ev->rec.size - f->offset) / 8 : 0;
    uint64_t frames = MIN(size ? ht_event_uint(ev, HT_F_STACK_SIZE) : left,
                          left);

    g_string_append(out, "<stack trace>");
    for (i = 0; i < frames; i++) {
        uint64_t addr = ht_get_le64(ev->rec.data + f->offset + i * 8);

        /* The array of a user stack ends with the first 0. */
        if (!size && !addr) {
            break;
        }
        g_string_append(out, "\n => ");
        if (ev->class->kind == HT_KIND_USER_STACK) {
            g_string_append_printf(out, "0x%" PRIx64, addr);
        } else {
            ht_model_symbol(m, ev->boot, addr, out);
        }
    }
    if (frames < (size ? ht_event_uint(ev, HT_F_STACK_SIZE) : 0)) {
        g_string_append(out, "\n => ...");
    }
}

void ht_model_print(HtModel *m, const HtModelEvent *ev, GString *out)
{
    HtEventClass *c = ev->class;

    if (ht_event_has_lines(ev)) {
        print_stack(m, ev, out);
        return;
    }
    if (!c->tried && c->format) {
        c->print = ht_print_new(c->format, NULL);
        c->tried = true;
    }
    if (c->print) {
        HtPrintSymbols symbols = { 0 };

        if (ht_model_shift(m, ev->boot, &symbols.shift)) {
            symbols.symbols = m->symbols;
        }
        ht_print(c->print, ev->rec.data, ev->rec.size, &symbols, out);
    } else {
        ht_fields_text(ev, out);
    }
}
