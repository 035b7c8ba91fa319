/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: plan how the kernel gets the words that start its ring
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hypertrace/base.h"
#include "cli/file.h"
#include "kernel/kernel-words.h"
#include "record/plan-words.h"

#define MIB             (UINT64_C(1) << 20)
/* Minimum size in KiB of a processor's part of the guest's main trace buffer */
#define MAIN_KIB_MIN    64u
/*
 * Maximum length in bytes of the kernel's command line on x86 and arm64, with
 * its NUL
 */
#define COMMAND_LINE    2048
/* Type of the SMBIOS structure "OEM Strings" */
#define OEM_STRINGS     11

const char *ht_plan_machine(const HtQemu *q)
{
    const char *type = ht_opts_get(q->machine, "type");

    return type ? type : q->machine_of == HT_MACHINE_X86_64 ? "pc" : "";
}

/*
 * Test for a machine type of a version before 2.6, which lacks features that
 * the changes to the command line need.
 */
static bool is_old(const char *type)
{
    const char *version = strrchr(type, '-');
    unsigned major, minor;

    return version && sscanf(version, "-%u.%u", &major, &minor) == 2 &&
           (major < 2 || (major == 2 && minor < 6));
}

bool ht_plan_is_known(const HtQemu *q)
{
    static const char * const x86[] = { "microvm", "pc", "q35", NULL };
    static const char * const arm64[] = { "virt", NULL };
    const char *type = ht_plan_machine(q);

    switch (q->machine_of) {
    case HT_MACHINE_X86_64:
        return g_strv_contains(x86, type) ||
               ((g_str_has_prefix(type, "pc-i440fx-") ||
                 g_str_has_prefix(type, "pc-q35-")) && !is_old(type));
    case HT_MACHINE_AARCH64:
        return g_strv_contains(arm64, type) ||
               (g_str_has_prefix(type, "virt-") && !is_old(type));
    default:
        return false;
    }
}

static bool is_script(const char *program)
{
    g_autofree char *path = g_find_program_in_path(program);
    g_autoptr(GMappedFile) file = path ? ht_file_map(path, NULL) : NULL;

    return file && g_mapped_file_get_length(file) >= 2 &&
           !memcmp(g_mapped_file_get_contents(file), "#!", 2);
}

static bool is_among(const char *path, const char * const *names)
{
    const char *slash = strrchr(path, '/');

    return g_strv_contains(names, slash ? slash + 1 : path);
}

static bool is_program(const char *word)
{
    g_autofree char *path = g_find_program_in_path(word);

    return path;
}

/*
 * Check whether sudo or doas may have the option -u or --user: a QEMU that runs
 * as another user than root may not open the descriptors of this process.
 */
static bool has_user(char **argv, unsigned end)
{
    unsigned i;

    for (i = 1; i < end; i++) {
        const char *word = argv[i];

        if (g_str_has_prefix(word, "--") ? g_str_has_prefix(word, "--user") :
            word[0] == '-' && strchr(word, 'u')) {
            return true;
        }
    }
    return false;
}

char *ht_plan_descriptor(const HtQemu *q, int fd)
{
    /*
     * Programs that close descriptors.  A QEMU that they start can open the
     * recorder's descriptors only through the /proc folder of this process.
     */
    static const char * const others[] = { "doas", "sudo", NULL };
    /* Programs that let the QEMU that they start inherit descriptors */
    static const char * const plain[] = {
        "chrt", "env", "gdb", "ionice", "linux64", "ltrace", "nice", "nohup",
        "numactl", "perf", "prlimit", "setarch", "setsid", "stdbuf", "strace",
        "taskset", "time", "timeout", "valgrind", NULL
    };
    char **argv = (char **)q->argv->pdata;
    bool closed = is_script(argv[q->program]);
    unsigned i;

    for (i = 0; i < q->program; i++) {
        if (is_among(argv[i], others)) {
            if (has_user(argv + i, q->program - i)) {
                return NULL;
            }
            closed = true;
        } else if (!is_among(argv[i], plain) &&
                   (i == 0 || is_program(argv[i]))) {
            /* an unknown program, whose QEMU may not have the descriptors */
            return NULL;
        }
    }
    return closed ? g_strdup_printf("/proc/%d/fd/%d", (int)getpid(), fd) :
           g_strdup_printf("/proc/self/fd/%d", fd);
}

/* Get the text of an SMBIOS string; NULL if its file cannot be read. */
static char *oem_string(const HtOpt *opt)
{
    char *text = NULL;

    if (!strcmp(opt->name, "path")) {
        ht_file_read(opt->value, &text, NULL, NULL);
        return text;
    }
    return g_strdup(opt->value);
}

static bool is_oem_strings(const HtOpts *opts)
{
    const char *type = ht_opts_get(opts, "type");

    return type && strtoul(type, NULL, 0) == OEM_STRINGS;
}

/*
 * Check for a file with a whole SMBIOS structure of type 11. QEMU refuses
 * options for a type if a file has a structure of that type.
 */
static bool is_oem_file(const HtOpts *opts)
{
    const char *path = ht_opts_get(opts, "file");
    g_autoptr(GMappedFile) file = path ? ht_file_map(path, NULL) : NULL;

    return file && g_mapped_file_get_length(file) &&
           g_mapped_file_get_contents(file)[0] == OEM_STRINGS;
}

/*
 * Find the SMBIOS string that the stub of a unified kernel image reads: the
 * first one with the prefix HT_RECORD_EXTRA. @at is set to the index in argv of
 * the argument that has the string, @opts to that argument's values, and @opt
 * to the value with the string. Return: the text after the prefix, newly
 * allocated; NULL if there is no such string (only @at may have changed then)
 */
static char *find_extra(const HtQemu *q, unsigned *at, HtOpts **opts,
                        HtOpt **opt)
{
    unsigned i, j;

    for (i = 0; i < q->smbios->len; i++) {
        g_autoptr(HtOpts) list = ht_opts_new();

        *at = g_array_index(q->smbios, unsigned, i);
        ht_opts_parse(list, q->argv->pdata[*at], NULL);
        for (j = 0; is_oem_strings(list) && j < list->len; j++) {
            HtOpt *o = list->pdata[j];
            g_autofree char *text = strcmp(o->name, "value") &&
                                    strcmp(o->name, "path") ? NULL :
                                    oem_string(o);

            if (text && g_str_has_prefix(text, HT_RECORD_EXTRA)) {
                *opt = o;
                *opts = g_steal_pointer(&list);
                return g_strdup(text + strlen(HT_RECORD_EXTRA));
            }
        }
    }
    return NULL;
}

static bool has_oem_file(const HtQemu *q)
{
    unsigned i;

    for (i = 0; i < q->smbios->len; i++) {
        g_autoptr(HtOpts) opts = ht_opts_new();

        ht_opts_parse(opts, q->argv->pdata[g_array_index(q->smbios, unsigned,
                                                         i)], NULL);
        if (is_oem_file(opts)) {
            return true;
        }
    }
    return false;
}

static void set_word(HtQemu *q, unsigned at, char *word)
{
    g_free(q->argv->pdata[at]);
    q->argv->pdata[at] = word;
}

/*
 * Put the words into an SMBIOS string. If the machine cannot have such a
 * string, set @p->words_why and return false.
 */
static bool add_smbios(HtRecordPlan *p, HtQemu *q)
{
    const char *type = ht_plan_machine(q);
    g_autoptr(HtOpts) opts = NULL;
    g_autofree char *extra = NULL, *all = NULL;
    HtOpt *opt;
    unsigned at;

    if (!ht_plan_is_known(q) || !strcmp(type, "microvm") || has_oem_file(q)) {
        p->words_why = "the machine cannot have an SMBIOS string for it";
        return false;
    }
    extra = find_extra(q, &at, &opts, &opt);
    all = extra ? ht_kernel_words_merge(extra, p->words) : g_strdup(p->words);
    if (!opts) {
        opts = ht_opts_new();
        ht_opts_add(opts, "type", "11");
        ht_opts_add(opts, "value", "");
        opt = opts->pdata[1];
        at = 0;
    }
    g_free(opt->name);
    g_free(opt->value);
    opt->name = g_strdup("value");
    opt->value = g_strconcat(HT_RECORD_EXTRA, all, NULL);
    if (at) {
        set_word(q, at, ht_opts_text(opts));
    } else {
        ht_qemu_add(q, "-smbios", ht_opts_text(opts));
    }
    return true;
}

static void add_append(HtRecordPlan *p, HtQemu *q, const char *append)
{
    char *merged = ht_kernel_words_merge(append, p->words);

    if (strlen(merged) >= COMMAND_LINE) {
        g_free(merged);
        g_clear_pointer(&p->words, g_free);
        p->given = HT_RECORD_WORDS_NONE;
        p->words_why = "the kernel's command line has no room for them: give "
                       "fewer events";
        return;
    }
    p->given = HT_RECORD_WORDS_APPEND;
    if (q->append_at) {
        set_word(q, q->append_at, merged);
    } else {
        /*
         * Add another -append at the end of the command line: the last one is
         * in effect, also if the user's words came from -machine or from a
         * file.
         */
        ht_qemu_add(q, "-append", merged);
    }
}

/*
 * Get the words for the main trace buffer. Older kernels use only the last
 * trace_event=, so the user's values are repeated. Unless the user sets the
 * trace clock, set it: a kernel with an unstable TSC otherwise changes the
 * clock late in the boot, and the change empties the buffer. trace_buf_size is
 * the size for each processor.
 */
static char *main_words(const HtRecordPlan *p, const HtRecordOptions *o,
                        const char *events, const char *there)
{
    g_autofree char *user = ht_kernel_words_values(there, "trace_event");
    g_autofree char *clock = ht_kernel_words_values(there, "trace_clock");
    uint64_t kib = MAX(o->size / p->cpus / 1024, MAIN_KIB_MIN);

    return g_strdup_printf("trace_event=%s%s,%s trace_buf_size=%" PRIu64
                           "K%s%s%s", user, events, HT_RECORD_ALWAYS, kib,
                           *clock ? "" : " trace_clock=local",
                           o->tracer ? " " : "", o->tracer ? o->tracer : "");
}

/*
 * Make the kernel words that create a ring or, with @o->main_buffer, start the
 * main trace buffer. @there: words of the user; if they use the ring's label
 * "ht", take another label
 */
static char *make_words(const HtRecordPlan *p, const HtRecordOptions *o,
                        const char *there)
{
    const char *events = o->events ? o->events : HT_RECORD_EVENTS;
    const char *label = ht_kernel_words_label(there, "ht") ? "hypertrace" :
                        "ht";

    if (o->main_buffer) {
        return main_words(p, o, events, there);
    }
    return g_strdup_printf("reserve_mem=%" PRIu64 "M:2M:%s "
                           "trace_instance=boot_map@%s,%s,%s", o->size / MIB,
                           label, label, events, HT_RECORD_ALWAYS);
}

bool ht_plan_has_syscalls(const char *events)
{
    g_auto(GStrv) items = g_strsplit(events ? events : "", ",", -1);
    bool found = false;
    unsigned i;

    for (i = 0; items[i] && !found; i++) {
        const char *colon = strchr(items[i], ':');
        const char *name = colon ? colon + 1 : items[i];
        g_autofree char *group = g_strndup(items[i], strcspn(items[i], ":"));

        found = !strcmp(group, "syscalls") || !strcmp(group, "raw_syscalls") ||
                g_str_has_prefix(name, "sys_enter") ||
                g_str_has_prefix(name, "sys_exit");
    }
    return found;
}

/*
 * Check whether the user's SMBIOS string asks for a ring already; if so, set
 * @p->ring_at.
 */
static bool has_extra_ring(HtRecordPlan *p, const HtQemu *q)
{
    g_autoptr(HtOpts) opts = NULL;
    unsigned at;
    HtOpt *opt;
    g_autofree char *extra = find_extra(q, &at, &opts, &opt);

    return extra && ht_kernel_words_ring(extra, &p->ring_at);
}

static void plan_loader(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *o)
{
    if (!o->main_buffer && has_extra_ring(p, q)) {
        p->given = HT_RECORD_WORDS_THERE;
        return;
    }
    p->words = make_words(p, o, "");
    p->given = HT_RECORD_WORDS_LOADER;
    if ((p->kernel || !o->words_only) && add_smbios(p, q) && p->kernel) {
        p->given = HT_RECORD_WORDS_SMBIOS;
    }
}

static bool read_image(HtRecordPlan *p, HtImage *image, bool others,
                       GError **error)
{
    g_autoptr(GError) err = NULL;

    if (ht_image_read(p->kernel, image, NULL, &err)) {
        return true;
    }
    if (g_error_matches(err, G_FILE_ERROR, G_FILE_ERROR_NOENT) && !others) {
        g_propagate_error(error, g_steal_pointer(&err));
        return false;
    }
    /* the file is no kernel, or only QEMU can find or read it */
    if (err->domain == G_FILE_ERROR && err->code == G_FILE_ERROR_INVAL) {
        p->words_why = "it is not a Linux kernel for x86_64 or aarch64";
    }
    image->machine = HT_MACHINE_UNKNOWN;
    g_clear_pointer(&p->kernel, g_free);
    return true;
}

bool ht_plan_words(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *o,
                   GError **error)
{
    const char *append = ht_opts_get(q->machine, "append");
    HtImage image = { 0 };

    p->kernel = g_strdup(ht_opts_get(q->machine, "kernel"));
    p->given = HT_RECORD_WORDS_NONE;
    if (q->restored || q->replayed) {
        p->words_why = "the guest does not begin with a boot";
        return true;
    }
    if (!append) {
        append = "";
    }
    /*
     * QEMU accepts -append only with -kernel: if the command line has only
     * -append, the program that starts QEMU adds -kernel.
     */
    if (!p->kernel && !*append) {
        plan_loader(p, q, o);
        return true;
    }
    if (!o->main_buffer && ht_kernel_words_ring(append, &p->ring_at)) {
        p->given = HT_RECORD_WORDS_THERE;
        return true;
    }
    if (p->kernel && !read_image(p, &image, q->program, error)) {
        return false;
    }
    if (p->words_why) {
        return true;
    }
    if (image.unified) {
        plan_loader(p, q, o);
    } else {
        p->words = make_words(p, o, append);
        add_append(p, q, append);
    }
    return true;
}

bool ht_record_has_ring(char **argv, bool files)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    g_autoptr(HtQemu) q = NULL;
    const char *append;
    uint64_t at;
    unsigned i;

    for (i = 0; argv[i]; i++) {
        if (!files && g_str_has_suffix(argv[i], "-readconfig") && argv[i + 1]) {
            i++;
        } else {
            g_ptr_array_add(args, argv[i]);
        }
    }
    g_ptr_array_add(args, NULL);
    q = ht_qemu_parse((char **)args->pdata);
    append = q->is_qemu ? ht_opts_get(q->machine, "append") : NULL;
    return append && ht_kernel_words_ring(append, &at);
}

char *ht_record_kernel(char **argv)
{
    g_autoptr(HtQemu) q = ht_qemu_parse(argv);
    const char *kernel = NULL;
    unsigned i;

    if (q->is_qemu) {
        kernel = ht_opts_get(q->machine, "kernel");
    }
    /*
     * Accept both forms of Cloud Hypervisor's option: "--kernel=FILE" and
     * "--kernel FILE".
     */
    for (i = 1; !q->is_qemu && argv[0] && argv[i]; i++) {
        if (g_str_has_prefix(argv[i], "--kernel=")) {
            kernel = argv[i] + strlen("--kernel=");
        } else if (!strcmp(argv[i], "--kernel")) {
            kernel = argv[i + 1];
        }
    }
    return g_strdup(kernel);
}
