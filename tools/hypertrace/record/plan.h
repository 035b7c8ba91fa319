/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: plan the changes to QEMU's command line
 *
 * The kernel gets words that make it keep a ring of events in its memory, and
 * that memory is made readable from outside. The changes must not prevent a
 * machine from starting: unless a change of the memory is known to be safe, the
 * memory stays as it is and is read through QEMU's process.
 */
#ifndef HYPERTRACE_RECORD_PLAN_H
#define HYPERTRACE_RECORD_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define HT_RECORD_EVENTS    "sched,irq,initcall,printk"
/*
 * Events that are added to those which the user or the default selects: for the
 * names of tasks, and for the types of events that modules add
 */
#define HT_RECORD_ALWAYS    "task,module:module_load,module:module_free"
#define HT_RECORD_SIZE      (UINT64_C(16) << 20)
#define HT_RECORD_SIZE_MIN  (UINT64_C(1) << 20)
#define HT_RECORD_SIZE_MAX  (UINT64_C(1) << 30)

/*
 * Prefix of an SMBIOS string. The stub of a unified kernel image, or a boot
 * loader, may add the text after this prefix to the kernel's command line
 */
#define HT_RECORD_EXTRA     "io.systemd.stub.kernel-cmdline-extra="

/*
 * Number for the descriptor of the guest's memory, in this process and in QEMU;
 * if it is in use, take the next free number
 */
#define HT_RECORD_FD        100

/**
 * enum HtRecordMemory - how the guest's memory is read
 * @HT_RECORD_SHARED: the user's memory backends, which are shared files
 * @HT_RECORD_NODE: a memfd of the recorder, as a NUMA node at the end of the
 *                  guest's memory
 * @HT_RECORD_MEMFD: a memfd of the recorder, as all of the guest's memory
 * @HT_RECORD_PROCESS: private memory, read through QEMU's /proc/PID/mem while
 *                     QEMU runs
 */
typedef enum HtRecordMemory {
    HT_RECORD_SHARED,
    HT_RECORD_NODE,
    HT_RECORD_MEMFD,
    HT_RECORD_PROCESS,
} HtRecordMemory;

/**
 * enum HtRecordWords - the way in which the kernel gets the words
 * @HT_RECORD_WORDS_THERE: the words that the user gives the kernel, by -append
 *                         or by an SMBIOS string, ask for a ring already
 * @HT_RECORD_WORDS_APPEND: by -append
 * @HT_RECORD_WORDS_SMBIOS: by an SMBIOS string, which a unified kernel image
 *                          of -kernel reads
 * @HT_RECORD_WORDS_LOADER: by the guest's boot loader, which may read an SMBIOS
 *                          string with the words if the machine has it
 * @HT_RECORD_WORDS_NONE: the kernel does not get them
 */
typedef enum HtRecordWords {
    HT_RECORD_WORDS_THERE,
    HT_RECORD_WORDS_APPEND,
    HT_RECORD_WORDS_SMBIOS,
    HT_RECORD_WORDS_LOADER,
    HT_RECORD_WORDS_NONE,
} HtRecordWords;

/**
 * struct HtRecordOptions - options of the user
 * @events: list of events; NULL for the default
 * @size: size of the ring in bytes, a multiple of 1 MiB; 0: HT_RECORD_SIZE, or
 *        more if the guest has more than eight processors and enough RAM
 * @private: do not change the machine's memory
 * @main_buffer: read the kernel's main trace buffer, not a ring in memory that
 *               is reserved
 * @programs: size of the memory for the programs' events in bytes; 0: none
 * @tracer: words that start a tracer of functions in the main trace buffer, or
 *          NULL
 * @config_fd: a descriptor with a further configuration file for QEMU, if QEMU
 *             inherits descriptors; or 0
 * @thread_names: make QEMU name its threads, so that vCPUs can be told apart
 * @words_only: if a boot loader loads the kernel, do not add an SMBIOS string
 *              with the words for it
 */
typedef struct HtRecordOptions {
    const char *events;
    uint64_t size;
    bool private;
    bool main_buffer;
    uint64_t programs;
    const char *tracer;
    int config_fd;
    bool thread_names;
    bool words_only;
} HtRecordOptions;

/**
 * struct HtRecordPlan - what to run
 * @argv: QEMU's arguments; NULL after the last
 * @query: QEMU runs no guest: run @argv and record nothing; do not use the
 *         members from @words to @kernel
 * @daemonize: QEMU goes to the background
 * @words: words for the kernel's command line; NULL if none are planned. Words
 *         for the main trace buffer are planned although there is a ring
 * @given: the way in which the kernel gets @words
 * @words_why: reason why the kernel does not get them, or why no SMBIOS string
 *             has them; or NULL
 * @ring_at: with HT_RECORD_WORDS_THERE: physical address of the ring that the
 *           user's words ask for; 0 if the kernel chooses the address
 * @memory: the way in which the guest's memory is read
 * @why: reason why no better way is used; NULL for the best way
 * @bytes: size of the memfd for QEMU; 0 without one
 * @low: size in bytes of the node before the memfd (HT_RECORD_NODE)
 * @fd: number for the memfd, which the caller makes if @bytes is not 0; in this
 *      process and in a QEMU that inherits it
 * @programs_fd: number for the descriptor of the memory for the programs'
 *               events, which the caller makes unless @query is set; -1: no
 *               such memory
 * @files: RAM files of the user (HT_RECORD_SHARED)
 * @kernel: path of the kernel's image; NULL if the command line names none, or
 *          if the plan had to read the file and could not. The plan does not
 *          read it with HT_RECORD_WORDS_THERE, if the guest does not begin with
 *          a boot, or if the command is not known to be QEMU
 * @program: QEMU's program; NULL if the command is not known to be QEMU
 * @name: the guest's name, or NULL
 * @cpus: processors that the guest can have at most; 1 if that is not known; 0
 *        with @query or without @program
 * @uses_terminal: the guest or QEMU uses standard input and output
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
    uint64_t low;
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
 * @argv: QEMU and its arguments; NULL after the last. A program that starts
 *        QEMU may come first
 * @options: see above
 * @error: set if the guest cannot or must not be recorded, or if the events or
 *         --programs in @options are not possible
 *
 * This reads files that the arguments name.
 *
 * Return: for ht_record_plan_free(); NULL on failure
 */
HtRecordPlan *ht_record_plan(char **argv, const HtRecordOptions *options,
                             GError **error);
void ht_record_plan_free(HtRecordPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecordPlan, ht_record_plan_free)

/**
 * ht_record_memory_name() - describe in words how the recorder reads the
 * guest's memory
 */
const char *ht_record_memory_name(HtRecordMemory memory);

/**
 * ht_record_has_ring() - whether a command line asks for a boot-mapped ring in
 * the words of -append
 * @argv: QEMU and its arguments; NULL after the last
 * @files: read also the files of options -readconfig
 */
bool ht_record_has_ring(char **argv, bool files);

/**
 * ht_record_kernel() - get the path of the kernel's image from a command line
 * @argv: command line of QEMU or of another virtual machine monitor; NULL after
 *        the last word
 *
 * Return: newly allocated; NULL if the command line names no kernel
 */
char *ht_record_kernel(char **argv);

#endif
