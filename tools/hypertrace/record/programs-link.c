/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace attach: let a successor find the trace of a recorder that was
 * killed
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "record/programs-link.h"

char *ht_programs_link(const char *memory)
{
    return g_strdup_printf("%s.recording", memory);
}

/*
 * Test whether any file is at @link, and set @own to whether it is a symbolic
 * link that this user has made.
 */
static bool is_link(const char *link, bool *own)
{
    struct stat st;

    if (lstat(link, &st) < 0) {
        return false;
    }
    *own = S_ISLNK(st.st_mode) && st.st_uid == geteuid();
    return true;
}

char *ht_programs_link_get(const char *link)
{
    bool own;

    return is_link(link, &own) && own ? g_file_read_link(link, NULL) : NULL;
}

bool ht_programs_link_set(const char *link, const char *trace, GError **error)
{
    g_autofree char *target = g_canonicalize_filename(trace, NULL);
    g_autofree char *made = g_strdup_printf("%s.%d", link, (int)getpid());
    bool own, ok;

    if (is_link(link, &own) && !own) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                    "'%s' is not a link of this user: a successor cannot "
                    "find the recording; remove it", link);
        return false;
    }
    ok = symlink(target, made) == 0 && rename(made, link) == 0;
    if (!ok) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "cannot make the link '%s': %s", link, g_strerror(errno));
        unlink(made);
    }
    return ok;
}

void ht_programs_link_remove(const char *link)
{
    bool own;

    if (is_link(link, &own) && own) {
        unlink(link);
    }
}
