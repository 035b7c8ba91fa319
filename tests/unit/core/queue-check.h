/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two queues over one pool, and what must hold for them whatever is posted
 */
#ifndef QUEUE_CHECK_H
#define QUEUE_CHECK_H

#include "hypertrace/queue.h"

#define QC_QUEUES 2
#define QC_STREAMS 3
#define QC_BUFFER 1024

/* What a queue's reader saw of a stream */
typedef struct QcSeen {
    bool open;
    uint64_t instance;
    uint64_t next;              /* number that the next event can have */
    uint64_t missing;           /* of the open instance, told */
    uint64_t told;              /* of all instances before */
    uint64_t got;               /* events */
} QcSeen;

typedef struct QcStream {
    HtStreamInfo info;
    HtBuffer *fill;
    bool open;
    bool fresh;                 /* without events so far */
    uint64_t next;              /* number of the next event */
    uint64_t upstream;          /* discarded before, of the open instance */
    uint64_t discarded;         /* discarded before, of all instances */
    QcSeen seen[QC_QUEUES];
} QcStream;

typedef struct QcCheck {
    HtPool pool;
    HtQueue queue[QC_QUEUES];
    QcStream stream[QC_STREAMS];
    uint64_t ns;
} QcCheck;

void qc_init(QcCheck *c, size_t budget);
/* Open the stream, or close it */
void qc_toggle(QcCheck *c, unsigned stream);
/* Post a run; @upstream events were discarded before.  Needs an open stream */
void qc_post(QcCheck *c, unsigned stream, unsigned events, bool cut,
             unsigned upstream);
/* Post a run without events */
void qc_tell(QcCheck *c, unsigned stream, unsigned upstream);
/* Take up to @items from a queue; returns how many there were */
unsigned qc_take(QcCheck *c, unsigned queue, unsigned items);
/* Close and take all, check the sums, and free */
void qc_finish(QcCheck *c);

#endif /* QUEUE_CHECK_H */
