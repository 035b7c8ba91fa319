/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-marker: emit by write() to a file, such as ftrace's trace_marker or the
 * port of a stock virtio-serial device
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ht-marker.h"

const char *const marker_target = "FILE";

static int fd;

bool marker_open(const char *target)
{
    fd = open(target, O_WRONLY);
    if (fd < 0) {
        fprintf(stderr, "ht-marker: %s: %s\n", target, strerror(errno));
    }
    return fd >= 0;
}

bool marker_emit(uint64_t n, uint64_t time)
{
    /*
     * trace_marker takes text.  To format it fast, replace digits of a constant
     * text by hexadecimal digits; with @time 0, do not format @time.
     */
    char text[] = "event 00000000 at 00000000000000";
    unsigned i;

    for (i = 13; i > 5; i--, n >>= 4) {
        text[i] = "0123456789abcdef"[n & 15];
    }
    for (i = 31; time && i > 17; i--, time >>= 4) {
        text[i] = "0123456789abcdef"[time & 15];
    }
    return write(fd, text, 32) == 32;
}
