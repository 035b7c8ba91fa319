/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: helper guests that answer, hang, or end early
 *
 * A helper guest runs a kernel in QEMU and prints the kernel's data.  In this
 * test, a script runs instead of QEMU, and busybox is only an ELF header.
 */
#include "hypertrace/base.h"
#include <elf.h>
#include <glib/gstdio.h>

#include "kernel/kernel.h"

static char *dir;

static void write_file(const char *name, const void *data, size_t size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;

    g_file_set_contents(path, data, size, &error);
    g_assert_no_error(error);
    g_assert_cmpint(chmod(path, 0755), ==, 0);
}

static void remove_file(const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    unlink(path);
}

/*
 * Start a helper guest; @script runs instead of QEMU. Return the answer that it
 * prints, decompressed; NULL with @error set if no answer comes in @seconds or
 * the script fails.
 */
static char *ask(const char *script, unsigned seconds, GError **error)
{
    g_autofree char *busybox = g_build_filename(dir, "busybox", NULL);
    g_autoptr(GBytes) content = g_bytes_new_static("a kernel", 8);
    HtImage image = { .machine = HT_MACHINE_X86_64, .kernel_offset = 2,
                      .kernel_size = 6 };
    size_t size;

    write_file("qemu-system-x86_64", script, strlen(script));
    return ht_kernel_guest(content, &image, NULL, busybox, seconds, &size,
                           error);
}

static void refused(const char *script, unsigned seconds, const char *message)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ask(script, seconds, &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, message));
}

/* A guest that prints nothing and does not end is stopped after 1 s. */
static void test_silent(void)
{
    refused("#!/bin/sh\nexec sleep 1000\n", 1, "takes too long");
}

/* A guest that prints only a part of its answer is stopped after 1 s. */
static void test_half(void)
{
    refused("#!/bin/sh\necho hypertrace-data 100\nexec sleep 1000\n", 1,
            "takes too long");
}

static void test_ends(void)
{
    refused("#!/bin/sh\necho no such cpu\nexit 1\n", 100,
            "it printed: no such cpu");
}

/* QEMU can open the kernel and the initrd by the names on its command line. */
static void test_answer(void)
{
    static const char script[] =
        "#!/bin/sh\n"
        "while [ $# -gt 1 ]; do\n"
        "    [ \"$1\" != -kernel ] || kernel=$2\n"
        "    [ \"$1\" != -initrd ] || initrd=$2\n"
        "    shift\n"
        "done\n"
        "answer() { cat $kernel; head -c 6 $initrd; }\n"
        "echo hypertrace-data $(answer | gzip | wc -c)\n"
        "answer | gzip\n";
    g_autoptr(GError) error = NULL;
    g_autofree char *text = ask(script, 100, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "kernel070701");
}

int main(int argc, char **argv)
{
    Elf64_Ehdr busybox = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                     ELFDATA2LSB },
        .e_machine = EM_X86_64,
        .e_phentsize = sizeof(Elf64_Phdr),
    };
    g_autofree char *path = NULL;
    int status;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("ht-kernel-XXXXXX", NULL);
    g_assert_nonnull(dir);
    path = g_strdup_printf("%s:%s", dir, g_getenv("PATH"));
    g_setenv("PATH", path, true);
    write_file("busybox", &busybox, sizeof(busybox));
    g_test_add_func("/kernel-guest/silent", test_silent);
    g_test_add_func("/kernel-guest/half", test_half);
    g_test_add_func("/kernel-guest/ends", test_ends);
    g_test_add_func("/kernel-guest/answer", test_answer);
    status = g_test_run();
    remove_file("busybox");
    remove_file("qemu-system-x86_64");
    g_rmdir(dir);
    g_free(dir);
    return status;
}
