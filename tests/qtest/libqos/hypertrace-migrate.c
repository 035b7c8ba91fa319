/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: migrate a guest with a hypertrace device to another QEMU, and save
 * and load snapshots
 *
 * The guest is the test program: after qht_move() it uses the other QEMU.
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "hypertrace.h"

char *qht_temporary(void)
{
    char *path;
    int fd = g_file_open_tmp("hypertrace-test-XXXXXX", &path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    return path;
}

void qht_unlink(char *path)
{
    unlink(path);
    g_free(path);
}

void qht_write_numbers(QHtStream *s, uint32_t id, uint64_t from, uint64_t to)
{
    while (from < to) {
        qht_write_number(s, id, from++);
    }
}

void qht_assert_numbers(const char *log, uint32_t stream, uint64_t from,
                        uint64_t to)
{
    g_autofree char *text = NULL;
    g_autofree char *prefix = g_strdup_printf("ht stream %" PRIu32
                                              " vcpu -1 number n=", stream);
    g_auto(GStrv) lines = NULL;
    unsigned i;

    g_assert_true(g_file_get_contents(log, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const char *p = strstr(lines[i], prefix);

        if (p) {
            g_assert_cmpuint(g_ascii_strtoull(p + strlen(prefix), NULL, 10),
                             ==, from);
            from++;
        }
    }
    g_assert_cmpuint(from, ==, to);
}

QHtTarget *qht_target(const char *machine, const char *backend,
                      const char *props, const char *extra)
{
    QHtTarget *t = g_new0(QHtTarget, 1);
    g_autofree char *all = NULL;

    t->messages = qht_temporary();
    /*
     * libqtest starts QEMU by a shell, so QEMU's arguments may contain a
     * redirection.
     */
    all = g_strdup_printf("%s -incoming defer 2>%s", extra ?: "",
                          t->messages);
    t->qts = qht_start(machine, backend, props, all, &t->log);
    return t;
}

void qht_target_free(QHtTarget *t)
{
    if (t->qts) {
        qtest_quit(t->qts);
    }
    if (t->log) {
        qht_unlink(t->log);
    }
    qht_unlink(t->messages);
    g_free(t);
}

/*
 * Wait for the end of a migration; returns true if it completed, false if it
 * failed
 */
static bool wait_migrated(QTestState *qts)
{
    bool completed = false, failed = false;

    QHT_WAIT(({
        QDict *rsp = qtest_qmp_assert_success_ref(
            qts, "{'execute': 'query-migrate'}");
        const char *status = qdict_get_try_str(rsp, "status");

        completed = !g_strcmp0(status, "completed");
        failed = !g_strcmp0(status, "failed");
        qobject_unref(rsp);
        completed || failed;
    }));
    return completed;
}

static void wait_running(QTestState *qts)
{
    bool running;

    QHT_WAIT(({
        QDict *rsp = qtest_qmp_assert_success_ref(
            qts, "{'execute': 'query-status'}");

        running = qdict_get_bool(rsp, "running");
        qobject_unref(rsp);
        running;
    }));
}

static void start_incoming(QTestState *qts, const char *uri)
{
    qtest_qmp_assert_success(qts, "{'execute': 'migrate-incoming', 'arguments':"
                             " {'uri': %s, 'exit-on-error': false}}", uri);
}

bool qht_save(QHt *h, const char *file)
{
    g_autofree char *uri = g_strdup_printf("file:%s", file);

    qtest_qmp_assert_success(h->qts, "{'execute': 'migrate', 'arguments':"
                             " {'uri': %s}}", uri);
    return wait_migrated(h->qts);
}

bool qht_load(QHtTarget *t, const char *file)
{
    g_autofree char *uri = g_strdup_printf("file:%s", file);

    start_incoming(t->qts, uri);
    return wait_migrated(t->qts);
}

char *qht_move(QHt *h, QHtTarget *t, bool running)
{
    char *log = h->log;

    if (running) {
        wait_running(t->qts);
    }
    qtest_quit(h->qts);
    h->qts = t->qts;
    h->bus->qts = t->qts;
    h->log = t->log;
    t->qts = NULL;
    t->log = NULL;
    return log;
}

void qht_migrate(QHt *h, QHtTarget *t)
{
    g_autofree char *path = g_strdup_printf("%s.socket", t->messages);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);

    start_incoming(t->qts, uri);
    qtest_qmp_assert_success(h->qts, "{'execute': 'migrate', 'arguments':"
                             " {'uri': %s}}", uri);
    g_assert_true(wait_migrated(h->qts));
    g_assert_true(wait_migrated(t->qts));
    unlink(path);
}

/* Return true if the only job has concluded; if the job failed, end the test */
static bool job_over(QTestState *qts)
{
    QDict *rsp = qtest_qmp(qts, "{'execute': 'query-jobs'}");
    QDict *job = qobject_to(QDict,
                            qlist_peek(qdict_get_qlist(rsp, "return")));
    bool over;

    g_assert_nonnull(job);
    over = !strcmp(qdict_get_str(job, "status"), "concluded");
    if (over && qdict_haskey(job, "error")) {
        g_error("%s", qdict_get_str(job, "error"));
    }
    qobject_unref(rsp);
    return over;
}

static void wait_job(QTestState *qts)
{
    QHT_WAIT(job_over(qts));
    qtest_qmp_assert_success(qts, "{'execute': 'job-dismiss', 'arguments':"
                             " {'id': 'job'}}");
}

char *qht_add_disk(QTestState *qts)
{
    char *file = qht_temporary();

    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments':"
                             " {'driver': 'file', 'node-name': 'file',"
                             "  'filename': %s}}", file);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-create', 'arguments':"
                             " {'job-id': 'job', 'options':"
                             "  {'driver': 'qcow2', 'file': 'file',"
                             "   'size': 1048576}}}");
    wait_job(qts);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments':"
                             " {'driver': 'qcow2', 'node-name': 'disk',"
                             "  'file': 'file'}}");
    return file;
}

void qht_snapshot(QTestState *qts, bool load, const char *tag)
{
    qtest_qmp_assert_success(qts, "{'execute': %s, 'arguments':"
                             " {'job-id': 'job', 'tag': %s, 'vmstate': 'disk',"
                             "  'devices': ['disk']}}",
                             load ? "snapshot-load" : "snapshot-save", tag);
    wait_job(qts);
}
