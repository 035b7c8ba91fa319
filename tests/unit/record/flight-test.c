/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --flight: the causes of recordings, the folder of
 * recordings, and a guest that is followed while the process that writes a
 * recording is stopped
 *
 * The test program writes the guest's ring and the messages of QEMU's monitor.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "formats-make.h"
#include "ftrace-guest.h"
#include "kernel-make.h"
#include "hypertrace/recording.h"
#include "memory/process.h"
#include "record/flight.h"
#include "record/flight-control.h"
#include "record/flight-dir.h"
#include "record/session.h"

#define DEADLINE_US (60 * G_USEC_PER_SEC)

typedef struct Test {
    FtGuest g;
    HtFtMem mem;
    HtSession *session;
    HtFlight *flight;
    HtJob *job;
    char *dir;
    /* socket that is QEMU's end of the monitor's connection */
    int qemu;
    uint64_t ns;                /* time of the guest's clock in ns */
} Test;

static HtFlight *new_flight(const Test *t, const HtFlightOptions *options,
                            GError **error)
{
    return ht_flight_new(options, t->dir, false, error);
}

static void setup_match(Test *t, unsigned keep, uint64_t silence_ns,
                        HtMatch *match)
{
    const HtFlightOptions options = {
        .size = HT_REC_QUEUE_MIN, .keep = keep, .silence_ns = silence_ns,
        .match = match,
    };
    const HtSessionInfo info = { .memory = HT_REC_QUEUE_MIN,
                                 .matches = { match } };
    g_autoptr(GError) error = NULL;
    int pair[2];

    *t = (Test) { .g = { .layout = HT_FT_LAYOUT_6_11, .cpus = 2, .nr = 8,
                         .subbuf = 4096 }, .ns = 1000000000 };
    fg_init(&t->g);
    t->mem = fg_mem(&t->g);
    t->dir = g_dir_make_tmp("ht-flight-XXXXXX", NULL);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                    ==, 0);
    t->qemu = pair[0];
    t->session = ht_session_new(&info, &error);
    g_assert_no_error(error);
    t->flight = new_flight(t, &options, &error);
    g_assert_no_error(error);
    ht_flight_monitor(t->flight, pair[1]);
    ht_session_add(t->session, &t->mem, HT_SESSION_ALL);
}

static void setup(Test *t, unsigned keep, uint64_t silence_ns)
{
    setup_match(t, keep, silence_ns, NULL);
}

static void remove_tree(const char *path)
{
    g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        remove_tree(file);
    }
    g_remove(path);
}

static void teardown(Test *t)
{
    ht_session_free(t->session);
    ht_flight_free(t->flight);
    fg_clear(&t->g);
    close(t->qemu);
    remove_tree(t->dir);
    g_free(t->dir);
}

static void poll_once(Test *t)
{
    g_autoptr(GError) error = NULL;

    ht_session_look(t->session, &error);
    g_assert_no_error(error);
    ht_flight_poll(t->flight, t->session, t->job);
}

static void events(Test *t, unsigned n)
{
    while (n--) {
        fg_event(&t->g, n % 2, t->ns += 1000, 3);
    }
}

static void find_ring(Test *t)
{
    do {
        events(t, 1);
        poll_once(t);
    } while (!ht_session_stats(t->session).found);
}

static void say(const Test *t, const char *text)
{
    g_autofree char *line = g_strdup_printf("%s\n", text);
    ssize_t len = strlen(line);

    g_assert_cmpint(send(t->qemu, line, len, MSG_NOSIGNAL), ==, len);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in the folder of recordings that do not begin with ".", sorted */
static GPtrArray *names(const Test *t)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) d = g_dir_open(t->dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d))) {
        if (*name != '.') {
            g_ptr_array_add(all, g_strdup(name));
        }
    }
    g_ptr_array_sort(all, by_name);
    return all;
}

static bool exists(const Test *t, const char *name)
{
    g_autofree char *path = g_build_filename(t->dir, name, NULL);

    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

static void wait_for(Test *t, const char *name)
{
    gint64 end = g_get_monotonic_time() + DEADLINE_US;

    while (!exists(t, name)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        poll_once(t);
        g_usleep(1000);
    }
}

static unsigned count(const Test *t)
{
    g_autoptr(GPtrArray) all = names(t);

    return all->len;
}

/*
 * Return the number of events in a recording; assert that none is missing
 * between the first and the last event of each processor.
 */
static unsigned recorded(const Test *t, const char *name)
{
    g_autofree char *path = g_build_filename(t->dir, name, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = ht_rec_open(path, &error);
    uint64_t next[2] = { 0 }, seq;
    unsigned all = 0;
    HtRecEvent ev;

    g_assert_no_error(error);
    while (ht_rec_next(r, &ev)) {
        g_assert_true(fg_check(ev.data, ev.size, &seq));
        g_assert_true(!next[ev.cpu] || seq == next[ev.cpu]);
        next[ev.cpu] = seq + 1;
        all++;
    }
    g_assert_cmpuint(ht_rec_damaged(r), ==, 0);
    return all;
}

static pid_t writer_of(const Test *t)
{
    g_autoptr(GArray) pids = ht_process_children();
    unsigned i;

    for (i = 0; i < pids->len; i++) {
        pid_t pid = g_array_index(pids, pid_t, i);

        if (ht_flight_is_writer(t->flight, pid)) {
            return pid;
        }
    }
    return 0;
}

/*
 * Messages of QEMU, and the cause of a recording that each message is; NULL:
 * the message causes no recording
 */
static const struct {
    const char *text;
    const char *cause;
} messages[] = {
    { "{\"event\": \"GUEST_PANICKED\", \"data\": {\"action\": \"pause\"}}",
      "panic" },
    { "{\"event\": \"GUEST_CRASHLOADED\", \"data\": {\"action\": \"run\"}}",
      "panic" },
    { "{\"event\": \"WATCHDOG\", \"data\": {\"action\": \"reset\"}}",
      "watchdog" },
    { "{\"event\": \"WATCHDOG\", \"data\": {\"action\": \"none\"}}", NULL },
    { "{\"event\": \"RESET\", \"data\": {\"guest\": true, \"reason\": "
      "\"guest-reset\"}}", "reset" },
    { "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": "
      "\"guest-shutdown\"}}", "shutdown" },
    { "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": "
      "\"guest-panic\"}}", "panic" },
    { "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": "
      "\"guest-reset\"}}", "reset" },
    { "{\"event\": \"BLOCK_IO_ERROR\", \"data\": {\"action\": \"stop\"}}",
      "io-error" },
    { "{\"event\": \"BLOCK_IO_ERROR\", \"data\": {\"action\": \"report\"}}",
      NULL },
    { "{\"return\": {\"status\": \"internal-error\", \"running\": false}, "
      "\"id\": \"status\"}", "error" },
    { "{\"return\": {\"status\": \"io-error\"}, \"id\": \"status\"}",
      "io-error" },
    { "{\"return\": {\"status\": \"paused\"}, \"id\": \"status\"}", NULL },
    { "{\"return\": {}}", NULL },
    { "{\"QMP\": {\"version\": {}, \"capabilities\": [\"oob\"]}}", NULL },
    { "{\"event\": \"RESUME\"}", NULL },
    { "{\"event\": 5, \"data\": [7]}", NULL },
    { "{\"event\": \"GUEST_PANICKED\", \"data\": 9}", "panic" },
    { "[1, {\"event\": \"RESET\"}]", NULL },
    { "not JSON", NULL },
    { "", NULL },
};

static void test_causes(void)
{
    unsigned i, made = 0;
    Test t;

    setup(&t, 100, 0);
    find_ring(&t);
    for (i = 0; i < G_N_ELEMENTS(messages); i++) {
        g_autofree char *name = g_strdup_printf("%u-%s", made + 1,
                                                messages[i].cause);

        events(&t, 10);
        say(&t, messages[i].text);
        if (messages[i].cause) {
            made++;
            wait_for(&t, name);
            g_assert_cmpuint(recorded(&t, name), ==,
                             ht_session_stats(t.session).events);
        } else {
            poll_once(&t);
            poll_once(&t);
        }
        g_assert_cmpuint(count(&t), ==, made);
    }
    teardown(&t);
}

/*
 * The recording of a reset has the events that the guest writes between the
 * last poll and the reset. As long as the recorder finds no further boot, more
 * RESET messages of QEMU cause no further recording.
 */
static void test_last_events(void)
{
    g_autoptr(GError) error = NULL;
    unsigned i;
    Test t;

    setup(&t, 100, 0);
    find_ring(&t);
    poll_once(&t);
    ht_session_look(t.session, &error);
    g_assert_no_error(error);
    events(&t, 10);
    say(&t, "{\"event\": \"RESET\"}");
    ht_flight_poll(t.flight, t.session, NULL);
    wait_for(&t, "1-reset");
    g_assert_cmpuint(recorded(&t, "1-reset"), ==,
                     ht_session_stats(t.session).events);
    for (i = 0; i < 3; i++) {
        events(&t, 1);
        say(&t, "{\"event\": \"RESET\"}");
        poll_once(&t);
        poll_once(&t);
    }
    g_assert_cmpuint(count(&t), ==, 1);
    teardown(&t);
}

/* Each panic in the log of a guest without a ring causes a recording. */
static void test_no_ring(void)
{
    const uint64_t size = 64 << 20, at[] = { 8 << 20, 24 << 20, 40 << 20 };
    g_autofree uint8_t *ram = g_malloc0(size);
    g_autoptr(GError) error = NULL;
    KmKernel kernel;
    unsigned i;
    Test t;

    setup(&t, 100, 0);
    km_kernel(&kernel, 24, true);
    ht_session_free(t.session);
    t.mem = (HtFtMem) { .size = size, .map = ram };
    t.session = ht_session_new(&(HtSessionInfo) {
        .memory = HT_REC_QUEUE_MIN, .image = kernel.image }, &error);
    g_assert_no_error(error);
    ht_session_add(t.session, &t.mem, HT_SESSION_ALL);
    for (i = 0; i < G_N_ELEMENTS(at); i++) {
        g_autofree char *name = g_strdup_printf("%u-panic", i + 1);
        uint8_t *ticks = ram + at[i] + kernel.jiffies;

        km_place(&kernel, ram, size, at[i], i << 22, 1000 + i);
        km_print(ram + at[i], 1, "Linux version 6.12.0-test");
        while (ht_session_stats(t.session).kernel_boot != i + 1) {
            ht_put_le64(ticks, g_get_monotonic_time() / 4000);
            poll_once(&t);
        }
        km_print(ram + at[i], 2, "Kernel panic - not syncing: test");
        wait_for(&t, name);
    }
    g_assert_cmpuint(count(&t), ==, 3);
    teardown(&t);
    km_kernel_free(&kernel);
}

/*
 * Give the session a list of formats with one event, as if it had read the list
 * in a kernel's memory.
 */
static void find_format(Test *t, unsigned id, const char *name)
{
    HtSessionPlace *p = t->session->places->pdata[0];
    g_autoptr(GError) error = NULL;
    g_autoptr(HtBtf) btf = fm_btf();
    HtKernelFormats *f;
    FormatsGuest g;
    int ret;

    fm_init(&g, 1 << 20);
    fm_field(&g, FM_COMMON, "unsigned short", "common_type", 0, 2);
    fm_event(&g, id, "test", name, "\"\"");
    f = ht_kernel_formats_new(&g.space, btf, &g.at, 4096, &error);
    g_assert_no_error(error);
    do {
        ret = ht_kernel_formats_step(f, 1024);
    } while (!ret);
    g_assert_cmpint(ret, ==, 1);
    g_assert_null(p->list);
    p->list = ht_kernel_formats_list(f);
    ht_kernel_formats_free(f);
    fm_clear(&g);
}

/*
 * A recording has all formats that were read before its cause, even those that
 * are not written yet because a job still writes earlier ones.
 */
static void test_formats(void)
{
    g_autofree char *path = NULL, *text = NULL;
    Test t;

    setup(&t, 10, 0);
    find_ring(&t);
    find_format(&t, 17, "first");
    ht_session_poll_formats(t.session, false);
    find_format(&t, 18, "second");
    raise(SIGUSR1);
    wait_for(&t, "1-signal");
    path = g_build_filename(t.dir, "1-signal", "formats", NULL);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "name: second\n"));
    teardown(&t);
}

static const char match_formats[] =
    "system: test\nname: probe\nID: 17\nformat:\n" FG_COMMON_FIELDS
    "\tfield:u64 seq;\toffset:8;\tsize:8;\tsigned:0;\n\n";

/* Start a flight recorder that makes a recording at events that match @text */
static HtMatch *setup_probe(Test *t, const char *text)
{
    g_autoptr(GError) error = NULL;
    HtMatch *m = ht_match_new("--match", text, &error);

    g_assert_no_error(error);
    ht_match_formats(m, match_formats, strlen(match_formats));
    setup_match(t, 10, 0, m);
    find_ring(t);
    return m;
}

/*
 * A matching event causes a recording. For 10 s after this recording, further
 * matches cause none, however many there are.
 */
static void test_match(void)
{
    g_autofree char *text = NULL, *path = NULL;
    HtMatch *m;
    Test t;

    m = setup_probe(&t, "probe where seq >= 21");
    events(&t, 10);
    poll_once(&t);
    poll_once(&t);
    g_assert_cmpuint(count(&t), ==, 0);
    events(&t, 60);
    wait_for(&t, "1-event");
    path = g_build_filename(t.dir, "1-event", "info", NULL);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "\nend=recorded at the event test:probe at "
                            "1."));
    g_assert_cmpuint(ht_match_count(m), ==, 0);
    events(&t, 10);
    while (writer_of(&t)) {
        poll_once(&t);
    }
    poll_once(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 10);
    g_assert_cmpuint(count(&t), ==, 1);
    teardown(&t);
    ht_match_free(m);
}

/*
 * A match that waits because a recording was made less than 10 s before is
 * forgotten when newer events replace the event in memory.
 */
static void test_match_replaced(void)
{
    HtMatch *m;
    unsigned i;
    Test t;

    m = setup_probe(&t, "probe where seq == 21 || seq == 50");
    events(&t, 60);
    wait_for(&t, "1-event");
    while (writer_of(&t)) {
        poll_once(&t);
    }
    events(&t, 60);
    poll_once(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 2);
    for (i = 0; i < 2000; i++) {
        events(&t, 100);
        poll_once(&t);
    }
    g_assert_cmpuint(ht_match_count(m), ==, 0);
    g_assert_cmpuint(count(&t), ==, 1);
    teardown(&t);
    ht_match_free(m);
}

/* A message of 3 MiB is skipped; the message after it is read. */
static void test_long_message(void)
{
    g_autofree char *text = g_strnfill(3 << 20, 'x');
    size_t sent = 0, size = strlen(text);
    Test t;

    setup(&t, 3, 0);
    find_ring(&t);
    while (sent < size) {
        ssize_t n = send(t.qemu, text + sent, size - sent, MSG_DONTWAIT);

        sent += MAX(n, 0);
        poll_once(&t);
    }
    say(&t, "");
    say(&t, messages[0].text);
    wait_for(&t, "1-panic");
    teardown(&t);
}

/*
 * After the recording of a panic, a shutdown, a reset and the end of QEMU cause
 * no second recording if there are no new events. With new events, the end of
 * QEMU causes one.
 */
static void test_same_end(void)
{
    Test t;

    setup(&t, 10, 0);
    find_ring(&t);
    events(&t, 10);
    say(&t, messages[0].text);
    wait_for(&t, "1-panic");
    say(&t, messages[6].text);
    say(&t, messages[4].text);
    while (writer_of(&t)) {
        poll_once(&t);
    }
    g_assert_true(ht_flight_end(t.flight, t.session, "QEMU ended"));
    g_assert_cmpuint(count(&t), ==, 1);
    teardown(&t);

    setup(&t, 10, 0);
    find_ring(&t);
    say(&t, messages[0].text);
    wait_for(&t, "1-panic");
    events(&t, 10);
    poll_once(&t);
    g_assert_true(ht_flight_end(t.flight, t.session, "QEMU was killed"));
    g_assert_true(exists(&t, "2-end"));
    teardown(&t);
}

/*
 * A guest panics again and again: each of its first 16 panics is recorded at
 * once. The panics after them share a recording, which is made when the limit
 * allows it (5 s later) or, as here, when a user asks for a recording.
 */
static void test_share(void)
{
    unsigned i;
    Test t;

    setup(&t, 100, 0);
    find_ring(&t);
    for (i = 1; i <= 24; i++) {
        g_autofree char *name = g_strdup_printf("%u-panic", i);

        events(&t, 10);
        say(&t, messages[0].text);
        if (i <= 16) {
            wait_for(&t, name);
        } else {
            poll_once(&t);
            poll_once(&t);
        }
    }
    while (writer_of(&t)) {
        poll_once(&t);
    }
    g_assert_cmpuint(count(&t), ==, 16);
    raise(SIGUSR1);
    wait_for(&t, "17-panic");
    g_assert_cmpuint(recorded(&t, "17-panic"), ==,
                     ht_session_stats(t.session).events);
    teardown(&t);
}

/*
 * If there are more recordings than the limit, the oldest are removed, but not
 * a recording that the user has renamed.
 */
static void test_keep(void)
{
    static const char * const expect[] = {
        "10-signal", "11-signal", "2-signal-kept", "9-signal", NULL
    };
    g_autoptr(GPtrArray) all = NULL;
    unsigned i;
    Test t;

    setup(&t, 3, 0);
    find_ring(&t);
    for (i = 1; i <= 11; i++) {
        g_autofree char *name = g_strdup_printf("%u-signal", i);

        raise(SIGUSR1);
        wait_for(&t, name);
        if (i == 2) {
            g_autofree char *from = g_build_filename(t.dir, name, NULL);
            g_autofree char *to = g_build_filename(t.dir, "2-signal-kept",
                                                   NULL);

            g_assert_cmpint(g_rename(from, to), ==, 0);
        }
        g_assert_cmpuint(count(&t), <=, 4);
    }
    all = names(&t);
    for (i = 0; expect[i]; i++) {
        g_assert_cmpuint(i, <, all->len);
        g_assert_cmpstr(all->pdata[i], ==, expect[i]);
    }
    g_assert_cmpuint(all->len, ==, i);
    teardown(&t);
}

/*
 * ht_flight_dir_number() returns the number of a recording for each name that a
 * recorder gives, and 0 for similar names.
 */
static void test_names(void)
{
    static const struct {
        const char *name;
        uint64_t number;
    } rows[] = {
        { "1-panic", 1 },
        { "12-io-error", 12 },
        { "18446744073709551614-end", UINT64_MAX - 1 },
        { "18446744073709551615-end", 0 },
        { "99999999999999999999-end", 0 },
        { "0-panic", 0 },
        { "01-panic", 0 },
        { "+1-panic", 0 },
        { " 1-panic", 0 },
        { "-1-panic", 0 },
        { "1-", 0 },
        { "1", 0 },
        { "1-panics", 0 },
        { "1-panic-kept", 0 },
        { "1-pani", 0 },
        { "1-backup", 0 },
        { "1_panic", 0 },
        { "panic", 0 },
        { "", 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("'%s'", rows[i].name);
        g_assert_cmpuint(ht_flight_dir_number(rows[i].name), ==,
                         rows[i].number);
    }
    for (i = HT_CAUSE_COMMAND; i < HT_CAUSES; i++) {
        g_autofree char *name = g_strdup_printf("7-%s", ht_cause_name(i));

        g_assert_cmpuint(ht_flight_dir_number(name), ==, 7);
    }
}

/*
 * The number of a recording that a user has renamed is not given again if the
 * new name still begins with the number and a '-'.
 */
static void test_next_number(void)
{
    static const char *const dirs[] = { "3-signal", "7-panic-kept", "x-9" };
    g_autofree char *top = g_dir_make_tmp("ht-flight-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    HtFlightDir *d;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = g_build_filename(top, dirs[i], NULL);

        g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    }
    d = ht_flight_dir_open(top, 3, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(d->number, ==, 8);
    ht_flight_dir_close(d);
    for (i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = g_build_filename(top, dirs[i], NULL);

        g_assert_cmpint(g_rmdir(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(top), ==, 0);
}

/* With a umask of 0, no other user than the owner may read a recording. */
static void test_private(void)
{
    static const char * const files[] = { "", "info", "cpu0", "cpu1" };
    mode_t mask = umask(0);
    unsigned i;
    Test t;

    setup(&t, 3, 0);
    find_ring(&t);
    events(&t, 10);
    raise(SIGUSR1);
    wait_for(&t, "1-signal");
    for (i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(t.dir, "1-signal", files[i],
                                                 NULL);
        struct stat st;

        g_assert_cmpint(lstat(path, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 0777, ==, i ? 0600 : 0700);
    }
    teardown(&t);
    umask(mask);
}

/*
 * Two recorders cannot use one folder at the same time. A recorder that starts
 * removes the half-written recording of a recorder that was killed, and refuses
 * a folder in which others can write.
 */
static void test_folder(void)
{
    const HtFlightOptions options = { .size = HT_REC_QUEUE_MIN };
    g_autoptr(GError) error = NULL;
    g_autofree char *half = NULL, *file = NULL;
    Test t;

    setup(&t, 3, 0);
    g_assert_null(new_flight(&t, &options, &error));
    g_assert_nonnull(strstr(error->message, "another recorder"));
    g_clear_error(&error);
    ht_flight_free(t.flight);

    half = g_build_filename(t.dir, ".hypertrace-flight", NULL);
    file = g_build_filename(half, "cpu0", NULL);
    g_assert_cmpint(g_mkdir(half, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, "x", -1, NULL));
    t.flight = new_flight(&t, &options, &error);
    g_assert_no_error(error);
    g_assert_false(g_file_test(half, G_FILE_TEST_EXISTS));
    ht_flight_free(t.flight);

    g_assert_cmpint(chmod(t.dir, 0770), ==, 0);
    t.flight = new_flight(&t, &options, &error);
    g_assert_null(t.flight);
    g_assert_nonnull(strstr(error->message, "others can write"));
    teardown(&t);
}

/*
 * Each time the guest writes no event for as long as the limit of silence, one
 * recording is made. After a pause of the machine, a new silence begins.
 */
static void test_silence(void)
{
    Test t;

    setup(&t, 10, 50 * 1000000);
    find_ring(&t);
    wait_for(&t, "1-silence");
    events(&t, 1);
    wait_for(&t, "2-silence");
    say(&t, "{\"event\": \"STOP\"}");
    events(&t, 1);
    poll_once(&t);
    say(&t, "{\"event\": \"RESUME\"}");
    wait_for(&t, "3-silence");
    g_assert_cmpuint(count(&t), ==, 3);
    teardown(&t);
}

static bool hang;

static void in_child(void)
{
    if (hang) {
        raise(SIGSTOP);
    }
}

/*
 * While the process that writes a recording is stopped, the recorder still
 * polls the guest. For a cause that comes meanwhile, a second recording is
 * written after the first, with all events up to that time.
 */
static void test_disk_hangs(void)
{
    unsigned before;
    pid_t pid;
    Test t;

    g_assert_cmpint(pthread_atfork(NULL, NULL, in_child), ==, 0);
    setup(&t, 10, 0);
    find_ring(&t);
    hang = true;
    raise(SIGUSR1);
    poll_once(&t);
    hang = false;
    pid = writer_of(&t);
    g_assert_cmpint(waitpid(pid, NULL, WUNTRACED), ==, pid);
    before = ht_session_stats(t.session).events;
    say(&t, messages[0].text);
    events(&t, 100);
    poll_once(&t);
    poll_once(&t);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, before + 100);
    g_assert_cmpuint(count(&t), ==, 0);
    kill(pid, SIGCONT);
    wait_for(&t, "2-panic");
    g_assert_cmpuint(recorded(&t, "2-panic"), ==, before + 100);
    teardown(&t);
}

/* State of a job that does one piece of work after another */
typedef struct Work {
    int polls;                  /* number of polls that the test counted */
    int pieces;                 /* bool: the job may finish its piece of work */
    int within;                 /* bool: the job is within a piece of work */
} Work;

static Work work;
static unsigned forks, forks_within;

/* A piece of work ends after two counted polls, if @pieces is set. */
static void do_work(HtJob *job, void *opaque)
{
    Work *w = opaque;

    do {
        int polls = g_atomic_int_get(&w->polls);

        g_atomic_int_set(&w->within, true);
        while (!g_atomic_int_get(&w->pieces) ||
               g_atomic_int_get(&w->polls) < polls + 2) {
            g_usleep(100);
        }
        g_atomic_int_set(&w->within, false);
    } while (!ht_job_is_stopped(job));
}

static void before_fork(void)
{
    forks++;
    forks_within += g_atomic_int_get(&work.within);
}

/*
 * Promise: the recorder waits to fork the process that writes a recording until
 * a job is between two pieces of work, when the job holds no lock. If the job
 * does not finish its piece for some time, the recorder forks nevertheless.
 */
static void test_job(void)
{
    unsigned i;
    Test t;

    g_assert_cmpint(pthread_atfork(before_fork, NULL, NULL), ==, 0);
    setup(&t, 10, 0);
    find_ring(&t);
    forks = forks_within = 0;
    work = (Work) { .pieces = true };
    t.job = ht_job_start("test", do_work, &work);
    for (i = 0; i < 5; i++) {
        raise(SIGUSR1);
        while (forks == i) {
            poll_once(&t);
            g_atomic_int_inc(&work.polls);
            g_usleep(1000);
        }
        while (writer_of(&t)) {
            poll_once(&t);
        }
    }
    g_assert_cmpuint(forks_within, ==, 0);
    g_atomic_int_set(&work.pieces, false);
    while (!g_atomic_int_get(&work.within)) {
        g_usleep(100);
    }
    raise(SIGUSR1);
    wait_for(&t, "6-signal");
    g_assert_cmpuint(forks_within, ==, 1);
    g_atomic_int_set(&work.pieces, true);
    g_atomic_int_add(&work.polls, 2);
    ht_job_stop(t.job);
    ht_job_end(t.job);
    teardown(&t);
}

static char *reply(int fd)
{
    char buf[1000] = { 0 };
    ssize_t n = read(fd, buf, sizeof(buf) - 1);

    g_assert_cmpint(n, >=, 0);
    close(fd);
    return g_strdup(buf);
}

/*
 * Requests that wait at the same time share one recording. Before a ring or a
 * log was found, a request gets an error.
 */
static void test_requests(void)
{
    g_autofree char *none = NULL, *one = NULL, *two = NULL;
    g_autoptr(GError) error = NULL;
    int a, b;
    Test t;

    setup(&t, 10, 0);
    a = ht_flight_control_connect(t.dir, &error);
    g_assert_no_error(error);
    poll_once(&t);
    none = reply(a);
    g_assert_nonnull(strstr(none, "\"error\""));
    find_ring(&t);
    a = ht_flight_control_connect(t.dir, &error);
    b = ht_flight_control_connect(t.dir, &error);
    g_assert_no_error(error);
    wait_for(&t, "1-command");
    one = reply(a);
    two = reply(b);
    g_assert_nonnull(strstr(one, "/1-command\""));
    g_assert_cmpstr(one, ==, two);
    g_assert_cmpuint(count(&t), ==, 1);
    teardown(&t);
    g_assert_cmpint(ht_flight_control_connect("/nonexistent", &error), ==, -1);
    g_assert_nonnull(error);
}

/*
 * If a recording cannot be written, the client that requested it gets an error.
 */
static void test_fails(void)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    int fd;
    Test t;

    setup(&t, 10, 0);
    find_ring(&t);
    fd = ht_flight_control_connect(t.dir, &error);
    g_assert_no_error(error);
    /* the recording cannot be written because its folder was removed */
    remove_tree(t.dir);
    while (!writer_of(&t)) {
        poll_once(&t);
    }
    text = reply(fd);
    g_assert_nonnull(strstr(text, "\"error\""));
    g_assert_false(ht_flight_end(t.flight, t.session, NULL));
    teardown(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/flight/causes", test_causes);
    g_test_add_func("/flight/last-events", test_last_events);
    g_test_add_func("/flight/no-ring", test_no_ring);
    g_test_add_func("/flight/formats", test_formats);
    g_test_add_func("/flight/match", test_match);
    g_test_add_func("/flight/match-replaced", test_match_replaced);
    g_test_add_func("/flight/long-message", test_long_message);
    g_test_add_func("/flight/same-end", test_same_end);
    g_test_add_func("/flight/share", test_share);
    g_test_add_func("/flight/keep", test_keep);
    g_test_add_func("/flight/names", test_names);
    g_test_add_func("/flight/next-number", test_next_number);
    g_test_add_func("/flight/private", test_private);
    g_test_add_func("/flight/folder", test_folder);
    g_test_add_func("/flight/silence", test_silence);
    g_test_add_func("/flight/disk-hangs", test_disk_hangs);
    g_test_add_func("/flight/job", test_job);
    g_test_add_func("/flight/requests", test_requests);
    g_test_add_func("/flight/fails", test_fails);
    return g_test_run();
}
