/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: save and load the state of a stream's consumer
 *
 * A loaded state may be forged: all values but plain statistics are checked,
 * here or when they are used.
 */
#include "hypertrace/base.h"
#include "hypertrace/consumer.h"

void ht_consumer_save(const HtConsumer *c, HtConsumerState *st)
{
    *st = (HtConsumerState) {
        .open = c->open,
        .stopped = c->stopped,
        .vcpu = c->info.vcpu,
        .instance = c->instance,
        .trace_instance = c->info.instance,
        .cursor = c->cursor,
        .fed = c->fed,
        .events = c->events,
        .expected = c->expected,
        .skipped = c->skipped,
        .lost = c->lost,
        .others = c->others,
        .dropped = c->dropped,
        .told = c->told,
        .bytes = c->bytes,
        .packets = c->packets,
        .wakeups = c->wakeups,
        .errors = c->errors,
        .clock = c->walk.clock,
        .ns = c->walk.ns,
        .backward = c->walk.backward,
    };
    memcpy(st->name, c->info.name, sizeof(st->name));
}

static bool name_valid(const uint8_t *name)
{
    size_t i;

    for (i = 0; i < HT_STREAM_NAME_MAX && name[i]; i++) {
        if (name[i] < ' ' || name[i] > '~') {
            return false;
        }
    }
    return name[i] == 0;
}

static const char *state_problem(const HtConsumer *c,
                                 const HtConsumerState *st)
{
    uint32_t offset = st->cursor & (c->cfg.packet_size - 1);

    if (!name_valid(st->name)) {
        return "its name is not valid";
    }
    if (st->vcpu < -1) {
        return "its vCPU is not valid";
    }
    if (st->open && (!st->instance || !st->trace_instance)) {
        return "it is open and has no instance";
    }
    if (st->cursor > UINT64_MAX / 2 || st->fed > st->cursor ||
        (offset && offset < sizeof(struct ht_packet))) {
        return "its position is not valid";
    }
    if (st->lost >= HT_LOST_MAX || st->others > HT_LOST_MAX ||
        st->dropped >= HT_LOST_MAX || st->skipped > UINT64_MAX / 2 ||
        st->told > st->lost + st->others + st->dropped) {
        return "its count of discarded events is not valid";
    }
    if (st->ns > HT_TIME_MAX_NS) {
        return "its time is not valid";
    }
    return NULL;
}

const char *ht_consumer_load(HtConsumer *c, uint32_t index,
                             const HtConsumerState *st)
{
    HtConsumerConfig cfg = c->cfg;
    uint8_t *buf = c->buf;
    const char *problem = state_problem(c, st);

    if (problem) {
        return problem;
    }
    *c = (HtConsumer) {
        .cfg = cfg,
        .buf = buf,
        .info.index = index,
        .info.vcpu = st->vcpu,
        .info.instance = st->trace_instance,
        .instance = st->instance,
        .walk.clock = st->clock,
        .walk.ns = st->ns,
        .walk.backward = st->backward,
        .walk.cut = true,
        .walk.most = cfg.piece_events,
        .cursor = st->cursor,
        .fed = st->fed,
        .events = st->events,
        .expected = st->expected,
        .skipped = st->skipped,
        .lost = st->lost,
        .others = st->others,
        .dropped = st->dropped,
        .told = st->told,
        .base = st->told,
        .bytes = st->bytes,
        .packets = st->packets,
        .wakeups = st->wakeups,
        .errors = st->errors,
        .open = st->open,
        .stopped = st->stopped,
    };
    memcpy(c->info.name, st->name, sizeof(c->info.name));
    return NULL;
}

void ht_consumer_resume(HtConsumer *c)
{
    HtRun run = {
        .stream = &c->info,
        .flags = HT_RUN_OPEN,
        .begin_ns = c->walk.ns,
        .end_ns = c->walk.ns,
        .counter = c->walk.clock,
        .total = c->expected,
        .lost = c->lost,
    };

    c->cfg.deliver(c->cfg.opaque, &run);
}
