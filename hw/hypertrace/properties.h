/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: define property types, and get the property "classes" */
#ifndef HW_HYPERTRACE_PROPERTIES_H
#define HW_HYPERTRACE_PROPERTIES_H

#include "device.h"

extern const PropertyInfo ht_prop_channel;
extern const PropertyInfo ht_prop_mode;
extern const PropertyInfo ht_prop_events;
extern const PropertyInfo ht_prop_settings;
extern const PropertyInfo ht_prop_unread;

/* ht_classes_get: getter of the "classes" property.  Context: BQL */
void ht_classes_get(Object *obj, Visitor *v, const char *name, void *opaque,
                    Error **errp);

#endif /* HW_HYPERTRACE_PROPERTIES_H */
