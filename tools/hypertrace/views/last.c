/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: print one page that shows the end of a guest's boot
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "kernel/kernel.h"
#include "model/duration.h"
#include "record/record-info.h"
#include "views/last.h"
#include "views/log.h"
#include "views/view.h"

#define BLOCKED_MAX             65536
/* bit of prev_state: uninterruptible sleep */
#define UNINTERRUPTIBLE         2

typedef struct Collect {
    HtLast *l;
    /* table from a task's unique number to HtLastBlocked */
    GHashTable *blocked;
    uint64_t cpu_last[HT_FT_CPUS_MAX];
    const HtEventClass *cpu_event[HT_FT_CPUS_MAX];
    unsigned lines;
} Collect;

HtLastLine *ht_last_line_new(const HtLogRecord *r)
{
    HtLastLine *line = g_new(HtLastLine, 1);

    line->ns = r->ns;
    line->text = g_string_new_len(r->text, r->len);
    return line;
}

void ht_last_line_free(gpointer data)
{
    HtLastLine *line = data;

    g_string_free(line->text, true);
    g_free(line);
}

static void forget_log(HtLast *l)
{
    g_queue_clear_full(&l->log, ht_last_line_free);
    ht_last_forget_reasons(l);
}

void ht_last_free(HtLast *l)
{
    if (l) {
        forget_log(l);
        g_array_unref(l->cpus);
        g_array_unref(l->blocked);
        ht_running_free(l->running);
        ht_graph_free(l->graph);
        g_free(l);
    }
}

const char *ht_last_name(const HtLast *l, int32_t pid)
{
    GHashTable *tasks = ht_model_tasks(l->m, l->boot);
    const HtTask *t = tasks && pid ?
                      g_hash_table_lookup(tasks, GINT_TO_POINTER(pid)) : NULL;

    return !pid ? "<idle>" : t ? t->comm : "<...>";
}

static void start_boot(Collect *c, const HtModelEvent *ev)
{
    HtLast *l = c->l;

    l->boot = ev->boot;
    l->events = l->gaps = l->lost = 0;
    memset(&l->gap, 0, sizeof(l->gap));
    memset(&l->silence, 0, sizeof(l->silence));
    memset(&l->busy, 0, sizeof(l->busy));
    forget_log(l);
}

/* Begin a boot, or a further segment of the present boot's clock. */
static void start_segment(Collect *c, const HtModelEvent *ev)
{
    if (ev->boot != c->l->boot) {
        start_boot(c, ev);
    }
    c->l->segment = ev->rec.segment;
    c->l->begin = c->l->end = ev->rec.ns;
    memset(c->cpu_last, 0, sizeof(c->cpu_last));
    memset(c->cpu_event, 0, sizeof(c->cpu_event));
    g_hash_table_remove_all(c->blocked);
}

static void longest(Collect *c, HtLastSilence *s, const HtModelEvent *ev,
                    uint64_t from, int32_t pid)
{
    const HtTask *t = ht_model_task(c->l->m, pid);

    if (ht_elapsed(from, ev->rec.ns) > ht_elapsed(s->from, s->to)) {
        *s = (HtLastSilence) {
            .from = from, .to = ev->rec.ns, .cpu = ev->rec.cpu, .pid = pid,
            .segment = ev->rec.segment,
            .lost = ev->rec.lost_before ? ev->rec.lost_estimate : 0,
        };
        g_strlcpy(s->comm, t ? t->comm : "<...>", sizeof(s->comm));
    }
}

static void add_line(HtLast *l, unsigned max, const HtLogRecord *r)
{
    g_queue_push_tail(&l->log, ht_last_line_new(r));
    ht_last_reason(l, r);
    if (l->log.length > max) {
        ht_last_line_free(g_queue_pop_head(&l->log));
    }
}

static void keep_line(Collect *c, const HtModelEvent *ev)
{
    HtLogLine line;

    ht_log_line_event(ev, &line);
    add_line(c->l, c->lines, &line.record);
}

static gpointer task_key(Collect *c, const HtModelEvent *ev, int32_t pid)
{
    return GSIZE_TO_POINTER(ht_model_task_id(c->l->m, pid, ev->rec.cpu));
}

static void switched(Collect *c, const HtModelEvent *ev)
{
    int32_t prev = ht_event_uint(ev, HT_F_SWITCH_PREV_PID);
    uint64_t state = ht_event_uint(ev, HT_F_SWITCH_PREV_STATE);
    HtLastBlocked *b;

    g_hash_table_remove(c->blocked, task_key(c, ev, ht_event_uint(
        ev, HT_F_SWITCH_NEXT_PID)));
    if (state & UNINTERRUPTIBLE && g_hash_table_size(c->blocked) <
        BLOCKED_MAX) {
        b = g_new0(HtLastBlocked, 1);
        b->pid = prev;
        b->since = ev->rec.ns;
        g_strlcpy(b->comm, ev->task->comm, sizeof(b->comm));
        g_hash_table_replace(c->blocked, task_key(c, ev, prev), b);
    }
}

static void add_event(Collect *c, const HtModelEvent *ev)
{
    const HtRunCpu *cpu;
    HtGraphStep step;
    HtLast *l = c->l;

    if (!l->events || ev->boot != l->boot || ev->rec.segment != l->segment) {
        start_segment(c, ev);
    }
    l->events++;
    if (ev->rec.lost_before) {
        l->gaps++;
        l->lost += ev->rec.lost_estimate;
        longest(c, &l->gap, ev, ev->rec.lost_from_ns, -1);
    }
    cpu = ht_running_before(l->running, ev);
    if (cpu && cpu->known && cpu->pid) {
        longest(c, &l->busy, ev, cpu->last, cpu->pid);
    }
    if (!ev->rec.lost_before) {
        longest(c, &l->silence, ev, l->end, -1);
    }
    ht_running_after(l->running, ev);
    ht_graph_event(l->graph, ev, &step);
    l->end = MAX(l->end, ev->rec.ns);
    if (cpu) {
        c->cpu_last[ev->rec.cpu] = ev->rec.ns;
        c->cpu_event[ev->rec.cpu] = ev->class;
    }
    switch (ev->class->kind) {
    case HT_KIND_CONSOLE:
        keep_line(c, ev);
        break;
    case HT_KIND_SCHED_SWITCH:
        switched(c, ev);
        break;
    case HT_KIND_SCHED_WAKING:
    case HT_KIND_SCHED_WAKEUP:
        g_hash_table_remove(c->blocked, task_key(c, ev, ht_event_uint(
            ev, HT_F_TASK_PID)));
        break;
    default:
        break;
    }
}

static gint by_since(gconstpointer a, gconstpointer b)
{
    const HtLastBlocked *x = a, *y = b;

    return x->since != y->since ? (x->since < y->since ? -1 : 1) :
           x->pid - y->pid;
}

static void finish(Collect *c)
{
    GHashTableIter iter;
    gpointer b;
    uint32_t i;

    for (i = 0; i < HT_FT_CPUS_MAX; i++) {
        HtLastCpu cpu = { .number = i, .last = c->cpu_last[i],
                          .event = c->cpu_event[i] };

        if (cpu.event) {
            g_array_append_val(c->l->cpus, cpu);
        }
    }
    g_hash_table_iter_init(&iter, c->blocked);
    while (g_hash_table_iter_next(&iter, NULL, &b)) {
        g_array_append_vals(c->l->blocked, b, 1);
    }
    g_array_sort(c->l->blocked, by_since);
}

static uint64_t number(HtModel *m, const char *key)
{
    return g_ascii_strtoull(ht_model_info(m, "recording", key), NULL, 10);
}

/*
 * Replace the lines that came from events printk:console by those of @lines,
 * which also has records of the log for which no event was recorded.
 */
static void read_log(HtLast *l, HtLogLines *lines, unsigned boot, unsigned max)
{
    HtLogLine line;

    forget_log(l);
    while (ht_log_lines_next(lines, &line)) {
        unsigned of = line.record.boot + 1;

        l->boots = MAX(l->boots, of);
        if (!boot && !l->events && of != l->boot) {
            /* Without events, the log tells which boot was the last one. */
            l->boot = of;
            forget_log(l);
        }
        if (of == (boot ? boot : l->boot)) {
            l->boot = of;
            l->end = l->events ? l->end : line.record.ns;
            add_line(l, max, &line.record);
        }
    }
}

/*
 * Get the host time in ns at which the last poll ended that had found new
 * events.
 */
static uint64_t last_poll(HtModel *m)
{
    HtRecording *r = ht_model_recording(m);
    uint64_t last = 0;
    uint32_t cpu;
    HtFtPiece p;

    for (cpu = 0; cpu < ht_rec_info(r)->cpus; cpu++) {
        while (ht_rec_next_piece(r, cpu, &p)) {
            last = p.events ? MAX(last, p.host_after) : last;
        }
    }
    ht_model_rewind(m);
    return last;
}

/*
 * Get the nanoseconds by the host's clock from the last poll that found events
 * to the end of the recording. Returns 0 if no poll found any, and for a memory
 * image, which is not polled.
 */
static uint64_t silence_after(HtModel *m)
{
    uint64_t ended = number(m, "ended-monotonic"), seen = last_poll(m);

    return number(m, "poll-us") && seen ? ht_elapsed(seen, ended) : 0;
}

HtLast *ht_last_collect(HtModel *m, const char *dir, unsigned boot,
                        unsigned max_lines, GError **errp)
{
    g_autofree Collect *c = NULL;
    g_autoptr(GError) error = NULL;
    /* Open the log first: ht_log_lines_open() reads and rewinds the model. */
    g_autoptr(HtLogLines) lines = ht_log_lines_open(dir, m, &error);
    uint64_t after = silence_after(m);
    HtModelEvent ev;
    HtRecEnd end;
    HtLast *l;

    if (error) {
        g_propagate_error(errp, g_steal_pointer(&error));
        return NULL;
    }
    c = g_new0(Collect, 1);
    l = g_new0(HtLast, 1);
    c->l = l;
    c->lines = MIN(max_lines, HT_LAST_LOG_MAX);
    c->blocked = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    l->m = m;
    l->cpus = g_array_new(false, false, sizeof(HtLastCpu));
    l->blocked = g_array_new(false, false, sizeof(HtLastBlocked));
    l->running = ht_running_new(m);
    l->graph = ht_graph_new(m);
    /*
     * Read further than the chosen boot: the first event of the next boot shows
     * that the chosen boot has ended.
     */
    ht_rec_until(ht_model_recording(m), UINT32_MAX, UINT64_MAX);
    if (ht_rec_end(ht_model_recording(m), &end)) {
        l->boots = end.epoch + 1;
    }
    while (ht_model_next(m, &ev)) {
        l->boots = MAX(l->boots, ev.boot);
        if (boot && ev.boot > boot) {
            /*
             * Stop here: ht_last_name() needs the tasks of the boot that has
             * just ended.
             */
            break;
        }
        if (!boot || ev.boot == boot) {
            add_event(c, &ev);
        }
    }
    finish(c);
    /* A boot has ended if a later boot began. */
    l->guest_ended = (boot && boot < l->boots) || ht_model_guest_ended(m);
    ht_view_trouble(m);
    g_hash_table_destroy(c->blocked);
    l->after = boot && boot != l->boots ? 0 : after;
    if (lines) {
        read_log(l, lines, boot, c->lines);
    }
    if (l->events || l->log.length) {
        return l;
    }
    g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT, boot ?
                "boot %u has no events" : "there are no events", boot);
    ht_last_free(l);
    return NULL;
}

#define BLOCKED_SHOWN   10
#define CALLS_SHOWN     12

static void head(HtOutput *o, const char *s)
{
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "\n%s\n", s);
    ht_output_colour(o, HT_COLOUR_NONE);
}

static void put_task(GString *out, const char *comm, int32_t pid)
{
    ht_escape_str(out, HT_ESCAPE_TERMINAL, comm);
    g_string_append_printf(out, "-%d", pid);
}

static void put_interval(GString *out, const HtLastSilence *s)
{
    ht_number_duration(out, ht_elapsed(s->from, s->to), 0);
    g_string_append(out, ", from ");
    ht_number_seconds(out, s->from, 0);
    g_string_append(out, " to ");
    ht_number_seconds(out, s->to, 0);
}

static void put_end(GString *out, const HtLast *l)
{
    const char *end = ht_model_info(l->m, "recording", "end");
    const char *release = ht_model_info(l->m, "guest", "release");

    g_string_append(out, l->guest_ended ? "The end of " : "The recording of ");
    g_string_append(out, *release ? "Linux " : "the guest");
    ht_escape_str(out, HT_ESCAPE_TERMINAL, release);
    g_string_append(out, l->guest_ended ? " at " : " ends at ");
    ht_number_seconds(out, l->end, 0);
    g_string_append_printf(out, " s, after %" PRIu64 " event%s", l->events,
                           ht_number_s(l->events));
    if (l->boots > 1) {
        g_string_append_printf(out, "; boot %u of %u", l->boot, l->boots);
    }
    g_string_append_c(out, '\n');
    if (*end) {
        ht_escape_str(out, HT_ESCAPE_TERMINAL, end);
        if (l->after) {
            g_string_append(out, ", ");
            ht_number_duration(out, l->after, 0);
            g_string_append(out, " after the last event");
        }
        g_string_append_c(out, '\n');
    }
}

static void put_summary(HtOutput *o, const HtLast *l)
{
    GString *out = o->text;

    put_end(out, l);
    if (l->gaps) {
        ht_output_colour(o, HT_COLOUR_RED);
        g_string_append_printf(out, "about %" PRIu64 " event%s lost in"
                               " %" PRIu64 " gap%s; the longest is of CPU %"
                               PRIu32 ": ", l->lost,
                               l->lost == 1 ? " was" : "s were", l->gaps,
                               ht_number_s(l->gaps), l->gap.cpu);
        put_interval(out, &l->gap);
        ht_output_colour(o, HT_COLOUR_NONE);
        g_string_append_c(out, '\n');
    }
    if (l->silence.to) {
        g_string_append(out, "longest time without any event: ");
        put_interval(out, &l->silence);
        g_string_append_c(out, '\n');
    }
    if (l->busy.to) {
        g_string_append_printf(out, "longest on a CPU that was not idle: CPU %"
                               PRIu32 ", ", l->busy.cpu);
        put_interval(out, &l->busy);
        g_string_append(out, ", in ");
        put_task(out, l->busy.comm, l->busy.pid);
        g_string_append_c(out, '\n');
    }
}

static void put_reasons(HtOutput *o, const HtLast *l)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < HT_LAST_REASONS; i++) {
        const HtLastLine *line = l->reasons[i];

        if (line && !any) {
            head(o, "errors in the kernel's log");
            any = true;
        }
        if (line) {
            ht_log_text(o, line->ns, line->text->str, line->text->len);
        }
    }
}

static void put_log(HtOutput *o, const HtLast *l)
{
    const GList *i;

    put_reasons(o, l);
    head(o, "end of the kernel's log");
    if (!l->log.length) {
        g_string_append(o->text, "no lines, or 'printk' was not recorded\n");
    }
    for (i = l->log.head; i; i = i->next) {
        const HtLastLine *line = i->data;

        ht_log_text(o, line->ns, line->text->str, line->text->len);
    }
}

/*
 * Find the open calls of the task that runs on a processor. Returns NULL if
 * no call is open, or if the task's last call was recorded on another
 * processor.
 */
static const HtStack *calls_of(const HtLast *l, const HtRunCpu *cpu,
                               uint32_t number)
{
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, ht_graph_stacks(l->graph));
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const HtStack *s = data;

        if (s->frames->len && s->pid == cpu->pid && s->cpu == number) {
            return s;
        }
    }
    return NULL;
}

static void put_nests(GString *out, const HtNests *n)
{
    unsigned i;

    for (i = 0; n && i < n->nr; i++) {
        g_string_append(out, ", in ");
        ht_escape_str(out, HT_ESCAPE_TERMINAL, n->names[i]);
    }
}

static void put_calls(HtOutput *o, const HtLast *l, const HtStack *s)
{
    unsigned i, first = s->frames->len > CALLS_SHOWN ?
                        s->frames->len - CALLS_SHOWN : 0;
    g_autoptr(GString) name = g_string_new(NULL);

    g_string_append(o->text, "      did not return from ");
    g_string_append(o->text, first ? "... > " : "");
    for (i = first; i < s->frames->len; i++) {
        g_string_truncate(name, 0);
        ht_model_function(l->m, l->boot,
                          g_array_index(s->frames, HtFrame, i).func, name);
        g_string_append(o->text, i > first ? " > " : "");
        ht_escape(o->text, HT_ESCAPE_TERMINAL, name->str, name->len);
    }
    g_string_append_c(o->text, '\n');
}

static void put_cpu(HtOutput *o, const HtLast *l, const HtLastCpu *c)
{
    const HtRunCpu *cpu = ht_running_cpu(l->running, c->number);
    const char *comm = ht_last_name(l, cpu->pid);
    g_autoptr(GString) task = g_string_new(NULL);
    const HtStack *calls = calls_of(l, cpu, c->number);

    g_string_append_printf(task, "%s-%d", comm, cpu->pid);
    g_string_append_printf(o->text, " %3" PRIu32 " ", c->number);
    ht_number_duration(o->text, ht_elapsed(c->last, l->end), 14);
    g_string_append_c(o->text, ' ');
    ht_number_duration(o->text, ht_elapsed(cpu->since, c->last), 11);
    g_string_append(o->text, "  ");
    ht_output_padded(o, task->str, 22);
    g_string_append(o->text, " after ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, c->event->name);
    put_nests(o->text, ht_running_task(l->running, cpu->pid));
    put_nests(o->text, &cpu->irqs);
    g_string_append_c(o->text, '\n');
    if (calls) {
        put_calls(o, l, calls);
    }
}

static void put_text(HtOutput *o, const HtLast *l)
{
    unsigned i;

    put_summary(o, l);
    put_log(o, l);
    head(o, " CPU   silent at end     ran for  task");
    for (i = 0; i < l->cpus->len && ht_output_room(o); i++) {
        put_cpu(o, l, &g_array_index(l->cpus, HtLastCpu, i));
    }
    if (l->host) {
        ht_last_host_text(l, o);
    }
    if (!l->blocked->len) {
        return;
    }
    head(o, "tasks in uninterruptible sleep");
    for (i = 0; i < l->blocked->len && i < BLOCKED_SHOWN; i++) {
        const HtLastBlocked *b = &g_array_index(l->blocked, HtLastBlocked, i);

        ht_number_duration(o->text, ht_elapsed(b->since, l->end), 10);
        g_string_append(o->text, "  ");
        put_task(o->text, b->comm, b->pid);
        g_string_append_c(o->text, '\n');
    }
    if (i < l->blocked->len) {
        g_string_append_printf(o->text, "and %u more\n", l->blocked->len - i);
    }
}

static void json_silence(HtJson *j, const char *name, const HtLastSilence *s,
                         bool cpu, bool task, const HtSplit *split)
{
    if (!s->to) {
        return;
    }
    ht_json_open(j, name, '{');
    ht_json_uint(j, "from_ns", s->from);
    ht_json_uint(j, "to_ns", s->to);
    if (cpu) {
        ht_json_uint(j, "cpu", s->cpu);
    }
    if (task) {
        ht_json_int(j, "pid", s->pid);
        ht_json_str(j, "task", s->comm);
    }
    if (split) {
        ht_host_split_json(split, "host", j);
    }
    ht_json_close(j, '}');
}

static void json_nests(HtJson *j, const HtNests *n)
{
    unsigned i;

    for (i = 0; n && i < n->nr; i++) {
        ht_json_str(j, NULL, n->names[i]);
    }
}

static void json_cpu(HtJson *j, const HtLast *l, const HtLastCpu *c)
{
    const HtRunCpu *cpu = ht_running_cpu(l->running, c->number);
    const char *comm = ht_last_name(l, cpu->pid);
    const HtStack *calls = calls_of(l, cpu, c->number);
    unsigned i;

    ht_json_open(j, NULL, '{');
    ht_json_uint(j, "cpu", c->number);
    ht_json_uint(j, "last_ns", c->last);
    ht_json_str(j, "event", c->event->name);
    ht_json_int(j, "pid", cpu->pid);
    ht_json_str(j, "task", comm);
    ht_json_uint(j, "since_ns", cpu->since);
    if (l->host && ht_host_split_total(&c->silent)) {
        ht_host_split_json(&c->silent, "host_silent", j);
    }
    if (l->host) {
        ht_host_split_json(&c->ran, "host_ran", j);
    }
    ht_json_open(j, "in", '[');
    json_nests(j, ht_running_task(l->running, cpu->pid));
    json_nests(j, &cpu->irqs);
    ht_json_close(j, ']');
    ht_json_open(j, "calls", '[');
    for (i = 0; calls && i < calls->frames->len; i++) {
        g_autoptr(GString) name = g_string_new(NULL);

        ht_model_function(l->m, l->boot,
                          g_array_index(calls->frames, HtFrame, i).func,
                          name);
        ht_json_text(j, NULL, name->str, name->len);
    }
    ht_json_close(j, ']');
    ht_json_close(j, '}');
}

static void json_line(HtJson *j, const char *name, const HtLastLine *line)
{
    ht_json_open(j, name, '{');
    ht_json_uint(j, "ns", line->ns);
    ht_json_text(j, "text", line->text->str, line->text->len);
    ht_json_close(j, '}');
}

static void json_reasons(HtJson *j, const HtLast *l)
{
    static const char *const names[] = {
        [HT_LAST_FAULT] = "fault",
        [HT_LAST_PLACE] = "place",
        [HT_LAST_PANIC] = "panic",
    };
    unsigned i;

    for (i = 0; i < HT_LAST_REASONS; i++) {
        if (l->reasons[i]) {
            json_line(j, names[i], l->reasons[i]);
        }
    }
}

static void put_json(HtOutput *o, const HtLast *l)
{
    HtJson j = { .out = o->text };
    const GList *line;
    unsigned i;

    ht_json_begin(&j);
    ht_json_str(&j, "release", ht_model_info(l->m, "guest", "release"));
    ht_json_str(&j, "end", ht_model_info(l->m, "recording", "end"));
    ht_json_bool(&j, "guest_ended", l->guest_ended);
    ht_json_str(&j, "cut", ht_model_info(l->m, "recording", "cut"));
    ht_json_uint(&j, "boot", l->boot);
    ht_json_uint(&j, "boots", l->boots);
    ht_json_uint(&j, "events", l->events);
    ht_json_uint(&j, "end_ns", l->end);
    ht_json_uint(&j, "after_ns", l->after);
    ht_json_uint(&j, "gaps", l->gaps);
    ht_json_uint(&j, "lost_estimate", l->lost);
    json_silence(&j, "longest_gap", &l->gap, true, false, NULL);
    json_silence(&j, "longest_silence", &l->silence, false, false, NULL);
    json_silence(&j, "longest_busy_silence", &l->busy, true, true,
                 l->host ? &l->busy_split : NULL);
    json_reasons(&j, l);
    ht_json_open(&j, "log", '[');
    for (line = l->log.head; line; line = line->next) {
        json_line(&j, NULL, line->data);
    }
    ht_json_close(&j, ']');
    ht_json_open(&j, "cpus", '[');
    for (i = 0; i < l->cpus->len; i++) {
        json_cpu(&j, l, &g_array_index(l->cpus, HtLastCpu, i));
    }
    ht_json_close(&j, ']');
    ht_json_open(&j, "blocked", '[');
    for (i = 0; i < l->blocked->len; i++) {
        const HtLastBlocked *b = &g_array_index(l->blocked, HtLastBlocked, i);

        ht_json_open(&j, NULL, '{');
        ht_json_int(&j, "pid", b->pid);
        ht_json_str(&j, "task", b->comm);
        ht_json_uint(&j, "since_ns", b->since);
        ht_json_close(&j, '}');
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

void ht_last_brief(const char *dir, GString *out)
{
    g_autoptr(HtModel) m = ht_model_open(dir, NULL);
    HtLast *l = m ? ht_last_collect(m, dir, 0, 1, NULL) : NULL;
    HtOutput o = { .text = out };
    const HtLastLine *line;
    g_autofree char *joined = NULL;
    char **lines;

    if (!l) {
        return;
    }
    put_end(out, l);
    line = l->reasons[HT_LAST_PANIC] ? l->reasons[HT_LAST_PANIC] :
           g_queue_peek_tail(&l->log);
    if (line) {
        ht_log_text(&o, line->ns, line->text->str, line->text->len);
    }
    g_string_truncate(out, out->len - 1);
    lines = g_strsplit(out->str, "\n", -1);
    joined = g_strjoinv("; ", lines);
    g_strfreev(lines);
    g_string_assign(out, joined);
    ht_last_free(l);
}

static bool add_kernel(const char *dir, const char *image, const char *busybox,
                       GError **error)
{
    g_autoptr(HtKernel) kernel = ht_kernel_get(image, NULL, busybox, error);

    return kernel && ht_record_info_add(dir, kernel, error);
}

static bool is_trace(const char *dir)
{
    g_autofree char *info = g_build_filename(dir, "info", NULL);

    return g_file_test(dir, G_FILE_TEST_IS_DIR) &&
           !g_file_test(info, G_FILE_TEST_EXISTS);
}

int ht_last(int argc, char **argv)
{
    g_autofree char *image = NULL, *busybox = NULL;
    gint lines = HT_LAST_LOG;
    gboolean by_host = false;
    const GOptionEntry own[] = {
        { "kernel", 0, 0, G_OPTION_ARG_FILENAME, &image,
          "the guest's kernel image: add its formats and symbols to the"
          " recording",
          "FILE" },
        { "busybox", 0, 0, G_OPTION_ARG_FILENAME, &busybox,
          "a static busybox for the guest's architecture", "FILE" },
        { "log", 'n', 0, G_OPTION_ARG_INT, &lines,
          "number of log records, or of events of each stream, to show (15)",
          "N" },
        { "host", 0, 0, G_OPTION_ARG_NONE, &by_host, HT_HOST_SPLIT_HELP,
          NULL },
        { 0 }
    };
    HtView v = { 0 };
    GError *error = NULL;
    g_autoptr(HtModel) m = NULL;
    HtHostSplit *host = NULL;
    HtLast *l = NULL;
    HtOutput o;
    bool trace, ok;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Show the end of a guest's boot on one"
                       " page.", HT_VIEW_BOOT | HT_VIEW_OUTPUT, own,
                       &status)) {
        ht_view_free(&v);
        return status;
    }
    if (lines < 0 || lines > HT_LAST_LOG_MAX) {
        ht_view_free(&v);
        return ht_usage_error("--log=%d: must be 0 to %d", lines,
                              HT_LAST_LOG_MAX);
    }
    trace = is_trace(v.dir);
    if (trace && (v.boot || image || by_host)) {
        status = ht_usage_error("--boot, --host and --kernel need a recording;"
                                " '%s' is a trace of a device", v.dir);
        ht_view_free(&v);
        return status;
    }
    ht_view_output(&v, &o);
    if (trace) {
        ok = ht_last_streams(&o, v.dir, lines, v.json, &error);
        status = ht_view_finish(&o, ok, error);
        ht_view_free(&v);
        return status;
    }
    if (!image || add_kernel(v.dir, image, busybox, &error)) {
        m = ht_view_open(&v, &error);
    }
    host = m && by_host ? ht_host_split_new(v.dir, m, &error) : NULL;
    l = m && (host || !by_host) ?
        ht_last_collect(m, v.dir, v.boot, lines, &error) : NULL;
    if (l && host) {
        ht_last_host(l, host);
    }
    if (l && v.json) {
        put_json(&o, l);
    } else if (l) {
        put_text(&o, l);
    }
    status = ht_view_finish(&o, l, error);
    ht_last_free(l);
    ht_host_split_free(host);
    ht_view_free(&v);
    return status;
}
