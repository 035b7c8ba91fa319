/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the records of one sub-buffer of Linux's ftrace ring
 *
 * A sub-buffer ("page") consists of a time stamp, a commit count, and records.
 * The content is not trusted: callers pass a private copy, and each length is
 * checked against the size of the copy before it is used.
 */
#ifndef HYPERTRACE_FTRACE_PAGE_H
#define HYPERTRACE_FTRACE_PAGE_H

#include "hypertrace/base.h"

/* Size of the time stamp and the commit count, which precede the records */
#define HT_FT_PAGE_HEADER 16u

/*
 * Bits of the commit count that hold the size of the records in bytes.  The two
 * constants after this one are flags in other bits of the commit count.
 */
#define HT_FT_COMMIT_MASK 0xfffffu
#define HT_FT_MISSED_EVENTS (1u << 31)  /* events were lost before this page */
/* the number of lost events is stored after the page's records */
#define HT_FT_MISSED_STORED (1u << 30)

/* Size of the common fields of an event: type, flags, preempt count, pid */
#define HT_FT_EVENT_HEADER 8u

/*
 * Bits of common_flags of an event that was raised in a hard interrupt, a soft
 * interrupt or an NMI
 */
#define HT_FT_IN_INTERRUPT 0x58u

/**
 * HtFtStep: result of ht_ft_iter_next()
 */
typedef enum HtFtStep {
    HT_FT_EVENT,        /* the next event was returned */
    HT_FT_END,          /* the iterator has reached the end of the records */
    HT_FT_BAD,          /* the next record is invalid */
} HtFtStep;

/**
 * HtFtIter: an iterator over records of a page
 * @data: the records
 * @size: size of @data in bytes
 * @pos: offset of the next record; after HT_FT_BAD, of the invalid record
 * @ns: the guest's trace clock at @pos, in the clock's unit (ns by default)
 * @discarded: number of records skipped so far that the kernel had discarded
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
 * @ns: time of the event, in the unit of the trace clock
 * @data: the event, as the tracefs `format` file of its type describes it
 * @size: size of @data in bytes, at least HT_FT_EVENT_HEADER; the kernel rounds
 *        it up to a multiple of 4
 */
typedef struct HtFtRecord {
    uint64_t ns;
    const uint8_t *data;
    uint32_t size;
} HtFtRecord;

/**
 * ht_ft_iter_init: start an iterator
 * @it: the iterator
 * @data: consecutive records of a page; must stay unchanged while @it is used
 * @size: size of the records in bytes
 * @pos: offset in @data of the first record to return
 * @ns: the clock at @pos: at the start of a page, its time stamp; else @ns of
 *      an iterator that has read the records before
 */
static inline void ht_ft_iter_init(HtFtIter *it, const uint8_t *data,
                                   uint32_t size, uint32_t pos, uint64_t ns)
{
    *it = (HtFtIter) { .data = data, .size = size, .pos = pos, .ns = ns };
}

/*
 * Fields of a record's first word: the low HT_FT_TYPE_BITS bits are the type,
 * and the bits above it are the time since the previous record.  A type of 1 to
 * HT_FT_TYPE_DATA is also the length of the data in words of 4 bytes.
 */
#define HT_FT_TYPE_BITS 5
#define HT_FT_TYPE_MASK ((1u << HT_FT_TYPE_BITS) - 1)
#define HT_FT_TYPE_DATA 28u

/** ht_ft_iter_other: ht_ft_iter_next() for records of all types */
HtFtStep ht_ft_iter_other(HtFtIter *it, HtFtRecord *r);

/**
 * ht_ft_iter_next: get the next event
 * @it: the iterator
 * @r: set for HT_FT_EVENT
 *
 * A time extend record is added to the time, and an absolute time stamp
 * replaces it.  Discarded records are skipped; their time deltas are ignored,
 * as in the kernel's own readers.
 */
static inline HtFtStep ht_ft_iter_next(HtFtIter *it, HtFtRecord *r)
{
    uint32_t left = it->size - it->pos, word, length;
    const uint8_t *p;

    if (left < 4 + HT_FT_EVENT_HEADER) {
        return ht_ft_iter_other(it, r);
    }
    p = it->data + it->pos;
    word = ht_get_le32(p);
    length = (word & HT_FT_TYPE_MASK) * 4;
    /* Most records are events whose length is in the type. */
    if (length < HT_FT_EVENT_HEADER || length > HT_FT_TYPE_DATA * 4 ||
        length > left - 4) {
        return ht_ft_iter_other(it, r);
    }
    it->pos += 4 + length;
    it->ns += word >> HT_FT_TYPE_BITS;
    *r = (HtFtRecord) { it->ns, p + 4, length };
    return HT_FT_EVENT;
}

/**
 * HtFtPage: the header of a page
 * @stamp: time of the first record
 * @size: size of the records in bytes
 * @missed: events were lost before this page
 * @missed_count: number of lost events; 0 if not known
 */
typedef struct HtFtPage {
    uint64_t stamp;
    uint32_t size;
    bool missed;
    uint64_t missed_count;
} HtFtPage;

/**
 * ht_ft_page_parse: parse the header of a whole page
 * @page: a private copy of the page
 * @size: size of the sub-buffer in bytes
 * @out: set if the header is valid
 *
 * Returns: false if the header is not valid for a page of this size
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

static inline int32_t ht_ft_event_pid(const uint8_t *data)
{
    return (int32_t)ht_get_le32(data + 4);
}

#endif /* HYPERTRACE_FTRACE_PAGE_H */
