/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the records of one sub-buffer of Linux' ftrace ring
 *
 * A sub-buffer ("page") is a time stamp, a commit count, and records from
 * there.  Whoever wrote them is not trusted: the bytes are a private copy,
 * and every length is checked against it before it is used.
 */
#ifndef HYPERTRACE_FTRACE_PAGE_H
#define HYPERTRACE_FTRACE_PAGE_H

#include "hypertrace/base.h"

/* Time stamp and commit count, before the records */
#define HT_FT_PAGE_HEADER 16u

/* Bits of the commit count that are no count */
#define HT_FT_COMMIT_MASK 0xfffffu
#define HT_FT_MISSED_EVENTS (1u << 31)  /* events were lost before this page */
#define HT_FT_MISSED_STORED (1u << 30)  /* how many stands behind the records */

/* Before the fields of each event: type, flags, preempt count, pid */
#define HT_FT_EVENT_HEADER 8u

/* Flags of an event: in a hard or soft interrupt or NMI, i.e. not a task's */
#define HT_FT_IN_INTERRUPT 0x58u

/**
 * HtFtStep: what ht_ft_iter_next() came to
 */
typedef enum HtFtStep {
    HT_FT_EVENT,        /* an event */
    HT_FT_END,          /* the end of the records */
    HT_FT_BAD,          /* a record that cannot be */
} HtFtStep;

/**
 * HtFtIter: a walk over the records of a page
 * @data: the page's records
 * @size: bytes of those that are committed
 * @pos: the next record; after HT_FT_BAD the one that is wrong
 * @ns: the guest's trace clock there, in the clock's unit (ns by default)
 * @discarded: records taken back by the kernel that were passed
 */
typedef struct HtFtIter {
    const uint8_t *data;
    uint32_t size;
    uint32_t pos;
    uint64_t ns;
    uint32_t discarded;
} HtFtIter;

/**
 * HtFtRecord: an event of a page
 * @ns: its time
 * @data: the event as the tracefs `format` of its type describes it, at least
 *        HT_FT_EVENT_HEADER bytes
 * @size: bytes of it, rounded up to 4 by the kernel
 */
typedef struct HtFtRecord {
    uint64_t ns;
    const uint8_t *data;
    uint32_t size;
} HtFtRecord;

/**
 * ht_ft_iter_init: begin a walk
 * @it: the walk
 * @data: the page's records; must stay and not change while @it is used
 * @size: bytes of those
 * @pos: where to begin: 0, or where a walk of fewer bytes ended
 * @ns: the time there: the page's time stamp, or where that walk ended
 */
static inline void ht_ft_iter_init(HtFtIter *it, const uint8_t *data,
                                   uint32_t size, uint32_t pos, uint64_t ns)
{
    *it = (HtFtIter) { .data = data, .size = size, .pos = pos, .ns = ns };
}

/**
 * ht_ft_iter_next: the next event
 * @it: the walk
 * @r: set for HT_FT_EVENT
 *
 * Passes time extends and absolute time stamps, which set the time, and
 * discarded records, whose time the kernel's own readers ignore, too.
 */
HtFtStep ht_ft_iter_next(HtFtIter *it, HtFtRecord *r);

/**
 * HtFtPage: what the header of a page says
 * @stamp: time of the first record
 * @size: bytes of records
 * @missed: events were lost before this page
 * @missed_count: how many; 0 if that is not known
 */
typedef struct HtFtPage {
    uint64_t stamp;
    uint32_t size;
    bool missed;
    uint64_t missed_count;
} HtFtPage;

/**
 * ht_ft_page_parse: read the header of a whole page
 * @page: a private copy
 * @size: its size: the sub-buffer's
 * @out: set if it is valid
 *
 * Returns: false if the header does not fit the page
 */
bool ht_ft_page_parse(const uint8_t *page, uint32_t size, HtFtPage *out);

static inline uint16_t ht_ft_event_type(const uint8_t *data)
{
    return ht_get_le16(data);
}

static inline uint8_t ht_ft_event_flags(const uint8_t *data)
{
    return data[2];
}

static inline uint8_t ht_ft_event_preempt(const uint8_t *data)
{
    return data[3];
}

static inline int32_t ht_ft_event_pid(const uint8_t *data)
{
    return (int32_t)ht_get_le32(data + 4);
}

#endif /* HYPERTRACE_FTRACE_PAGE_H */
