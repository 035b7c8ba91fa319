/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>

#include "ctf-read.h"
#include "model/traces.h"

bool ht_traces_each(const char *dir, HtTracesOne *one, void *opaque,
                    GError **errp)
{
    g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);
    bool ok = ht_ctf_find(dir, dirs, errp);
    unsigned i;

    if (ok && !dirs->len) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "'%s' is neither a recording nor a folder with traces",
                    dir);
        ok = false;
    }
    for (i = 0; ok && i < dirs->len; i++) {
        ok = one(opaque, dirs->pdata[i], errp);
    }
    return ok;
}
