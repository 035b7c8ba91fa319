/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: find and open a device
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linux-sys.h"
#include "linux-user.h"

/*
 * Wait before a retry.  Yield at first, because most replies take microseconds.
 * After 16 yields, sleep for 50 us, for twice as long each time up to 6.4 ms,
 * and then for 20 ms each time.  Give up when the waits have lasted about 5 s.
 */
int ht_linux_relax(struct ht_device *dev, unsigned tries)
{
    const unsigned yields = 16, doubles = 8;

    (void)dev;
    if (tries > yields + doubles + 250) {
        return -ETIMEDOUT;
    }
    if (tries < yields) {
        ht_sys_yield();
    } else if (tries < yields + doubles) {
        ht_sys_sleep_ns(50000l << (tries - yields));
    } else {
        ht_sys_sleep_ns(20000000);
    }
    return 0;
}

void ht_linux_lock(struct ht_device *dev)
{
    pthread_mutex_lock(&to_linux(dev)->lock);
}

void ht_linux_unlock(struct ht_device *dev)
{
    pthread_mutex_unlock(&to_linux(dev)->lock);
}

static struct ht_linux *linux_new(void)
{
    struct ht_linux *l = calloc(1, sizeof(*l));

    if (l) {
        pthread_mutex_init(&l->lock, NULL);
        pthread_mutex_init(&l->mailbox, NULL);
        l->fd = -1;
    }
    return l;
}

static void linux_free(struct ht_linux *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->mailbox);
    free(l);
}

static int open_path(const char *path, struct ht_device **dev)
{
    struct ht_linux *l = linux_new();
    int r;

    if (!l) {
        return -ENOMEM;
    }
    r = path[0] == '/' ? ht_linux_open_device(l, path) :
                         ht_linux_open_memory(l, path);
    if (r) {
        linux_free(l);
        return r;
    }
    *dev = &l->dev;
    return 0;
}

/* Return N for the name "hypertraceN", or -1 for another name */
static int node_number(const char *name)
{
    static const char prefix[] = "hypertrace";
    const size_t len = sizeof(prefix) - 1;
    char *end;
    long n;

    if (strncmp(name, prefix, len) || name[len] < '0' || name[len] > '9') {
        return -1;
    }
    n = strtol(name + len, &end, 10);
    return *end || n > 99999 ? -1 : (int)n;
}

/* Return the lowest N above @above for which /dev/hypertraceN exists, or -1 */
static int next_node(int above)
{
    DIR *dir = opendir("/dev");
    struct dirent *e;
    int best = -1;

    if (!dir) {
        return -1;
    }
    while ((e = readdir(dir))) {
        int n = node_number(e->d_name);

        if (n > above && (best < 0 || n < best)) {
            best = n;
        }
    }
    closedir(dir);
    return best;
}

/*
 * Open the first of the module's nodes or, if none can be opened, the first
 * ivshmem device that can be opened.  If all fail, return the first error
 * other than -ENODEV of the ivshmem devices, or else of the nodes, or -ENODEV.
 */
static int open_first(struct ht_device **dev)
{
    int n = -1, first = -ENODEV, r;
    char path[32];

    while ((n = next_node(n)) >= 0) {
        snprintf(path, sizeof(path), "/dev/hypertrace%d", n);
        r = open_path(path, dev);
        if (r == 0) {
            return 0;
        }
        if (first == -ENODEV) {
            first = r;
        }
    }
    r = ht_linux_scan_pci(open_path, dev);
    return r == -ENODEV ? first : r;
}

int ht_open(const char *path, struct ht_device **dev)
{
    *dev = NULL;
    if (!path) {
        path = secure_getenv("HYPERTRACE_DEVICE");
    }
    return path && *path ? open_path(path, dev) : open_first(dev);
}

void ht_close(struct ht_device *dev)
{
    if (dev) {
        ht_device_close_streams(dev);
        to_linux(dev)->close(to_linux(dev));
        linux_free(to_linux(dev));
    }
}
