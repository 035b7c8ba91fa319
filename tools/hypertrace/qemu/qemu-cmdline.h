/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse a command line of QEMU
 *
 * Options that choose the machine, its memory or its kernel are merged as QEMU
 * merges them. Of -smbios, the places are listed. Most other options are
 * skipped.
 */
#ifndef HYPERTRACE_QEMU_CMDLINE_H
#define HYPERTRACE_QEMU_CMDLINE_H

#include "kernel/kernel.h"
#include "qemu/qemu-opts.h"

/**
 * struct HtQemu - a parsed command line
 * @argv: its words, newly allocated; not terminated by NULL
 * @program: index of QEMU's own name; words before it belong to a program that
 *           starts QEMU, for example sudo
 * @is_qemu: the program is QEMU, or probably passes its arguments to QEMU. If
 *           false, @argv is the only member with content
 * @machine_of: the architecture that QEMU emulates
 * @machine: all of -machine, -M, -smp (as "smp.cpus"), -kernel, -initrd, -dtb
 *           and -append, and their groups in configuration files
 * @memory: all of -m, and its groups in configuration files
 * @name: all of -name, and its groups in configuration files
 * @objects: an HtOpts for each -object, also of configuration files
 * @numa: an HtOpts for each -numa, also of configuration files
 * @smbios: index in @argv of each argument of -smbios, as unsigned
 * @append_at: index in @argv of the argument of the -append that is in effect;
 *             0 without -append, or if a later -machine or -readconfig sets
 *             the kernel's command line
 * @mem_path: the argument of the last -mem-path, or NULL
 * @query: QEMU prints something and runs no guest
 * @daemonize: QEMU goes to the background
 * @restored: the guest continues from a saved state (-loadvm, -incoming)
 * @replayed: an execution is recorded or replayed (-icount rr=)
 * @configured: the machine is configured later, through QMP (-preconfig)
 * @xen: the guest runs under Xen
 * @opaque: an option cannot be parsed, or a configuration file cannot be read
 * @terminal: an option lets the guest or QEMU use standard input and output
 */
typedef struct HtQemu {
    GPtrArray *argv;
    unsigned program;
    bool is_qemu;
    HtMachine machine_of;
    HtOpts *machine;
    HtOpts *memory;
    HtOpts *name;
    GPtrArray *objects;
    GPtrArray *numa;
    GArray *smbios;
    unsigned append_at;
    const char *mem_path;
    bool query;
    bool daemonize;
    bool restored;
    bool replayed;
    bool configured;
    bool xen;
    bool opaque;
    bool terminal;
} HtQemu;

/**
 * ht_qemu_parse() - parse a command line
 * @argv: at least one word; NULL after the last
 *
 * If &HtQemu.is_qemu is true, this also reads QEMU's configuration files:
 * /etc/qemu/qemu.conf, unless -no-user-config is given, and the file of each
 * -readconfig.
 *
 * Return: for ht_qemu_free()
 */
HtQemu *ht_qemu_parse(char **argv);
void ht_qemu_free(HtQemu *q);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtQemu, ht_qemu_free)

/**
 * ht_qemu_object() - find the -object with an id; NULL without it
 */
const HtOpts *ht_qemu_object(const HtQemu *q, const char *id);

/**
 * ht_qemu_add() - append an option to the command line
 * @option: the option, for example "-object"
 * @value: its argument; @q takes ownership
 */
void ht_qemu_add(HtQemu *q, const char *option, char *value);

#endif
