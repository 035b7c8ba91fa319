/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what is changed of QEMU's command line
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#include "hypertrace/base.h"
#include "kernel/kernel.h"
#include "record/record-args.h"

#define MIB             (UINT64_C(1) << 20)
#define DEFAULT_RAM     (128 * MIB)
/* COMMAND_LINE_SIZE of x86 and arm64, its NUL included */
#define COMMAND_LINE    2048
/* What a kernel and its unpacking may take anywhere, also on top */
#define KERNEL_ROOM     (64 * MIB)
/* Where the ring begins: RING's search looks at these first. */
#define RING_ALIGN      (2 * MIB)

/* What was found in the arguments */
typedef struct Args {
    GPtrArray *argv;
    int append;                 /* index of its value, or -1 */
    const char *kernel;
    const char *initrd;
    const char *memory;
    const char *smp;
    const char *mem_path;
    GPtrArray *machines;        /* values of -machine and -M */
    GPtrArray *objects;
    bool numa;
    bool unknown;               /* -readconfig */
    bool daemonize;
    bool terminal;
    bool aarch64;
} Args;

const char *ht_record_memory_name(HtRecordMemory memory)
{
    static const char * const names[] = {
        [HT_RECORD_SHARED] = "shared already",
        [HT_RECORD_NODE] = "a shared NUMA node on top of the memory",
        [HT_RECORD_MEMFD] = "all memory shared",
        [HT_RECORD_PROCESS] = "private memory, read through QEMU's process: "
                              "the last look is what remains of a VM that is "
                              "killed",
    };

    return names[memory];
}

static const char *option_name(const char *arg)
{
    if (arg[0] != '-' || !arg[1]) {
        return NULL;
    }
    return arg + (arg[1] == '-' ? 2 : 1);
}

static void read_option(Args *a, const char *name, const char *value,
                        unsigned index)
{
    if (!strcmp(name, "append")) {
        a->append = index;      /* as in QEMU, the last one counts */
    } else if (!strcmp(name, "kernel")) {
        a->kernel = value;
    } else if (!strcmp(name, "initrd")) {
        a->initrd = value;
    } else if (!strcmp(name, "m")) {
        a->memory = value;
    } else if (!strcmp(name, "smp")) {
        a->smp = value;
    } else if (!strcmp(name, "mem-path")) {
        a->mem_path = value;
    } else if (!strcmp(name, "M") || !strcmp(name, "machine")) {
        g_ptr_array_add(a->machines, (char *)value);
    } else if (!strcmp(name, "object")) {
        g_ptr_array_add(a->objects, (char *)value);
    } else if (!strcmp(name, "numa")) {
        a->numa = true;
    } else if (!strcmp(name, "readconfig")) {
        a->unknown = true;
    } else if (!strcmp(name, "serial") || !strcmp(name, "monitor") ||
               !strcmp(name, "mon") || !strcmp(name, "chardev") ||
               !strcmp(name, "qmp") || !strcmp(name, "display")) {
        a->terminal |= strstr(value, "stdio") || strstr(value, "curses");
    }
}

static bool is_in(const char *name, const char * const *list)
{
    while (*list && strcmp(name, *list)) {
        list++;
    }
    return *list;
}

/* Is the word behind an option its value? */
static bool has_value(const char *name, const char *next)
{
    static const char * const flags[] = {
        "S", "curses", "daemonize", "enable-fips", "enable-kvm",
        "enable-sync-profile", "full-screen", "h", "help", "jitdump",
        "mem-prealloc", "no-acpi", "no-fd-bootchk", "no-hpet", "no-quit",
        "no-reboot", "no-shutdown", "no-user-config", "nodefaults",
        "nographic", "old-param", "only-migratable", "perfmap", "portrait",
        "preconfig", "s", "semihosting", "singlestep", "snapshot", "usb",
        "version", "win2k-hack", "xen-attach", "xen-domid-restrict", NULL
    };
    /* any text may be their value, also one that looks like an option */
    static const char * const texts[] = {
        "append", "bios", "dtb", "fw_cfg", "initrd", "kernel", "mem-path",
        "name", "pidfile", "smbios", NULL
    };

    /* the list is of QEMU as it is known here: it may have more flags */
    return next && !is_in(name, flags) &&
           (is_in(name, texts) || !option_name(next));
}

static void read_args(Args *a, char **argv)
{
    unsigned i;

    memset(a, 0, sizeof(*a));
    a->append = -1;
    a->argv = g_ptr_array_new_with_free_func(g_free);
    a->machines = g_ptr_array_new();
    a->objects = g_ptr_array_new();
    a->aarch64 = g_str_has_suffix(argv[0], "aarch64");
    for (i = 0; argv[i]; i++) {
        g_ptr_array_add(a->argv, g_strdup(argv[i]));
    }
    for (i = 1; argv[i]; i++) {
        const char *name = option_name(argv[i]);

        if (!name) {
            continue;
        }
        a->daemonize |= !strcmp(name, "daemonize");
        a->terminal |= !strcmp(name, "nographic") || !strcmp(name, "curses");
        if (has_value(name, argv[i + 1])) {
            i++;
            read_option(a, name, argv[i], i);
        }
    }
}

static void clear_args(Args *a)
{
    g_ptr_array_free(a->machines, true);
    g_ptr_array_free(a->objects, true);
    if (a->argv) {
        g_ptr_array_free(a->argv, true);
    }
}

static char *machine_opt(const Args *a, const char *name)
{
    char *value = NULL;
    unsigned i;

    for (i = 0; i < a->machines->len; i++) {
        char *v = ht_record_opt(a->machines->pdata[i], name);

        if (v) {
            g_free(value);
            value = v;
        }
    }
    return value;
}

/* Memory that only the guest can read is not to be made readable. */
static bool is_confidential(const Args *a)
{
    static const char * const kinds[] = {
        "sev-guest", "sev-snp-guest", "tdx-guest", "pef-guest",
        "s390-pv-guest", "rme-guest",
    };
    g_autofree char *support = machine_opt(a, "confidential-guest-support");
    g_autofree char *encryption = machine_opt(a, "memory-encryption");
    unsigned i, j;

    for (i = 0; i < a->objects->len; i++) {
        g_autofree char *kind = ht_record_opt(a->objects->pdata[i], "");

        for (j = 0; kind && j < G_N_ELEMENTS(kinds); j++) {
            if (!strcmp(kind, kinds[j])) {
                return true;
            }
        }
    }
    return support || encryption;
}

static bool is_on(const char *value)
{
    return value && (!strcmp(value, "on") || !strcmp(value, "yes") ||
                     !strcmp(value, "true") || !strcmp(value, "y"));
}

/* In memory: what is written there is gone with the machine, and quick */
static bool in_memory(const char *path)
{
    struct statfs fs;

    return !statfs(path, &fs) && (fs.f_type == TMPFS_MAGIC ||
                                  fs.f_type == HUGETLBFS_MAGIC ||
                                  fs.f_type == RAMFS_MAGIC);
}

static bool add_file(HtRecordPlan *p, const char *path, GError **error)
{
    g_autofree char *dir = g_path_get_dirname(path);

    if (!in_memory(path) && !in_memory(dir)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the guest's memory is in %s, on a disk: the disk would "
                    "slow it down and fill up; use a file on /dev/shm or "
                    "leave it to this command", path);
        return false;
    }
    /* QEMU's file in a directory has no name */
    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(p->files, g_strdup(path));
    }
    return true;
}

/* The user's own backends; sets *any if there is one. */
static bool plan_given(HtRecordPlan *p, const Args *a, bool *any,
                       GError **error)
{
    unsigned i;

    for (i = 0; i < a->objects->len; i++) {
        const char *object = a->objects->pdata[i];
        g_autofree char *kind = ht_record_opt(object, "");
        g_autofree char *share = ht_record_opt(object, "share");
        g_autofree char *path = ht_record_opt(object, "mem-path");

        if (!kind || !g_str_has_prefix(kind, "memory-backend-")) {
            continue;
        }
        *any = true;
        if (path && is_on(share) && !add_file(p, path, error)) {
            return false;
        }
    }
    if (p->files->len) {
        p->memory = HT_RECORD_SHARED;
    } else {
        p->memory = HT_RECORD_PROCESS;
        p->why = "the memory that is given is not shared through a file "
                 "with a name";
    }
    return true;
}

/* How many processors there can be at most, for the first node */
static unsigned max_cpus(const char *smp)
{
    static const char * const levels[] = {
        "drawers", "books", "sockets", "dies", "clusters", "modules",
        "cores", "threads",
    };
    static const char * const totals[] = { "maxcpus", "cpus", "" };
    unsigned i, n = 1;

    for (i = 0; i < G_N_ELEMENTS(totals); i++) {
        g_autofree char *v = ht_record_opt(smp, totals[i]);

        if (v) {
            return MAX(1, atoi(v));
        }
    }
    for (i = 0; i < G_N_ELEMENTS(levels); i++) {
        g_autofree char *v = ht_record_opt(smp, levels[i]);

        n *= v ? CLAMP(atoi(v), 1, 1024) : 1;
    }
    return n;
}

static bool ram_size(const char *m, uint64_t *bytes)
{
    g_autofree char *first = ht_record_opt(m, "");
    g_autofree char *size = ht_record_opt(m, "size");

    *bytes = DEFAULT_RAM;
    return !m || (!first && !size) ||
           ht_record_size(size ? size : first, 'M', bytes);
}

static void add(const Args *a, const char *option, char *value)
{
    g_ptr_array_add(a->argv, g_strdup(option));
    g_ptr_array_add(a->argv, value);
}

/* Can this machine have a second node? */
static bool has_nodes(const Args *a)
{
    static const char * const kinds[] = { "pc", "q35", "virt" };
    g_autofree char *type = machine_opt(a, "type");
    g_autofree char *first = machine_opt(a, "");
    const char *kind = type ? type : first;
    unsigned i;

    if (!kind) {
        return !a->aarch64;
    }
    for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
        size_t len = strlen(kinds[i]);

        if (!strcmp(kind, kinds[i]) ||
            (g_str_has_prefix(kind, kinds[i]) && kind[len] == '-')) {
            return true;
        }
    }
    return false;
}

static void add_node(HtRecordPlan *p, const Args *a, uint64_t ram)
{
    unsigned cpus = max_cpus(a->smp);

    p->memory = HT_RECORD_NODE;
    add(a, "-object",
        g_strdup_printf("memory-backend-ram,id=ht-ram,size=%" PRIu64 "M",
                        (ram - p->bytes) / MIB));
    add(a, "-object",
        g_strdup_printf("memory-backend-file,id=ht-top,size=%" PRIu64 "M,"
                        "mem-path=/proc/self/fd/%d,share=on",
                        p->bytes / MIB, p->fd));
    add(a, "-numa", cpus > 1 ?
        g_strdup_printf("node,nodeid=0,cpus=0-%u,memdev=ht-ram", cpus - 1) :
        g_strdup("node,nodeid=0,cpus=0,memdev=ht-ram"));
    add(a, "-numa", g_strdup("node,nodeid=1,memdev=ht-top"));
}

static bool plan_memory(HtRecordPlan *p, const Args *a, uint64_t ring,
                        GError **error)
{
    g_autofree char *backend = machine_opt(a, "memory-backend");
    bool any = false;
    uint64_t ram, node;
    struct stat st;

    if (!plan_given(p, a, &any, error)) {
        return false;
    }
    if (any || backend) {
        return true;
    }
    if (a->numa || a->mem_path || a->unknown || !ram_size(a->memory, &ram) ||
        ram % MIB) {
        p->why = a->numa ? "nodes are given" :
                 a->mem_path ? "-mem-path is private memory" :
                 "the size of the memory is not known";
        return true;
    }
    p->why = NULL;
    /* wherever kernel and initrd are put, the ring fits beside them */
    node = KERNEL_ROOM + 3 * (ring + RING_ALIGN);
    if (a->initrd && !stat(a->initrd, &st)) {
        node += HT_ROUND_UP((uint64_t)st.st_size, RING_ALIGN);
    }
    /* what is odd is above, so that the node begins at a multiple, too */
    node = HT_ROUND_UP(node, RING_ALIGN) + ram % RING_ALIGN;
    if (has_nodes(a) && node <= ram / 2) {
        p->bytes = node;
        add_node(p, a, ram);
        return true;
    }
    p->memory = HT_RECORD_MEMFD;
    p->why = node <= ram / 2 ? "this machine has no NUMA nodes" :
             "there is too little memory for a node of its own";
    p->bytes = ram;
    add(a, "-object",
        g_strdup_printf("memory-backend-file,id=ht-ram,size=%" PRIu64 "M,"
                        "mem-path=/proc/self/fd/%d,share=on", ram / MIB,
                        p->fd));
    add(a, "-machine", g_strdup("memory-backend=ht-ram"));
    return true;
}

static bool check_events(const char *events, GError **error)
{
    const char *p;

    for (p = events; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("_:,*?-", *p)) {
            break;
        }
    }
    if (*p || !*events || *events == ',') {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "--events '%s': give events and groups as sched_switch, "
                    "sched:sched_switch or sched, with commas between",
                    events);
        return false;
    }
    return true;
}

/* Before " -- ", behind which everything is init's */
static char *merge_append(const char *append, const char *words)
{
    const char *init = append;

    while ((init = strstr(init, "--")) != NULL) {
        if ((init == append || init[-1] == ' ') &&
            (!init[2] || init[2] == ' ')) {
            g_autofree char *before = g_strndup(append, init - append);

            return g_strdup_printf("%s%s %s", before, words, init);
        }
        init += 2;
    }
    return append[0] ? g_strdup_printf("%s %s", append, words) :
           g_strdup(words);
}

/* Sets @at to its address where that is given, not the name of a region. */
static bool has_ring(const char *append, uint64_t *at)
{
    const char *p = append;

    while ((p = strstr(p, "trace_instance=")) != NULL) {
        size_t len = strcspn(p, " ");
        const char *place = memchr(p, '@', len);

        if (place) {
            *at = g_ascii_isdigit(place[1]) ?
                g_ascii_strtoull(place + 1, NULL, 0) : 0;
            return true;
        }
        p += len;
    }
    return false;
}

static void add_smbios(const Args *a, const char *words)
{
    g_auto(GStrv) parts = g_strsplit(words, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", parts);

    add(a, "-smbios",
        g_strdup_printf("type=11,value=io.systemd.stub.kernel-cmdline-extra="
                        "%s", escaped));
}

static bool plan_words(HtRecordPlan *p, const Args *a,
                       const HtRecordOptions *o, GError **error)
{
    const char *events = o->events ? o->events : HT_RECORD_EVENTS;
    const char *append = a->append < 0 ? "" : a->argv->pdata[a->append];
    char *merged;
    HtImage image;

    if (!check_events(events, error)) {
        return false;
    }
    if (a->kernel && has_ring(append, &p->ring_at)) {
        return true;
    }
    p->words = g_strdup_printf("reserve_mem=%" PRIu64 "M:2M:ht "
                               "trace_instance=boot_map@ht,%s,%s",
                               o->size / MIB, events, HT_RECORD_ALWAYS);
    if (!a->kernel) {
        /* a stub of systemd reads it, nothing else does */
        add_smbios(a, p->words);
        return true;
    }
    if (!ht_image_read(a->kernel, &image, NULL, error)) {
        return false;
    }
    if (image.unified) {
        add_smbios(a, p->words);
        return true;
    }
    merged = merge_append(append, p->words);
    if (strlen(merged) >= COMMAND_LINE) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's command line would have %zu bytes; at most "
                    "%d are read: give fewer --events", strlen(merged),
                    COMMAND_LINE - 1);
        g_free(merged);
        return false;
    }
    if (a->append < 0) {
        add(a, "-append", merged);
    } else {
        g_free(a->argv->pdata[a->append]);
        a->argv->pdata[a->append] = merged;
    }
    return true;
}

HtRecordPlan *ht_record_plan(char **argv, const HtRecordOptions *options,
                             GError **error)
{
    g_autoptr(HtRecordPlan) p = g_new0(HtRecordPlan, 1);
    HtRecordPlan *done = NULL;
    Args a;

    read_args(&a, argv);
    /* QEMU may be given others. */
    p->fd = HT_RECORD_FD;
    while (fcntl(p->fd, F_GETFD) >= 0) {
        p->fd++;
    }
    p->files = g_ptr_array_new_with_free_func(g_free);
    p->kernel = g_strdup(a.kernel);
    p->uses_terminal = a.terminal;
    if (a.daemonize) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "QEMU with -daemonize cannot be waited for: leave it out, "
                    "or record the VM by --pid once it runs");
    } else if (is_confidential(&a)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the guest is confidential: its memory cannot be read "
                    "from outside, and should not be");
    } else if (plan_memory(p, &a, options->size, error) &&
               plan_words(p, &a, options, error)) {
        g_ptr_array_add(a.argv, NULL);
        p->argv = (char **)g_ptr_array_free(a.argv, false);
        a.argv = NULL;
        done = g_steal_pointer(&p);
    }
    clear_args(&a);
    return done;
}

void ht_record_plan_free(HtRecordPlan *p)
{
    if (p) {
        g_strfreev(p->argv);
        g_free(p->words);
        g_free(p->kernel);
        g_ptr_array_free(p->files, true);
        g_free(p);
    }
}
