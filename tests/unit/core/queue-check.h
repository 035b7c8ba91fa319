/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check the invariants of two queues that share one pool of buffers
 */
#ifndef QUEUE_CHECK_H
#define QUEUE_CHECK_H

#include "hypertrace/queue.h"

#define QC_QUEUES 2
#define QC_STREAMS 3
#define QC_BUFFER 1024

/* A stream as the reader of a queue sees it */
typedef struct QcSeen {
    bool open;
    uint64_t instance;
    /* lowest number that the stream's next event can have */
    uint64_t next;
    /*
     * HtRun.discarded of the last run of the open instance; this includes
     * discarded events of earlier instances if the queue never had their
     * openings
     */
    uint64_t missing;
    /* sum of HtRun.discarded of the runs that closed an instance */
    uint64_t told;
    uint64_t got;
} QcSeen;

typedef struct QcStream {
    HtStreamInfo info;
    HtBuffer *fill;
    bool open;
    bool fresh;
    uint64_t next;
    /*
     * number of the open instance's events that were discarded before they
     * reached the queues
     */
    uint64_t upstream;
    /*
     * number of all instances' events that were discarded before they reached
     * the queues
     */
    uint64_t discarded;
    QcSeen seen[QC_QUEUES];
} QcStream;

typedef struct QcCheck {
    HtPool pool;
    HtQueue queue[QC_QUEUES];
    QcStream stream[QC_STREAMS];
    uint64_t ns;
} QcCheck;

void qc_init(QcCheck *c, size_t budget);
/* Open a closed stream, or close an open one */
void qc_toggle(QcCheck *c, unsigned stream);
/*
 * Post a run of an open stream; @cut sets HT_RUN_CUT. Since the previous run,
 * @upstream events of the stream were discarded before they reached the queues.
 */
void qc_post(QcCheck *c, unsigned stream, unsigned events, bool cut,
             unsigned upstream);
/*
 * Post a run without events that reports @upstream events discarded before they
 * reached the queues
 */
void qc_tell(QcCheck *c, unsigned stream, unsigned upstream);
/* Take at most @items runs from a queue and check them; return their number. */
unsigned qc_take(QcCheck *c, unsigned queue, unsigned items);
/*
 * Close all streams, empty the queues, check that each queue has delivered each
 * event or counted it as discarded, and free everything.
 */
void qc_finish(QcCheck *c);

#endif
