/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include "backend-testlib.h"

static unsigned parse_kind(const char *s, unsigned *flags)
{
    static const struct {
        const char *name;
        unsigned kind;
    } kinds[] = {
        { "u8", HT_FIELD_U8 }, { "u16", HT_FIELD_U16 },
        { "u32", HT_FIELD_U32 }, { "u64", HT_FIELD_U64 },
        { "s8", HT_FIELD_S8 }, { "s16", HT_FIELD_S16 },
        { "s32", HT_FIELD_S32 }, { "s64", HT_FIELD_S64 },
        { "f32", HT_FIELD_F32 }, { "f64", HT_FIELD_F64 },
        { "text", HT_FIELD_TEXT },
    };
    g_autofree char *decimal = g_strdup(s);
    unsigned i;

    if (decimal[0] == 'x') {
        decimal[0] = 'u';
        *flags = HT_FIELD_HEX;
    }
    for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!strcmp(decimal, kinds[i].name)) {
            return kinds[i].kind;
        }
    }
    g_assert_not_reached();
}

/* Values and names of the labels that fields "label-KIND:..." get */
static const struct {
    uint64_t value;
    const char *name;
} labels[] = { { 0, "none" }, { 7, "seven" } };

static uint8_t *put_labels(uint8_t *p)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(labels); i++) {
        ht_put_le64(p, labels[i].value);
        p[8] = strlen(labels[i].name);
        memcpy(p + HT_LABEL_HEADER, labels[i].name, p[8]);
        p += HT_LABEL_HEADER + p[8];
    }
    return p;
}

static size_t put_field(uint8_t *p, const char *spec)
{
    uint8_t *end;

    g_auto(GStrv) parts = g_strsplit(spec, ":", 2);
    g_auto(GStrv) kind = g_strsplit(parts[0], "-", 3);
    struct ht_msg_field f = { 0 };
    unsigned flags = 0;

    if (!strcmp(kind[0], "seq")) {
        f.kind = HT_FIELD_SEQUENCE;
        f.elem = parse_kind(kind[1], &flags);
    } else if (!strcmp(kind[0], "chars")) {
        f.kind = HT_FIELD_ARRAY;
        f.elem = HT_FIELD_U8;
        f.count = ht_le16(atoi(kind[1]));
        flags = HT_FIELD_UTF8;
    } else if (!strcmp(kind[0], "arr")) {
        f.kind = HT_FIELD_ARRAY;
        f.elem = parse_kind(kind[1], &flags);
        f.count = ht_le16(atoi(kind[2]));
    } else if (!strcmp(kind[0], "label")) {
        f.kind = parse_kind(kind[1], &flags);
        f.count = ht_le16(G_N_ELEMENTS(labels));
        flags |= HT_FIELD_LABELS;
    } else {
        f.kind = parse_kind(kind[0], &flags);
    }
    f.flags = flags;
    f.name_len = strlen(parts[1]);
    memcpy(p, &f, sizeof(f));
    memcpy(p + sizeof(f), parts[1], f.name_len);
    end = p + sizeof(f) + f.name_len;
    return (flags & HT_FIELD_LABELS ? put_labels(end) : end) - p;
}

HtClass *tl_class(HtClassTable *t, const char *name, const char *spec)
{
    union {
        struct ht_msg_class m;
        uint8_t bytes[HT_MESSAGE_MAX];
    } msg = { 0 };
    g_auto(GStrv) fields = g_strsplit(spec, " ", 0);
    uint8_t *p = msg.m.data;
    HtClass *c = NULL;
    bool added;

    msg.m.h.type = ht_le16(HT_MSG_CLASS_REGISTER);
    msg.m.loglevel = 6;
    msg.m.name_len = strlen(name);
    memcpy(p, name, msg.m.name_len);
    p += msg.m.name_len;
    for (msg.m.nr_fields = 0; fields[msg.m.nr_fields]; msg.m.nr_fields++) {
        p += put_field(p, fields[msg.m.nr_fields]);
    }
    msg.m.h.size = ht_le32(p - msg.bytes);
    g_assert_cmpint(ht_class_table_add(t, &msg, p - msg.bytes, &added, &c),
                    ==, HT_STATUS_OK);
    return c;
}

void tl_run_init(TlRun *r, const HtStreamInfo *stream)
{
    *r = (TlRun) {
        .run.stream = stream,
        .data = g_byte_array_new(),
        .text = g_ptr_array_new_with_free_func(g_free),
        .times = g_array_new(false, false, sizeof(uint64_t)),
    };
}

void tl_run_clear(TlRun *r)
{
    g_byte_array_unref(r->data);
    g_ptr_array_unref(r->text);
    g_array_unref(r->times);
}

void tl_run_begin(TlRun *r, unsigned flags, uint64_t discarded)
{
    g_byte_array_set_size(r->data, 0);
    g_ptr_array_set_size(r->text, 0);
    g_array_set_size(r->times, 0);
    r->run = (HtRun) {
        .stream = r->run.stream,
        .flags = flags,
        .discarded = discarded,
    };
    r->open = false;
}

static void put_scalar(TlRun *r, GString *text, unsigned kind, bool hex,
                       GRand *rand)
{
    uint64_t v = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
    unsigned size = ht_kind_size(kind);
    uint8_t le[8];
    float f32;
    double f64;
    uint32_t bits;

    if (kind == HT_FIELD_F32 || kind == HT_FIELD_F64) {
        /* f32 holds this multiple of 1/4 exactly; babeltrace2 prints "%g" */
        f64 = f32 = (int32_t)(v % 100000) / 4.0f - 1000;
        if (kind == HT_FIELD_F32) {
            memcpy(&bits, &f32, sizeof(bits));
            v = bits;
        } else {
            memcpy(&v, &f64, sizeof(v));
        }
        g_string_append_printf(text, "%g", f64);
    } else if (ht_kind_signed(kind)) {
        g_string_append_printf(text, "%" PRId64,
                               (int64_t)(v << (64 - 8 * size)) >>
                               (64 - 8 * size));
    } else {
        g_string_append_printf(text, hex ? "0x%" PRIX64 : "%" PRIu64,
                               v << (64 - 8 * size) >> (64 - 8 * size));
    }
    ht_put_le64(le, v);
    g_byte_array_append(r->data, le, size);
}

/* Put a random value of the field: one with a label, or 99, which has none */
static void put_label(TlRun *r, GString *text, const HtField *f, GRand *rand)
{
    unsigned i = g_rand_int_range(rand, 0, G_N_ELEMENTS(labels) + 1);
    bool named = i < G_N_ELEMENTS(labels);
    uint64_t v = named ? labels[i].value : 99;
    uint8_t le[8];

    if (named) {
        g_string_append_printf(text, "( \"%s\" : container = %" PRIu64 " )",
                               labels[i].name, v);
    } else {
        g_string_append_printf(text, "( <unknown> : container = %" PRIu64 " )",
                               v);
    }
    ht_put_le64(le, v);
    g_byte_array_append(r->data, le, ht_kind_size(f->kind));
}

static void put_value(TlRun *r, GString *text, const HtField *f, GRand *rand,
                      unsigned pad)
{
    unsigned i, count = f->kind == HT_FIELD_ARRAY ? f->count : pad;
    uint8_t le[2];

    switch (f->kind) {
    case HT_FIELD_TEXT:
    case HT_FIELD_SEQUENCE:
        ht_put_le16(le, count);
        g_byte_array_append(r->data, le, 2);
        g_string_append_printf(text, "_%s_length = %u, %s = ",
                               f->name, count, f->name);
        break;
    default:
        g_string_append_printf(text, "%s = ", f->name);
        break;
    }

    if (f->kind == HT_FIELD_TEXT || f->flags & HT_FIELD_UTF8) {
        g_string_append_c(text, '"');
        for (i = 0; i < count; i++) {
            uint8_t c = g_rand_int_range(rand, 'a', 'z' + 1);

            if (f->flags & HT_FIELD_UTF8 && i > pad) {
                c = 0;
            } else {
                g_string_append_c(text, c);
            }
            g_byte_array_append(r->data, &c, 1);
        }
        g_string_append_c(text, '"');
    } else if (f->kind == HT_FIELD_SEQUENCE || f->kind == HT_FIELD_ARRAY) {
        g_string_append(text, count ? "[ " : "[ ]");
        for (i = 0; i < count; i++) {
            g_string_append_printf(text, "%s[%u] = ", i ? ", " : "", i);
            put_scalar(r, text, f->elem, f->flags & HT_FIELD_HEX, rand);
        }
        g_string_append(text, count ? " ]" : "");
    } else if (f->nr_labels) {
        put_label(r, text, f, rand);
    } else {
        put_scalar(r, text, f->kind, f->flags & HT_FIELD_HEX, rand);
    }
}

void tl_run_event(TlRun *r, const HtClass *c, uint64_t ns, GRand *rand,
                  unsigned pad)
{
    GString *text = g_string_new(NULL);
    uint8_t h[HT_EVENT_HEADER_EXT];
    unsigned i;

    if (!r->run.events++) {
        r->run.begin_ns = ns;
        r->run.counter = ns * 3;
    }
    g_byte_array_append(r->data, h,
                        ht_event_header(h, c->id, ns, r->run.events > 1 &&
                                        ns - r->ns > HT_CLOCK_MASK / 2));
    r->run.end_ns = r->ns = ns;
    for (i = 0; i < c->nr_fields; i++) {
        if (i) {
            g_string_append(text, ", ");
        }
        put_value(r, text, &c->fields[i], rand, pad);
    }
    g_ptr_array_add(r->text, g_string_free(text, false));
    g_array_append_val(r->times, ns);
}

const HtRun *tl_run_end(TlRun *r)
{
    r->run.data = r->data->data;
    r->run.size = r->data->len;
    return &r->run;
}

HtRun tl_mark(const HtStreamInfo *stream, unsigned flag, uint64_t ns,
              uint64_t discarded)
{
    return (HtRun) {
        .stream = stream,
        .flags = flag,
        .begin_ns = ns,
        .end_ns = ns,
        .discarded = discarded,
    };
}

int tl_spawn(const char *const *argv, char **out, char **err)
{
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                 out, err, &status, &error);
    g_assert_no_error(error);
    return status;
}

char *tl_babeltrace(const char *dir, char **err)
{
    const char *argv[] = {
        "babeltrace2", "--no-delta", "--clock-seconds", dir, NULL
    };
    g_autofree char *own = NULL;
    char *out;
    int status = tl_spawn(argv, &out, err ?: &own);

    if (!err) {
        g_assert_cmpstr(own, ==, "");
    }
    g_assert_cmpint(status, ==, 0);
    return out;
}

void tl_assert_lines(const char *got, const char *want)
{
    g_auto(GStrv) a = g_strsplit(got, "\n", -1);
    g_auto(GStrv) b = g_strsplit(want, "\n", -1);
    unsigned i;

    for (i = 0; a[i] && b[i]; i++) {
        if (strcmp(a[i], b[i])) {
            g_test_message("line %u: got %s", i + 1, a[i]);
            g_test_message("line %u: want %s", i + 1, b[i]);
            g_test_fail();
            return;
        }
    }
    g_assert_cmpuint(g_strv_length(a), ==, g_strv_length(b));
}

int64_t tl_count(const char *dir, char **err)
{
    const char *argv[] = { "babeltrace2", dir, NULL };
    g_autofree char *out = NULL;
    int64_t n = 0;
    char *p;

    if (tl_spawn(argv, &out, err)) {
        return -1;
    }
    for (p = out; (p = strchr(p, '\n')); p++) {
        n++;
    }
    return n;
}

uint64_t tl_discarded(const char *err)
{
    static const char words[] = "discarded ";
    uint64_t sum = 0;

    while ((err = strstr(err, words))) {
        err += strlen(words);
        sum += g_ascii_strtoull(err, NULL, 10);
    }
    return sum;
}

char *tl_tmpdir(void)
{
    g_autoptr(GError) error = NULL;
    char *dir = g_dir_make_tmp("ht-test-XXXXXX", &error);

    g_assert_no_error(error);
    return dir;
}

void tl_rmdir(char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        char *path = g_build_filename(dir, name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            tl_rmdir(path);
        } else {
            g_unlink(path);
            g_free(path);
        }
    }
    g_rmdir(dir);
    g_free(dir);
}
