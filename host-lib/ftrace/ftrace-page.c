/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the records of one sub-buffer of Linux's ftrace ring
 */
#include "hypertrace/ftrace-page.h"

/* Types of records other than 1 to HT_FT_TYPE_DATA */
enum {
    TYPE_LARGE = 0,             /* the length is in the second word */
    TYPE_PADDING = HT_FT_TYPE_DATA + 1,
    TYPE_TIME_EXTEND,
    TYPE_TIME_STAMP,
};

#define DELTA_BITS 27
/* An absolute time stamp has 59 bits; the upper bits come from the last time */
#define STAMP_BITS 59
#define STAMP_HIGH (~UINT64_C(0) << STAMP_BITS)

/* Complete an absolute time stamp, as the kernel's rb_fix_abs_ts() does */
static uint64_t absolute(uint64_t stamp, uint64_t before)
{
    if (before & STAMP_HIGH) {
        stamp |= before & STAMP_HIGH;
        if (stamp < before) {
            stamp += UINT64_C(1) << STAMP_BITS;
        }
    }
    return stamp;
}

HtFtStep ht_ft_iter_other(HtFtIter *it, HtFtRecord *r)
{
    for (;;) {
        uint32_t left = it->size - it->pos;
        const uint8_t *p;
        uint32_t word, type, length;
        uint64_t delta;

        if (left == 0) {
            return HT_FT_END;
        }
        if (left < 4) {
            return HT_FT_BAD;
        }
        p = it->data + it->pos;
        word = ht_get_le32(p);
        type = word & HT_FT_TYPE_MASK;
        delta = word >> HT_FT_TYPE_BITS;
        if (type == TYPE_PADDING && delta == 0) {
            /* The rest of the page was too small for the next record. */
            it->pos = it->size;
            return HT_FT_END;
        }
        if (type >= 1 && type < TYPE_PADDING) {
            length = type * 4;
            if (length < HT_FT_EVENT_HEADER || length > left - 4) {
                return HT_FT_BAD;
            }
            it->pos += 4 + length;
            it->ns += delta;
            *r = (HtFtRecord) { it->ns, p + 4, length };
            return HT_FT_EVENT;
        }
        if (left < 8) {
            return HT_FT_BAD;
        }
        length = ht_get_le32(p + 4);
        switch (type) {
        case TYPE_TIME_EXTEND:
            it->ns += delta | (uint64_t)length << DELTA_BITS;
            it->pos += 8;
            break;
        case TYPE_TIME_STAMP:
            it->ns = absolute(delta | (uint64_t)length << DELTA_BITS, it->ns);
            it->pos += 8;
            break;
        case TYPE_PADDING:
            /* @length counts its own word, but not the record's first word. */
            if (length < 4 || length % 4 || length > left - 4) {
                return HT_FT_BAD;
            }
            it->pos += 4 + length;
            it->discarded++;
            break;
        default:                                        /* TYPE_LARGE */
            if (length < 4 + HT_FT_EVENT_HEADER || length % 4 ||
                length > left - 4) {
                return HT_FT_BAD;
            }
            it->pos += 4 + length;
            it->ns += delta;
            *r = (HtFtRecord) { it->ns, p + 8, length - 4 };
            return HT_FT_EVENT;
        }
    }
}

bool ht_ft_page_parse(const uint8_t *page, uint32_t size, HtFtPage *out)
{
    uint32_t flags, used;

    if (size < HT_FT_PAGE_HEADER) {
        return false;
    }
    flags = ht_get_le32(page + 8);
    used = flags & HT_FT_COMMIT_MASK;
    size -= HT_FT_PAGE_HEADER;
    if (used > size) {
        return false;
    }
    *out = (HtFtPage) {
        .stamp = ht_get_le64(page),
        .size = used,
        .missed = flags & HT_FT_MISSED_EVENTS,
    };
    if (out->missed && flags & HT_FT_MISSED_STORED) {
        if (size - used < 8) {
            return false;
        }
        out->missed_count = ht_get_le64(page + HT_FT_PAGE_HEADER + used);
    }
    return true;
}
