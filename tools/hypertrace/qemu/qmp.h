/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: talk to a QEMU that runs
 */
#ifndef HYPERTRACE_TOOL_QMP_H
#define HYPERTRACE_TOOL_QMP_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>

typedef struct HtQmp HtQmp;

/**
 * HtQmpObject: something of hypertrace in a QEMU
 * @path: QOM path
 * @id: what the user called it
 * @ring: an object hypertrace-ftrace, else a device
 */
typedef struct HtQmpObject {
    char *path;
    char *id;
    bool ring;
} HtQmpObject;

/**
 * ht_qmp_open: connect
 * @address: a socket's path, or HOST:PORT
 * @error: set on failure
 *
 * Not to be waited for longer than 10 s.
 */
HtQmp *ht_qmp_open(const char *address, GError **error);

/**
 * ht_qmp_free: disconnect
 * @q: the connection or NULL
 */
void ht_qmp_free(HtQmp *q);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtQmp, ht_qmp_free)

/**
 * ht_qmp_command: execute a command
 * @q: the connection
 * @error: set on failure, also to what QEMU says
 * @name: of the command
 * @...: pairs of a string argument's name and value, then NULL
 *
 * Returns: what it returns, to be freed
 */
JsonNode *ht_qmp_command(HtQmp *q, GError **error, const char *name, ...)
    G_GNUC_NULL_TERMINATED;

/**
 * ht_qmp_get: read a property
 * @q: the connection
 * @o: whose
 * @property: its name
 * @error: set on failure
 *
 * Returns: the value, to be freed
 */
JsonNode *ht_qmp_get(HtQmp *q, const HtQmpObject *o, const char *property,
                     GError **error);

/**
 * ht_qmp_event: wait for an event
 * @q: the connection
 * @name: of the event
 * @object: value of its member "object"
 * @error: set on failure, also if the event does not come within 10 s
 *
 * Events that came before this call count, too.  Other events up to that one
 * are dropped.
 *
 * Returns: the event's data, to be freed
 */
JsonNode *ht_qmp_event(HtQmp *q, const char *name, const char *object,
                       GError **error);

/**
 * ht_qmp_stats: read the statistics of a device or object
 * @q: the connection
 * @o: the device or object
 * @error: set on failure
 *
 * Returns: HypertraceInfo of QEMU's QMP reference, to be freed
 */
JsonNode *ht_qmp_stats(HtQmp *q, const HtQmpObject *o, GError **error);

/**
 * ht_qmp_find: what there is
 * @q: the connection
 * @id: only this one; NULL: all
 * @rings: also objects hypertrace-ftrace
 * @devices: also devices
 * @error: set on failure, and if there is nothing
 *
 * Returns: an array of HtQmpObject
 */
GPtrArray *ht_qmp_find(HtQmp *q, const char *id, bool rings, bool devices,
                       GError **error);

/**
 * ht_qmp_int: a number in what QEMU returned
 * @o: an object of it
 * @name: the member's
 *
 * Returns: the number; 0: there is none
 */
int64_t ht_qmp_int(JsonObject *o, const char *name);

/**
 * ht_qmp_text: a string in what QEMU returned
 * @o: an object of it
 * @name: the member's
 *
 * Returns: the string, which is @o's; "": there is none
 */
const char *ht_qmp_text(JsonObject *o, const char *name);

/**
 * ht_qmp_bool: a truth value in what QEMU returned
 * @o: an object of it
 * @name: the member's
 *
 * Returns: the value; false: there is none
 */
bool ht_qmp_bool(JsonObject *o, const char *name);

/**
 * ht_qmp_array: an array in what QEMU returned
 * @o: an object of it
 * @name: the member's
 * @count: set to how many elements it has
 *
 * Returns: the array, which is @o's; NULL: there is none, and @count is 0
 */
JsonArray *ht_qmp_array(JsonObject *o, const char *name, guint *count);

#endif /* HYPERTRACE_TOOL_QMP_H */
