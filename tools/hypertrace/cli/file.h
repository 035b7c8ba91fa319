/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read regular files, and refuse others
 *
 * The open of a FIFO would wait for a writer, and a read would take the bytes
 * from the FIFO's other reader.
 */
#ifndef HYPERTRACE_TOOL_FILE_H
#define HYPERTRACE_TOOL_FILE_H

#include <glib.h>
#include <stdbool.h>

/**
 * ht_file_map: map a regular file
 * @path: its name
 * @errp: set on failure, with the name; or NULL
 *
 * Returns: the mapped file, read-only; NULL on failure
 */
GMappedFile *ht_file_map(const char *path, GError **errp);

/**
 * ht_file_read: read a whole regular file
 * @path: its name
 * @text: set to a new buffer, with a zero byte after the content
 * @size: set to the number of bytes of the content; or NULL
 * @errp: set on failure, with the name; or NULL
 *
 * Returns: false on failure
 */
bool ht_file_read(const char *path, char **text, gsize *size, GError **errp);

#endif /* HYPERTRACE_TOOL_FILE_H */
