/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace formats: print the formats of a kernel's events
 */
#include <getopt.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/wrong-option.h"
#include "kernel/kernel.h"

static void usage(void)
{
    fputs("usage: hypertrace formats [OPTIONS] KERNEL\n\n"
          "Print the event formats of a kernel image. If they are not in the"
          " cache, the\nkernel is booted once in a guest without devices.\n\n"
          "  -o, --output FILE   write to FILE (default: standard output)\n"
          "      --busybox FILE  a static busybox for the kernel's"
          " architecture\n", stdout);
}

static int write_formats(const HtKernel *k, const char *path)
{
    g_autoptr(GError) error = NULL;

    if (!path) {
        fwrite(k->formats, 1, k->formats_size, stdout);
        return HT_EXIT_OK;
    }
    if (!g_file_set_contents(path, k->formats, k->formats_size, &error)) {
        return ht_error("%s", error->message);
    }
    return HT_EXIT_OK;
}

int ht_formats(int argc, char **argv)
{
    enum { BUSYBOX = 256 };
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' },
        { "busybox", required_argument, NULL, BUSYBOX },
        { "help", no_argument, NULL, 'h' },
        { }
    };
    const char *output = NULL, *busybox = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(HtKernel) k = NULL;
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) >= 0) {
        switch (c) {
        case 'o':
            output = optarg;
            break;
        case BUSYBOX:
            busybox = optarg;
            break;
        case 'h':
            usage();
            return HT_EXIT_OK;
        default:
            return ht_wrong_option(c, argv, options);
        }
    }
    if (argc - optind != 1) {
        return ht_usage_error("give one kernel image");
    }
    k = ht_kernel_get(argv[optind], NULL, busybox, &error);
    if (!k) {
        return ht_error("%s", error->message);
    }
    return write_formats(k, output);
}
