/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: follow virtual machines with recorders
 *
 * One thread waits for messages and ends of recorders, for ends of machines
 * without a running recorder, and for signals. It looks for new processes every
 * two seconds.
 */
#include "hypertrace/base.h"
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/folder.h"
#include "cli/number.h"
#include "watch/disk.h"
#include "watch/recorder.h"
#include "watch/watch.h"

#define SCAN_US         (2 * G_USEC_PER_SEC)
/*
 * Period in us in which the sizes of all recordings are measured even if none
 * was made, because users can change their folders.
 */
#define TRIM_US         (60 * G_USEC_PER_SEC)
/*
 * Minimum pause in us between two measurements of the recordings' sizes: a
 * guest can cause many recordings.
 */
#define TRIM_MIN_US     (5 * G_USEC_PER_SEC)
#define TOLD_MAX        1024
/*
 * Minimum time in us between a measurement and a further one that is made
 * because the file system is full
 */
#define ROOM_US         (10 * G_USEC_PER_SEC)
/* Time in us in which recorders must end before they are killed */
#define END_US          (20 * G_USEC_PER_SEC)

typedef struct Watch {
    const HtWatchSettings *settings;
    HtWatchVms *vms;
    GPtrArray *recorders;
    int dir;
    int signals;
    /* bytes of disk space to keep free for the next recording */
    uint64_t reserve;
    int64_t next_scan;
    int64_t next_trim;
    /* time of the last measurement of the recordings' sizes, in us */
    int64_t trimmed;
    /* the printed reasons why machines are not recorded */
    GHashTable *told;
    /* since a machine ended, it was printed that max_memory is reached */
    bool crowded;
    bool stop;
} Watch;

static void free_recorder(void *opaque)
{
    ht_watch_recorder_free(opaque);
}

static bool in_use(const Watch *w, const char *where)
{
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        if (!strcmp(r->where, where)) {
            return true;
        }
    }
    return false;
}

/*
 * Choose the folder of a machine: its name in the folder of its user.  Append a
 * number if another machine uses that folder now.
 */
static char *choose_folder(const Watch *w, const char *user, const char *vm)
{
    char *where = g_build_filename(user, vm, NULL);
    unsigned i;

    for (i = 2; in_use(w, where); i++) {
        g_autofree char *numbered = g_strdup_printf("%s-%u", vm, i);

        g_free(where);
        where = g_build_filename(user, numbered, NULL);
    }
    return where;
}

/*
 * Test whether a machine is in @w->recorders already. The scan may return a
 * process twice, because the inode of a folder in /proc is not constant.
 */
static bool is_known(const Watch *w, const HtWatchVm *vm)
{
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        if (r->vm->process->pid == vm->process->pid &&
            !ht_process_ended(r->vm->process)) {
            return true;
        }
    }
    return false;
}

static unsigned count_of_user(const Watch *w, uid_t uid)
{
    unsigned n = 0, i;

    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        n += r->vm->owner.uid == uid;
    }
    return n;
}

/*
 * Try to record the machine later, and free @vm. Print the reason, unless it
 * was printed before, or TOLD_MAX other reasons were.
 */
static void postpone(Watch *w, HtWatchVm *vm, const char *reason)
{
    if (g_hash_table_size(w->told) < TOLD_MAX &&
        g_hash_table_add(w->told, g_strdup(reason))) {
        ht_error("process %d is not recorded: %s", (int)vm->process->pid,
                 reason);
    }
    ht_watch_vms_again(w->vms, vm->process->pid);
    ht_watch_vm_free(vm);
}

static void add_vm(Watch *w, HtWatchVm *vm)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *user = NULL, *where = NULL, *reason = NULL;

    if (is_known(w, vm)) {
        ht_watch_vm_free(vm);
        return;
    }
    if (count_of_user(w, vm->owner.uid) >= w->settings->max_vms) {
        reason = g_strdup_printf("user %u has %u recorded machine%s, the limit "
                                 "of max-vms", (unsigned)vm->owner.uid,
                                 w->settings->max_vms,
                                 ht_number_s(w->settings->max_vms));
        postpone(w, vm, reason);
        return;
    }
    user = ht_watch_disk_user(w->dir, vm->owner.uid, vm->owner.gid, &error);
    if (!user) {
        postpone(w, vm, error->message);
        return;
    }
    where = choose_folder(w, user, vm->name);
    ht_notice("%s: found process %d", where, (int)vm->process->pid);
    g_ptr_array_add(w->recorders, ht_watch_recorder_new(vm, where));
}

static void scan(Watch *w, int64_t now)
{
    g_autoptr(GPtrArray) found = NULL;
    unsigned i;

    if (now < w->next_scan) {
        return;
    }
    found = ht_watch_vms_scan(w->vms);
    for (i = 0; i < found->len; i++) {
        add_vm(w, found->pdata[i]);
    }
    w->next_scan = now + SCAN_US;
}

/*
 * Check whether the memory of the recorder @next fits into the limit for all
 * recorders together. If not, print a message, but no further one until a
 * machine has ended.
 */
static bool has_memory(Watch *w, const HtWatchRecorder *next)
{
    uint64_t sum = next->vm->rule->size;
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        sum += r->child ? r->vm->rule->size : 0;
    }
    if (sum <= w->settings->max_memory) {
        return true;
    }
    if (!w->crowded) {
        ht_error("%s and further virtual machines wait until others end: all "
                 "recorders together have the memory of max-memory, %" PRIu64
                 " MiB", next->where, w->settings->max_memory >> 20);
        w->crowded = true;
    }
    return false;
}

static void start_recorders(Watch *w, int64_t now)
{
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        HtWatchRecorder *r = w->recorders->pdata[i];
        g_autoptr(GError) error = NULL;

        if (!r->child && now >= r->due && !ht_process_ended(r->vm->process) &&
            has_memory(w, r) &&
            !ht_watch_recorder_start(r, w->settings, &error)) {
            ht_error("%s: %s", r->where, error->message);
        }
    }
}

/* Remove a machine's folder if it is empty. */
static void remove_folder(const Watch *w, const HtWatchRecorder *r)
{
    g_autofree char *user = g_path_get_dirname(r->where);
    g_autofree char *vm = g_path_get_basename(r->where);
    int fd = ht_folder_open(w->dir, user);

    if (fd >= 0) {
        unlinkat(fd, vm, AT_REMOVEDIR);
        close(fd);
    }
}

/* Forget each machine that has ended, after its recorder has ended, too. */
static void forget_ended(Watch *w)
{
    unsigned i;

    for (i = w->recorders->len; i-- > 0;) {
        HtWatchRecorder *r = w->recorders->pdata[i];

        if (!r->child && ht_process_ended(r->vm->process)) {
            remove_folder(w, r);
            g_ptr_array_remove_index(w->recorders, i);
            w->crowded = false;
        }
    }
}

static void trim_soon(Watch *w)
{
    w->next_trim = MIN(w->next_trim, w->trimmed + TRIM_MIN_US);
}

static void reap(Watch *w)
{
    int status;
    pid_t pid;
    unsigned i;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (i = 0; i < w->recorders->len; i++) {
            HtWatchRecorder *r = w->recorders->pdata[i];

            if (r->child == pid) {
                if (ht_watch_recorder_read(r)) {
                    trim_soon(w);
                }
                ht_watch_recorder_ended(r, status);
            }
        }
    }
}

static void read_signals(Watch *w)
{
    struct signalfd_siginfo info;

    while (read(w->signals, &info, sizeof(info)) == sizeof(info)) {
        w->stop |= info.ssi_signo != SIGCHLD;
    }
}

static void trim(Watch *w, int64_t now)
{
    /*
     * If the disk space was not measured for ROOM_US, check whether the file
     * system is full: other programs can fill it.
     */
    if (now >= w->next_trim ||
        (now >= w->trimmed + ROOM_US &&
         ht_watch_disk_is_full(w->dir, w->reserve))) {
        ht_watch_disk_trim(w->dir, w->settings->max_disk, w->reserve);
        w->trimmed = now;
        w->next_trim = now + TRIM_US;
    }
}

/*
 * Wait until the time @until in us, or until a signal, a message or the end of
 * a process arrives. Then handle signals, messages and ended recorders.
 */
static void wait_until(Watch *w, int64_t until)
{
    g_autofree struct pollfd *fds = g_new0(struct pollfd,
                                           2 * w->recorders->len + 1);
    int64_t us = until - g_get_monotonic_time();
    unsigned n = 0, i;

    fds[n++] = (struct pollfd) { .fd = w->signals, .events = POLLIN };
    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        fds[n++] = (struct pollfd) { .fd = r->out, .events = POLLIN };
        fds[n++] = (struct pollfd) {
            .fd = r->child ? -1 : r->vm->process->pidfd, .events = POLLIN,
        };
    }
    poll(fds, n, us > 0 ? us / 1000 + 1 : 0);
    read_signals(w);
    for (i = 0; i < w->recorders->len; i++) {
        if (fds[2 * i + 1].revents &&
            ht_watch_recorder_read(w->recorders->pdata[i])) {
            trim_soon(w);
        }
    }
    reap(w);
}

static void signal_all(const Watch *w, int sig)
{
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        const HtWatchRecorder *r = w->recorders->pdata[i];

        if (r->child) {
            kill(r->child, sig);
        }
    }
}

static bool any_child(const Watch *w)
{
    unsigned i;

    for (i = 0; i < w->recorders->len; i++) {
        if (((HtWatchRecorder *)w->recorders->pdata[i])->child) {
            return true;
        }
    }
    return false;
}

/*
 * End all recorders by SIGTERM, so that they can complete their recordings.
 * Kill those that still run after END_US.
 */
static void end(Watch *w)
{
    int64_t until = g_get_monotonic_time() + END_US;

    signal_all(w, SIGTERM);
    while (any_child(w) && g_get_monotonic_time() < until) {
        wait_until(w, until);
    }
    signal_all(w, SIGKILL);
    while (any_child(w)) {
        wait_until(w, g_get_monotonic_time() + END_US);
    }
}

static void follow(Watch *w)
{
    while (!w->stop) {
        int64_t now = g_get_monotonic_time();

        forget_ended(w);
        scan(w, now);
        start_recorders(w, now);
        trim(w, now);
        wait_until(w, MIN(w->next_scan, w->next_trim));
    }
}

static int make_signals(void)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGCHLD };
    sigset_t set;
    unsigned i;

    sigemptyset(&set);
    for (i = 0; i < G_N_ELEMENTS(signals); i++) {
        /*
         * Restore the default action: this process may ignore the signal
         * because its parent did, and its children would ignore it, too.
         */
        signal(signals[i], SIG_DFL);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Raise the limit of open files: each virtual machine needs three descriptors.
 */
static void raise_limit(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int ht_watch_run(const HtWatchSettings *settings)
{
    g_autoptr(GError) error = NULL;
    Watch w = {
        .settings = settings,
        .reserve = ht_watch_settings_recording(settings),
    };

    /*
     * If the folder of all recordings is created now, users must be able to
     * pass through it to their own folders, which get mode 0700.
     */
    umask(022);
    raise_limit();
    w.dir = ht_watch_disk_open(settings->dir, &error);
    if (w.dir < 0) {
        return ht_error("%s", error->message);
    }
    w.signals = make_signals();
    w.vms = ht_watch_vms_new(settings);
    w.told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    w.recorders = g_ptr_array_new_with_free_func(free_recorder);
    follow(&w);
    end(&w);
    g_ptr_array_free(w.recorders, true);
    ht_watch_vms_free(w.vms);
    g_hash_table_destroy(w.told);
    close(w.signals);
    close(w.dir);
    return HT_EXIT_OK;
}
