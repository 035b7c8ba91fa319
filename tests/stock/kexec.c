/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start another kernel from a running one, in a guest without kexec-tools.
 *
 *   kexec KERNEL INITRD COMMAND-LINE          load the kernel, and start it
 *   kexec KERNEL INITRD COMMAND-LINE crash    load it as the kdump kernel
 */
#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int kernel, initrd;
    unsigned long flags = argc == 5 ? KEXEC_FILE_ON_CRASH : 0;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: kexec KERNEL INITRD COMMAND-LINE [crash]\n");
        return 2;
    }
    kernel = open(argv[1], O_RDONLY);
    initrd = open(argv[2], O_RDONLY);
    if (kernel < 0 || initrd < 0 ||
        syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1,
                argv[3], flags)) {
        perror("kexec");
        return 1;
    }
    if (argc == 4) {
        syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                LINUX_REBOOT_CMD_KEXEC, NULL);
        perror("kexec");
        return 1;
    }
    return 0;
}
