/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: note the ends of a guest's boots, for the flight recorder
 */
#include "hypertrace/base.h"
#include "record/flight-boots.h"

static bool runs(const HtFlightBoots *b)
{
    return b->boots > b->ended && b->boots > b->panicked;
}

HtFlightDeath ht_flight_boots_reset(HtFlightBoots *b,
                                    const HtSessionStats *n)
{
    bool died = b->boots > b->ended;

    b->ended = b->boots;
    /*
     * b->panicked may be the number of a boot that no poll has found. The reset
     * has ended that boot, and the next boot gets its number: lower
     * b->panicked, so that the next boot counts as one that runs.
     */
    b->panicked = MIN(b->panicked, MAX(b->boots, n->panic_boot));
    return died ? HT_FLIGHT_RESET : HT_FLIGHT_NO_DEATH;
}

HtFlightDeath ht_flight_boots_panic(HtFlightBoots *b)
{
    uint32_t boot = MAX(b->boots, b->ended + 1);

    b->panicked = MAX(b->panicked, boot);
    return boot > b->logged ? HT_FLIGHT_PANIC : HT_FLIGHT_NO_DEATH;
}

/*
 * Note that @boots boots were found. Returns true if there is a new boot and
 * the newest boot until now was running: neither its end nor a panic in it was
 * known.
 */
static bool next_boot(HtFlightBoots *b, uint32_t boots)
{
    bool died = runs(b);

    if (boots <= b->boots) {
        return false;
    }
    b->boots = boots;
    b->ended = MAX(b->ended, boots - 1);
    return died;
}

/*
 * Note @kernel, the HtSessionStats.kernel_boot of a poll. Returns true if the
 * running boot's kernel has been missing for HT_FLIGHT_GONE_NS. The boot then
 * counts as ended: the guest may have booted a kernel that the session cannot
 * find.
 */
static bool lose_kernel(HtFlightBoots *b, uint32_t kernel, uint64_t now)
{
    if (!runs(b)) {
        b->kernel = 0;
    } else if (kernel) {
        b->kernel = kernel == b->boots ? kernel : 0;
        b->gone = 0;
    } else if (b->kernel == b->boots && !b->gone) {
        b->gone = now;
    } else if (b->kernel == b->boots && now - b->gone >= HT_FLIGHT_GONE_NS) {
        b->ended = b->boots;
        return true;
    }
    return false;
}

HtFlightDeath ht_flight_boots_note(HtFlightBoots *b, const HtSessionStats *n,
                                   uint64_t now)
{
    bool panicked = n->panic_boot > b->panicked, died;

    /*
     * Raise b->panicked before next_boot(), which calls runs(): the boot that
     * follows a panic then causes no recording of a reset.
     */
    b->logged = MAX(b->logged, n->panic_boot);
    b->panicked = MAX(b->panicked, b->logged);
    died = next_boot(b, n->boots);
    died |= lose_kernel(b, n->kernel_boot, now);
    return panicked ? HT_FLIGHT_PANIC :
           died ? HT_FLIGHT_RESET : HT_FLIGHT_NO_DEATH;
}
