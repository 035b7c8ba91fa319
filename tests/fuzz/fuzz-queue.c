/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target queue: post runs to queues, and take runs out, in any order;
 * tests/unit/core/queue-check.c lists and checks the invariants
 */
#include "hypertrace/base.h"
#include "queue-check.h"
#include "fuzz.h"

#define RUN_MAX (QC_BUFFER / sizeof(uint64_t))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    QcCheck c;

    qc_init(&c, (2 + fuzz_u8(&in) % 16) * QC_BUFFER);
    while (fuzz_more(&in)) {
        uint8_t action = fuzz_u8(&in);
        unsigned stream = action / 8 % QC_STREAMS;

        if (action % 8 == 0 || !c.stream[stream].open) {
            qc_toggle(&c, stream);
            continue;
        }
        switch (action % 8) {
        case 1:
            qc_tell(&c, stream, fuzz_u8(&in));
            break;
        case 2:
            qc_take(&c, action / 8 % QC_QUEUES, fuzz_u8(&in));
            break;
        case 3:
            qc_post(&c, stream, fuzz_u8(&in) % RUN_MAX + 1, true,
                    fuzz_u8(&in));
            break;
        default:
            qc_post(&c, stream, fuzz_u8(&in) % RUN_MAX + 1, false, 0);
        }
    }
    qc_finish(&c);
    return 0;
}
