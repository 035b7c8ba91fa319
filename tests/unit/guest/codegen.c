/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: functions that emit events. objects.sh checks their machine
 * code; no program runs them.
 */
#include "guest-events.h"

/*
 * Other files can see this array, so the compiler must assume that they change
 * the ids of its classes.
 */
struct ht_class *const codegen_classes[] = { &ht_class_four, &ht_class_note };

bool codegen_32(struct ht_stream *s, uint64_t a, uint64_t b)
{
    return ht_emit_four(s, a, b, a, b);
}

bool codegen_text(struct ht_stream *s)
{
    return ht_emit_note(s, 1, "a constant");
}
