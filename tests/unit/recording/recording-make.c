/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording-make.h"

#define SUBBUF          4096u
#define CPUS            4
#define DELTA_BITS      27
#define TYPE_EXTEND     30
/*
 * Maximum size in bytes of data of which a record's field type_len gives the
 * size; before larger data, the record has a word with their size
 */
#define LONGEST         112u

typedef struct Field {
    const char *type;
    /* name of the field, followed by [N] or [] for an array */
    const char *name;
    unsigned size;
    bool is_signed;
} Field;

typedef struct Format {
    const char *system;
    const char *name;
    unsigned id;
    Field fields[8];
    const char *print;
} Format;

#define U64(n)          { "unsigned long", n, 8, false }
#define S64(n)          { "long", n, 8, true }
#define S32(n)          { "int", n, 4, true }
#define PID(n)          { "pid_t", n, 4, true }
#define COMM(n)         { "char", n "[16]", 16, false }
#define TEXT(n)         { "__data_loc char[]", n, 4, false }

static const Format formats[] = {
    { "ftrace", "function", MAKE_FUNCTION, { U64("ip"), U64("parent_ip") },
      "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip" },
    { "ftrace", "funcgraph_entry", MAKE_GRAPH_ENTRY,
      { U64("func"), S32("depth") },
      "\"--> %ps (%d)\", (void *)REC->func, REC->depth" },
    { "ftrace", "funcgraph_exit", MAKE_GRAPH_EXIT,
      { U64("func"), S32("depth"), { "unsigned int", "overrun", 4, false },
        U64("calltime"), U64("rettime") },
      "\"<-- %ps (%d) (start: %lx end: %lx)\", (void *)REC->func, REC->depth,"
      " REC->calltime, REC->rettime" },
    { "ftrace", "kernel_stack", MAKE_KERNEL_STACK,
      { S32("size"), { "unsigned long", "caller[]", 0, false } },
      "\"\\t=> %ps\\n\\t=> %ps\\n\", (void *)REC->caller[0],"
      " (void *)REC->caller[1]" },
    { "sched", "sched_switch", MAKE_SWITCH,
      { COMM("prev_comm"), PID("prev_pid"), S32("prev_prio"),
        S64("prev_state"), COMM("next_comm"), PID("next_pid"),
        S32("next_prio") },
      "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%ld ==>"
      " next_comm=%s next_pid=%d next_prio=%d\", REC->prev_comm,"
      " REC->prev_pid, REC->prev_prio, REC->prev_state, REC->next_comm,"
      " REC->next_pid, REC->next_prio" },
    { "sched", "sched_waking", MAKE_WAKING,
      { COMM("comm"), PID("pid"), S32("prio"), S32("target_cpu") },
      "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid,"
      " REC->prio, REC->target_cpu" },
    { "sched", "sched_process_exec", MAKE_EXEC,
      { TEXT("filename"), PID("pid"), PID("old_pid") },
      "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid,"
      " REC->old_pid" },
    { "sched", "sched_process_exit", MAKE_EXIT,
      { COMM("comm"), PID("pid"), S32("prio") },
      "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio" },
    { "task", "task_newtask", MAKE_NEWTASK,
      { PID("pid"), COMM("comm"), U64("clone_flags"),
        { "short", "oom_score_adj", 2, true } },
      "\"pid=%d comm=%s clone_flags=%lx oom_score_adj=%hd\", REC->pid,"
      " REC->comm, REC->clone_flags, REC->oom_score_adj" },
    { "task", "task_rename", MAKE_RENAME,
      { PID("pid"), COMM("oldcomm"), COMM("newcomm"),
        { "short", "oom_score_adj", 2, true } },
      "\"pid=%d oldcomm=%s newcomm=%s oom_score_adj=%hd\", REC->pid,"
      " REC->oldcomm, REC->newcomm, REC->oom_score_adj" },
    { "initcall", "initcall_level", MAKE_LEVEL, { TEXT("level") },
      "\"level=%s\", __get_str(level)" },
    { "initcall", "initcall_start", MAKE_START, { U64("func") },
      "\"func=%pS\", (void *)REC->func" },
    { "initcall", "initcall_finish", MAKE_FINISH, { U64("func"), S32("ret") },
      "\"func=%pS ret=%d\", (void *)REC->func, REC->ret" },
    { "printk", "console", MAKE_CONSOLE, { TEXT("msg") },
      "\"%s\", __get_str(msg)" },
    { "irq", "irq_handler_entry", MAKE_IRQ_ENTRY,
      { S32("irq"), TEXT("name") },
      "\"irq=%d name=%s\", REC->irq, __get_str(name)" },
    { "irq", "irq_handler_exit", MAKE_IRQ_EXIT, { S32("irq"), S32("ret") },
      "\"irq=%d ret=%s\", REC->irq, REC->ret ? \"handled\" : \"unhandled\"" },
    { "irq", "softirq_entry", MAKE_SOFTIRQ_ENTRY,
      { { "unsigned int", "vec", 4, false } }, "\"vec=%u\", REC->vec" },
    { "irq", "softirq_exit", MAKE_SOFTIRQ_EXIT,
      { { "unsigned int", "vec", 4, false } }, "\"vec=%u\", REC->vec" },
    { "raw_syscalls", "sys_enter", MAKE_SYS_ENTER,
      { S64("id"), { "unsigned long", "args[6]", 48, false } },
      "\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, REC->args[0],"
      " REC->args[1], REC->args[2], REC->args[3], REC->args[4],"
      " REC->args[5]" },
    { "raw_syscalls", "sys_exit", MAKE_SYS_EXIT, { S64("id"), S64("ret") },
      "\"NR %ld = %ld\", REC->id, REC->ret" },
    { "syscalls", "sys_enter_read", MAKE_ENTER_READ,
      { S32("__syscall_nr"), { "unsigned int", "fd", 8, false },
        { "char *", "buf", 8, false } },
      "\"fd: 0x%08lx, buf: 0x%08lx\", ((unsigned long)(REC->fd)),"
      " ((unsigned long)(REC->buf))" },
    { "syscalls", "sys_exit_read", MAKE_EXIT_READ,
      { S32("__syscall_nr"), S64("ret") }, "\"0x%lx\", REC->ret" },
    /*
     * "event" and "int" are keywords of CTF. "_event_length" is the name that
     * a CTF trace gives to the length of the text "event".
     */
    { "odd", "odd_names", MAKE_ODD,
      { TEXT("event"), { "int", "_event_length", 4, true },
        { "unsigned char", "int", 1, false },
        { "unsigned char", "bytes[3]", 3, false } },
      "\"event=%s\", __get_str(event)" },
};

typedef struct Cpu {
    uint8_t data[SUBBUF - HT_FT_PAGE_HEADER];
    unsigned used;
    unsigned events;
    uint32_t slot;
    uint64_t stamp;
    uint64_t ns;
    uint64_t last_end;
    unsigned lost;
    bool gap;
} Cpu;

struct Make {
    HtRecWriter *w;
    Cpu cpus[CPUS];
    uint32_t epoch, segment;
    /* common_flags of the events that are added from now on */
    uint8_t flags;
    /* arguments of the last make_look(), in ns; 0 before the first call */
    uint64_t before, after;
};

static void must(bool ok, GError *error)
{
    if (!ok) {
        fprintf(stderr, "recording-make: %s\n", error->message);
        exit(1);
    }
}

static void put_field(GString *out, const char *type, const char *name,
                      unsigned offset, unsigned size, bool is_signed)
{
    g_string_append_printf(out, "\tfield:%s %s;\toffset:%u;\tsize:%u;"
                           "\tsigned:%d;\n", type, name, offset, size,
                           is_signed);
}

static unsigned alignment(const Field *f)
{
    return strchr(f->name, '[') ?
           (!strncmp(f->type, "unsigned long", 13) ? 8 : 1) : f->size;
}

static char *format_texts(void)
{
    GString *out = g_string_new(NULL);
    const char *system = "";
    unsigned i, k;

    for (i = 0; i < G_N_ELEMENTS(formats); i++) {
        const Format *f = &formats[i];
        unsigned offset = HT_FT_EVENT_HEADER;

        if (strcmp(f->system, system)) {
            system = f->system;
            g_string_append_printf(out, "system: %s\n", system);
        }
        g_string_append_printf(out, "name: %s\nID: %u\nformat:\n", f->name,
                               f->id);
        put_field(out, "unsigned short", "common_type", 0, 2, false);
        put_field(out, "unsigned char", "common_flags", 2, 1, false);
        put_field(out, "unsigned char", "common_preempt_count", 3, 1, false);
        put_field(out, "int", "common_pid", 4, 4, true);
        g_string_append_c(out, '\n');
        for (k = 0; k < G_N_ELEMENTS(f->fields) && f->fields[k].type; k++) {
            offset = HT_ROUND_UP(offset, alignment(&f->fields[k]));
            put_field(out, f->fields[k].type, f->fields[k].name, offset,
                      f->fields[k].size, f->fields[k].is_signed);
            offset += f->fields[k].size;
        }
        g_string_append_printf(out, "\nprint fmt: %s\n", f->print);
    }
    return g_string_free(out, false);
}

static const char info[] =
    "[recording]\nversion=1\nsource=test\n"
    "started-realtime=1700000000000000000\nstarted-monotonic=5000000000\n"
    "host-boot=test\n"
    "[guest]\nrelease=6.12.1-test\nmachine=x86_64\npage-size=4096\ncpus=2\n"
    "[kernel]\ntext=ffffffff81000000\ntext-0=ffffffff91000000\n"
    "text-1=ffffffffa1000000\n";

static const char kallsyms[] =
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 T first_init\n"
    "ffffffff81002000 t slow_init\n"
    "ffffffff81003000 T vfs_read\n"
    "ffffffff81004000 T walk\n"
    "ffffffff81005000 t leaf\n"
    "ffffffff81006000 T do_idle\n"
    "ffffffff81100000 T _etext\n";

Make *make_new(const char *dir)
{
    g_autofree char *texts = format_texts();
    GError *error = NULL;
    Make *m = g_new0(Make, 1);
    unsigned i;

    m->w = ht_rec_writer_new(dir, &error);
    must(m->w != NULL, error);
    must(ht_rec_writer_file(m->w, "info", info, -1, &error), error);
    must(ht_rec_writer_file(m->w, "formats", texts, -1, &error), error);
    must(ht_rec_writer_file(m->w, "kallsyms", kallsyms, -1, &error), error);
    for (i = 0; i < CPUS; i++) {
        m->cpus[i].slot = 1;
    }
    return m;
}

static void flush_cpu(Make *m, unsigned cpu)
{
    Cpu *c = &m->cpus[cpu];
    GError *error = NULL;
    HtFtPiece p = {
        .cpu = cpu,
        .slot = c->slot,
        .size = c->used,
        .data = c->data,
        .stamp = c->stamp,
        .base_ns = c->stamp,
        .begin_ns = c->stamp,
        .end_ns = c->ns,
        .events = c->events,
        .epoch = m->epoch,
        .segment = m->segment,
        .flags = HT_FT_PIECE_BEGIN | (c->gap ? HT_FT_PIECE_LOST : 0),
        .lost_from_ns = c->last_end,
        .lost_estimate = c->lost,
        .host_before = m->after ? m->before : 5000000000 + c->stamp,
        .host_after = m->after ? m->after : 5000001000 + c->ns,
    };

    if (!c->used) {
        return;
    }
    must(ht_rec_writer_piece(m->w, &p, &error), error);
    c->slot = c->slot % 1000 + 1;
    c->last_end = c->ns;
    c->used = c->events = c->lost = 0;
    c->gap = false;
}

static void put_u32(Cpu *c, uint32_t v)
{
    ht_put_le32(c->data + c->used, v);
    c->used += 4;
}

void make_event(Make *m, unsigned cpu, uint64_t ns, int32_t pid, uint16_t type,
                const void *payload, size_t size)
{
    Cpu *c = &m->cpus[cpu];
    unsigned bytes = HT_ROUND_UP(HT_FT_EVENT_HEADER + size, 4);
    uint64_t delta;
    uint8_t *p;

    if (c->used + bytes + 16 > sizeof(c->data)) {
        flush_cpu(m, cpu);
    }
    if (!c->used) {
        c->stamp = c->ns = ns;
    }
    delta = ns - c->ns;
    if (delta >> DELTA_BITS) {
        put_u32(c, TYPE_EXTEND | (uint32_t)delta << 5);
        put_u32(c, delta >> DELTA_BITS);
        delta = 0;
    }
    if (bytes <= LONGEST) {
        put_u32(c, bytes / 4 | (uint32_t)delta << 5);
    } else {
        put_u32(c, (uint32_t)delta << 5);
        put_u32(c, bytes + 4);
    }
    p = c->data + c->used;
    memset(p, 0, bytes);
    ht_put_le16(p, type);
    p[2] = m->flags;
    ht_put_le32(p + 4, pid);
    if (size) {
        memcpy(p + HT_FT_EVENT_HEADER, payload, size);
    }
    c->used += bytes;
    c->ns = ns;
    c->events++;
}

void make_gap(Make *m, unsigned cpu, unsigned lost)
{
    flush_cpu(m, cpu);
    m->cpus[cpu].gap = true;
    m->cpus[cpu].lost = lost;
}

void make_flags(Make *m, uint8_t flags)
{
    m->flags = flags;
}

static void flush_all(Make *m)
{
    unsigned i;

    for (i = 0; i < CPUS; i++) {
        flush_cpu(m, i);
    }
}

void make_look(Make *m, uint64_t before, uint64_t after)
{
    flush_all(m);
    m->before = before;
    m->after = after;
}

void make_boot(Make *m)
{
    flush_all(m);
    m->epoch++;
    m->segment = 0;
}

void make_step(Make *m)
{
    flush_all(m);
    m->segment++;
}

void make_end(Make *m)
{
    GError *error = NULL;

    flush_all(m);
    must(ht_rec_writer_flush(m->w, &error), error);
    ht_rec_writer_free(m->w);
    g_free(m);
}

static void put_comm(uint8_t *p, const char *comm)
{
    memcpy(p, comm, MIN(strlen(comm), 16));
}

void make_switch(Make *m, unsigned cpu, uint64_t ns, int32_t prev,
                 const char *prev_comm, uint64_t state, int32_t next,
                 const char *next_comm)
{
    uint8_t b[56] = { 0 };

    put_comm(b, prev_comm);
    ht_put_le32(b + 16, prev);
    ht_put_le32(b + 20, 120);
    ht_put_le64(b + 24, state);
    put_comm(b + 32, next_comm);
    ht_put_le32(b + 48, next);
    ht_put_le32(b + 52, 120);
    make_event(m, cpu, ns, prev, MAKE_SWITCH, b, sizeof(b));
}

void make_newtask(Make *m, unsigned cpu, uint64_t ns, int32_t by, int32_t pid,
                  const char *comm, uint64_t flags)
{
    uint8_t b[36] = { 0 };

    ht_put_le32(b, pid);
    put_comm(b + 4, comm);
    ht_put_le64(b + 24, flags);
    make_event(m, cpu, ns, by, MAKE_NEWTASK, b, sizeof(b));
}

void make_text(Make *m, unsigned cpu, uint64_t ns, int32_t pid, uint16_t type,
               const void *before, size_t before_size, const void *text,
               size_t len, const void *after, size_t after_size)
{
    uint8_t b[3000] = { 0 };
    size_t fixed = before_size + 4 + after_size;

    assert(fixed + len < sizeof(b));
    if (before_size) {
        memcpy(b, before, before_size);
    }
    ht_put_le32(b + before_size, (HT_FT_EVENT_HEADER + fixed) |
                (uint32_t)(len + 1) << 16);
    if (after_size) {
        memcpy(b + before_size + 4, after, after_size);
    }
    memcpy(b + fixed, text, len);
    make_event(m, cpu, ns, pid, type, b, fixed + len + 1);
}

void make_exec(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
               const char *file)
{
    uint8_t pids[8];

    ht_put_le32(pids, pid);
    ht_put_le32(pids + 4, pid);
    make_text(m, cpu, ns, pid, MAKE_EXEC, NULL, 0, file, strlen(file), pids,
              sizeof(pids));
}

void make_console(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
                  const void *text, size_t len)
{
    make_text(m, cpu, ns, pid, MAKE_CONSOLE, NULL, 0, text, len, NULL, 0);
}
