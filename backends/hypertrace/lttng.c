/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: backend that records guest events as LTTng-UST events of QEMU
 *
 * The provider's name is that of the device: `lttng enable-event -u 'ht0:*'`.
 * If QEMU is built with modules, this backend is one, so that liblttng-ust's
 * threads start only if the backend is used, and after -daemonize has forked.
 */
#include "qemu/osdep.h"
#include <sys/un.h>
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qemu/notify.h"
#include "qemu/sockets.h"
#include "system/system.h"
#include "hypertrace/backend.h"
#include "hypertrace/lttng-ust-event.h"
#include "hypertrace/lttng-ust-session.h"
#include "hypertrace/lttng-ust-thread.h"

/*
 * LTTng-UST waits for space in a full buffer only if LTTNG_UST_ALLOW_BLOCKING
 * is set in the environment.
 */
static bool lttng_may_block(HypertraceBackend *b)
{
    return getenv("LTTNG_UST_ALLOW_BLOCKING") != NULL;
}

/* Test whether a session daemon listens on a socket in the directory @dir */
static bool lttng_daemon_in(const char *dir)
{
    g_autoptr(GDir) entries = g_dir_open(dir, 0, NULL);
    const char *name;
    bool found = false;

    while (entries && !found && (name = g_dir_read_name(entries))) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        int fd;

        /* A socket's name is this prefix and the version of the protocol. */
        if (!g_str_has_prefix(name, "lttng-ust-sock-") ||
            snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir,
                     name) >= sizeof(addr.sun_path)) {
            continue;
        }
        fd = qemu_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            break;
        }
        /* EAGAIN: a daemon listens, but is busy or hangs */
        found = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 ||
                errno == EAGAIN;
        close(fd);
    }
    return found;
}

/* Test whether a session daemon listens: the system's, or this user's */
static bool lttng_daemon_listens(void)
{
    const char *home = getenv("LTTNG_HOME") ?: getenv("HOME");
    g_autofree char *own = home ? g_build_filename(home, ".lttng", NULL) : NULL;

    return lttng_daemon_in("/var/run/lttng") || (own && lttng_daemon_in(own));
}

/* Maximum time that a thread may stay in LTTng-UST when QEMU exits, in ms */
#define END_MS 2000

/*
 * Skip LTTng-UST's destructor if a thread is still in LTTng-UST.  The
 * destructor crashes while a thread records an event, and hangs while a thread
 * waits for a session daemon.
 */
static void lttng_end(int status, void *opaque)
{
    if (ht_ust_end(END_MS)) {
        return;
    }
    warn_report("hypertrace: a thread hangs in LTTng-UST: QEMU ends without"
                " its destructor");
    fflush(NULL);
    _exit(status);
}

#ifndef __GLIBC__
/*
 * Some C libraries lack on_exit(), and atexit() does not pass the exit status.
 */
static void lttng_end_atexit(void)
{
    lttng_end(EXIT_SUCCESS, NULL);
}
#endif

/*
 * QEMU's exit notifiers run in an exit function of the C library.  The C
 * library calls lttng_end() after that function.
 */
static void lttng_exit(Notifier *n, void *data)
{
#ifdef __GLIBC__
    on_exit(lttng_end, NULL);
#else
    atexit(lttng_end_atexit);
#endif
}

static void lttng_guard_exit(void)
{
    static Notifier notifier = { .notify = lttng_exit };

    if (!notifier.node.le_prev) {
        qemu_add_exit_notifier(&notifier);
    }
}

/* HtUstSessionConfig.warn: print LTTng-UST's problem as a warning of QEMU */
static void lttng_warn(void *opaque, const char *text)
{
    warn_report("hypertrace: %s", text);
}

static void *lttng_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                          Error **errp)
{
    const HtUstSessionConfig cfg = {
        .provider = info->name,
        .classes = info->classes,
        .streams = info->streams,
        .warn = lttng_warn,
    };

    lttng_guard_exit();
    if (!lttng_daemon_listens()) {
        info_report("hypertrace: no LTTng session daemon is running: events of"
                    " '%s' are recorded once there is one (lttng-sessiond)",
                    info->name);
    }
    return ht_ust_session_new(&cfg);
}

static void lttng_detach(HypertraceBackend *b, void *session)
{
    ht_ust_session_free(session);
}

static void lttng_expect_classes(HypertraceBackend *b, void *session,
                                 HtClass *const *classes, unsigned count)
{
    QEMU_BUILD_BUG_ON(HYPERTRACE_EXPECT_MAX > HT_UST_BATCH);
    ht_ust_session_expect(session, classes, count);
}

static bool lttng_add_class(HypertraceBackend *b, void *session,
                            const HtClass *c, Error **errp)
{
    g_autofree char *why = ht_ust_session_learn(session, c);

    if (why) {
        error_setg(errp, "%s", why);
    }
    return !why;
}

/*
 * Also want a class that has no LTTng-UST event, because add_class() was not
 * called yet or has failed.  If it has failed, events of the class make the
 * device call add_class() again.  Until a call succeeds, these events are
 * counted as discarded.
 */
static bool lttng_wants(HypertraceBackend *b, void *session, const HtClass *c)
{
    return ht_ust_session_wants(session, c, true);
}

static void lttng_deliver(HypertraceBackend *b, void *session,
                          const HtRun *run)
{
    ht_ust_session_deliver(session, run);
}

static void lttng_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->may_block = lttng_may_block;
    k->attach = lttng_attach;
    k->detach = lttng_detach;
    k->expect_classes = lttng_expect_classes;
    k->add_class = lttng_add_class;
    k->wants = lttng_wants;
    k->deliver = lttng_deliver;
}

static const TypeInfo lttng_info = {
    .name = TYPE_HYPERTRACE_BACKEND_LTTNG,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .class_init = lttng_class_init,
};
module_obj(TYPE_HYPERTRACE_BACKEND_LTTNG);

static void lttng_register_types(void)
{
    type_register_static(&lttng_info);
}

type_init(lttng_register_types)
