/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write packets of Perfetto's trace format
 */
#include <string.h>

#include "cli/text.h"
#include "export/perfetto.h"
#include "export/protobuf.h"

void pf_sequence_init(PfSequence *s, HtOutput *o, uint32_t machine,
                      uint32_t id)
{
    *s = (PfSequence) {
        .o = o,
        .packet = g_string_new(NULL),
        .machine = machine,
        .id = id,
    };
}

void pf_sequence_end(PfSequence *s)
{
    g_string_free(s->packet, true);
}

gsize pf_packet_begin(PfSequence *s, uint64_t ns)
{
    gsize at;

    g_string_truncate(s->packet, 0);
    at = ht_pb_begin(s->packet, PF_TRACE_PACKET);
    ht_pb_uint(s->packet, PF_PACKET_TIMESTAMP, ns);
    ht_pb_uint(s->packet, PF_PACKET_SEQUENCE_ID, s->id);
    if (s->machine) {
        ht_pb_uint(s->packet, PF_PACKET_MACHINE_ID, s->machine);
    }
    if (!s->begun) {
        ht_pb_uint(s->packet, PF_PACKET_SEQUENCE_FLAGS,
                   PF_INCREMENTAL_STATE_CLEARED);
        s->begun = true;
    }
    return at;
}

bool pf_packet_end(PfSequence *s, gsize at)
{
    ht_pb_end(s->packet, at);
    ht_text_append(s->o->text, s->packet->str, s->packet->len);
    return ht_output_room(s->o);
}

static void put_clock(GString *b, unsigned clock, uint64_t ns)
{
    gsize at = ht_pb_begin(b, PF_CLOCKS);

    ht_pb_uint(b, PF_CLOCK_ID, clock);
    ht_pb_uint(b, PF_CLOCK_TIMESTAMP, ns);
    ht_pb_end(b, at);
}

void pf_clocks(PfSequence *s, uint64_t ns, bool host, const int64_t *wall)
{
    gsize at = pf_packet_begin(s, ns), snapshot;

    snapshot = ht_pb_begin(s->packet, PF_PACKET_CLOCK_SNAPSHOT);
    put_clock(s->packet, PF_CLOCK_BOOTTIME, ns);
    if (host) {
        put_clock(s->packet, PF_CLOCK_MONOTONIC, ns);
    }
    if (wall) {
        put_clock(s->packet, PF_CLOCK_REALTIME, *wall + ns);
    }
    ht_pb_uint(s->packet, PF_PRIMARY_TRACE_CLOCK, PF_CLOCK_BOOTTIME);
    ht_pb_end(s->packet, snapshot);
    pf_packet_end(s, at);
}

void pf_machine(PfSequence *s, uint64_t ns, const char *name)
{
    gsize at = pf_packet_begin(s, ns), system;

    system = ht_pb_begin(s->packet, PF_PACKET_SYSTEM_INFO);
    ht_pb_guest(s->packet, PF_SYSTEM_MACHINE_NAME, name, strlen(name));
    ht_pb_end(s->packet, system);
    pf_packet_end(s, at);
}

void pf_track(PfSequence *s, uint64_t ns, uint64_t uuid, uint64_t parent,
              const char *name)
{
    gsize at = pf_packet_begin(s, ns), track;

    track = ht_pb_begin(s->packet, PF_PACKET_TRACK_DESCRIPTOR);
    ht_pb_uint(s->packet, PF_TRACK_UUID, uuid);
    ht_pb_guest(s->packet, PF_TRACK_NAME, name, strlen(name));
    if (parent) {
        ht_pb_uint(s->packet, PF_TRACK_PARENT, parent);
    }
    ht_pb_end(s->packet, track);
    pf_packet_end(s, at);
}

void pf_attribute(PfSequence *s, const char *key, const char *text,
                  uint64_t number)
{
    gsize one = ht_pb_begin(s->packet, PF_ATTRIBUTE);

    ht_pb_str(s->packet, PF_ATTRIBUTE_KEY, key);
    if (text) {
        ht_pb_guest(s->packet, PF_ATTRIBUTE_STRING, text, strlen(text));
    } else {
        ht_pb_uint(s->packet, PF_ATTRIBUTE_LONG, number);
    }
    ht_pb_end(s->packet, one);
}

void pf_clock_attributes(PfSequence *s, const uint64_t *bound_ns)
{
    pf_attribute(s, "hypertrace.clock", "host's CLOCK_MONOTONIC", 0);
    if (bound_ns) {
        g_autofree char *key = g_strdup_printf("hypertrace.bound_ns.%u.%u",
                                               s->machine, s->id);

        pf_attribute(s, key, NULL, *bound_ns);
    }
}
