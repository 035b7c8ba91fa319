/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: emits whose machine code objects.sh checks; never run
 */
#include "guest-events.h"

/* Visible to other files: the compiler must assume that the ids change. */
struct ht_class *const codegen_classes[] = { &ht_class_four, &ht_class_note };

bool codegen_32(struct ht_stream *s, uint64_t a, uint64_t b)
{
    return ht_emit_four(s, a, b, a, b);
}

bool codegen_text(struct ht_stream *s)
{
    return ht_emit_note(s, 1, "a constant");
}
