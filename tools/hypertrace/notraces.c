/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: refuse traces and omit the events of programs, in a build without
 * libbabeltrace2
 */
#include <gio/gio.h>

#include "export/export.h"
#include "views/last.h"
#include "views/programs.h"

static bool refuse(const char *dir, GError **errp)
{
    g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                "'%s' is not a recording; this hypertrace was built without"
                " libbabeltrace2, so it cannot read traces", dir);
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

/* Without libbabeltrace2, "export" and "report" show no events of programs. */
char *ht_programs_path(const char *dir)
{
    return NULL;
}

bool ht_programs_read(const char *dir, HtProgramOne *one, void *opaque,
                      uint64_t *lost, GError **errp)
{
    return refuse(dir, errp);
}

void ht_programs_text(const HtProgramEvent *ev, GString *out)
{
}

void ht_programs_json(const HtProgramEvent *ev, HtJson *j)
{
}
