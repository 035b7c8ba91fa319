/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a client of QMP
 */
#ifndef HYPERTRACE_TOOL_QMP_H
#define HYPERTRACE_TOOL_QMP_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>

typedef struct HtQmp HtQmp;

/**
 * HtQmpObject: a hypertrace device
 * @path: QOM path
 * @id: last part of @path: the device's id, or a name such as "device[0]" if
 *      the user has given no id
 */
typedef struct HtQmpObject {
    char *path;
    char *id;
} HtQmpObject;

/**
 * ht_qmp_open: connect to QEMU
 * @address: path of a socket, or HOST:PORT
 * @error: set on failure, also if QEMU does not answer within 10 s
 *
 * Returns: the connection or NULL
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
 * @error: set on failure, also if QEMU returns an error
 * @name: name of the command
 * @...: pairs of a string argument's name and value, then NULL
 *
 * Returns: the command's return value, to be freed; NULL on failure
 */
JsonNode *ht_qmp_command(HtQmp *q, GError **error, const char *name, ...)
    G_GNUC_NULL_TERMINATED;

/**
 * ht_qmp_get: read a property
 * @o: the device
 * @property: name of the property
 * @error: set on failure
 *
 * Returns: the value, to be freed; NULL on failure
 */
JsonNode *ht_qmp_get(HtQmp *q, const HtQmpObject *o, const char *property,
                     GError **error);

/**
 * ht_qmp_stats: read the statistics of a device
 * @o: the device
 * @error: set on failure
 *
 * Returns: HypertraceInfo, see QEMU's QMP reference, to be freed; NULL on
 * failure
 */
JsonNode *ht_qmp_stats(HtQmp *q, const HtQmpObject *o, GError **error);

/**
 * ht_qmp_find: find hypertrace devices
 * @id: HtQmpObject.id of the device to find; NULL: all devices
 * @error: set on failure, also if nothing is found
 *
 * Returns: an array of HtQmpObject; NULL on failure
 */
GPtrArray *ht_qmp_find(HtQmp *q, const char *id, GError **error);

/**
 * ht_qmp_int: get a number from a reply
 * @o: object of the reply
 * @name: name of the member
 *
 * Returns: the number; 0 if the member does not exist or is a string
 */
int64_t ht_qmp_int(JsonObject *o, const char *name);

/**
 * ht_qmp_text: get a string from a reply
 * @o: object of the reply
 * @name: name of the member
 *
 * Returns: the string, owned by @o; "" if the member does not exist or is no
 * string
 */
const char *ht_qmp_text(JsonObject *o, const char *name);

/**
 * ht_qmp_bool: get a boolean from a reply
 * @o: object of the reply
 * @name: name of the member
 *
 * Returns: the value; false if the member does not exist
 */
bool ht_qmp_bool(JsonObject *o, const char *name);

/**
 * ht_qmp_array: get an array from a reply
 * @o: object of the reply
 * @name: name of the member
 * @count: set to the number of elements; 0 without an array
 *
 * Returns: the array, owned by @o; NULL if the member does not exist or is no
 * array
 */
JsonArray *ht_qmp_array(JsonObject *o, const char *name, guint *count);

#endif /* HYPERTRACE_TOOL_QMP_H */
