/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format dat: trace.dat, version 6
 *
 * The format is described in trace-cmd.dat.v6(5). The records of the recorded
 * pages are copied unchanged. A recorded page becomes several pages if the
 * clock went back within it, or if a piece of it is missing. Pages without
 * events are left out. If events were lost before a page, the page has the flag
 * for missed events.
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "export/export.h"

#define MAGIC           "\027\010\104tracing"
#define VERSION         "6"
#define OPTION_UNAME    5

/* Symbols at this address or above it move with the kernel (KASLR). */
#define KERNEL_HALF     (UINT64_C(1) << 63)

/*
 * The state of a CPU between two parts (HtExportPart). If a page that was read
 * belongs to a later part, it is kept here until that part is written.
 */
typedef struct Pending {
    HtRecPage page;
    uint8_t *data;
    /* @page waits for a later part, and its bytes are in @data */
    bool there;
} Pending;

static void put_u16(GString *out, uint16_t v)
{
    char b[2];

    ht_put_le16(b, v);
    g_string_append_len(out, b, sizeof(b));
}

static void put_u32(GString *out, uint32_t v)
{
    char b[4];

    ht_put_le32(b, v);
    g_string_append_len(out, b, sizeof(b));
}

static void put_u64(GString *out, uint64_t v)
{
    char b[8];

    ht_put_le64(b, v);
    g_string_append_len(out, b, sizeof(b));
}

static void put_sized(GString *out, const char *s, gsize len)
{
    put_u64(out, len);
    g_string_append_len(out, s, len);
}

/*
 * Append a line with a task's PID and name, if both are known. Replace control
 * characters in the name: a newline would end the name, and programs that read
 * the file print the name to terminals.
 */
static void put_cmdline(GString *out, const HtTask *t)
{
    const char *s;

    if (t->pid <= 0 || !t->named) {
        return;
    }
    g_string_append_printf(out, "%d ", t->pid);
    for (s = t->comm; *s; s++) {
        g_string_append_c(out, g_ascii_iscntrl(*s) ? '?' : *s);
    }
    g_string_append_c(out, '\n');
}

static void free_names(gpointer data)
{
    g_string_free(data, true);
}

static void name_tasks(HtModel *m, unsigned boot, GString *out)
{
    GHashTable *tasks = ht_model_tasks(m, boot);
    GHashTableIter iter;
    gpointer task;

    if (!tasks) {
        return;
    }
    g_hash_table_iter_init(&iter, tasks);
    while (g_hash_table_iter_next(&iter, NULL, &task)) {
        put_cmdline(out, task);
    }
}

/*
 * Read the selected events, to learn the tasks. Return a GString for each part
 * (HtExportPart): the PIDs and names of the tasks of its boot that are known
 * after the part's last event.
 */
static GPtrArray *find_names(HtExport *x)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(free_names);
    HtExportPart *part = NULL;
    HtModelEvent ev;
    unsigned i;

    for (i = 0; i < x->parts->len; i++) {
        g_ptr_array_add(all, g_string_new(NULL));
    }
    while (ht_view_next(x->v, x->m, &ev)) {
        if (part && part->boot == ev.boot && part->segment == ev.rec.segment) {
            continue;
        }
        if (part) {
            name_tasks(x->m, part->boot, all->pdata[part -
                       (HtExportPart *)x->parts->data]);
        }
        part = ht_export_part(x, ev.boot, ev.rec.segment);
    }
    if (part) {
        name_tasks(x->m, part->boot, all->pdata[part -
                   (HtExportPart *)x->parts->data]);
    }
    ht_model_rewind(x->m);
    return all;
}

static void put_header_texts(HtExport *x, GString *out, uint32_t page)
{
    g_autofree char *header_page = g_strdup_printf(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
        "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
        "\tfield: char data;\toffset:16;\tsize:%" PRIu32 ";\tsigned:1;\n",
        page - HT_FT_PAGE_HEADER);
    const char *header_event =
        "# compressed entry header\n"
        "\ttype_len    :    5 bits\n"
        "\ttime_delta  :   27 bits\n"
        "\tarray       :   32 bits\n\n"
        "\tpadding     : type == 29\n"
        "\ttime_extend : type == 30\n"
        "\ttime_stamp : type == 31\n"
        "\tdata max type_len  == 28\n";
    const HtFtFormats *f = ht_model_formats(x->m);
    size_t len;
    const char *s;

    g_string_append_len(out, "header_page", sizeof("header_page"));
    s = f ? ht_ft_formats_header(f, "header_page", &len) : NULL;
    put_sized(out, s ? s : header_page, s ? len : strlen(header_page));
    g_string_append_len(out, "header_event", sizeof("header_event"));
    s = f ? ht_ft_formats_header(f, "header_event", &len) : NULL;
    put_sized(out, s ? s : header_event, s ? len : strlen(header_event));
}

static unsigned put_system(const HtFtFormats *f, const char *system,
                           GString *out)
{
    unsigned i, n = 0;

    for (i = 0; f && i < ht_ft_formats_count(f); i++) {
        const HtFtEvent *e = ht_ft_formats_nth(f, i);

        if (!strcmp(e->system, system)) {
            if (out) {
                put_sized(out, e->text, e->text_size);
            }
            n++;
        }
    }
    return n;
}

static void put_formats(HtExport *x, GString *out)
{
    const HtFtFormats *f = ht_model_formats(x->m);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) systems = g_ptr_array_new();
    unsigned i;

    put_u32(out, put_system(f, "ftrace", NULL));
    put_system(f, "ftrace", out);
    for (i = 0; f && i < ht_ft_formats_count(f); i++) {
        const char *system = ht_ft_formats_nth(f, i)->system;

        if (strcmp(system, "ftrace") &&
            g_hash_table_add(seen, (gpointer)system)) {
            g_ptr_array_add(systems, (gpointer)system);
        }
    }
    put_u32(out, systems->len);
    for (i = 0; i < systems->len; i++) {
        const char *system = systems->pdata[i];

        g_string_append_len(out, system, strlen(system) + 1);
        put_u32(out, put_system(f, system, NULL));
        put_system(f, system, out);
    }
}

static void put_kallsyms(HtExport *x, unsigned boot, GString *out)
{
    const HtRecInfo *info = ht_rec_info(ht_model_recording(x->m));
    const char *p = info->kallsyms, *end = p + info->kallsyms_size;
    gsize at = out->len;
    uint64_t shift;

    put_u32(out, 0);
    if (!p || !ht_model_shift(x->m, boot, &shift)) {
        return;
    }
    while (p < end) {
        const char *eol = memchr(p, '\n', end - p);
        const char *next = eol ? eol + 1 : end;
        uint64_t addr = 0;
        const char *s = p;

        while (s < next && g_ascii_isxdigit(*s)) {
            addr = addr << 4 | g_ascii_xdigit_value(*s++);
        }
        g_string_append_printf(out, "%016" PRIx64,
                               addr >= KERNEL_HALF ? addr + shift : addr);
        g_string_append_len(out, s, next - s);
        p = next;
    }
    /* This section of trace.dat is a string that ends with NUL. */
    g_string_append_c(out, 0);
    ht_put_le32(out->str + at, out->len - at - 4);
}

/*
 * Append everything that precedes the pages in the file. Fill the table of the
 * CPUs' pages with zeros; write_part() overwrites them later. Return the offset
 * of the table in the file.
 */
static gsize put_head(HtExport *x, const HtExportPart *part,
                      const GString *names, GString *out)
{
    const HtRecInfo *info = ht_rec_info(ht_model_recording(x->m));
    const char *release = ht_model_info(x->m, "guest", "release");
    g_autofree char *uname = g_strdup_printf("Linux %s %s", release,
        ht_model_info(x->m, "guest", "machine"));
    gsize table;

    g_string_append_len(out, MAGIC, sizeof(MAGIC) - 1);
    g_string_append_len(out, VERSION, sizeof(VERSION));
    g_string_append_c(out, 0);          /* byte order: little-endian */
    g_string_append_c(out, 8);          /* number of bytes of a long */
    put_u32(out, info->subbuf_size);
    put_header_texts(x, out, info->subbuf_size);
    put_formats(x, out);
    put_kallsyms(x, part->boot, out);
    /* size of the section with printk's formats, which is empty */
    put_u32(out, 0);
    put_sized(out, names->str, names->len);
    put_u32(out, info->cpus);
    g_string_append_len(out, "options  ", sizeof("options  "));
    put_u16(out, OPTION_UNAME);
    put_u32(out, strlen(uname) + 1);
    g_string_append_len(out, uname, strlen(uname) + 1);
    put_u16(out, 0);
    g_string_append_len(out, "flyrecord", sizeof("flyrecord"));
    table = out->len;
    while (out->len < table + 16 * info->cpus) {
        put_u64(out, 0);
    }
    while (out->len % info->subbuf_size) {
        g_string_append_c(out, 0);
    }
    return table;
}

static void put_page(GString *out, const HtRecPage *p, bool missed,
                     uint32_t size)
{
    gsize end = out->len + size;

    put_u64(out, p->stamp);
    put_u64(out, p->size | (missed ? HT_FT_MISSED_EVENTS : 0));
    g_string_append_len(out, (const char *)p->data, p->size);
    while (out->len + 8 <= end) {
        put_u64(out, 0);
    }
    while (out->len < end) {
        g_string_append_c(out, 0);
    }
}

/*
 * Append a CPU's pages that belong to @part, and keep the first page of a later
 * part in @p. Return false if writing failed.
 */
static bool put_cpu(HtExport *x, uint32_t cpu, const HtExportPart *part,
                    Pending *p, HtOutput *o)
{
    HtRecording *rec = ht_model_recording(x->m);
    uint32_t size = ht_rec_info(rec)->subbuf_size;
    /* events of @part are missing before the next page that is written */
    bool missed = false;

    while (p->there || ht_rec_next_page(rec, cpu, &p->page)) {
        HtRecPage *g = &p->page;

        if (g->epoch + 1 > part->boot ||
            (g->epoch + 1 == part->boot && g->segment > part->segment)) {
            if (!p->there) {
                p->data = g_realloc(p->data, g->size);
                memcpy(p->data, g->data, g->size);
                g->data = p->data;
                p->there = true;
            }
            return true;
        }
        p->there = false;
        if (g->epoch + 1 != part->boot || g->segment != part->segment) {
            continue;
        }
        missed |= g->lost_before;
        if (!g->events) {
            continue;
        }
        if (g->size > size - HT_FT_PAGE_HEADER) {
            /*
             * The records do not fit into a page of this file: leave them out.
             */
            missed = true;
            continue;
        }
        put_page(o->text, g, missed, size);
        missed = false;
        if (!ht_output_room(o)) {
            return false;
        }
    }
    return true;
}

static bool write_part(HtExport *x, HtExportPart *part, const GString *names,
                       Pending *pending, GError **errp)
{
    uint32_t cpu, cpus = ht_rec_info(ht_model_recording(x->m))->cpus;
    g_autofree uint8_t *table = g_malloc(16 * cpus);
    HtOutput o;
    gsize at;

    if (!ht_output_file(&o, part->path, errp)) {
        return false;
    }
    part->exported = part->events;
    at = put_head(x, part, names, o.text);
    ht_output_flush(&o);
    for (cpu = 0; cpu < cpus; cpu++) {
        uint64_t begin = o.written;

        put_cpu(x, cpu, part, &pending[cpu], &o);
        ht_output_flush(&o);
        ht_put_le64(table + 16 * cpu, begin);
        ht_put_le64(table + 16 * cpu + 8, o.written - begin);
    }
    ht_output_patch(&o, at, table, 16 * cpus);
    part->made = ht_output_finish(&o, errp);
    return part->made;
}

bool ht_export_dat(HtExport *x, GError **errp)
{
    uint32_t cpu, cpus = ht_rec_info(ht_model_recording(x->m))->cpus;
    g_autoptr(GPtrArray) names = find_names(x);
    g_autofree Pending *pending = g_new0(Pending, cpus);
    bool ok = true;
    unsigned i;

    for (i = 0; ok && i < x->parts->len; i++) {
        ok = write_part(x, &g_array_index(x->parts, HtExportPart, i),
                        names->pdata[i], pending, errp);
    }
    for (cpu = 0; cpu < cpus; cpu++) {
        g_free(pending[cpu].data);
    }
    return ok;
}
