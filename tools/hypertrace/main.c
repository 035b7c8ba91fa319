/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: look into a virtual machine from outside; see hypertrace(1)
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

typedef struct HtCommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} HtCommand;

static const HtCommand commands[] = {
    { "record", ht_record, "run a virtual machine and record its kernel" },
    { "report", ht_report, "print the events, a line each" },
    { "recover", ht_recover, "make a recording of a dead guest's memory" },
    { "last", ht_last, "show on one page what a guest did last" },
    { "boot", ht_boot, "show where the time of a boot went" },
    { "log", ht_log, "print what the guest's kernel printed" },
    { "top", ht_top, "list which tasks ran and which events there are" },
    { "callgraph", ht_callgraph, "show which functions called which" },
    { "flame", ht_flame, "show where time went, as stacks of names" },
    { "latency", ht_latency, "say how long it is from one event to another" },
    { "export", ht_export, "write it for trace-cmd, Perfetto, babeltrace2" },
    { "status", ht_status, "show what hypertrace does in a QEMU that runs" },
    { "list", ht_list, "list its classes of events, and which are on" },
    { "enable", ht_enable, "let the guest emit some of them" },
    { "disable", ht_disable, "have the guest emit none of them" },
    { "set", ht_set, "tell who emits in the guest what to do" },
    { "snapshot", ht_snapshot, "record what is in the guest's ring by now" },
    { "formats", ht_formats, "print a kernel's event formats, for QEMU" },
    { }
};

static const char *current;

static void print_error(const char *format, va_list args)
{
    fprintf(stderr, "hypertrace%s%s: ", current ? " " : "",
            current ? current : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int ht_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return HT_EXIT_ERROR;
}

int ht_usage_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
    fprintf(stderr, "see: hypertrace%s%s --help\n", current ? " " : "",
            current ? current : "");
    return HT_EXIT_USAGE;
}

static void usage(FILE *out)
{
    const HtCommand *c;

    fputs("usage: hypertrace COMMAND [OPTIONS]\n\n"
          "Trace a virtual machine from outside. Commands:\n\n", out);
    for (c = commands; c->name; c++) {
        fprintf(out, "  %-10s %s\n", c->name, c->help);
    }
    fputs("\n  --help     this; after a command's name, that command's\n"
          "  --version  the version\n", out);
}

/* A full disk or a closed pipe shows only when the last bytes go. */
static int finish(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        perror("hypertrace: cannot write to standard output");
        return status ? status : HT_EXIT_ERROR;
    }
    return status;
}

int main(int argc, char **argv)
{
    const HtCommand *c;

    if (argc < 2) {
        usage(stderr);
        return HT_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
        !strcmp(argv[1], "help")) {
        usage(stdout);
        return finish(HT_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        puts("hypertrace " HT_VERSION);
        return finish(HT_EXIT_OK);
    }
    for (c = commands; c->name; c++) {
        if (!strcmp(argv[1], c->name)) {
            current = c->name;
            return finish(c->run(argc - 1, argv + 1));
        }
    }
    return ht_usage_error("there is no command '%s'", argv[1]);
}
