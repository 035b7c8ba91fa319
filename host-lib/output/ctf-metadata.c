/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: describe a CTF 1.8 trace by its metadata
 *
 * Every field is aligned to 8 bits, so that the bytes of a run are the bytes on
 * disk.  ctf-stream.c fills in the packet context; abi.h describes the event
 * header.
 */
#include "hypertrace/base.h"
#include <sys/random.h>
#include "hypertrace/ctf-writer.h"
#include "ctf-lttng.h"

#define NS_PER_SECOND 1000000000

static const char types[] =
    "typealias integer { size = 8; align = 8; signed = false; }"
    " := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; }"
    " := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; }"
    " := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; }"
    " := uint64_t;\n"
    "typealias integer { size = 32; align = 8; signed = true; }"
    " := int32_t;\n";

static const char layout[] =
    "typealias integer { size = 24; align = 8; signed = false;"
    " map = clock.monotonic.value; } := uint24_clock_t;\n"
    "typealias integer { size = 64; align = 8; signed = false;"
    " map = clock.monotonic.value; } := uint64_clock_t;\n"
    "\n"
    "struct packet_context {\n"
    "\tuint64_clock_t timestamp_end;\n"
    "\tuint64_clock_t timestamp_begin;\n"
    "\tuint64_t guest_counter;\n"
    "\tuint64_t events_discarded;\n"
    "\tuint64_t packet_seq_num;\n"
    "\tuint64_t guest_events;\n"
    "\tuint64_t guest_discarded;\n"
    "\tint32_t cpu_id;\n"
    "\tuint32_t stream_index;\n"
    "\tuint64_t content_size;\n"
    "\tuint64_t packet_size;\n"
    "};\n"
    "\n"
    "struct event_header {\n"
    "\tenum : uint8_t { compact = 0 ... 253, wide = 254,"
    " extended = 255 } id;\n"
    "\tvariant <id> {\n"
    "\t\tstruct { uint24_clock_t timestamp; } compact;\n"
    "\t\tstruct { uint16_t id; uint24_clock_t timestamp; } wide;\n"
    "\t\tstruct { uint32_t id; uint64_clock_t timestamp; } extended;\n"
    "\t} v;\n"
    "} align(8);\n"
    "\n"
    "stream {\n"
    "\tid = 0;\n"
    "\tpacket.context := struct packet_context;\n"
    "\tevent.header := struct event_header;\n"
    "};\n";

void ht_ctf_uuid(uint8_t uuid[16])
{
    if (getrandom(uuid, 16, 0) != 16) {
        memset(uuid, 0, 16);
    }
    uuid[6] = (uuid[6] & 0x0f) | 0x40;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static void append_uuid(GString *out, const uint8_t *uuid)
{
    unsigned i;

    g_string_append_c(out, '"');
    for (i = 0; i < 16; i++) {
        g_string_append_printf(out, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ?
                               "-" : "", uuid[i]);
    }
    g_string_append(out, "\";\n");
}

/*
 * Append a string attribute.  Escape quotes and backslashes, and replace
 * control characters by '?': the VM's name may have any characters.
 */
static void append_string(GString *out, const char *key, const char *s)
{
    g_string_append_printf(out, "\t%s = \"", key);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            g_string_append_c(out, '\\');
        }
        g_string_append_c(out, (unsigned char)*s < ' ' ? '?' : *s);
    }
    g_string_append(out, "\";\n");
}

void ht_ctf_metadata_begin(GString *out, const HtCtfInfo *info)
{
    int64_t s = info->clock_offset_ns / NS_PER_SECOND;
    int64_t ns = info->clock_offset_ns % NS_PER_SECOND;

    if (ns < 0) {
        /* CTF readers accept a negative offset_s, but no negative offset. */
        ns += NS_PER_SECOND;
        s--;
    }

    g_string_append(out, "/* CTF 1.8 */\n\n");
    g_string_append(out, types);
    g_string_append(out, "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = ");
    append_uuid(out, info->uuid);
    g_string_append(out,
                    "\tbyte_order = le;\n"
                    "\tpacket.header := struct {\n"
                    "\t\tuint32_t magic;\n"
                    "\t\tuint8_t uuid[16];\n"
                    "\t\tuint32_t stream_id;\n"
                    "\t\tuint64_t stream_instance_id;\n"
                    "\t};\n"
                    "};\n\n"
                    "env {\n");
    append_string(out, "hostname", info->vm_name);
    /* Trace Compass takes a CTF trace with this domain for a kernel trace. */
    append_string(out, "domain", "kernel");
    if (info->lttng) {
        /*
         * Trace Compass expects lttng-modules' names of events and fields in a
         * trace of this tracer.
         */
        append_string(out, "sysname", "Linux");
        append_string(out, "tracer_name", "lttng-modules");
        g_string_append(out, "\ttracer_major = 2;\n\ttracer_minor = 13;\n");
        append_string(out, "written_by", "hypertrace");
    } else {
        append_string(out, "tracer_name", "hypertrace");
        g_string_append(out, "\ttracer_major = 1;\n\ttracer_minor = 0;\n");
    }
    append_string(out, "vm_name", info->vm_name);
    append_string(out, "device", info->device);
    append_string(out, "channel", info->channel);
    if (info->host_boot) {
        append_string(out, "host_boot", info->host_boot);
    }
    g_string_append(out, "};\n\nclock {\n\tname = \"monotonic\";\n\tuuid = ");
    append_uuid(out, info->clock_uuid);
    g_string_append_printf(out,
                           "\tdescription = \"%s\";\n"
                           "\tfreq = %d;\n"
                           "\tprecision = %" PRIu64 ";\n"
                           "\toffset_s = %" PRId64 ";\n"
                           "\toffset = %" PRId64 ";\n"
                           "\tabsolute = TRUE;\n"
                           "};\n\n",
                           info->clock ? info->clock :
                           "guest counter converted to the host's"
                           " CLOCK_MONOTONIC",
                           NS_PER_SECOND, info->precision_ns, s, ns);
    g_string_append(out, layout);
}

static void append_scalar(GString *out, unsigned kind, unsigned flags)
{
    if (kind == HT_FIELD_F32 || kind == HT_FIELD_F64) {
        g_string_append_printf(out, "floating_point { exp_dig = %d;"
                               " mant_dig = %d; align = 8; }",
                               kind == HT_FIELD_F32 ? 8 : 11,
                               kind == HT_FIELD_F32 ? 24 : 53);
        return;
    }
    g_string_append_printf(out, "integer { size = %u; align = 8;"
                           " signed = %s;%s }", 8 * ht_kind_size(kind),
                           ht_kind_signed(kind) ? "true" : "false",
                           flags & HT_FIELD_HEX ? " base = 16;" :
                           flags & HT_FIELD_UTF8 ? " encoding = UTF8;" : "");
}

/*
 * Append the labels of a field as names of values.  Names of bits become names
 * of values, too, because CTF 1.8 has no names of bits.  The class table
 * accepts no label that would have to be escaped.
 */
static void append_labels(GString *out, const HtField *f)
{
    unsigned i;

    for (i = 0; i < f->nr_labels; i++) {
        g_string_append_printf(out, ht_kind_signed(f->kind) ?
                               "%s\"%s\" = %" PRId64 :
                               "%s\"%s\" = %" PRIu64, i ? ", " : " { ",
                               f->labels[i].name, f->labels[i].value);
    }
    if (f->nr_labels) {
        g_string_append(out, " }");
    }
}

/*
 * Append a field.  Prefix its name by '_', which readers drop: the name may be
 * a keyword of CTF.
 */
static void append_field(GString *out, const HtField *f, const char *name)
{
    g_string_append(out, "\t\t");
    switch (f->kind) {
    case HT_FIELD_TEXT:
        g_string_append_printf(out,
                               "integer { size = 16; align = 8;"
                               " signed = false; } __%s_length;\n"
                               "\t\tinteger { size = 8; align = 8;"
                               " signed = false; encoding = UTF8; }"
                               " _%s[__%s_length];\n",
                               name, name, name);
        break;
    case HT_FIELD_SEQUENCE:
        g_string_append_printf(out,
                               "integer { size = 16; align = 8;"
                               " signed = false; } __%s_length;\n\t\t",
                               name);
        append_scalar(out, f->elem, f->flags);
        g_string_append_printf(out, " _%s[__%s_length];\n", name, name);
        break;
    case HT_FIELD_ARRAY:
        append_scalar(out, f->elem, f->flags);
        g_string_append_printf(out, " _%s[%u];\n", name, f->count);
        break;
    default:
        if (f->nr_labels) {
            g_string_append(out, "enum : ");
        }
        append_scalar(out, f->kind, f->flags);
        append_labels(out, f);
        g_string_append_printf(out, " _%s;\n", name);
        break;
    }
}

void ht_ctf_metadata_class(GString *out, const HtClass *c, bool lttng)
{
    g_autofree char *name = lttng ? ht_ctf_lttng_event(c->name) :
                                    g_strdup(c->name);
    unsigned i;

    /* The class table accepts only names of [A-Za-z0-9_.-]. */
    g_string_append_printf(out,
                           "\nevent {\n"
                           "\tname = \"%s\";\n"
                           "\tid = %" PRIu32 ";\n"
                           "\tstream_id = 0;\n"
                           "\tloglevel = %u;\n"
                           "\tfields := struct {\n",
                           name, c->id, c->loglevel);
    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];

        append_field(out, f, lttng ? ht_ctf_lttng_field(c, f->name) : f->name);
    }
    g_string_append(out, "\t};\n};\n");
}
