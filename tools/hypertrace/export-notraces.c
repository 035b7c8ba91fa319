/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export without libbabeltrace2
 */
#include <gio/gio.h>

#include "export.h"

bool ht_export_trace(HtExport *x, const char *dir, GError **errp)
{
    g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                "'%s' is no recording, and this hypertrace was built without"
                " libbabeltrace2, which reads traces", dir);
    return false;
}
