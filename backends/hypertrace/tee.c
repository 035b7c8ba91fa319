/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: two backends at once
 *
 * A device delivers to the leaves, so a tee has no part in that.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "hypertrace/backend.h"

OBJECT_DECLARE_SIMPLE_TYPE(HypertraceTee, HYPERTRACE_BACKEND_TEE)

struct HypertraceTee {
    HypertraceBackend parent_obj;

    char *id[2];
    HypertraceBackend *to[2];   /* references, counted as users */
};

static const char *const tee_props[2] = { "a", "b" };

static bool tee_setup(HypertraceBackend *b, Error **errp)
{
    HypertraceTee *tee = HYPERTRACE_BACKEND_TEE(b);
    HypertraceBackend *to[2];
    unsigned i;

    for (i = 0; i < 2; i++) {
        const char *id = tee->id[i];
        Object *obj;

        if (!id) {
            error_setg(errp, "property '%s' is missing: the id of a"
                       " hypertrace backend", tee_props[i]);
            return false;
        }
        obj = object_resolve_path_component(object_get_objects_root(), id);
        if (obj == OBJECT(b)) {
            error_setg(errp, "property '%s': a tee cannot deliver to itself",
                       tee_props[i]);
            return false;
        }
        to[i] = (HypertraceBackend *)
            object_dynamic_cast(obj, TYPE_HYPERTRACE_BACKEND);
        if (!to[i] || !to[i]->complete) {
            error_setg(errp, "property '%s': there is no hypertrace backend"
                       " '%s' (it has to be created before the tee)",
                       tee_props[i], id);
            return false;
        }
    }
    for (i = 0; i < 2; i++) {
        tee->to[i] = to[i];
        to[i]->users++;
        object_ref(OBJECT(to[i]));
    }
    return true;
}

static void tee_leaves(HypertraceBackend *b, GPtrArray *out)
{
    HypertraceTee *tee = HYPERTRACE_BACKEND_TEE(b);

    g_ptr_array_add(out, tee->to[0]);
    g_ptr_array_add(out, tee->to[1]);
}

static void *tee_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                        Error **errp)
{
    /* a mistake of the caller; see hypertrace_backend_leaves() */
    g_assert_not_reached();
}

static char *tee_get_a(Object *obj, Error **errp)
{
    return g_strdup(HYPERTRACE_BACKEND_TEE(obj)->id[0]);
}

static char *tee_get_b(Object *obj, Error **errp)
{
    return g_strdup(HYPERTRACE_BACKEND_TEE(obj)->id[1]);
}

static void tee_set(Object *obj, unsigned i, const char *value, Error **errp)
{
    HypertraceTee *tee = HYPERTRACE_BACKEND_TEE(obj);

    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        g_free(tee->id[i]);
        tee->id[i] = g_strdup(value);
    }
}

static void tee_set_a(Object *obj, const char *value, Error **errp)
{
    tee_set(obj, 0, value, errp);
}

static void tee_set_b(Object *obj, const char *value, Error **errp)
{
    tee_set(obj, 1, value, errp);
}

static void tee_finalize(Object *obj)
{
    HypertraceTee *tee = HYPERTRACE_BACKEND_TEE(obj);
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (tee->to[i]) {
            tee->to[i]->users--;
            object_unref(OBJECT(tee->to[i]));
        }
        g_free(tee->id[i]);
    }
}

static void tee_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->setup = tee_setup;
    k->leaves = tee_leaves;
    k->attach = tee_attach;

    object_class_property_add_str(oc, tee_props[0], tee_get_a, tee_set_a);
    object_class_property_set_description(oc, tee_props[0],
                                          "id of a hypertrace backend");
    object_class_property_add_str(oc, tee_props[1], tee_get_b, tee_set_b);
    object_class_property_set_description(oc, tee_props[1],
                                          "id of another hypertrace backend");
}

static const TypeInfo tee_info = {
    .name = TYPE_HYPERTRACE_BACKEND_TEE,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .instance_size = sizeof(HypertraceTee),
    .instance_finalize = tee_finalize,
    .class_init = tee_class_init,
};

static void tee_register_types(void)
{
    type_register_static(&tee_info);
}

type_init(tee_register_types)
