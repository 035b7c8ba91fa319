/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read regular files, and refuse others
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/file.h"

static int open_regular(const char *path, GError **errp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code = errno;
    struct stat st;

    if (fd < 0) {
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(code),
                    "cannot read '%s': %s", path, g_strerror(code));
        return -1;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "cannot read '%s': it is no regular file", path);
        return -1;
    }
    return fd;
}

GMappedFile *ht_file_map(const char *path, GError **errp)
{
    int fd = open_regular(path, errp);
    GMappedFile *file;

    if (fd < 0) {
        return NULL;
    }
    file = g_mapped_file_new_from_fd(fd, false, errp);
    close(fd);
    if (!file) {
        g_prefix_error(errp, "cannot read '%s': ", path);
    }
    return file;
}

bool ht_file_read(const char *path, char **text, gsize *size, GError **errp)
{
    GMappedFile *file = ht_file_map(path, errp);
    gsize bytes = file ? g_mapped_file_get_length(file) : 0;

    if (!file) {
        return false;
    }
    *text = g_malloc(bytes + 1);
    if (bytes) {
        memcpy(*text, g_mapped_file_get_contents(file), bytes);
    }
    (*text)[bytes] = 0;
    if (size) {
        *size = bytes;
    }
    g_mapped_file_unref(file);
    return true;
}
