/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: event classes in a header shared by several files, as a
 * user's header would be
 */
#ifndef GUEST_EVENTS_H
#define GUEST_EVENTS_H

#include "hypertrace/event.h"

HT_EVENT(zero);
HT_EVENT(tick, (u64, seq));
HT_EVENT(four, (u64, a), (u64, b), (u64, c), (u64, d));
HT_EVENT_NAMED(note, "test.note", (u64, seq), (text, what));
HT_EVENT_FULL(blob, "test.blob-v1", 6, (u64, seq), (seq, u32, words),
              (bytes, raw));
HT_EVENT(mixed, (u8, a), (s16, b), (x32, c), (f64, d), (text, e), (u16, f),
         (s8, g), (array, u16, h, 3), (f32, i), (s64, j), (text, k),
         (s32, l), (x8, m), (x16, n), (x64, o), (u32, p),
         (chars, q, 5));

#endif
