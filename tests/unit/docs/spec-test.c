/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test that the tables of docs/specs/hypertrace*.rst agree with abi.h, and that
 * the host accepts the worked example
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

static char **lines;            /* lines of the text of the specification */

typedef struct Member {
    const char *structure;
    const char *name;
    size_t offset;
    size_t size;
    bool found;
} Member;

#define M(s, m) { #s, #m, offsetof(struct s, m), \
                  sizeof(((struct s *)0)->m), false }
/* A member of ht_host_line, with its offset in ht_ring_control */
#define H(m) { "ht_host_line", #m, \
               offsetof(struct ht_ring_control, host.m), \
               sizeof(((struct ht_host_line *)0)->m), false }

static Member members[] = {
    M(ht_caps, magic), M(ht_caps, version), M(ht_caps, channel),
    M(ht_caps, mode), M(ht_caps, ring_offset), M(ht_caps, streams),
    M(ht_caps, packet_size), M(ht_caps, packets), M(ht_caps, batch),
    M(ht_caps, flush_ms), M(ht_caps, max_gap), M(ht_caps, clock_hz),
    M(ht_caps, epoch), M(ht_caps, ring_stride), M(ht_caps, doorbell_offset),
    M(ht_caps, doorbell_stride), M(ht_caps, mailbox_offset),
    M(ht_caps, mailbox_size), M(ht_caps, max_classes),
    M(ht_caps, max_message), M(ht_caps, enable_offset),
    M(ht_caps, enable_seq), M(ht_caps, counter),
    M(ht_msg, type), M(ht_msg, reserved), M(ht_msg, size), M(ht_msg, status),
    M(ht_msg, cookie),
    M(ht_msg_class, id), M(ht_msg_class, index), M(ht_msg_class, nr_fields),
    M(ht_msg_class, name_len), M(ht_msg_class, loglevel),
    M(ht_msg_class, on), M(ht_msg_class, origin),
    M(ht_msg_field, kind), M(ht_msg_field, elem), M(ht_msg_field, flags),
    M(ht_msg_field, name_len), M(ht_msg_field, count),
    M(ht_msg_open, stream), M(ht_msg_open, vcpu), M(ht_msg_open, instance),
    M(ht_msg_open, name), M(ht_msg_open, memory),
    M(ht_msg_stream, stream), M(ht_msg_stream, ticket),
    M(ht_msg_stream, instance), M(ht_msg_stream, lost),
    M(ht_msg_time, before), M(ht_msg_time, after), M(ht_msg_time, prev),
    M(ht_msg_time, reserved), M(ht_msg_time, host_ns),
    M(ht_msg_time, bound_ns),
    M(ht_msg_enabled, first), M(ht_msg_enabled, count),
    M(ht_msg_enabled, seq), M(ht_msg_enabled, reserved),
    M(ht_msg_settings, count), M(ht_msg_settings, seq),
    M(ht_msg_stats, stream), M(ht_msg_stats, reserved),
    M(ht_msg_stats, stats), M(ht_msg_discarded, count),
    M(ht_packet, magic), M(ht_packet, stream), M(ht_packet, instance),
    M(ht_packet, seq), M(ht_packet, clock_begin), M(ht_packet, events),
    M(ht_packet, lost), M(ht_packet, clock_end), M(ht_packet, content),
    M(ht_packet, reserved),
    M(ht_guest_line, head), M(ht_guest_line, opening), M(ht_guest_line, lost),
    M(ht_guest_line, end),
    H(tail), H(wake), H(state), H(instance),
    M(ht_submit, from), M(ht_submit, to), M(ht_submit, lost),
    M(ht_submit, stream),
    M(ht_memory, caps), M(ht_memory, beat), M(ht_memory, done),
    M(ht_memory, go), M(ht_memory, bytes), M(ht_memory, to),
    M(ht_host_page, magic), M(ht_host_page, version),
    M(ht_host_page, reserved), M(ht_host_page, vcpus),
    M(ht_host_stats, seq), M(ht_host_stats, from_ns),
    M(ht_host_stats, to_ns), M(ht_host_stats, vcpu),
    M(ht_host_stats, nr_exits), M(ht_host_stats, guest_ns),
    M(ht_host_stats, exits_ns), M(ht_host_stats, vmm_ns),
    M(ht_host_stats, preempted_ns), M(ht_host_stats, woken_ns),
    M(ht_host_stats, halted_ns), M(ht_host_stats, waiting_ns),
    M(ht_host_stats, unknown_ns), M(ht_host_stats, machines_ns),
    M(ht_host_stats, tasks_ns), M(ht_host_stats, own_ns),
    M(ht_host_stats, idle_ns), M(ht_host_stats, other_exits),
    M(ht_host_stats, other_exits_ns), M(ht_host_stats, exits),
    M(ht_host_exit, reason), M(ht_host_exit, name),
    M(ht_host_exit, count), M(ht_host_exit, ns),
};

static const struct {
    const char *name;
    size_t size;
} structures[] = {
    { "ht_caps", sizeof(struct ht_caps) },
    { "ht_msg", sizeof(struct ht_msg) },
    { "ht_msg_class", sizeof(struct ht_msg_class) },
    { "ht_msg_field", sizeof(struct ht_msg_field) },
    { "ht_msg_open", sizeof(struct ht_msg_open) },
    { "ht_msg_stream", sizeof(struct ht_msg_stream) },
    { "ht_msg_time", sizeof(struct ht_msg_time) },
    { "ht_msg_enabled", sizeof(struct ht_msg_enabled) },
    { "ht_msg_settings", sizeof(struct ht_msg_settings) },
    { "ht_msg_stats", sizeof(struct ht_msg_stats) },
    { "ht_msg_discarded", sizeof(struct ht_msg_discarded) },
    { "ht_packet", sizeof(struct ht_packet) },
    { "ht_guest_line", sizeof(struct ht_guest_line) },
    { "ht_host_line", sizeof(struct ht_host_line) },
    { "ht_submit", sizeof(struct ht_submit) },
    { "ht_memory", sizeof(struct ht_memory) },
    { "ht_host_page", sizeof(struct ht_host_page) },
    { "ht_host_stats", sizeof(struct ht_host_stats) },
    { "ht_host_exit", sizeof(struct ht_host_exit) },
};

static void check_size(const char *structure, const char *said)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(structures); i++) {
        if (!strcmp(structures[i].name, structure)) {
            if (said) {
                g_assert_cmpuint(g_ascii_strtoull(said, NULL, 10), ==,
                                 structures[i].size);
            }
            return;
        }
    }
    g_error("the specification has a structure %s", structure);
}

static void check_member(const char *structure, const char *offset,
                         const char *size, const char *name)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(members); i++) {
        Member *m = &members[i];

        if (!strcmp(m->structure, structure) && !strcmp(m->name, name)) {
            g_test_message("%s.%s", structure, name);
            g_assert_false(m->found);
            g_assert_cmpuint(g_ascii_strtoull(offset, NULL, 16), ==,
                             m->offset);
            g_assert_cmpuint(g_ascii_strtoull(size, NULL, 10), ==, m->size);
            m->found = true;
            return;
        }
    }
    g_error("the specification has a member %s of %s", name, structure);
}

static void test_tables(void)
{
    g_autoptr(GRegex) title = g_regex_new(
        "^(?:Offset.*|\\\\ +)?``struct (\\w+)``(?:, (\\d+) bytes)?", 0, 0,
        NULL);
    g_autoptr(GRegex) row = g_regex_new(
        "^(0x[0-9a-f]+) +(\\d+) +``(\\w+)``", 0, 0, NULL);
    g_autofree char *structure = NULL;
    unsigned i;

    for (i = 0; lines[i]; i++) {
        GMatchInfo *m;

        if (g_regex_match(title, lines[i], 0, &m)) {
            g_autofree char *size = g_match_info_fetch(m, 2);

            g_free(structure);
            structure = g_match_info_fetch(m, 1);
            check_size(structure, size && *size ? size : NULL);
        }
        g_match_info_free(m);
        if (g_regex_match(row, lines[i], 0, &m)) {
            g_autofree char *offset = g_match_info_fetch(m, 1);
            g_autofree char *size = g_match_info_fetch(m, 2);
            g_autofree char *name = g_match_info_fetch(m, 3);

            if (!structure) {
                g_error("line %u: no line above it begins with a structure",
                        i + 1);
            }
            check_member(structure, offset, size, name);
        }
        g_match_info_free(m);
    }
    for (i = 0; i < G_N_ELEMENTS(members); i++) {
        if (!members[i].found) {
            g_error("%s.%s is not in the specification",
                    members[i].structure, members[i].name);
        }
    }
}

typedef struct Number {
    const char *name;
    unsigned value;
} Number;

static const Number statuses[] = {
    { "OK", HT_STATUS_OK }, { "BUSY", HT_STATUS_BUSY },
    { "INVAL", HT_STATUS_INVAL }, { "LIMIT", HT_STATUS_LIMIT },
    { "NOENT", HT_STATUS_NOENT }, { "EXIST", HT_STATUS_EXIST },
    { "IO", HT_STATUS_IO }, { "STOPPED", HT_STATUS_STOPPED },
};

static const Number messages[] = {
    { "CLASS_REGISTER", HT_MSG_CLASS_REGISTER },
    { "CLASS_LIST", HT_MSG_CLASS_LIST },
    { "STREAM_OPEN", HT_MSG_STREAM_OPEN },
    { "STREAM_CLOSE", HT_MSG_STREAM_CLOSE },
    { "STREAM_FLUSH", HT_MSG_STREAM_FLUSH },
    { "TIME_SYNC", HT_MSG_TIME_SYNC },
    { "STATS", HT_MSG_STATS },
    { "TAKEOVER", HT_MSG_TAKEOVER }, { "DISCARDED", HT_MSG_DISCARDED },
    { "ENABLED", HT_MSG_ENABLED },
    { "SETTINGS", HT_MSG_SETTINGS },
};

static const Number features[] = {
    { "HT_F_MEMORY", HT_F_MEMORY },
};

/*
 * Assert that @n lines of the specification match @pattern, and that each has a
 * name in @all and its value.
 */
static void check_numbers(const char *pattern, const Number *all, unsigned n)
{
    g_autoptr(GRegex) row = g_regex_new(pattern, 0, 0, NULL);
    unsigned i, k, found = 0;

    for (i = 0; lines[i]; i++) {
        GMatchInfo *m;

        if (g_regex_match(row, lines[i], 0, &m)) {
            g_autofree char *name = g_match_info_fetch_named(m, "name");
            g_autofree char *value = g_match_info_fetch_named(m, "value");

            for (k = 0; k < n && strcmp(all[k].name, name); k++) {
                ;
            }
            if (k == n) {
                g_error("the specification has a number for %s", name);
            }
            g_assert_cmpuint(g_ascii_strtoull(value, NULL, 10), ==,
                             all[k].value);
            found++;
        }
        g_match_info_free(m);
    }
    g_assert_cmpuint(found, ==, n);
}

static void test_numbers(void)
{
    check_numbers("^(?<value>\\d)  +(?<name>[A-Z]+)  ", statuses,
                  G_N_ELEMENTS(statuses));
    check_numbers("^(?<name>[A-Z_]+) \\((?<value>\\d+)\\)$", messages,
                  G_N_ELEMENTS(messages));
    check_numbers("^(?<value>\\d+) +``(?<name>HT_F_[A-Z]+)``", features,
                  G_N_ELEMENTS(features));
}

/* Return the bytes of dump @n, counted from 0, in the worked example. */
static GByteArray *dump(unsigned n)
{
    GByteArray *a = g_byte_array_new();
    g_autoptr(GRegex) line = g_regex_new(
        "^    ([0-9a-f]{3})  ((?:[0-9a-f]{2} ?){1,16})(?: |$)", 0, 0, NULL);
    unsigned i, block = 0;
    bool inside = false;

    for (i = 0; strcmp(lines[i], "A worked example"); i++) {
        g_assert_nonnull(lines[i]);
    }
    for (; lines[i]; i++) {
        g_auto(GStrv) bytes = NULL;
        g_autofree char *at = NULL, *text = NULL;
        GMatchInfo *m;
        unsigned j;

        if (!g_regex_match(line, lines[i], 0, &m)) {
            g_match_info_free(m);
            block += inside;
            inside = false;
            continue;
        }
        inside = true;
        at = g_match_info_fetch(m, 1);
        text = g_match_info_fetch(m, 2);
        g_match_info_free(m);
        if (block != n) {
            continue;
        }
        g_assert_cmpuint(g_ascii_strtoull(at, NULL, 16), ==, a->len);
        bytes = g_strsplit(g_strstrip(text), " ", -1);
        for (j = 0; bytes[j]; j++) {
            uint8_t b = g_ascii_strtoull(bytes[j], NULL, 16);

            g_byte_array_append(a, &b, 1);
        }
    }
    return a;
}

static void test_class(void)
{
    g_autoptr(GByteArray) a = dump(0);
    HtClassTable *t = ht_class_table_new();
    struct ht_msg_class *m = (struct ht_msg_class *)a->data;
    HtClass *c;
    bool added;

    g_assert_cmpuint(ht_get_le16(&m->h.type), ==, HT_MSG_CLASS_REGISTER);
    g_assert_cmpuint(ht_get_le32(&m->h.size), ==, a->len);
    g_assert_cmpint(ht_class_table_add(t, a->data, a->len, &added, &c), ==,
                    HT_STATUS_OK);
    g_assert_cmpuint(c->id, ==, 1);
    g_assert_cmpstr(c->name, ==, "boot.mark");
    g_assert_cmpuint(c->loglevel, ==, 14);
    g_assert_cmpuint(c->nr_fields, ==, 3);
    g_assert_cmpstr(c->fields[0].name, ==, "cpu");
    g_assert_cmpuint(c->fields[0].kind, ==, HT_FIELD_U32);
    g_assert_cmpstr(c->fields[1].name, ==, "addr");
    g_assert_cmpuint(c->fields[1].kind, ==, HT_FIELD_U64);
    g_assert_cmpuint(c->fields[1].flags, ==, HT_FIELD_HEX);
    g_assert_cmpstr(c->fields[2].name, ==, "who");
    g_assert_cmpuint(c->fields[2].kind, ==, HT_FIELD_TEXT);
    ht_class_table_free(t);
}

static void test_open(void)
{
    g_autoptr(GByteArray) a = dump(1);
    struct ht_msg_open *m = (struct ht_msg_open *)a->data;

    g_assert_cmpuint(a->len, ==, sizeof(*m));
    g_assert_cmpuint(ht_get_le16(&m->h.type), ==, HT_MSG_STREAM_OPEN);
    g_assert_cmpuint(ht_get_le32(&m->h.size), ==, sizeof(*m));
    g_assert_cmpuint(ht_get_le32(&m->stream), ==, HT_STREAM_ANY);
    g_assert_cmpuint(ht_get_le32(&m->vcpu), ==, 0);
    g_assert_cmpstr((char *)m->name, ==, "boot");
}

typedef struct Delivered {
    const HtClassTable *classes;
    unsigned events;
} Delivered;

static void deliver(void *opaque, const HtRun *run)
{
    static const char *const who[] = { "bsp", "ap" };
    Delivered *d = opaque;
    HtRunIter it;
    HtEvent ev;

    ht_run_iter_init(&it, run, d->classes);
    while (run->events && ht_run_next(&it, &ev)) {
        const char *text = who[d->events];

        g_assert_cmpuint(d->events, <, 2);
        g_assert_cmpuint(ev.size, ==, 14 + strlen(text));
        g_assert_cmpuint(ht_get_le32(ev.payload), ==, d->events);
        g_assert_cmpuint(ht_get_le64(ev.payload + 4), ==, 0xfee00000);
        g_assert_cmpmem(ev.payload + 14, ev.size - 14, text, strlen(text));
        g_assert_cmpuint(ev.ns, ==, d->events ? 0x127456789 : 0x123456789);
        d->events++;
    }
}

static void test_packet(void)
{
    g_autoptr(GByteArray) class = dump(0);
    g_autoptr(GByteArray) packet = dump(2);
    HtClassTable *t = ht_class_table_new();
    struct ht_ring_control ring = { };
    g_autofree uint8_t *packets = g_malloc0(2 * HT_PACKET_SIZE_MIN);
    struct ht_packet *header = (struct ht_packet *)packets;
    HtStreamInfo info = { .index = 0, .vcpu = 0, .instance = 1 };
    Delivered d = { .classes = t };
    HtConsumerConfig cfg = {
        .classes = t,
        .packet_size = HT_PACKET_SIZE_MIN,
        .packets = 2,
        .deliver = deliver,
        .opaque = &d,
    };
    HtConsumer c;
    HtClass *cls;
    bool added;

    ht_class_table_add(t, class->data, class->len, &added, &cls);
    memcpy(packets, packet->data, packet->len);
    ht_consumer_init(&c, &cfg);
    ht_consumer_open(&c, &info, 0);
    c.time = ct_time(0);

    /* in the specification, the guest stores this size to `content` */
    g_assert_cmpuint(packet->len, ==, 0x72);
    ring.guest.head = ht_le64(0x55);
    ht_consumer_ring(&c, &ring, packets, SIZE_MAX);
    g_assert_cmpuint(d.events, ==, 1);
    ring.guest.head = ht_le64(0x72);
    ht_consumer_ring(&c, &ring, packets, SIZE_MAX);
    g_assert_cmpuint(d.events, ==, 2);
    g_assert_cmpuint(ht_le64(ring.host.tail), ==, 0);
    ht_put_le64(&header->clock_end, 0x127456789);
    ht_put_le32(&header->content, 0x72);
    ring.guest.head = ht_le64(0x1000);
    ht_consumer_ring(&c, &ring, packets, SIZE_MAX);
    g_assert_cmpuint(ht_le64(ring.host.tail), ==, 1);
    g_assert_cmpuint(d.events, ==, 2);
    g_assert_false(c.stopped);

    ht_consumer_close(&c, 0, 0);
    ht_consumer_destroy(&c);
    ht_class_table_free(t);
}

int main(int argc, char **argv)
{
    g_autoptr(GString) pages = g_string_new(NULL);
    int i, r;

    g_test_init(&argc, &argv, NULL);
    for (i = 1; i < argc; i++) {
        g_autofree char *text = NULL;

        if (!g_file_get_contents(argv[i], &text, NULL, NULL)) {
            fprintf(stderr, "spec-test: cannot read %s\n", argv[i]);
            return 2;
        }
        g_string_append(pages, text);
    }
    lines = g_strsplit(pages->str, "\n", -1);
    g_test_add_func("/spec/tables", test_tables);
    g_test_add_func("/spec/numbers", test_numbers);
    g_test_add_func("/spec/example/class", test_class);
    g_test_add_func("/spec/example/open", test_open);
    g_test_add_func("/spec/example/packet", test_packet);
    r = g_test_run();
    g_strfreev(lines);
    return r;
}
