/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace attach: if a recorder is killed, let its successor find the trace
 *
 * A symbolic link to the trace is beside the memory's file and not in the
 * memory, because the guest can write the memory.
 */
#ifndef HYPERTRACE_RECORD_PROGRAMS_LINK_H
#define HYPERTRACE_RECORD_PROGRAMS_LINK_H

#include <glib.h>
#include <stdbool.h>

/*
 * ht_programs_link() - get the path of the link that belongs to a memory
 * file; to be freed
 */
char *ht_programs_link(const char *memory);

/**
 * ht_programs_link_get() - read the link
 * @link: its path
 *
 * Return: path of the trace, to be freed; NULL if @link is not a symbolic link
 * that this user has made
 */
char *ht_programs_link_get(const char *link);

/**
 * ht_programs_link_set() - make or replace the link, in one step
 * @link: its path
 * @trace: path of the trace; may be relative to the working directory
 * @error: set on failure
 *
 * Return: false on failure, also if @link is a file that is no link of this
 * user; such a file is not replaced
 */
bool ht_programs_link_set(const char *link, const char *trace, GError **error);

/* ht_programs_link_remove() - remove the link, if this user has made it */
void ht_programs_link_remove(const char *link);

#endif
