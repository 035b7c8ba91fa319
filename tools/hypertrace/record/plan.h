/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what is changed of QEMU's command line
 *
 * The kernel gets words that make it keep a ring of events in its memory, and
 * that memory is made readable from outside. A machine that QEMU starts without
 * these changes starts with them: what is not understood stays as it is, and
 * then QEMU's process is read.
 */
#ifndef HYPERTRACE_RECORD_PLAN_H
#define HYPERTRACE_RECORD_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define HT_RECORD_EVENTS    "sched,irq,initcall,printk"
/* Needed for names of tasks, and for the types of modules' events */
#define HT_RECORD_ALWAYS    "task,module:module_load,module:module_free"
#define HT_RECORD_SIZE      (UINT64_C(16) << 20)
#define HT_RECORD_SIZE_MIN  (UINT64_C(1) << 20)
#define HT_RECORD_SIZE_MAX  (UINT64_C(1) << 30)

/* Number of the memory's descriptor in QEMU, or the next one that is free */
#define HT_RECORD_FD        100

/**
 * enum HtRecordMemory - how the guest's memory is read
 * @HT_RECORD_SHARED: the user's own memory backends, which are shared files
 * @HT_RECORD_NODE: a NUMA node on top of the memory, from a memfd of ours
 * @HT_RECORD_MEMFD: all of the memory, from a memfd of ours
 * @HT_RECORD_PROCESS: private: through QEMU's /proc/PID/mem, while it lives
 */
typedef enum HtRecordMemory {
    HT_RECORD_SHARED,
    HT_RECORD_NODE,
    HT_RECORD_MEMFD,
    HT_RECORD_PROCESS,
} HtRecordMemory;

/**
 * enum HtRecordWords - how the kernel gets the words
 * @HT_RECORD_WORDS_THERE: its command line has a ring already
 * @HT_RECORD_WORDS_APPEND: by -append
 * @HT_RECORD_WORDS_SMBIOS: by an SMBIOS string, which a unified kernel image
 *                          of -kernel reads
 * @HT_RECORD_WORDS_LOADER: by the guest's boot loader, which can read that
 *                          string if the machine has it
 * @HT_RECORD_WORDS_NONE: not at all
 */
typedef enum HtRecordWords {
    HT_RECORD_WORDS_THERE,
    HT_RECORD_WORDS_APPEND,
    HT_RECORD_WORDS_SMBIOS,
    HT_RECORD_WORDS_LOADER,
    HT_RECORD_WORDS_NONE,
} HtRecordWords;

/**
 * struct HtRecordOptions - what the user wants
 * @events: NULL for the default
 * @size: of the ring, in bytes, a multiple of 1 MiB
 * @private: leave the memory as it is
 * @main_buffer: read the kernel's main trace buffer, not a ring in memory that
 *               is reserved
 * @programs: bytes of the memory that the guest's programs emit into; 0: none
 * @tracer: words that start a tracer of functions in the main trace buffer, or
 *          NULL
 * @config_fd: a descriptor with a configuration file that QEMU is to read as
 *             well, if it inherits descriptors; or 0
 * @words_only: add nothing to the machine but words on the kernel's command
 *              line: no SMBIOS string for a boot loader
 */
typedef struct HtRecordOptions {
    const char *events;
    uint64_t size;
    bool private;
    bool main_buffer;
    uint64_t programs;
    const char *tracer;
    int config_fd;
    bool words_only;
} HtRecordOptions;

/**
 * struct HtRecordPlan - what to run
 * @argv: QEMU's arguments, ends with NULL
 * @query: QEMU runs no guest: run @argv, record nothing
 * @daemonize: QEMU goes to the background
 * @words: for the kernel's command line; NULL if it has a ring already
 * @given: how it gets them
 * @words_why: why not; NULL if it gets them
 * @ring_at: the guest's address of a ring that is there already; 0 if that
 *           was not given
 * @memory: how it is read
 * @why: why not by a better way; NULL for the best one
 * @bytes: of the memfd for QEMU; or 0
 * @fd: its number, in this process and in a QEMU that inherits it
 * @programs_fd: likewise, of the memory of HtRecordOptions.programs; -1: none
 * @files: RAM files of the user (HT_RECORD_SHARED)
 * @kernel: the kernel's image; NULL if a boot loader finds it, or it cannot be
 *          read
 * @program: QEMU's program, or NULL
 * @name: the guest's name, or NULL
 * @cpus: processors that the guest can have at most
 * @uses_terminal: the guest or QEMU talks on standard input and output
 */
typedef struct HtRecordPlan {
    char **argv;
    bool query;
    bool daemonize;
    char *words;
    HtRecordWords given;
    const char *words_why;
    uint64_t ring_at;
    HtRecordMemory memory;
    const char *why;
    uint64_t bytes;
    int fd;
    int programs_fd;
    GPtrArray *files;
    char *kernel;
    char *program;
    char *name;
    unsigned cpus;
    bool uses_terminal;
} HtRecordPlan;

/**
 * ht_record_plan() - plan a recording
 * @argv: QEMU and its arguments, ends with NULL; a program that starts QEMU can
 *        come first
 * @options: see above
 * @error: set if it cannot be done, or should not
 *
 * Looks at the files that the arguments name.
 *
 * Return: for ht_record_plan_free(); NULL on failure
 */
HtRecordPlan *ht_record_plan(char **argv, const HtRecordOptions *options,
                             GError **error);
void ht_record_plan_free(HtRecordPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecordPlan, ht_record_plan_free)

/** ht_record_memory_name() - for people */
const char *ht_record_memory_name(HtRecordMemory memory);

/**
 * ht_record_has_ring() - does QEMU's command line ask for a boot-mapped ring?
 * @argv: ends with NULL
 */
bool ht_record_has_ring(char **argv);

/**
 * ht_record_kernel() - the kernel's image of a command line
 * @argv: of QEMU, or of another virtual machine monitor; ends with NULL
 *
 * Return: newly allocated; NULL if there is none
 */
char *ht_record_kernel(char **argv);

#endif
