/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the processes that are virtual machines, and their names
 */
#include "hypertrace/base.h"
#include <dirent.h>

#include "hypertrace/pattern.h"
#include "qemu/vm.h"
#include "qemu/qemu-opts.h"

/*
 * Patterns for the names of known programs, which run virtual machines, each
 * with the option that names the machine, or NULL
 */
static const struct {
    const char *pattern;
    const char *option;
} programs[] = {
    { "qemu-system-*", "-name" },
    { "qemu-kvm", "-name" },
    { "kvm", "-name" },
    { "cloud-hypervisor*", NULL },
    { "crosvm", "--name" },
    { "firecracker*", "--id" },
    { "lkvm", "--name" },
};

static int find_program(const char *name)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(programs); i++) {
        if (ht_pattern_match(programs[i].pattern, name)) {
            return i;
        }
    }
    return -1;
}

/*
 * Get the first value of @option, from "-OPTION VALUE" or "-OPTION=VALUE", also
 * with two hyphens; NULL if the option is not given.
 */
static const char *option_value(const char *option, char **args)
{
    size_t len;

    for (option += strspn(option, "-"), len = strlen(option); *args; args++) {
        const char *arg = *args + strspn(*args, "-");

        if (arg == *args || strncmp(arg, option, len)) {
            continue;
        }
        if (arg[len] == '=') {
            return arg + len + 1;
        } else if (!arg[len] && args[1]) {
            return args[1];
        }
    }
    return NULL;
}

char *ht_vm_name(const char *program, char **args)
{
    int i = find_program(program);
    const char *value = i < 0 || !programs[i].option ? NULL :
                        option_value(programs[i].option, args);
    g_autoptr(HtOpts) opts = NULL;

    if (value && !strcmp(programs[i].option, "-name")) {
        opts = ht_opts_new();
        value = ht_opts_parse(opts, value, "guest") ?
                ht_opts_get(opts, "guest") : NULL;
    }
    return value && *value ? g_strdup(value) : NULL;
}

/*
 * Get the name of the file that a link such as /proc/PID/exe leads to. Return:
 * NULL on failure, with errno set
 */
static char *name_of_link(int dir, const char *link)
{
    char path[PATH_MAX];
    ssize_t n = readlinkat(dir, link, path, sizeof(path) - 1);

    if (n > 0) {
        path[n] = 0;
        /*
         * The kernel adds " (deleted)" after the file was removed or replaced,
         * for example by an upgrade.
         */
        if (g_str_has_suffix(path, " (deleted)")) {
            path[n - strlen(" (deleted)")] = 0;
        }
        return g_path_get_basename(path);
    }
    return NULL;
}

bool ht_vm_maybe(pid_t pid)
{
    g_autofree char *link = g_strdup_printf("/proc/%d/exe", (int)pid);
    g_autofree char *program = name_of_link(AT_FDCWD, link);

    return program ? find_program(program) >= 0 :
           errno == EACCES || errno == EPERM;
}

/*
 * Get the name of a process's program: from the link "exe" or, if this process
 * may not read the link, from the first word of the command line. Return: NULL
 * if neither names a program, as for a kernel thread
 */
static char *program_of(const HtProcess *p)
{
    char *program = name_of_link(p->dir, "exe");

    if (program) {
        return program;
    }
    if (errno == EACCES || errno == EPERM) {
        g_autofree char **args = ht_process_args(p, NULL);

        return args && args[0] && *args[0] ? g_path_get_basename(args[0]) :
               NULL;
    }
    return NULL;
}

char *ht_vm_program(const HtProcess *p)
{
    g_autofree char *program = program_of(p);

    return program && find_program(program) >= 0 ? g_steal_pointer(&program) :
           NULL;
}

bool ht_vm_is_part(const HtProcessOwner *owner)
{
    g_autoptr(HtProcess) parent = ht_process_new(owner->parent, NULL);
    g_autofree char *program = parent ? ht_vm_program(parent) : NULL;

    return program;
}

static bool has_name(const HtProcess *p, const char *wanted)
{
    g_autofree char *program = ht_vm_program(p);
    g_autofree char **args = program ? ht_process_args(p, NULL) : NULL;
    g_autofree char *name = args ? ht_vm_name(program, args) : NULL;
    HtProcessOwner owner;

    return !g_strcmp0(name, wanted) && ht_process_owner(p, &owner) &&
           !ht_vm_is_part(&owner);
}

static HtProcess *next_process(DIR *proc)
{
    struct dirent *e;

    while (proc && (e = readdir(proc))) {
        HtProcess *p = g_ascii_isdigit(*e->d_name) ?
                       ht_process_new(atoi(e->d_name), NULL) : NULL;

        if (p) {
            return p;
        }
    }
    return NULL;
}

HtProcess *ht_vm_find(const char *name, GError **error)
{
    g_autoptr(HtProcess) found = NULL;
    DIR *proc = opendir("/proc");
    HtProcess *p;
    pid_t other = 0;

    while (!other && (p = next_process(proc))) {
        if (!has_name(p, name)) {
            ht_process_free(p);
        } else if (!found) {
            found = p;
        } else {
            other = p->pid;
            ht_process_free(p);
        }
    }
    if (proc) {
        closedir(proc);
    }
    if (other) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "the processes "
                    "%d and %d have this name: give one of them with --pid",
                    (int)found->pid, (int)other);
        return NULL;
    }
    if (!found) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no virtual "
                    "machine with this name runs: 'virsh list' shows the "
                    "domains of libvirt that run");
    }
    return g_steal_pointer(&found);
}
