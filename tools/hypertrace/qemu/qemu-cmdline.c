/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse a command line of QEMU
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "qemu/qemu-cmdline.h"

/*
 * Configuration file that QEMU, as distributions build it, reads before its
 * options, if it exists and -no-user-config is not given
 */
#define SYSTEM_CONFIG "/etc/qemu/qemu.conf"

/* Options of QEMU 5 to 11 without an argument */
static const char * const flags[] = {
    "S", "audio-help", "async-teardown", "curses", "daemonize", "enable-fips",
    "enable-kvm", "enable-sync-profile", "full-screen", "h", "help",
    "jitdump", "mem-prealloc", "no-acpi", "no-fd-bootchk", "no-hpet",
    "no-quit", "no-reboot", "no-shutdown", "no-user-config", "nodefaults",
    "nographic", "old-param", "only-migratable", "perfmap", "portrait",
    "preconfig", "s", "sdl", "semihosting", "singlestep", "snapshot", "usb",
    "version", "win2k-hack", "xen-attach", "xen-domid-restrict", NULL
};

/*
 * Options with an argument. The word after such an option is its argument also
 * if it looks like an option.
 */
static const char * const valued[] = {
    "D", "L", "M", "accel", "acpitable", "action", "add-fd", "alt-grab",
    "append", "audio", "audiodev", "bios", "blockdev", "boot", "bt", "cdrom",
    "chardev", "chroot", "compat", "cpu", "ctrl-grab", "d", "debugcon",
    "device", "dfilter", "display", "drive", "dtb", "dump-vmstate", "echr",
    "fda", "fdb", "fsdev", "fw_cfg", "g", "gdb", "global", "hda", "hdachs",
    "hdb", "hdc", "hdd", "icount", "igvm", "incoming", "initrd", "iscsi", "k",
    "kernel", "loadvm", "m", "machine", "mem-path", "mon", "monitor", "msg",
    "mtdblock", "name", "net", "netdev", "nic", "numa", "object",
    "option-rom", "overcommit", "parallel", "pflash", "pidfile", "plugin",
    "prom-env", "qmp", "qmp-pretty", "qtest", "qtest-log", "readconfig",
    "realtime", "redir", "rotate", "rtc", "run-with", "runas", "sandbox",
    "sd", "seed", "semihosting-config", "serial", "set", "shim", "smbios",
    "smp", "soundhw", "spice", "tb-size", "tpmdev", "trace", "usbdevice",
    "uuid", "vga", "virtfs", "virtfs_synth", "vnc", "watchdog",
    "watchdog-action", "writeconfig", "xen-domid", NULL
};

static bool is_in(const char *name, const char * const *list)
{
    return g_strv_contains(list, name);
}

static const char *option_name(const char *arg)
{
    if (arg[0] != '-' || !arg[1]) {
        return NULL;
    }
    return arg + (arg[1] == '-' ? 2 : 1);
}

/*
 * Check whether the word after an option is the option's argument. After an
 * unknown option, assume so unless the word looks like an option.
 */
static bool has_value(const char *name, const char *next)
{
    return next && !is_in(name, flags) &&
           (is_in(name, valued) || !option_name(next));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_short_name(const char *path)
{
    static const char * const names[] = { "qemu", "qemu-kvm", "kvm", NULL };

    return is_in(base_name(path), names);
}

static bool is_long_name(const char *path)
{
    return g_str_has_prefix(base_name(path), "qemu-system-");
}

/*
 * Check whether some word is a usual option of QEMU. Then the program is
 * probably a wrapper, which passes its arguments to QEMU.
 */
static bool are_qemu_options(char **argv)
{
    static const char * const known[] = {
        "-M", "-accel", "-append", "-blockdev", "-cpu", "-device", "-display",
        "-drive", "-enable-kvm", "-hda", "-initrd", "-kernel", "-machine",
        "-netdev", "-no-reboot", "-nodefaults", "-nographic", "-smp", NULL
    };

    while (*argv && !is_in(*argv, known)) {
        argv++;
    }
    return *argv;
}

static bool is_option(const char *arg, const char * const *list)
{
    const char *name = option_name(arg);

    return name && is_in(name, list);
}

/*
 * Find the word that is QEMU's name. Words before it belong to a program that
 * starts QEMU. Returns false if the program is probably not QEMU.
 */
static bool find_program(HtQemu *q, char **argv)
{
    unsigned i;

    if (is_long_name(argv[0]) || is_short_name(argv[0])) {
        return true;
    }
    for (i = 1; argv[i]; i++) {
        if (q->program && is_option(argv[i - 1], valued)) {
            continue;           /* probably an argument of QEMU's option */
        }
        if (is_long_name(argv[i])) {
            q->program = i;
            return true;
        }
        /*
         * A short name (qemu, kvm) may also be an argument of the program that
         * starts QEMU, as in "sudo -u qemu -g kvm qemu-kvm". So an option of
         * QEMU must follow, and a later name is preferred.
         */
        if (is_short_name(argv[i]) && argv[i + 1] &&
            (is_option(argv[i + 1], flags) ||
             is_option(argv[i + 1], valued))) {
            q->program = i;
        }
    }
    return q->program || are_qemu_options(argv + 1);
}

static HtMachine machine_named(const char *name)
{
    HtMachine machine;

    for (machine = HT_MACHINE_UNKNOWN + 1; machine <= HT_MACHINE_AARCH64;
         machine++) {
        if (!strcmp(name, ht_machine_name(machine))) {
            return machine;
        }
    }
    return HT_MACHINE_UNKNOWN;
}

/*
 * Get the architecture from the name of the program, or of the file to which
 * the program is a link. If neither name begins with "qemu-system-", assume
 * that QEMU emulates the host's architecture.
 */
static HtMachine find_machine(const char *program)
{
    static const char prefix[] = "qemu-system-";
    g_autofree char *found = g_find_program_in_path(program);
    g_autofree char *real = found ? realpath(found, NULL) : NULL;
    const char *names[] = { base_name(program),
                            real ? base_name(real) : "" };
    struct utsname host;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_has_prefix(names[i], prefix)) {
            return machine_named(names[i] + strlen(prefix));
        }
    }
    return uname(&host) ? HT_MACHINE_UNKNOWN : machine_named(host.machine);
}

static void parse_into(HtQemu *q, HtOpts *opts, const char *value,
                       const char *implied)
{
    q->opaque |= !ht_opts_parse(opts, value, implied);
}

static void parse_one_more(HtQemu *q, GPtrArray *list, const char *value,
                           const char *implied)
{
    HtOpts *opts = ht_opts_new();

    parse_into(q, opts, value, implied);
    g_ptr_array_add(list, opts);
}

/*
 * Add the values of the option -smp to the machine's, with "smp." before
 * their names.
 */
static void add_smp(HtQemu *q, const HtOpts *smp)
{
    unsigned i;

    for (i = 0; i < smp->len; i++) {
        const HtOpt *opt = smp->pdata[i];
        g_autofree char *name = g_strconcat("smp.", opt->name, NULL);

        ht_opts_add(q->machine, name, opt->value);
    }
}

static void append_all(HtOpts *to, const HtOpts *from)
{
    unsigned i;

    for (i = 0; i < from->len; i++) {
        const HtOpt *opt = from->pdata[i];

        ht_opts_add(to, opt->name, opt->value);
    }
}

static void add_machine(HtQemu *q, const HtOpts *opts)
{
    if (ht_opts_get(opts, "append")) {
        q->append_at = 0;
    }
    append_all(q->machine, opts);
}

static void read_group(const char *group, HtOpts *opts, void *opaque)
{
    HtQemu *q = opaque;

    if (!strcmp(group, "machine")) {
        add_machine(q, opts);
    } else if (!strcmp(group, "smp-opts")) {
        add_smp(q, opts);
    } else if (!strcmp(group, "memory")) {
        append_all(q->memory, opts);
    } else if (!strcmp(group, "object")) {
        g_ptr_array_add(q->objects, g_ptr_array_ref(opts));
    } else if (!strcmp(group, "numa")) {
        g_ptr_array_add(q->numa, g_ptr_array_ref(opts));
    } else if (!strcmp(group, "name")) {
        append_all(q->name, opts);
    } else if (!strcmp(group, "icount")) {
        q->replayed |= ht_opts_get(opts, "rr") != NULL;
    }
}

static void read_value(HtQemu *q, const char *value, bool *flag,
                       const char *name)
{
    g_autoptr(HtOpts) opts = ht_opts_new();

    parse_into(q, opts, value, NULL);
    *flag |= ht_opts_get(opts, name) != NULL;
}

/* Check whether an option only asks for help: "help", "?" or "NAME,help". */
static bool asks_for_help(const char *name, const char *value)
{
    static const char * const options[] = {
        "M", "accel", "audio", "audiodev", "chardev", "cpu", "d", "device",
        "display", "machine", "mon", "netdev", "nic", "object", "plugin",
        "smp", "tpmdev", "trace", "vga", "watchdog", NULL
    };

    return is_in(name, options) &&
           (!strcmp(value, "help") || !strcmp(value, "?") ||
            g_str_has_suffix(value, ",help") ||
            g_str_has_suffix(value, ",?"));
}

static void read_machine(HtQemu *q, const char *value)
{
    g_autoptr(HtOpts) opts = ht_opts_new();

    parse_into(q, opts, value, "type");
    add_machine(q, opts);
}

static void read_smp(HtQemu *q, const char *value)
{
    g_autoptr(HtOpts) opts = ht_opts_new();

    parse_into(q, opts, value, "cpus");
    add_smp(q, opts);
}

static bool uses_terminal(const char *name, const char *value)
{
    static const char * const options[] = {
        "chardev", "display", "mon", "monitor", "parallel", "qmp",
        "qmp-pretty", "serial", NULL
    };

    return is_in(name, options) &&
           (strstr(value, "stdio") || strstr(value, "curses"));
}

static void read_option(HtQemu *q, const char *name, const char *value,
                        unsigned index)
{
    static const char * const images[] = {
        "append", "dtb", "initrd", "kernel", NULL
    };

    q->terminal |= uses_terminal(name, value);
    q->query |= asks_for_help(name, value);
    if (is_in(name, images)) {
        ht_opts_add(q->machine, name, value);
        q->append_at = strcmp(name, "append") ? q->append_at : index;
    } else if (!strcmp(name, "M") || !strcmp(name, "machine")) {
        read_machine(q, value);
    } else if (!strcmp(name, "smp")) {
        read_smp(q, value);
    } else if (!strcmp(name, "m")) {
        parse_into(q, q->memory, value, "size");
    } else if (!strcmp(name, "name")) {
        parse_into(q, q->name, value, "guest");
    } else if (!strcmp(name, "object")) {
        parse_one_more(q, q->objects, value, "qom-type");
    } else if (!strcmp(name, "numa")) {
        parse_one_more(q, q->numa, value, "type");
    } else if (!strcmp(name, "smbios")) {
        g_array_append_val(q->smbios, index);
    } else if (!strcmp(name, "mem-path")) {
        q->mem_path = value;
    } else if (!strcmp(name, "readconfig")) {
        q->opaque |= !ht_opts_config(value, read_group, q);
    } else if (!strcmp(name, "icount")) {
        read_value(q, value, &q->replayed, "rr");
    } else if (!strcmp(name, "accel")) {
        q->xen |= g_str_has_prefix(value, "xen");
    } else if (!strcmp(name, "xen-domid")) {
        q->xen = true;
    } else if (!strcmp(name, "loadvm") || !strcmp(name, "incoming")) {
        q->restored = true;
    }
}

static void read_flag(HtQemu *q, const char *name)
{
    static const char * const queries[] = {
        "audio-help", "h", "help", "version", NULL
    };

    q->query |= is_in(name, queries);
    q->daemonize |= !strcmp(name, "daemonize");
    q->configured |= !strcmp(name, "preconfig");
    q->xen |= g_str_has_prefix(name, "xen-");
    q->terminal |= !strcmp(name, "nographic") || !strcmp(name, "curses");
}

static void free_opts(void *opts)
{
    g_ptr_array_unref(opts);
}

static void read_all(HtQemu *q)
{
    char **argv = (char **)q->argv->pdata;
    unsigned n = q->argv->len, i;
    bool config = true;

    for (i = q->program + 1; i < n; i++) {
        config &= strcmp(argv[i], "-no-user-config") &&
                  strcmp(argv[i], "--no-user-config");
    }
    if (config && g_file_test(SYSTEM_CONFIG, G_FILE_TEST_EXISTS)) {
        q->opaque |= !ht_opts_config(SYSTEM_CONFIG, read_group, q);
    }
    for (i = q->program + 1; i < n; i++) {
        const char *name = option_name(argv[i]);

        if (name && has_value(name, i + 1 < n ? argv[i + 1] : NULL)) {
            i++;
            read_option(q, name, argv[i], i);
        } else if (name) {
            read_flag(q, name);
        }
    }
}

HtQemu *ht_qemu_parse(char **argv)
{
    HtQemu *q = g_new0(HtQemu, 1);
    unsigned i;

    q->argv = g_ptr_array_new_with_free_func(g_free);
    q->machine = ht_opts_new();
    q->memory = ht_opts_new();
    q->name = ht_opts_new();
    q->objects = g_ptr_array_new_with_free_func(free_opts);
    q->numa = g_ptr_array_new_with_free_func(free_opts);
    q->smbios = g_array_new(false, false, sizeof(unsigned));
    for (i = 0; argv[i]; i++) {
        g_ptr_array_add(q->argv, g_strdup(argv[i]));
    }
    q->is_qemu = find_program(q, argv);
    if (q->is_qemu) {
        q->machine_of = find_machine(argv[q->program]);
        read_all(q);
    }
    return q;
}

void ht_qemu_free(HtQemu *q)
{
    if (q) {
        g_ptr_array_unref(q->argv);
        g_ptr_array_unref(q->machine);
        g_ptr_array_unref(q->memory);
        g_ptr_array_unref(q->name);
        g_ptr_array_unref(q->objects);
        g_ptr_array_unref(q->numa);
        g_array_unref(q->smbios);
        g_free(q);
    }
}

const HtOpts *ht_qemu_object(const HtQemu *q, const char *id)
{
    unsigned i;

    for (i = 0; i < q->objects->len; i++) {
        if (!g_strcmp0(ht_opts_get(q->objects->pdata[i], "id"), id)) {
            return q->objects->pdata[i];
        }
    }
    return NULL;
}

void ht_qemu_add(HtQemu *q, const char *option, char *value)
{
    g_ptr_array_add(q->argv, g_strdup(option));
    g_ptr_array_add(q->argv, value);
}
