/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/pager.h"

/* process id of the pager, or 0; on_signal() reads and clears it, too */
static volatile sig_atomic_t pager;

static void wait_for_pager(void)
{
    pid_t pid = pager;

    pager = 0;
    close(STDOUT_FILENO);
    while (pid && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        continue;
    }
}

/*
 * Handle a signal that ends the command: first wait for the end of the pager,
 * because the pager may ignore the signal and go on using the terminal.
 */
static void on_signal(int sig)
{
    if (pager) {
        wait_for_pager();
    }
    /* SA_RESETHAND has restored the default action, which ends the process. */
    raise(sig);
}

/* Get the pager's command; NULL: use no pager */
static const char *command(void)
{
    const char *name = getenv("PAGER"), *term = getenv("TERM");
    g_autofree char *path = NULL;
    g_auto(GStrv) words = NULL;

    if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb")) {
        return NULL;
    }
    name = name ? name : "less";
    if (!strcmp(name, "cat") ||
        !g_shell_parse_argv(name, NULL, &words, NULL)) {
        return NULL;
    }
    path = g_find_program_in_path(words[0]);
    return path ? name : NULL;
}

static void run_pager(const char *name, int in)
{
    dup2(in, STDIN_FILENO);
    /*
     * Options of less, unless the user has set LESS: quit if all fits on the
     * screen, pass on colours, do not clear the screen.
     */
    setenv("LESS", "FRX", 0);
    signal(SIGPIPE, SIG_DFL);
    execl("/bin/sh", "sh", "-c", name, (char *)NULL);
    _exit(127);
}

static void end_pager(void)
{
    fflush(stdout);
    wait_for_pager();
}

bool ht_pager_start(void)
{
    struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
    const char *name = command();
    int fds[2];
    pid_t pid;

    if (!name || pager || pipe2(fds, O_CLOEXEC)) {
        return false;
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        run_pager(name, fds[0]);
    }
    close(fds[0]);
    if (pid < 0 || dup2(fds[1], STDOUT_FILENO) < 0) {
        close(fds[1]);
        return false;
    }
    close(fds[1]);
    pager = pid;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    atexit(end_pager);
    return true;
}
