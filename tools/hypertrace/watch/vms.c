/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: find virtual machines among the processes of this host
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include <pwd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "qemu/vm.h"
#include "watch/vms.h"

/*
 * A process may become a virtual machine only after some time: a service forks
 * first, a script may wait. So examine each process in its first FIRST_SCANS
 * scans, and later every AGAIN_US, but not more than AGAIN_MAX of the older
 * processes in a scan.
 */
#define FIRST_SCANS     3
#define AGAIN_US        (60 * G_USEC_PER_SEC)
#define AGAIN_MAX       64
/*
 * Maximum number of processes that are remembered; further processes are
 * ignored
 */
#define PROCESSES_MAX   200000
/*
 * Maximum number of bytes of the program's name in the name of a machine
 * without a name of its own
 */
#define PROGRAM_BYTES   52

/* State of a process that a scan has seen */
typedef struct Seen {
    /*
     * inode of the process's folder in /proc; another one usually means a later
     * process with the same PID
     */
    uint64_t inode;
    int64_t examined;
    /*
     * number of scans that have examined the process; FIRST_SCANS: examine it
     * only every AGAIN_US from now on
     */
    unsigned scans;
    /* number of the last scan in which the process was seen */
    unsigned round;
    /* ht_watch_vms_scan() has returned the machine */
    bool taken;
} Seen;

struct HtWatchVms {
    const HtWatchSettings *settings;
    GHashTable *seen;           /* table from a PID to Seen */
    unsigned round;
    int loadavg;                /* descriptor of /proc/loadavg, or -1 */
    pid_t newest;               /* newest_pid() at the last scan */
    /* earliest time in us at which a known process is examined again */
    int64_t next;
    /* it was printed that only root may record machines of other users */
    bool told;
};

void ht_watch_vm_free(HtWatchVm *vm)
{
    if (vm) {
        ht_process_free(vm->process);
        g_free(vm->name);
        g_free(vm);
    }
}

static void tell_root(HtWatchVms *v, const HtWatchVm *vm)
{
    const struct passwd *user = getpwuid(vm->owner.uid);
    g_autoptr(GString) name = g_string_new(NULL);

    if (v->told) {
        return;
    }
    v->told = true;
    ht_escape_str(name, HT_ESCAPE_TERMINAL, vm->name);
    ht_notice("virtual machines of other users are not recorded, as '%s' of "
              "%s: this needs root, for example 'systemctl start "
              "hypertrace-watch'", name->str, user ? user->pw_name : "another");
}

/*
 * Make a name that can be the name of a folder: the machine's user chooses
 * @name.
 */
static char *safe_name(const char *program, pid_t pid, const char *name)
{
    g_autofree char *number = g_strdup_printf("%.*s-%d", PROGRAM_BYTES, program,
                                              (int)pid);

    return ht_escape_file_name(name ? name : number);
}

/*
 * Examine the user and the program before the arguments, which any process can
 * make long. The process may run another program meanwhile, also one of another
 * user: program and user must be the same after the arguments were read.
 *
 * Return: the machine, if a rule of the settings chooses it and this process
 * may record it; else NULL
 */
static HtWatchVm *examine(HtWatchVms *v, pid_t pid)
{
    g_autofree char *program = NULL, *again = NULL, *name = NULL;
    g_autofree char **args = NULL;
    g_autoptr(HtWatchVm) vm = g_new0(HtWatchVm, 1);

    vm->process = ht_vm_maybe(pid) ? ht_process_new(pid, NULL) : NULL;
    program = vm->process ? ht_vm_program(vm->process) : NULL;
    if (!program ||
        !ht_process_owner(vm->process, &vm->owner) ||
        !ht_watch_settings_has_user(v->settings, vm->owner.uid)) {
        return NULL;
    }
    args = ht_process_args(vm->process, NULL);
    again = ht_vm_program(vm->process);
    name = args ? ht_vm_name(program, args) : NULL;
    vm->name = safe_name(program, pid, name);
    vm->rule = ht_watch_settings_match(v->settings, name ? name : vm->name,
                                       vm->owner.uid);
    if (!vm->rule || g_strcmp0(program, again) ||
        ht_vm_is_part(&vm->owner) ||
        !ht_process_is_owner(vm->process, &vm->owner)) {
        return NULL;
    }
    vm->process->owner = &vm->owner;
    if (geteuid() && vm->owner.uid != geteuid()) {
        tell_root(v, vm);
        return NULL;
    }
    return g_steal_pointer(&vm);
}

/*
 * Get the earliest time in us at which a process is examined again; INT64_MAX
 * if it is a machine that ht_watch_vms_scan() has returned.
 */
static int64_t due_time(const Seen *seen)
{
    return seen->taken ? INT64_MAX :
           seen->scans < FIRST_SCANS ? 0 : seen->examined + AGAIN_US;
}

static bool is_due(Seen *seen, int64_t now, unsigned *again)
{
    if (now < due_time(seen)) {
        return false;
    }
    if (seen->scans < FIRST_SCANS) {
        seen->scans++;
        return true;
    }
    if (*again >= AGAIN_MAX) {
        return false;
    }
    ++*again;
    return true;
}

static Seen *see(HtWatchVms *v, pid_t pid, uint64_t inode)
{
    Seen *seen = g_hash_table_lookup(v->seen, GINT_TO_POINTER(pid));

    if (!seen && g_hash_table_size(v->seen) >= PROCESSES_MAX) {
        return NULL;
    }
    if (!seen) {
        seen = g_new0(Seen, 1);
        g_hash_table_insert(v->seen, GINT_TO_POINTER(pid), seen);
    }
    if (seen->inode != inode) {
        *seen = (Seen) { .inode = inode };
    }
    seen->round = v->round;
    return seen;
}

static gboolean is_over(void *pid, void *seen, void *opaque)
{
    return ((Seen *)seen)->round != ((HtWatchVms *)opaque)->round;
}

/*
 * Read the PID or thread ID that the kernel has assigned last: the last word of
 * /proc/loadavg. Return: 0 if it is not known
 */
static pid_t newest_pid(const HtWatchVms *v)
{
    char text[128];
    ssize_t n = pread(v->loadavg, text, sizeof(text) - 1, 0);
    const char *word;

    text[MAX(n, 0)] = 0;
    word = strrchr(text, ' ');
    return word ? atoi(word) : 0;
}

/*
 * Check whether the list of all processes must be read: a process or thread was
 * created since the last scan, or a known process must be examined again.
 */
static bool is_list_due(HtWatchVms *v, int64_t now)
{
    pid_t newest = newest_pid(v);
    bool created = !newest || newest != v->newest;

    v->newest = newest;
    return created || now >= v->next;
}

GPtrArray *ht_watch_vms_scan(HtWatchVms *v)
{
    GPtrArray *found = g_ptr_array_new();
    int64_t now = g_get_monotonic_time();
    DIR *proc = is_list_due(v, now) ? opendir("/proc") : NULL;
    unsigned again = 0;
    struct dirent *e;

    if (!proc) {
        return found;
    }
    v->round++;
    v->next = INT64_MAX;
    while ((e = readdir(proc))) {
        pid_t pid = g_ascii_isdigit(*e->d_name) ? atoi(e->d_name) : 0;
        Seen *seen = pid ? see(v, pid, e->d_ino) : NULL;
        HtWatchVm *vm;

        if (seen && is_due(seen, now, &again)) {
            seen->examined = now;
            vm = examine(v, pid);
            if (vm) {
                seen->taken = true;
                g_ptr_array_add(found, vm);
            }
        }
        if (seen) {
            v->next = MIN(v->next, due_time(seen));
        }
    }
    closedir(proc);
    g_hash_table_foreach_remove(v->seen, is_over, v);
    return found;
}

void ht_watch_vms_again(HtWatchVms *v, pid_t pid)
{
    Seen *seen = g_hash_table_lookup(v->seen, GINT_TO_POINTER(pid));

    if (seen) {
        seen->taken = false;
        seen->scans = FIRST_SCANS;
        v->next = MIN(v->next, due_time(seen));
    }
}

HtWatchVms *ht_watch_vms_new(const HtWatchSettings *settings)
{
    HtWatchVms *v = g_new0(HtWatchVms, 1);

    v->settings = settings;
    v->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    v->seen = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return v;
}

void ht_watch_vms_free(HtWatchVms *v)
{
    g_hash_table_destroy(v->seen);
    if (v->loadavg >= 0) {
        close(v->loadavg);
    }
    g_free(v);
}
