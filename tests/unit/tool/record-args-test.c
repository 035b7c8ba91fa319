/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: QEMU's command line, before and after
 *
 * KERNEL in a row stands for a file that looks like a kernel.
 */
#include "hypertrace/base.h"
#include "record/record-args.h"

#define EVENTS  "sched,irq,initcall,printk,task,module:module_load," \
                "module:module_free"
#define WORDS   "reserve_mem=16M:2M:ht trace_instance=boot_map@ht," EVENTS
#define SMBIOS  "type=11,value=io.systemd.stub.kernel-cmdline-extra=" \
                "reserve_mem=16M:2M:ht trace_instance=boot_map@ht,,sched,," \
                "irq,,initcall,,printk,,task,,module:module_load,," \
                "module:module_free"
#define TOP(n)  "|-object|memory-backend-file,id=ht-top,size=" #n "M," \
                "mem-path=/proc/self/fd/100,share=on"
#define NODES(low, cpus) TWO_NODES(low, 118, cpus)
#define TWO_NODES(low, top, cpus)                                            \
    "|-object|memory-backend-ram,id=ht-ram,size=" #low "M" TOP(top)          \
    "|-numa|node,nodeid=0,cpus=" cpus ",memdev=ht-ram"                       \
    "|-numa|node,nodeid=1,memdev=ht-top"
#define ALL(n)                                                               \
    "|-object|memory-backend-file,id=ht-ram,size=" #n "M,"                   \
    "mem-path=/proc/self/fd/100,share=on|-machine|memory-backend=ht-ram"

static const struct {
    const char *what;
    const char *before;         /* words with | between */
    const char *after;          /* NULL: refused */
    HtRecordMemory memory;
    const char *message;        /* in the error */
} rows[] = {
    { "the usual", "q|-m|512|-kernel|KERNEL|-append|quiet",
      "q|-m|512|-kernel|KERNEL|-append|quiet " WORDS NODES(394, "0"),
      HT_RECORD_NODE, NULL },
    { "memory that is no multiple of 2 MiB", "q|-m|513|-kernel|KERNEL",
      "q|-m|513|-kernel|KERNEL" TWO_NODES(394, 119, "0") "|-append|" WORDS,
      HT_RECORD_NODE, NULL },
    { "no -append", "q|-m|1G|-smp|4|-kernel|KERNEL",
      "q|-m|1G|-smp|4|-kernel|KERNEL" NODES(906, "0-3") "|-append|" WORDS,
      HT_RECORD_NODE, NULL },
    { "the last -append counts", "q|-m|1G|-append|a|-kernel|KERNEL|-append|b",
      "q|-m|1G|-append|a|-kernel|KERNEL|-append|b " WORDS NODES(906, "0"),
      HT_RECORD_NODE, NULL },
    { "before init's arguments",
      "q|-m|1G|-kernel|KERNEL|--append|a -- -x",
      "q|-m|1G|-kernel|KERNEL|--append|a " WORDS " -- -x" NODES(906, "0"),
      HT_RECORD_NODE, NULL },
    { "an option's value is no option",
      "q|-m|1G|-name|-append|-kernel|KERNEL|-append|a--b",
      "q|-m|1G|-name|-append|-kernel|KERNEL|-append|a--b " WORDS
      NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "an option without a value",
      "qemu-system-aarch64|-M|virt|-m|1G|-semihosting|-append|a|-kernel|KERNEL",
      "qemu-system-aarch64|-M|virt|-m|1G|-semihosting|-append|a " WORDS
      "|-kernel|KERNEL" NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "one that nobody knows",
      "q|-m|1G|-of-tomorrow|-append|a|-kernel|KERNEL",
      "q|-m|1G|-of-tomorrow|-append|a " WORDS "|-kernel|KERNEL"
      NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "a value of one that nobody knows",
      "q|-m|1G|-of-tomorrow|x|-kernel|KERNEL|-serial|-|-append|-a",
      "q|-m|1G|-of-tomorrow|x|-kernel|KERNEL|-serial|-|-append|-a " WORDS
      NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "a ring already",
      "q|-m|1G|-kernel|KERNEL|-append|trace_instance=a@0x1000:1M,x b",
      "q|-m|1G|-kernel|KERNEL|-append|trace_instance=a@0x1000:1M,x b"
      NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "an instance that is no ring",
      "q|-m|1G|-kernel|KERNEL|-append|trace_instance=a,x b@c",
      "q|-m|1G|-kernel|KERNEL|-append|trace_instance=a,x b@c " WORDS
      NODES(906, "0"), HT_RECORD_NODE, NULL },
    { "a boot loader", "q|-m|1G|disk.img",
      "q|-m|1G|disk.img" NODES(906, "0") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, NULL },
    { "processors of sockets",
      "q|-m|size=1G,slots=2,maxmem=4G|-smp|sockets=2,cores=3|x",
      "q|-m|size=1G,slots=2,maxmem=4G|-smp|sockets=2,cores=3|x"
      NODES(906, "0-5") "|-smbios|" SMBIOS, HT_RECORD_NODE, NULL },
    { "more processors later", "q|-m|1G|-smp|2,maxcpus=8|x",
      "q|-m|1G|-smp|2,maxcpus=8|x" NODES(906, "0-7") "|-smbios|" SMBIOS,
      HT_RECORD_NODE, NULL },
    { "little memory", "q|-m|128|-kernel|KERNEL",
      "q|-m|128|-kernel|KERNEL" ALL(128) "|-append|" WORDS,
      HT_RECORD_MEMFD, NULL },
    { "the default memory", "q|-kernel|KERNEL",
      "q|-kernel|KERNEL" ALL(128) "|-append|" WORDS, HT_RECORD_MEMFD, NULL },
    { "a machine without nodes", "q|-M|microvm|-m|1G|-kernel|KERNEL",
      "q|-M|microvm|-m|1G|-kernel|KERNEL" ALL(1024) "|-append|" WORDS,
      HT_RECORD_MEMFD, NULL },
    { "a versioned machine", "q|-machine|pc-q35-7.2,accel=tcg|-m|1G|x",
      "q|-machine|pc-q35-7.2,accel=tcg|-m|1G|x" NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, NULL },
    { "arm64", "qemu-system-aarch64|-M|virt,gic-version=3|-m|1G|x",
      "qemu-system-aarch64|-M|virt,gic-version=3|-m|1G|x" NODES(906, "0")
      "|-smbios|" SMBIOS, HT_RECORD_NODE, NULL },
    { "shared memory of the user's",
      "q|-m|1G|-object|memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share=on|-machine|memory-backend=m|x",
      "q|-m|1G|-object|memory-backend-file,id=m,size=1G,"
      "mem-path=/dev/shm/ht-test-ram,share=on|-machine|memory-backend=m|x"
      "|-smbios|" SMBIOS, HT_RECORD_SHARED, NULL },
    { "private memory of the user's",
      "q|-m|1G|-object|memory-backend-ram,id=m,size=1G|-numa|node,memdev=m|x",
      "q|-m|1G|-object|memory-backend-ram,id=m,size=1G|-numa|node,memdev=m|x"
      "|-smbios|" SMBIOS, HT_RECORD_PROCESS, NULL },
    { "a file without a name",
      "q|-m|1G|-object|memory-backend-file,id=m,size=1G,mem-path=/dev/shm,"
      "share=on|-machine|memory-backend=m|x",
      "q|-m|1G|-object|memory-backend-file,id=m,size=1G,mem-path=/dev/shm,"
      "share=on|-machine|memory-backend=m|x|-smbios|" SMBIOS,
      HT_RECORD_PROCESS, NULL },
    { "nodes of the user's", "q|-m|1G|-numa|node|x",
      "q|-m|1G|-numa|node|x|-smbios|" SMBIOS, HT_RECORD_PROCESS, NULL },
    { "memory on a disk",
      "q|-m|1G|-object|memory-backend-file,id=m,size=1G,mem-path=/proc/x,"
      "share=on|x", NULL, 0, "on a disk" },
    { "SEV", "q|-object|sev-guest,id=s|-machine|q35|x", NULL, 0,
      "confidential" },
    { "TDX by its machine", "q|-machine|q35,confidential-guest-support=t|x",
      NULL, 0, "confidential" },
    { "SEV behind an option without a value",
      "q|-semihosting|-object|sev-guest,id=s|x", NULL, 0, "confidential" },
    { "in the background", "q|-daemonize|x", NULL, 0, "--pid" },
    { "no kernel", "q|-kernel|/proc/self/cmdline", NULL, 0,
      "no Linux kernel" },
    { "no file", "q|-kernel|nowhere/vmlinuz", NULL, 0, "nowhere/vmlinuz" },
};

/* As far as anybody looks at it, a kernel for x86 */
static char *make_kernel(void)
{
    uint8_t image[0x400] = { 0 };
    GError *error = NULL;
    char *path;
    int fd = g_file_open_tmp("ht-kernel-XXXXXX", &path, &error);

    g_assert_no_error(error);
    close(fd);
    memcpy(image + 0x202, "HdrS", 4);
    g_file_set_contents(path, (char *)image, sizeof(image), &error);
    g_assert_no_error(error);
    return path;
}

static char **words_of(const char *row, const char *kernel)
{
    g_auto(GStrv) parts = g_strsplit(row, "KERNEL", -1);
    g_autofree char *all = g_strjoinv(kernel, parts);

    return g_strsplit(all, "|", -1);
}

static HtRecordPlan *plan(const char *row, const char *kernel,
                          const char *events, GError **error)
{
    HtRecordOptions options = { .events = events, .size = HT_RECORD_SIZE };
    g_auto(GStrv) before = words_of(row, kernel);

    return ht_record_plan(before, &options, error);
}

static void test_rows(void)
{
    g_autofree char *kernel = make_kernel();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HtRecordPlan) p = plan(rows[i].before, kernel, NULL,
                                         &error);

        g_test_message("%s", rows[i].what);
        if (rows[i].after) {
            g_auto(GStrv) after = words_of(rows[i].after, kernel);
            g_autofree char *expected = g_strjoinv("|", after);
            g_autofree char *got = NULL;

            g_assert_no_error(error);
            got = g_strjoinv("|", p->argv);
            g_assert_cmpstr(got, ==, expected);
            g_assert_cmpint(p->memory, ==, rows[i].memory);
        } else {
            g_assert_null(p);
            g_assert_nonnull(error);
            g_assert_nonnull(strstr(error->message, rows[i].message));
        }
    }
    unlink(kernel);
}

static void test_events(void)
{
    static const char * const bad[] = {
        "", ",sched", "sched irq", "sched\"", "a=b", "x@y", "sched;",
    };
    g_autofree char *kernel = make_kernel(), *many = g_strnfill(2000, 'e');
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecordPlan) p = NULL;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(plan("q|-kernel|KERNEL", kernel, bad[i], &error));
        g_assert_nonnull(strstr(error->message, "--events"));
        g_clear_error(&error);
    }
    g_assert_null(plan("q|-kernel|KERNEL", kernel, many, &error));
    g_assert_nonnull(strstr(error->message, "at most 2047"));
    g_clear_error(&error);
    p = plan("q|-kernel|KERNEL", kernel, "sched:sched_*,irq", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(p->words, ==, "reserve_mem=16M:2M:ht trace_instance="
                    "boot_map@ht,sched:sched_*,irq,task,module:module_load,"
                    "module:module_free");
    unlink(kernel);
}

static void test_terminal(void)
{
    static const struct {
        const char *args;
        bool uses;
    } cases[] = {
        { "q|-nographic", true }, { "q|-serial|mon:stdio", true },
        { "q|-chardev|stdio,id=c", true }, { "q|-display|curses", true },
        { "q|-serial|file:x|-display|none", false }, { "q|x", false },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autoptr(HtRecordPlan) p = plan(cases[i].args, "", NULL, &error);

        g_assert_no_error(error);
        g_assert_cmpint(p->uses_terminal, ==, cases[i].uses);
    }
}

static void test_values(void)
{
    static const struct {
        const char *list, *name, *value;
    } opts[] = {
        { "pc,accel=tcg", "", "pc" }, { "pc,accel=tcg", "accel", "tcg" },
        { "a=1,b=2,a=3", "a", "3" }, { "a=x,,y,b=z", "a", "x,y" },
        { "a=x,,y,b=z", "b", "z" }, { "ab=1", "a", NULL },
        { "a=1", "", NULL }, { "x,y", "", "x" }, { "", "", NULL },
    };
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        { "512", 512ull << 20 }, { "1G", 1ull << 30 }, { "1.5G", 3ull << 29 },
        { "64k", 64 << 10 }, { "0", 0 }, { "-1", 0 }, { "x", 0 },
        { "1X", 0 }, { "1GB", 0 }, { "1e30", 0 }, { "nan", 0 }, { "", 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opts); i++) {
        g_autofree char *v = ht_record_opt(opts[i].list, opts[i].name);

        g_assert_cmpstr(v, ==, opts[i].value);
    }
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t bytes = 0;

        g_assert_cmpint(ht_record_size(sizes[i].text, 'M', &bytes), ==,
                        sizes[i].bytes != 0);
        g_assert_cmpuint(bytes, ==, sizes[i].bytes);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record-args/rows", test_rows);
    g_test_add_func("/record-args/events", test_events);
    g_test_add_func("/record-args/terminal", test_terminal);
    g_test_add_func("/record-args/values", test_values);
    return g_test_run();
}
