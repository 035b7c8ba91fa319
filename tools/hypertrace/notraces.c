/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export and last without libbabeltrace2
 */
#include <gio/gio.h>

#include "export/export.h"
#include "views/last.h"

static bool refuse(const char *dir, GError **errp)
{
    g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                "'%s' is no recording, and this hypertrace was built without"
                " libbabeltrace2, which reads traces", dir);
    return false;
}

bool ht_export_trace(HtExport *x, const char *dir, GError **errp)
{
    return refuse(dir, errp);
}

bool ht_last_streams(HtOutput *o, const char *dir, unsigned lines, bool json,
                     GError **errp)
{
    return refuse(dir, errp);
}
