/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: declarations of LTTng-UST events that are defined at run time
 */
#ifndef HYPERTRACE_LTTNG_UST_H
#define HYPERTRACE_LTTNG_UST_H

#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>

#include "hypertrace/lttng-ust-event.h"

/*
 * Number of the fields stream, vcpu and guest_ns, which precede each class's
 * own fields, and their size in bytes
 */
#define PREFIX_FIELDS   3
#define PREFIX_SIZE     16

#define FIELDS_MAX      (PREFIX_FIELDS + 2 * HT_FIELDS_MAX)

typedef struct UstField {
    struct lttng_ust_event_field field;
    union {
        struct lttng_ust_type_common common;
        struct lttng_ust_type_integer integer;
        struct lttng_ust_type_float floating;
        struct lttng_ust_type_array array;
        struct lttng_ust_type_sequence sequence;
        struct lttng_ust_type_enum enumeration;
    } type;
    /*
     * type of the elements of an array or sequence, or integer type of an
     * enumeration
     */
    struct lttng_ust_type_integer elem;
    struct lttng_ust_enum_desc labels;
    struct lttng_ust_enum_entry *entries;
} UstField;

struct HtUstEvent {
    /* key in the hash table of events: "provider:name" */
    char *key;
    char *schema;
    char *provider;
    char *name;
    int loglevel;
    const int *loglevel_ptr;
    unsigned nr_class_fields;
    /* fields of the event's class, for filters and captures */
    HtField *class_fields;

    struct lttng_ust_tracepoint tp;
    struct lttng_ust_event_desc event;
    struct lttng_ust_tracepoint_class tp_class;
    const struct lttng_ust_event_field *field_array[FIELDS_MAX];
    unsigned nr_fields;
    UstField fields[];
};

/* Size of the fields of ht_ust_discarded_get()'s event, in bytes */
#define HT_UST_DISCARDED_SIZE   16

/* ht_ust_probe: pass an event to LTTng if its filter accepts the event */
typedef struct UstRecord UstRecord;
void ht_ust_probe(void *data, const HtUstEvent *e, const UstRecord *r);

#endif /* HYPERTRACE_LTTNG_UST_H */
