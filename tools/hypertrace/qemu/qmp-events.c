/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: receive QMP events of a QEMU without waiting
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qemu/qmp-events.h"
#include "qemu/qmp.h"

struct HtQmpEvents {
    /* the socket; -1 after either side has closed the connection */
    int fd;
    /* received bytes that are not parsed yet */
    GString *in;
    /* number of bytes at the start of @in that are known to have no newline */
    size_t searched;
    /* the present line is too long: drop its bytes, up to the next newline */
    bool skip;
};

/*
 * Lowest number for the descriptors that ht_qmp_events_offer() makes for QEMU.
 * The user may pass descriptors with lower numbers to QEMU.
 */
#define QEMU_FD_MIN 100

bool ht_qmp_events_offer(int *ours, int *config, GError **error)
{
    int pair[2] = { -1, -1 }, theirs = -1, file;
    bool ok;

    file = memfd_create("hypertrace-qmp", MFD_CLOEXEC);
    ok = file >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                                  pair);
    theirs = ok ? fcntl(pair[1], F_DUPFD, QEMU_FD_MIN) : -1;
    *config = theirs >= 0 ? fcntl(file, F_DUPFD, QEMU_FD_MIN) : -1;
    ok = *config >= 0 &&
         dprintf(*config, "[chardev \"hypertrace-qmp\"]\n"
                 "  backend = \"socket\"\n  fd = \"%d\"\n"
                 "[mon \"hypertrace-qmp\"]\n"
                 "  chardev = \"hypertrace-qmp\"\n"
                 "  mode = \"control\"\n", theirs) > 0;
    if (!ok) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot make a monitor for QEMU: %s", g_strerror(errno));
    }
    *ours = pair[0];
    if (file >= 0) {
        close(file);
    }
    if (pair[1] >= 0) {
        close(pair[1]);
    }
    return ok;
}

static void tell(HtQmpEvents *q, const char *text)
{
    ssize_t len = strlen(text);

    /*
     * A request is short. If the socket does not accept all of it at once,
     * QEMU's monitor no longer reads: close the connection.
     */
    if (q->fd >= 0 &&
        send(q->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) != len) {
        close(q->fd);
        q->fd = -1;
    }
}

HtQmpEvents *ht_qmp_events_new(int fd)
{
    HtQmpEvents *q = g_new0(HtQmpEvents, 1);

    q->fd = fd;
    q->in = g_string_new(NULL);
    tell(q, "{\"execute\": \"qmp_capabilities\"}\n");
    return q;
}

void ht_qmp_events_free(HtQmpEvents *q)
{
    if (q) {
        if (q->fd >= 0) {
            close(q->fd);
        }
        g_string_free(q->in, true);
        g_free(q);
    }
}

static void receive(HtQmpEvents *q)
{
    size_t old = q->in->len;
    ssize_t n;

    if (q->fd < 0) {
        return;
    }
    g_string_set_size(q->in, old + HT_QMP_EVENTS_LINE);
    n = recv(q->fd, q->in->str + old, HT_QMP_EVENTS_LINE, MSG_DONTWAIT);
    g_string_truncate(q->in, old + MAX(n, 0));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close(q->fd);
        q->fd = -1;
    }
}

/*
 * Take a line from the received bytes; NULL if no line is complete. If more
 * than HT_QMP_EVENTS_LINE bytes have arrived without a newline, skip that line.
 */
static char *take_line(HtQmpEvents *q)
{
    char *end, *line = NULL;

    while (!line) {
        end = memchr(q->in->str + q->searched, '\n',
                     q->in->len - q->searched);
        if (!end) {
            q->searched = q->in->len;
            if (q->in->len > HT_QMP_EVENTS_LINE) {
                g_string_truncate(q->in, 0);
                q->searched = 0;
                q->skip = true;
            }
            return NULL;
        }
        if (!q->skip) {
            line = g_strndup(q->in->str, end - q->in->str);
        }
        q->skip = false;
        g_string_erase(q->in, 0, end - q->in->str + 1);
        q->searched = 0;
    }
    return line;
}

/* Convert QEMU's reply to query-status into an event "query-status". */
static JsonNode *status_event(JsonObject *reply)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *o = json_object_new();

    json_object_set_string_member(o, "event", "query-status");
    json_object_set_member(o, "data",
                           json_node_copy(json_object_get_member(reply,
                                                                 "return")));
    json_node_take_object(node, o);
    return node;
}

static JsonNode *parse(HtQmpEvents *q, const char *line)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root = json_parser_load_from_data(parser, line, -1, NULL) ?
                     json_parser_get_root(parser) : NULL;
    JsonObject *o = root && JSON_NODE_HOLDS_OBJECT(root) ?
                    json_node_get_object(root) : NULL;

    if (!o) {
        return NULL;
    }
    if (json_object_has_member(o, "event")) {
        if (!strcmp(ht_qmp_text(o, "event"), "STOP")) {
            tell(q, "{\"execute\": \"query-status\", \"id\": \"status\"}\n");
        }
        return json_parser_steal_root(parser);
    }
    return json_object_has_member(o, "return") &&
           !strcmp(ht_qmp_text(o, "id"), "status") ? status_event(o) : NULL;
}

JsonNode *ht_qmp_events_next(HtQmpEvents *q)
{
    bool received = false;

    for (;;) {
        g_autofree char *line = take_line(q);
        JsonNode *event = line ? parse(q, line) : NULL;

        if (event) {
            return event;
        }
        if (!line && received) {
            return NULL;
        }
        if (!line) {
            receive(q);
            received = true;
        }
    }
}
