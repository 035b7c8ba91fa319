/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: plan the changes to QEMU's command line, above all those
 * that make the guest's memory readable
 */
#include <string.h>
#include <sys/stat.h>

#include "hypertrace/base.h"
#include "cli/number.h"
#include "record/plan.h"
#include "record/plan-words.h"

#define MIB             (UINT64_C(1) << 20)
#define DEFAULT_RAM     (128 * MIB)
/*
 * Bytes of the NUMA node to leave to the kernel, which may be unpacked there,
 * too
 */
#define KERNEL_ROOM     (64 * MIB)
/*
 * Alignment in bytes of the ring in the guest's RAM; the search for a ring
 * tests the multiples of it first
 */
#define RING_ALIGN      (2 * MIB)
#define CPU_BYTES       (2 * MIB)
#define RAM_PART        16

const char *ht_record_memory_name(HtRecordMemory memory)
{
    static const char * const names[] = {
        [HT_RECORD_SHARED] = "shared already",
        [HT_RECORD_NODE] = "a shared NUMA node on top of the memory",
        [HT_RECORD_MEMFD] = "all memory shared",
        [HT_RECORD_PROCESS] = "private memory, read through QEMU's process: "
                              "if QEMU is killed, events since the last poll "
                              "are lost",
    };

    return names[memory];
}

/* Check for a confidential guest, whose memory must not be made readable. */
static bool is_confidential(const HtQemu *q)
{
    static const char * const kinds[] = {
        "sev-guest", "sev-snp-guest", "tdx-guest", "pef-guest",
        "s390-pv-guest", "rme-guest", NULL
    };
    unsigned i;

    for (i = 0; i < q->objects->len; i++) {
        const char *kind = ht_opts_get(q->objects->pdata[i], "qom-type");

        if (kind && g_strv_contains(kinds, kind)) {
            return true;
        }
    }
    return ht_opts_get(q->machine, "confidential-guest-support") ||
           ht_opts_get(q->machine, "memory-encryption");
}

/*
 * Ways in which the command line can give shared memory to a machine of some
 * type
 */
typedef enum MachineKind {
    /* nothing is known of the machine: its memory is not changed */
    MACHINE_OTHER,
    /* by a memory backend for the whole machine */
    MACHINE_PLAIN,
    /* by a memory backend, for the whole machine or for a NUMA node */
    MACHINE_NODES,
} MachineKind;

static MachineKind machine_kind(const HtQemu *q)
{
    const char *type = ht_plan_machine(q);

    if (!ht_plan_is_known(q)) {
        return MACHINE_OTHER;
    }
    return g_str_has_prefix(type, "microvm") ? MACHINE_PLAIN : MACHINE_NODES;
}

/*
 * Get the reason why QEMU's memory must stay as it is on the command line; or
 * NULL.
 */
static const char *keep_memory(const HtQemu *q)
{
    if (q->restored) {
        return "the guest continues from a saved state";
    }
    if (q->replayed) {
        return "an execution is recorded or replayed";
    }
    if (q->configured) {
        return "the machine is configured through QMP";
    }
    if (q->xen) {
        return "the guest runs under Xen";
    }
    if (q->opaque) {
        return "not all of QEMU's options could be read";
    }
    if (q->mem_path) {
        return "-mem-path is private memory";
    }
    if (ht_opts_on(q->machine, "hmat") || ht_opts_on(q->machine, "mte")) {
        return "the machine's property hmat or mte excludes a change of its "
               "memory";
    }
    return machine_kind(q) == MACHINE_OTHER ?
           "nothing is known of this kind of machine" : NULL;
}

/*
 * Add the file of a backend of the machine's RAM, if the backend is shared and
 * the file has a name. Backends of devices such as ivshmem and nvdimm have no
 * ring and are not passed to this function.
 */
static void plan_backend(HtRecordPlan *p, const HtQemu *q, const char *id)
{
    const HtOpts *object = id ? ht_qemu_object(q, id) : NULL;
    const char *path = object ? ht_opts_get(object, "mem-path") : NULL;

    /* If the path is a directory, QEMU creates a file without a name in it. */
    if (path && ht_opts_on(object, "share") &&
        !g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(p->files, g_strdup(path));
    }
}

/*
 * Use the memory backends that the user has given. Return false if the command
 * line has neither a backend for the machine nor a NUMA node.
 */
static bool plan_given(HtRecordPlan *p, const HtQemu *q)
{
    const char *backend = ht_opts_get(q->machine, "memory-backend");
    unsigned i;

    if (!backend && !q->numa->len) {
        return false;
    }
    plan_backend(p, q, backend);
    for (i = 0; i < q->numa->len; i++) {
        plan_backend(p, q, ht_opts_get(q->numa->pdata[i], "memdev"));
    }
    if (p->files->len) {
        p->memory = HT_RECORD_SHARED;
    } else {
        p->why = "the memory backend of the command line is not shared through "
                 "a file with a name";
    }
    return true;
}

static bool number(const HtOpts *opts, const char *name, unsigned max,
                   unsigned *n)
{
    const char *text = ht_opts_get(opts, name);
    char *end;
    guint64 value;

    if (!text) {
        return false;
    }
    value = g_ascii_strtoull(text, &end, 0);
    *n = *end || end == text || value > max ? 0 : value;
    return true;
}

/* Get the maximum number of the guest's processors; 0: not known */
static unsigned max_cpus(const HtOpts *machine)
{
    static const char * const levels[] = {
        "smp.drawers", "smp.books", "smp.sockets", "smp.dies",
        "smp.clusters", "smp.modules", "smp.cores", "smp.threads",
    };
    unsigned i, n, product = 1;

    if ((number(machine, "smp.maxcpus", 65536, &n) && n) ||
        (number(machine, "smp.cpus", 65536, &n) && n)) {
        return n;
    }
    for (i = 0; i < G_N_ELEMENTS(levels); i++) {
        if (number(machine, levels[i], 1024, &n)) {
            product *= n;
        }
        if (product > 65536) {
            return 0;
        }
    }
    return product;
}

static bool ram_size(const HtQemu *q, uint64_t *bytes)
{
    const char *size = ht_opts_get(q->memory, "size");

    if (size) {
        return ht_number_size(size, 'M', bytes);
    }
    size = ht_opts_get(q->machine, "memory.size");
    *bytes = DEFAULT_RAM;
    return !size || ht_number_size(size, 'B', bytes);
}

static char *free_id(const HtQemu *q, const char *base)
{
    char *id = g_strdup(base);
    unsigned i;

    for (i = 1; ht_qemu_object(q, id); i++) {
        g_free(id);
        id = g_strdup_printf("%s%u", base, i);
    }
    return id;
}

static char *shared_backend(const char *id, uint64_t bytes, const char *path)
{
    return g_strdup_printf("memory-backend-file,id=%s,size=%" PRIu64 "M,"
                           "mem-path=%s,share=on", id, bytes / MIB, path);
}

static void add_node(HtRecordPlan *p, HtQemu *q, const char *path,
                     uint64_t ram, unsigned cpus)
{
    g_autofree char *low = free_id(q, "ht-ram"), *top = free_id(q, "ht-top");

    p->memory = HT_RECORD_NODE;
    p->low = ram - p->bytes;
    ht_qemu_add(q, "-object",
                g_strdup_printf("memory-backend-ram,id=%s,size=%" PRIu64 "M",
                                low, p->low / MIB));
    ht_qemu_add(q, "-object", shared_backend(top, p->bytes, path));
    ht_qemu_add(q, "-numa", cpus > 1 ?
        g_strdup_printf("node,nodeid=0,cpus=0-%u,memdev=%s", cpus - 1, low) :
        g_strdup_printf("node,nodeid=0,cpus=0,memdev=%s", low));
    ht_qemu_add(q, "-numa", g_strdup_printf("node,nodeid=1,memdev=%s", top));
}

static void add_all(HtRecordPlan *p, HtQemu *q, const char *path)
{
    g_autofree char *id = free_id(q, "ht-ram");

    p->memory = HT_RECORD_MEMFD;
    ht_qemu_add(q, "-object", shared_backend(id, p->bytes, path));
    ht_qemu_add(q, "-machine", g_strdup_printf("memory-backend=%s", id));
}

/*
 * Get the size of the NUMA node at the end of the guest's memory. The kernel
 * places the ring there, and may also place itself and the initrd there.
 */
static uint64_t node_size(const HtQemu *q, uint64_t ring, uint64_t ram)
{
    const char *initrd = ht_opts_get(q->machine, "initrd");
    uint64_t node = KERNEL_ROOM + 3 * (ring + RING_ALIGN);
    struct stat st;

    if (initrd && !stat(initrd, &st)) {
        node += HT_ROUND_UP((uint64_t)st.st_size, RING_ALIGN);
    }
    /*
     * Add the remainder of the RAM's size, so that the node begins at a
     * multiple of RING_ALIGN.
     */
    return HT_ROUND_UP(node, RING_ALIGN) + ram % RING_ALIGN;
}

static void plan_memory(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *o)
{
    g_autofree char *path = ht_plan_descriptor(q, p->fd);
    unsigned cpus = max_cpus(q->machine);
    uint64_t ram, node;

    p->cpus = MAX(cpus, 1);
    p->memory = HT_RECORD_PROCESS;
    if (plan_given(p, q)) {
        return;
    }
    p->why = o->private ? "no memory could be shared" : keep_memory(q);
    if (!p->why && !path) {
        p->why = "the program that starts QEMU may close descriptors";
    }
    if (!p->why && (!ram_size(q, &ram) || ram % MIB)) {
        p->why = "the size of the memory is not known";
    }
    if (p->why) {
        return;
    }
    node = node_size(q, o->size, ram);
    if (!o->main_buffer && machine_kind(q) == MACHINE_NODES && cpus &&
        node <= ram / 2) {
        p->bytes = node;
        add_node(p, q, path, ram, cpus);
        return;
    }
    p->why = o->main_buffer ? "the main trace buffer may lie anywhere" :
             node <= ram / 2 ? "this machine has no NUMA nodes" :
             "there is too little memory for a node of its own";
    p->bytes = ram;
    add_all(p, q, path);
}

static const char *no_programs(const HtQemu *q, const char *path)
{
    if (!q->is_qemu) {
        return "the command is not known to be QEMU";
    }
    if (q->restored) {
        return "the guest continues from a saved state (-incoming, -loadvm),"
               " which has no such device: start the guest without it";
    }
    if (!ht_plan_is_known(q)) {
        return "nothing is known of this kind of machine: choose pc, q35 or"
               " virt";
    }
    if (g_str_has_prefix(ht_plan_machine(q), "microvm") &&
        !ht_opts_on(q->machine, "pcie")) {
        return "the machine has no PCI: give -machine microvm,pcie=on";
    }
    return path ? NULL :
           "the program that starts QEMU may not hand on descriptors";
}

/*
 * Add a device for the guest's programs to the command line. It is the last
 * device there, so that all others keep their addresses.
 */
static bool plan_programs(HtRecordPlan *p, HtQemu *q, uint64_t bytes,
                          GError **error)
{
    g_autofree char *path = NULL, *id = NULL;
    const char *why;

    if (q->is_qemu) {
        path = ht_plan_descriptor(q, p->programs_fd);
    }
    why = no_programs(q, path);
    if (why) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "--programs: %s",
                    why);
        return false;
    }
    id = free_id(q, "ht-programs");
    ht_qemu_add(q, "-object", shared_backend(id, bytes, path));
    ht_qemu_add(q, "-device",
                g_strdup_printf("ivshmem-plain,memdev=%s,master=on", id));
    return true;
}

static int free_descriptor(int fd)
{
    while (fcntl(fd, F_GETFD) >= 0) {
        fd++;
    }
    return fd;
}

/*
 * Add a file of options to the command line, if QEMU inherits the descriptors
 * that these options name.
 */
static void add_config(HtQemu *q, int fd)
{
    g_autofree char *path = fd ? ht_plan_descriptor(q, fd) : NULL;

    if (path && g_str_has_prefix(path, "/proc/self/")) {
        ht_qemu_add(q, "-readconfig", g_steal_pointer(&path));
    }
}

/*
 * Check names of events for the kernel's command line. The kernel knows "*"
 * only as the whole part before or after a colon.
 */
static bool check_events(const char *events, GError **error)
{
    g_auto(GStrv) names = g_strsplit(events, ",", -1);
    bool empty = !names[0];
    const char *p;
    unsigned i;

    for (p = events; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("_:,*?-", *p)) {
            break;
        }
    }
    for (i = 0; names[i]; i++) {
        empty |= !*names[i];
    }
    if (*p || empty) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--event '%s': give events and groups separated by commas, "
                    "for example sched_switch, sched:sched_switch or sched",
                    events);
        return false;
    }
    for (i = 0; names[i]; i++) {
        if (!g_regex_match_simple("^((\\*:)?[^*?]*(:\\*)?|\\*:\\*)$", names[i],
                                  0, 0)) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "the kernel cannot switch on the events '%s': give "
                        "EVENT, GROUP:EVENT, GROUP:* or *:EVENT", names[i]);
            return false;
        }
    }
    return true;
}

static void set_names(HtRecordPlan *p, const HtQemu *q)
{
    p->name = g_strdup(ht_opts_get(q->name, "guest"));
    p->program = q->is_qemu ? g_strdup(q->argv->pdata[q->program]) : NULL;
}

/*
 * Choose the size of the ring, which all processors share: double the default
 * until there are CPU_BYTES for each processor, or HT_RECORD_SIZE_MAX in all. A
 * ring larger than the default has at most 1/RAM_PART of the RAM. If the size
 * of the RAM is not known, use the default.
 */
static uint64_t default_size(const HtQemu *q)
{
    uint64_t size = HT_RECORD_SIZE, ram;
    unsigned cpus = max_cpus(q->machine);

    while (size < cpus * CPU_BYTES && size < HT_RECORD_SIZE_MAX &&
           ram_size(q, &ram) && 2 * size <= ram / RAM_PART) {
        size *= 2;
    }
    return size;
}

static bool plan_qemu(HtRecordPlan *p, HtQemu *q, HtRecordOptions options,
                      GError **error)
{
    if (!options.size) {
        options.size = default_size(q);
    }
    if (options.thread_names) {
        ht_qemu_add(q, "-name", g_strdup("debug-threads=on"));
    }
    plan_memory(p, q, &options);
    if (!ht_plan_words(p, q, &options, error)) {
        return false;
    }
    add_config(q, options.config_fd);
    return true;
}

HtRecordPlan *ht_record_plan(char **argv, const HtRecordOptions *options,
                             GError **error)
{
    g_autoptr(HtRecordPlan) p = g_new0(HtRecordPlan, 1);
    g_autoptr(HtQemu) q = ht_qemu_parse(argv);
    const char *machine = ht_plan_machine(q);

    /*
     * The user may pass a descriptor with the number HT_RECORD_FD to QEMU: use
     * a free number.
     */
    p->fd = free_descriptor(HT_RECORD_FD);
    p->programs_fd = options->programs ? free_descriptor(p->fd + 1) : -1;
    p->files = g_ptr_array_new_with_free_func(g_free);
    p->memory = HT_RECORD_PROCESS;
    p->uses_terminal = q->terminal;
    p->daemonize = q->daemonize;
    p->query = q->query || (q->is_qemu && !strcmp(machine, "none"));
    set_names(p, q);
    if (is_confidential(q)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the guest is confidential: its memory cannot be read "
                    "from outside, and should not be");
        return NULL;
    }
    if (options->events && !check_events(options->events, error)) {
        return NULL;
    }
    if (options->programs && !p->query &&
        !plan_programs(p, q, options->programs, error)) {
        return NULL;
    }
    if (!q->is_qemu) {
        p->given = HT_RECORD_WORDS_NONE;
        p->words_why = "it is not known to be QEMU";
        p->kernel = ht_record_kernel(argv);
        p->why = p->words_why;
    } else if (!p->query && !plan_qemu(p, q, *options, error)) {
        return NULL;
    }
    g_ptr_array_add(q->argv, NULL);
    p->argv = g_strdupv((char **)q->argv->pdata);
    return g_steal_pointer(&p);
}

void ht_record_plan_free(HtRecordPlan *p)
{
    if (p) {
        g_strfreev(p->argv);
        g_free(p->words);
        g_free(p->kernel);
        g_free(p->program);
        g_free(p->name);
        g_ptr_array_free(p->files, true);
        g_free(p);
    }
}
