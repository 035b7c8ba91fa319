/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that migrations are refused between different devices and
 * with a forged state
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define MEMDEV "-object memory-backend-ram,size=2M,id="

/*
 * If one of these properties differs on the target, QEMU refuses the migration
 * with a message that names the property.  It also refuses the migration if
 * only one of the two sides has a memdev.
 */
static void test_properties(void)
{
    static const struct {
        const char *there;
        const char *here;
        const char *message;
        const char *extra_there;
        const char *extra_here;
    } cases[] = {
        { "channel=shm", "channel=hypercall",
          "property 'channel' must be the same" },
        { "channel=shm", "channel=virtio",
          "property 'channel' must be the same" },
        { "channel=virtio", "channel=shm",
          "property 'channel' must be the same" },
        { "channel=shm", "channel=shm,mode=overwrite",
          "property 'mode' must be the same" },
        { "channel=shm,streams=3", "channel=shm,streams=2",
          "property 'streams' must be the same" },
        { "channel=virtio,streams=2", "channel=virtio,streams=3",
          "property 'streams' must be the same" },
        { "channel=virtio", "channel=virtio,packet-size=8k",
          "property 'packet-size' must be the same" },
        { "channel=shm", "channel=shm,packet-size=8k",
          "property 'packet-size' must be the same" },
        { "channel=shm", "channel=shm,packets=8",
          "property 'packets' must be the same" },
        { "channel=hypercall,batch=10", "channel=hypercall",
          "property 'batch' must be the same" },
        { "channel=shm", "channel=shm,flush-ms=11",
          "property 'flush-ms' must be the same" },
        { "channel=shm,memdev=a", "channel=shm",
          "ramblock", MEMDEV "a", NULL },
        { "channel=shm", "channel=shm,memdev=b",
          "ramblock", NULL, MEMDEV "b" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *there = g_strdup_printf(
            "packet-size=4096,packets=4,streams=3,%s", cases[i].there);
        g_autofree char *here = g_strdup_printf(
            "packet-size=4096,packets=4,streams=3,%s", cases[i].here);
        QHt *h = qht_boot("pc", "null", there, cases[i].extra_there);
        QHtTarget *t = qht_target("pc", "null", here, cases[i].extra_here);
        char *file = qht_temporary();

        g_test_message("%s -> %s", cases[i].there, cases[i].here);
        g_assert_true(qht_save(h, file));
        g_assert_false(qht_load(t, file));
        g_assert_cmpuint(qht_file_count(t->messages, cases[i].message), ==, 1);
        qht_unlink(file);
        qht_target_free(t);
        qht_quit(h);
    }
}

/* A saved VM, and the places of the device's fields in it */
typedef struct State {
    QHt *h;
    char *props;
    char *file;
    gchar *data;
    gsize size;
    /* offset in @data of the version of the section with the properties */
    size_t version;
    /* offset in @data of the first field after enable_seq */
    size_t fields;
    size_t classes;             /* offset in @data of the encoded classes */
    /* offset in @data of the first encoded stream */
    size_t streams;
} State;

#define MAX_GAP(s)      ((s)->fields - 8)
#define DISCARDED(s)    ((s)->fields + 16)
#define INSTANCES(s)    ((s)->fields + 24)
#define SEGMENTS(s)     ((s)->fields + 40)
#define CLASSES_SIZE(s) ((s)->classes - 4)
#define NR_STREAMS(s)   ((s)->streams - 4)
#define STREAM_SIZE     (1 + 1 + 4 + 33 + 18 * 8 + 7 * 8 + 8 + 1)
/* Offset in State.data of the @n-th 64-bit field of stream @i */
#define STREAM(s, i, n) ((s)->streams + (i) * STREAM_SIZE + 39 + 8 * (n))
enum { INSTANCE, TRACE_INSTANCE, CURSOR, FED, EVENTS, EXPECTED, SKIPPED, LOST,
       OTHERS, DROPPED, TOLD, BYTES, PACKETS, WAKEUPS, ERRORS, CLOCK, NS,
       BACKWARD };

static void state_save(State *s, const void *channel)
{
    static const char name[] = "hypertrace-properties";
    uint8_t pattern[12];
    QHtStream stream[2];
    unsigned i;
    uint32_t id;

    s->props = g_strdup_printf("channel=%s,packet-size=4096,packets=4,"
                               "streams=3", (const char *)channel);
    s->h = qht_boot("pc", "null", s->props, NULL);
    id = qht_register_number(s->h, "number");
    qht_register_number(s->h, "other");
    for (i = 0; i < 2; i++) {
        qht_stream_open(&stream[i], s->h, i);
        qht_write_numbers(&stream[i], id, 0, 100);
        qht_commit(&stream[i]);
        qht_stream_forget(&stream[i]);
    }
    /*
     * Build the bytes by which to find the fields in the state: epoch, then
     * max_gap. The word after enable_seq is 0, because no flush of all streams
     * is pending.
     */
    stq_be_p(pattern, s->h->caps.epoch);
    stl_be_p(pattern + 8, s->h->caps.max_gap);

    s->file = qht_temporary();
    g_assert_true(qht_save(s->h, s->file));
    g_assert_true(g_file_get_contents(s->file, &s->data, &s->size, NULL));
    for (i = 0; memcmp(s->data + i, name, strlen(name)); i++) {
        g_assert_cmpuint(i, <, s->size - strlen(name));
    }
    s->version = i + strlen(name) + 4;
    g_assert_cmpuint(ldl_be_p(s->data + s->version), ==, HT_VERSION);
    for (i = s->size - 24; i && (ldq_be_p(s->data + i + 16) ||
                                 memcmp(s->data + i, pattern,
                                        sizeof(pattern))); i--) {
        /* search on */
    }
    g_assert_cmpuint(i, >, 0);
    s->fields = i + 16;
    g_assert_cmpuint(ldq_be_p(s->data + INSTANCES(s)), ==, 2);
    s->classes = SEGMENTS(s) + 4 + 8 * 32 + 4;
    s->streams = s->classes + ldl_be_p(s->data + CLASSES_SIZE(s)) + 4;
    g_assert_cmpuint(ldl_be_p(s->data + NR_STREAMS(s)), ==, 3);
    g_assert_cmpuint(ldq_be_p(s->data + STREAM(s, 1, INSTANCE)), ==, 2);
    g_assert_cmpuint(ldq_be_p(s->data + STREAM(s, 1, EVENTS)), ==, 100);
}

static void state_free(State *s)
{
    qht_quit(s->h);
    qht_unlink(s->file);
    g_free(s->data);
    g_free(s->props);
}

/*
 * Let a new QEMU load the first @size bytes of s->data; returns QEMU's
 * messages, or NULL if QEMU accepts the state
 */
static char *state_load(State *s, gsize size)
{
    QHtTarget *t = qht_target("pc", "null", s->props, NULL);
    gchar *messages = NULL;

    g_assert_true(g_file_set_contents(s->file, s->data, size, NULL));
    if (!qht_load(t, s->file)) {
        g_assert_true(g_file_get_contents(t->messages, &messages, NULL, NULL));
    } else {
        /*
         * QEMU has accepted the state: queries must work, also after a reset.
         */
        QHt there = { .qts = t->qts, .path = s->h->path };

        qht_stat(&there, "events");
        qtest_system_reset(t->qts);
        qht_stat(&there, "events");
    }
    /*
     * Whether the state was accepted or refused, QEMU must exit with status 0.
     */
    qht_target_free(t);
    return messages;
}

static void test_forged(const void *channel)
{
    State s;
    unsigned i;
    g_autofree gchar *honest = NULL;
    g_autofree char *none = NULL;

    state_save(&s, channel);
    honest = g_memdup2(s.data, s.size);
    none = state_load(&s, s.size);
    g_assert_null(none);
    {
        const struct {
            const char *message;
            size_t at;
            unsigned bytes;
            uint64_t value;
        } cases[] = {
            { "hypertrace-properties: incoming version_id 2 is too old",
              s.version, 4, HT_VERSION - 1 },
            { "unsupported version 4", s.version, 4, HT_VERSION + 1 },
            { "max_gap is 0", MAX_GAP(&s), 4, 0 },
            { "max_gap is 8388609", MAX_GAP(&s), 4, 8388609 },
            { "18446744073709551615 streams", INSTANCES(&s), 8, UINT64_MAX },
            { "instance comes later", INSTANCES(&s), 8, 1 },
            { "its clock", SEGMENTS(&s), 4, 9 },
            { "its clock", SEGMENTS(&s), 4, UINT32_MAX },
            { "its clock", SEGMENTS(&s) + 4 + 16, 8, 0 },
            { "size of classes", CLASSES_SIZE(&s), 4, 1 << 30 },
            { "size of classes", CLASSES_SIZE(&s), 4, UINT32_MAX },
            { "class 1 is cut off", s.classes, 4, 0xffffffff },
            { "class 1 is malformed", s.classes + 4 + 24, 1, 200 },
            { "class 2 is", s.classes + 4 + ldl_le_p(s.data + s.classes), 4,
              0 },
            { "number of streams", NR_STREAMS(&s), 4, 4 },
            { "number of streams", NR_STREAMS(&s), 4, UINT32_MAX },
            { "instance comes later", STREAM(&s, 1, INSTANCE), 8, 3 },
            { "two streams have one instance", STREAM(&s, 1, INSTANCE), 8, 1 },
            { "two streams have one instance", STREAM(&s, 1, TRACE_INSTANCE),
              8, 1 },
            { "stream 1: it is open and has no instance",
              STREAM(&s, 1, INSTANCE), 8, 0 },
            { "stream 0: its position", STREAM(&s, 0, CURSOR), 8, UINT64_MAX },
            { "stream 2: its position", STREAM(&s, 2, CURSOR), 8, 4097 },
            { "stream 0: its position", STREAM(&s, 0, FED), 8, 4096 },
            { "stream 0: its count", STREAM(&s, 0, LOST), 8, UINT64_MAX },
            { "stream 0: its count", STREAM(&s, 0, OTHERS), 8, UINT64_MAX },
            { "stream 0: its count", STREAM(&s, 0, TOLD), 8, 1 },
            { "events had no stream", DISCARDED(&s), 8, UINT64_MAX },
            { "stream 0: its time", STREAM(&s, 0, NS), 8, UINT64_MAX },
            { "stream 0: its name", STREAM(&s, 0, INSTANCE) - 33, 1, 7 },
        };

        for (i = 0; i < G_N_ELEMENTS(cases); i++) {
            g_autofree char *messages = NULL;

            memcpy(s.data, honest, s.size);
            stn_be_p(s.data + cases[i].at, cases[i].bytes, cases[i].value);
            messages = state_load(&s, s.size);
            g_test_message("%s: %s", cases[i].message,
                           messages ?: "accepted");
            g_assert_nonnull(messages);
            g_assert_nonnull(strstr(messages, cases[i].message));
        }
    }
    state_free(&s);
}

/*
 * A state with random changes is refused or loaded, and QEMU survives.  A state
 * that is cut off is refused.
 */
static void test_random(const void *channel)
{
    State s;
    unsigned i, refused = 0;
    g_autofree gchar *honest = NULL;

    state_save(&s, channel);
    honest = g_memdup2(s.data, s.size);
    for (i = 0; i < 6; i++) {
        size_t end = s.streams + 3 * STREAM_SIZE;
        unsigned flips = g_test_rand_int_range(1, 5);
        g_autofree char *messages = NULL;
        gsize size = s.size;

        memcpy(s.data, honest, s.size);
        if (i < 2) {
            size = g_test_rand_int_range(s.fields, end);
        }
        while (flips--) {
            size_t at = g_test_rand_int_range(s.fields, end);

            s.data[at] = g_test_rand_bit() ? g_test_rand_int() :
                         s.data[at] ^ 1u << g_test_rand_int_range(0, 8);
        }
        messages = state_load(&s, size);
        g_assert_true(messages || i >= 2);
        refused += messages != NULL;
    }
    g_test_message("%u of %u refused", refused, i);
    state_free(&s);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "forged", test_forged, QHT_SHM },
        { "random", test_random, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/refuse/properties", test_properties);
    qht_add_tests("refuse", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
