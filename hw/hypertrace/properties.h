/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: property types, and the property "classes"
 */
#ifndef HW_HYPERTRACE_PROPERTIES_H
#define HW_HYPERTRACE_PROPERTIES_H

#include "qapi/qapi-types-hypertrace.h"
#include "device.h"

extern const PropertyInfo ht_prop_channel;
extern const PropertyInfo ht_prop_mode;
extern const PropertyInfo ht_prop_events;
extern const PropertyInfo ht_prop_settings;
extern const PropertyInfo ht_prop_unread;

/**
 * ht_classes_visit: visit the classes of a trace
 * @v: visitor of a property's getter
 * @name: name of the property
 * @classes: classes of the trace
 * @on: array indexed by class id, up to @count: whether the class is on; NULL:
 *      all are on
 * @count: highest id in @on; later classes were not decided yet
 * @errp: set by the visitor
 *
 * Context: any
 */
void ht_classes_visit(Visitor *v, const char *name,
                      const HtClassTable *classes, const bool *on,
                      uint32_t count, Error **errp);

/* ht_classes_get: getter of the "classes" property.  Context: BQL */
void ht_classes_get(Object *obj, Visitor *v, const char *name, void *opaque,
                    Error **errp);

#endif /* HW_HYPERTRACE_PROPERTIES_H */
