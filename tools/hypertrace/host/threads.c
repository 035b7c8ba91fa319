/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "host/threads.h"

#define THREADS_MAX     100000
/* A line of the file with this many bytes or more is not valid. */
#define LINE_LEN        64

GHashTable *ht_host_threads(const char *text, size_t size)
{
    GHashTable *threads = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    const char *p = text, *end = text + size;

    while (p < end && g_hash_table_size(threads) < THREADS_MAX) {
        const char *eol = memchr(p, '\n', end - p);
        size_t len = (eol ? eol : end) - p;
        char line[LINE_LEN];
        char *rest;
        unsigned long tid, pid;

        if (len < sizeof(line)) {
            memcpy(line, p, len);
            line[len] = 0;
            tid = strtoul(line, &rest, 10);
            pid = *rest == ' ' ? strtoul(rest + 1, &rest, 10) : 0;
            if (*rest == ' ' && tid && tid <= INT32_MAX && pid &&
                pid <= INT32_MAX) {
                HtHostThread *t = g_new0(HtHostThread, 1);

                t->pid = pid;
                g_strlcpy(t->name, rest + 1, sizeof(t->name));
                g_hash_table_insert(threads, GUINT_TO_POINTER(tid), t);
            }
        }
        p += len + 1;
    }
    return threads;
}

const HtHostThread *ht_host_thread(GHashTable *threads, uint32_t tid)
{
    return g_hash_table_lookup(threads, GUINT_TO_POINTER(tid));
}

const HtHostThread *ht_host_thread_add(GHashTable *threads, uint32_t tid)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/status", tid);
    g_autofree char *text = NULL;
    const char *pid = NULL;
    HtHostThread *t;

    if (g_hash_table_size(threads) >= THREADS_MAX) {
        return NULL;
    }
    t = g_new0(HtHostThread, 1);
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        pid = strstr(text, "\nTgid:\t");
    }
    t->pid = pid ? strtoul(pid + 7, NULL, 10) : 0;
    g_hash_table_insert(threads, GUINT_TO_POINTER(tid), t);
    return t;
}

bool ht_host_vcpu_name(const char *comm, size_t len, int32_t *vcpu)
{
    char name[HT_HOST_COMM_MAX + 1];
    char *end;
    unsigned long n;

    if (len >= sizeof(name)) {
        return false;
    }
    memcpy(name, comm, len);
    name[len] = 0;
    if (!strcmp(name, "ALL CPUs/TCG")) {
        *vcpu = -1;
        return true;
    }
    if (strncmp(name, "CPU ", 4) || !g_ascii_isdigit(name[4])) {
        return false;
    }
    n = strtoul(name + 4, &end, 10);
    *vcpu = n;
    return n <= UINT16_MAX && (!strcmp(end, "/KVM") || !strcmp(end, "/TCG"));
}

bool ht_host_emulated_name(const char *comm, size_t len)
{
    return len > 4 && !memcmp(comm + len - 4, "/TCG", 4);
}
