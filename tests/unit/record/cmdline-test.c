/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find QEMU's name in a command line that begins with another program
 */
#include "qemu/qemu-cmdline.h"

/*
 * Promise: an argument of the program that starts QEMU, or of QEMU, is not
 * taken for QEMU's name, also if it is "qemu" or "kvm" and an option follows.
 */
static void test_program(void)
{
    static const struct {
        const char *words;
        unsigned program;
    } rows[] = {
        { "qemu-kvm -m 1G -name kvm -smp 2", 0 },
        { "nice -n 5 qemu-kvm -m 1G", 3 },
        { "nice kvm -m 1G -name qemu -smp 2", 1 },
        { "nice kvm -pidfile /run/qemu-system-vm.pid -smp 2", 1 },
        { "nice kvm -drive file=/srv/qemu -mem-path /dev/shm/kvm -S", 1 },
        { "taskset -c 3 kvm --enable-kvm", 3 },
        { "env -C /srv/qemu -i qemu-system-x86_64", 4 },
        { "strace -D qemu-system-x86_64 -m 1G", 2 },
        { "strace -u qemu -f qemu-system-x86_64 disk", 4 },
        { "sudo -u qemu -E qemu-system-aarch64 -m 1G", 4 },
        { "sudo -u qemu -D /tmp qemu-system-aarch64 -m 1G", 5 },
        { "sudo -u qemu -g kvm qemu-kvm -m 1G", 5 },
        { "sudo -u kvm -S -- /usr/bin/kvm -nographic", 5 },
        { "runuser -u qemu -- qemu-kvm -nographic", 4 },
        { "setpriv --reuid qemu --regid kvm --clear-groups kvm -m 1G", 6 },
        { "systemd-run --unit qemu -p CPUQuota=50% qemu-kvm -m 1G", 5 },
        { "bwrap --dev-bind /dev/kvm /dev/kvm --bind / / kvm -m 1G", 7 },
        { "docker run --device /dev/kvm -h vm image qemu-system-x86_64", 7 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) argv = g_strsplit(rows[i].words, " ", -1);
        g_autoptr(HtQemu) q = ht_qemu_parse(argv);

        g_test_message("%s", rows[i].words);
        g_assert_cmpuint(q->program, ==, rows[i].program);
        g_assert_false(q->query);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cmdline/program", test_program);
    return g_test_run();
}
