/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what is changed of QEMU's command line
 *
 * The kernel is told to keep a ring of events in memory of its own choice, and
 * that memory is made readable from outside.  Pure: arguments in, arguments
 * out; only files that they name are looked at.
 */
#ifndef HYPERTRACE_RECORD_ARGS_H
#define HYPERTRACE_RECORD_ARGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define HT_RECORD_EVENTS    "sched,irq,initcall,printk"
/* Without these nobody knows processes from threads, or modules' events. */
#define HT_RECORD_ALWAYS    "task,module:module_load,module:module_free"
#define HT_RECORD_SIZE      (UINT64_C(16) << 20)
#define HT_RECORD_SIZE_MIN  (UINT64_C(1) << 20)
#define HT_RECORD_SIZE_MAX  (UINT64_C(1) << 30)

/* The number of the memory's descriptor in QEMU, or the next that is free */
#define HT_RECORD_FD        100

/**
 * enum HtRecordMemory - how the guest's memory is read
 * @HT_RECORD_SHARED: the user's own memory backends, shared already
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
 * struct HtRecordOptions - what the user wants
 * @events: NULL for the default
 * @size: of the ring, in bytes, a multiple of 1 MiB
 */
typedef struct HtRecordOptions {
    const char *events;
    uint64_t size;
} HtRecordOptions;

/**
 * struct HtRecordPlan - what to run
 * @argv: QEMU's arguments, ends with NULL
 * @words: what is or should be on the kernel's command line; NULL if there is
 *         a ring already
 * @ring_at: the guest's address of a ring that is there already; 0 if that
 *           was not given
 * @memory: how it is read
 * @why: why not by a better way; NULL for the best one
 * @bytes: of the memfd that QEMU has to inherit; or 0
 * @fd: which descriptor that has to be
 * @files: RAM files of the user (HT_RECORD_SHARED)
 * @kernel: the kernel's image; NULL if a boot loader finds it
 * @uses_terminal: the guest or QEMU talks on standard input and output
 */
typedef struct HtRecordPlan {
    char **argv;
    char *words;
    uint64_t ring_at;
    HtRecordMemory memory;
    const char *why;
    uint64_t bytes;
    int fd;
    GPtrArray *files;
    char *kernel;
    bool uses_terminal;
} HtRecordPlan;

/**
 * ht_record_plan() - plan a recording
 * @argv: QEMU and its arguments, ends with NULL
 * @options: see above
 * @error: set if it cannot be done, or should not
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
 * ht_record_opt() - a value of QEMU's "name=value,..." lists
 * @list: with ",," for a comma in a value
 * @name: which; "" for the first one if it has no name
 *
 * Return: newly allocated, or NULL; the last one counts
 */
char *ht_record_opt(const char *list, const char *name);

/**
 * ht_record_size() - a size as QEMU's options have it
 * @text: a number and B, K, M, G or T; or a fraction
 * @suffix: what a number alone is counted in, one of "BKMGT"
 * @bytes: set if it is one
 */
bool ht_record_size(const char *text, char suffix, uint64_t *bytes);

#endif
