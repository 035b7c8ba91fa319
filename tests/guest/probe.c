/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function probe: measure the speed of ring 0 and of ring 3
 *
 * Some KVMs, which lack hardware virtualization, emulate ring 0: code takes
 * about a thousand times as long there as in ring 3.  In a guest of such a KVM,
 * an operating system is too slow to use; this payload is not, because only its
 * first instructions run in ring 0.
 */
#include "boot.h"
#include "clock.h"
#include "cmdline.h"
#include "payload.h"

/*
 * Maximum number of ticks for one iteration of boot_loop() if KVM does not
 * emulate ring 0; if KVM does, an iteration in ring 0 takes thousands of ticks.
 */
#define TICKS_MAX       100
#define TRIES           16

enum payload_exit payload_probe(void)
{
    uint64_t ring3 = UINT64_MAX;

    cmdline_done();
    /*
     * Take the fastest of TRIES tries in ring 3, because interrupts of the host
     * slow some tries.
     */
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t ticks = boot_loop();

        ring3 = ticks < ring3 ? ticks : ring3;
    }
    json_begin(NULL);
    json_str("function", "probe");
    json_milli("ring0_ticks", boot_ring0_ticks * 1000 / BOOT_LOOPS);
    json_milli("ring3_ticks", ring3 * 1000 / BOOT_LOOPS);
    json_bool("ring0_at_speed",
              boot_ring0_ticks < (uint64_t)TICKS_MAX * BOOT_LOOPS);
    json_u64("clock_hz", clock_hz(0));
    json_end();
    return PAYLOAD_OK;
}
