/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: use an instance of the host's tracefs
 *
 * A host has at most one instance of hypertrace, because each further instance
 * would add its own cost to each event. One recorder owns the instance and
 * holds a lock; the lock's file has a note of the owner for the other
 * recorders. If the owner has died, the next recorder replaces the instance.
 */
#ifndef HYPERTRACE_TOOL_TRACEFS_H
#define HYPERTRACE_TOOL_TRACEFS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define HT_TRACEFS_INSTANCE     "hypertrace"

typedef struct HtTracefs HtTracefs;

/**
 * ht_tracefs_new() - create the instance
 * @note: text for other recorders, for example the name of the recording
 * @other: set to the note of another recorder that owns the instance, for
 *         g_free(); NULL if no other recorder owns it, or if the note cannot be
 *         read
 * @error: set on failure, also if another recorder owns the instance
 *
 * If tracefs is not mounted, it is mounted where only this process can reach
 * it. At first no event is enabled in the instance. ht_tracefs_free() removes
 * the instance.
 *
 * Return: the instance; NULL on failure
 */
HtTracefs *ht_tracefs_new(const char *note, char **other, GError **error);
void ht_tracefs_free(HtTracefs *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtTracefs, ht_tracefs_free)

/**
 * ht_tracefs_write() - write a file of the instance
 * @name: path of the file in the instance
 * @text: the text, written by one system call
 * @error: set on failure
 *
 * Return: true if it was written
 */
bool ht_tracefs_write(const HtTracefs *t, const char *name, const char *text,
                      GError **error);

/**
 * ht_tracefs_enable() - enable an event and append its format
 * @system: the event's system
 * @name: its name
 * @formats: the format is appended, as hypertrace/ftrace-format.h describes it
 *
 * Return: false if the kernel does not have the event, or if the event's format
 * cannot be read or the event cannot be enabled
 */
bool ht_tracefs_enable(const HtTracefs *t, const char *system,
                       const char *name, GString *formats);

/**
 * ht_tracefs_headers() - append header_page and header_event
 * @formats: appended to
 * @page_size: set to the size of a page of the ring in bytes
 * @error: set if they cannot be read, if the kernel's pages have a header that
 *         hypertrace does not know (32-bit kernels), or if the pages have more
 *         than 64 KiB
 *
 * Return: true on success
 */
bool ht_tracefs_headers(const HtTracefs *t, GString *formats,
                        uint32_t *page_size, GError **error);

/**
 * ht_tracefs_ring() - open the ring of a processor
 * @cpu: number of the processor
 *
 * A read of a page's size returns one page. It fails with EAGAIN if the ring
 * has no events.
 *
 * Return: a descriptor; -1 if the ring cannot be opened, for example because
 * there is no such processor
 */
int ht_tracefs_ring(const HtTracefs *t, uint32_t cpu);

/**
 * ht_tracefs_count() - read a counter of a processor's ring
 * @cpu: number of the processor
 * @name: name of the counter in the file stats, as "read events"
 * @n: set to the counter's value
 *
 * Return: false if it cannot be read
 */
bool ht_tracefs_count(const HtTracefs *t, uint32_t cpu, const char *name,
                      uint64_t *n);

/**
 * ht_mount_open() - open a mounted file system; if none can be opened, mount it
 * without a path: only the returned descriptor leads to it
 * @type: type of the file system, as "debugfs"
 *
 * Return: a descriptor of its root; -1 with errno set
 */
int ht_mount_open(const char *type);

#endif /* HYPERTRACE_TOOL_TRACEFS_H */
