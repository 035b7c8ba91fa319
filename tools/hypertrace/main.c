/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: run the command that the first argument names; see hypertrace(1)
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/near.h"
#include "emulator/emulator.h"

/*
 * The commands, in the order of --help.  An entry without a function is a
 * heading.
 */
typedef struct HtCommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} HtCommand;

static const HtCommand commands[] = {
    { "Record", NULL, NULL },
    { "record", ht_record, "run a virtual machine and record its kernel" },
    { "snapshot", ht_snapshot, "have a flight recorder make a recording" },
    { "watch", ht_watch, "follow all virtual machines with flight recorders" },
    { "attach", ht_attach, "record programs of a machine started elsewhere" },
    { "domain", ht_domain, "prepare a domain of libvirt for recordings" },
    { "recover", ht_recover, "make a recording from a dead guest's memory" },
    { "events", ht_events, "list the events of a kernel or a recording" },
    { "See what happened", NULL, NULL },
    { "last", ht_last, "show the end of a boot on one page" },
    { "boot", ht_boot, "show the time of each part of a boot" },
    { "log", ht_log, "print the log of the guest's kernel" },
    { "report", ht_report, "print one line for each event" },
    { "top", ht_top, "list tasks by CPU time, and events by number" },
    { "latency", ht_latency, "measure the time from one event to another" },
    { "vcpus", ht_vcpus, "show what the host did with the vCPUs" },
    { "interference", ht_interference, "show which machines wait for others" },
    { "callgraph", ht_callgraph, "show calls of functions" },
    { "flame", ht_flame, "show the time of each stack of names" },
    { "export", ht_export, "write for trace-cmd, Perfetto, babeltrace2" },
    { "Control the hypertrace device in a running QEMU", NULL, NULL },
    { "status", ht_status, "show the state of the devices" },
    { "list", ht_list, "list classes of events, and which are enabled" },
    { "enable", ht_enable, "enable classes of events" },
    { "disable", ht_disable, "disable classes of events" },
    { "set", ht_set, "change a setting of the guest's event sources" },
    { "formats", ht_formats, "print a kernel's event formats" },
    { }
};

static void usage(FILE *out)
{
    const HtCommand *c;

    fputs("usage: hypertrace COMMAND [OPTIONS]\n\n"
          "Record and show the events of a virtual machine.\n", out);
    for (c = commands; c->name; c++) {
        if (!c->run) {
            fprintf(out, "\n%s:\n", c->name);
        } else {
            fprintf(out, "  %-12s %s\n", c->name, c->help);
        }
    }
    fputs("\nhypertrace help COMMAND shows the options of a command.\n"
          "If no recording is named, commands read the newest one in the"
          " working\ndirectory.\n", out);
}

/* finish() has flushed standard output and reported errors. */
static bool finished;

/*
 * Flush standard output. A full disk may be reported only now. A pipe that its
 * reader has closed is no error.
 */
static int finish(int status)
{
    finished = true;
    if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE) {
        perror("hypertrace: cannot write to standard output");
        return status ? status : HT_EXIT_ERROR;
    }
    return status;
}

/*
 * Function for atexit(): GLib calls exit(0) after it has printed the help of a
 * command, so flush standard output here.
 */
static void finish_help(void)
{
    if (!finished && finish(HT_EXIT_OK)) {
        _exit(HT_EXIT_ERROR);
    }
}

static void on_closed_pipe(int sig)
{
    (void)sig;
}

/*
 * Have write() fail with EPIPE instead of ending this process: a recorder must
 * go on if the program that reads its output has ended. Use a handler, not
 * SIG_IGN, which programs that the command starts, such as QEMU, would inherit.
 */
static void survive_closed_pipes(void)
{
    struct sigaction sa = {
        .sa_handler = on_closed_pipe,
        .sa_flags = SA_RESTART,
    }, before;

    if (!sigaction(SIGPIPE, NULL, &before) && before.sa_handler == SIG_DFL) {
        sigaction(SIGPIPE, &sa, NULL);
    }
}

/*
 * Open /dev/null in place of each closed standard stream: otherwise the next
 * file that is opened, such as the output of -o, gets the stream's number, and
 * thus the messages. A closed output is opened for reading, so that a write
 * still fails.
 */
static void fill_standard_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}

static const HtCommand *find(const char *name)
{
    const HtCommand *c;

    for (c = commands; c->name; c++) {
        if (c->run && !strcmp(name, c->name)) {
            return c;
        }
    }
    return NULL;
}

static int run(const HtCommand *c, int argc, char **argv)
{
    ht_messages_of(c->name);
    return finish(c->run(argc, argv));
}

static int unknown(const char *name)
{
    g_autoptr(GString) hint = g_string_new(NULL);
    HtNear near = { .name = name };
    const HtCommand *c;

    for (c = commands; c->name; c++) {
        if (c->run) {
            ht_near_add(&near, c->name);
        }
    }
    ht_near_text(&near, hint);
    return ht_usage_error("there is no command '%s'%s", name, hint->str);
}

static bool is_help(const char *word)
{
    return !strcmp(word, "help") || !strcmp(word, "--help") ||
           !strcmp(word, "-h");
}

int main(int argc, char **argv)
{
    const HtCommand *c;

    fill_standard_streams();
    if (argc && ht_is_emulator(argv[0])) {
        return ht_emulator(argc, argv);
    }
    survive_closed_pipes();
    atexit(finish_help);
    /* Set only LC_CTYPE: the form of numbers must not depend on the locale. */
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        usage(stderr);
        return HT_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("hypertrace " HT_VERSION);
        return finish(HT_EXIT_OK);
    }
    if (!strcmp(argv[1], "help") && argc > 2 && !is_help(argv[2])) {
        char *help[] = { argv[2], (char *)"--help", NULL };

        c = find(argv[2]);
        return c ? run(c, 2, help) : unknown(argv[2]);
    }
    if (is_help(argv[1])) {
        usage(stdout);
        return finish(HT_EXIT_OK);
    }
    c = find(argv[1]);
    return c ? run(c, argc - 1, argv + 1) : unknown(argv[1]);
}
