/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an index of stream RAM, for the case that QEMU is killed
 *
 * See hypertrace/dead-streams.h.  It is not read while QEMU runs.
 */
#ifndef HW_HYPERTRACE_RECOVER_H
#define HW_HYPERTRACE_RECOVER_H

#include "hypertrace/streams.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtRecover: the index of a device
 * @file: value of the property; NULL: no index
 * @fd: descriptor of the file, or -1
 * @classes: ids up to this are in it; BQL
 * @at: offset of the next class; BQL
 * @failed: a write failed, and the file is no longer written; atomic
 */
typedef struct HtRecover {
    char *file;
    int fd;
    uint32_t classes;
    uint64_t at;
    bool failed;
} HtRecover;

/**
 * ht_recover_check: test whether the memory outlives QEMU
 * @dev: its properties are otherwise valid
 *
 * Context: BQL
 */
bool ht_recover_check(HypertraceDevice *dev, Error **errp);

/**
 * ht_recover_begin: make the index, if the property is set
 * @dev: the device, with its limits, trace and clock
 *
 * Context: BQL
 */
bool ht_recover_begin(HypertraceDevice *dev, Error **errp);
void ht_recover_end(HypertraceDevice *dev);

/* Add new classes.  Context: BQL */
void ht_recover_classes(HypertraceDevice *dev);
/* Describe a stream that is about to be opened.  Context: worker */
void ht_recover_stream(HtStream *s);

#endif /* HW_HYPERTRACE_RECOVER_H */
