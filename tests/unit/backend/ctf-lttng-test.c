/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write CTF with the names of events and fields of LTTng's kernel
 * tracer, and read it with babeltrace2
 */
#include "hypertrace/base.h"
#include "hypertrace/ctf-writer.h"
#include "output/ctf-lttng.h"
#include "backend-testlib.h"

static void test_events(void)
{
    static const char *const names[][2] = {
        { "sched_switch", "sched_switch" },
        { "sched_switch.v2", "sched_switch" },
        { "irq_handler_entry", "irq_handler_entry" },
        { "softirq_entry", "irq_softirq_entry" },
        { "softirq_raise.v11", "irq_softirq_raise" },
        { "hrtimer_expire_exit", "timer_hrtimer_expire_exit" },
        { "cpu_frequency", "power_cpu_frequency" },
        { "mm_page_free", "kmem_mm_page_free" },
        { "kmalloc", "kmem_kmalloc" },
        { "kfree.v1", "kmem_kfree" },
        { "kfree_skb", "skb_kfree" },
        { "netif_receive_skb_entry", "net_if_receive_skb_entry" },
        { "net_dev_queue", "net_dev_queue" },
        { "kvm_nested_vmexit", "kvm_x86_nested_vmexit" },
        { "kvm_userspace_exit", "kvm_userspace_exit" },
        { "page_fault_user", "x86_exceptions_page_fault_user" },
        { "call_function_single_exit",
          "x86_irq_vectors_call_function_single_exit" },
        { "x86_platform_ipi_entry", "x86_irq_vectors_ipi_entry" },
        { "sys_enter", "sys_enter" },
        { "sys_exit", "sys_exit" },
        { "sys_enter_openat", "syscall_entry_openat" },
        { "sys_exit_openat.v2", "syscall_exit_openat" },
        { "lttng_statedump_process_state", "lttng_statedump_process_state" },
        { "softirq.v2", "softirq" },
        { "softirq_.v2", "irq_softirq_" },
        { "a.vb", "a.vb" },
        { ".v2", "" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *got = ht_ctf_lttng_event(names[i][0]);

        g_assert_cmpstr(got, ==, names[i][1]);
    }
}

/*
 * Write a trace, with LTTng's names of events and fields if @lttng. The bytes
 * of the events do not depend on @lttng.
 */
static char *write_trace(const char *dir, bool lttng)
{
    static const HtStreamInfo stream = { .vcpu = 1, .instance = 1 };
    const HtCtfInfo info = {
        .vm_name = "vm", .device = "ht0", .channel = "shm", .lttng = lttng,
        .clock_uuid = "fedcba987654321",
    };
    static const char *const specs[][2] = {
        { "sched_switch", "s32:prev_pid s64:prev_state s32:next_pid" },
        { "sched_switch", "s32:common_pid s32:prev_pid" },
        { "sched_odd", "s32:pid s32:tid" },
        { "signal_generate", "s32:pid" },
        { "sys_enter_openat", "s32:dfd text:filename" },
    };
    HtClassTable *classes = ht_class_table_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    HtCtfWriter *w;
    char *path;
    HtRun m;
    TlRun r;
    unsigned i;

    g_assert_cmpint(ht_ctf_writer_new(dir, lttng ? "lttng" : "own", &info, 1,
                                      &w), ==, 0);
    m = tl_mark(&stream, HT_RUN_OPEN, 1, 0);
    g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
    tl_run_init(&r, &stream);
    for (i = 0; i < G_N_ELEMENTS(specs); i++) {
        HtClass *c = tl_class(classes, specs[i][0], specs[i][1]);

        g_assert_cmpint(ht_ctf_writer_class(w, c), ==, 0);
        tl_run_begin(&r, 0, 0);
        tl_run_event(&r, c, 1000 * (i + 1), rand, 5);
        g_assert_cmpint(ht_ctf_writer_run(w, tl_run_end(&r)), ==, 0);
    }
    tl_run_clear(&r);
    path = g_strdup(ht_ctf_writer_path(w));
    ht_ctf_writer_free(w);
    ht_class_table_free(classes);
    return path;
}

static void replace(char **text, const char *from, const char *to)
{
    g_auto(GStrv) parts = g_strsplit(*text, from, -1);

    g_free(*text);
    *text = g_strjoinv(to, parts);
}

static void test_trace(void)
{
    char *dir = tl_tmpdir();
    g_autofree char *own = write_trace(dir, false);
    g_autofree char *lttng = write_trace(dir, true);
    g_autofree char *metadata = g_strdup_printf("%s/metadata", lttng);
    g_autofree char *text = NULL, *want = tl_babeltrace(own, NULL);
    g_autofree char *got = tl_babeltrace(lttng, NULL);

    replace(&want, "sched_switch.v2", "sched_switch");
    replace(&want, "sys_enter_openat", "syscall_entry_openat");
    replace(&want, "prev_pid", "prev_tid");
    replace(&want, "next_pid", "next_tid");
    g_assert_cmpstr(got, ==, want);
    g_assert_nonnull(strstr(got, " signal_generate: "));
    g_assert_nonnull(strstr(got, "{ pid = "));

    g_assert_true(g_file_get_contents(metadata, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "env {\n"
                            "\thostname = \"vm\";\n"
                            "\tdomain = \"kernel\";\n"
                            "\tsysname = \"Linux\";\n"
                            "\ttracer_name = \"lttng-modules\";\n"
                            "\ttracer_major = 2;\n"
                            "\ttracer_minor = 13;\n"));
    g_assert_nonnull(strstr(text, "\tuuid = \"66656463-6261-3938-3736-"
                            "353433323100\";\n\tdescription"));
    g_assert_nonnull(strstr(text, "\tint32_t cpu_id;\n"));
    tl_rmdir(dir);
}

int main(int argc, char **argv)
{
    setlinebuf(stdout);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ctf-lttng/events", test_events);
    g_test_add_func("/ctf-lttng/trace", test_trace);
    return g_test_run();
}
