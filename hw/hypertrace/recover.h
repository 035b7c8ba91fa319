/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an index of stream RAM, for when QEMU is killed
 *
 * See hypertrace/dead-streams.h.  Nobody reads it while QEMU runs.
 */
#ifndef HW_HYPERTRACE_RECOVER_H
#define HW_HYPERTRACE_RECOVER_H

typedef struct HypertraceDevice HypertraceDevice;
typedef struct HtStream HtStream;

/**
 * HtRecover: the index of a device
 * @file: the property; NULL: there is none
 * @fd: of it, or -1
 * @classes: ids up to this are in it; BQL
 * @at: where the next goes; BQL
 * @failed: it could not be written, and is not any more; atomic
 */
typedef struct HtRecover {
    char *file;
    int fd;
    uint32_t classes;
    uint64_t at;
    bool failed;
} HtRecover;

/**
 * ht_recover_check: whether the memory outlives QEMU
 * @dev: its properties are otherwise valid
 *
 * Context: BQL
 */
bool ht_recover_check(HypertraceDevice *dev, Error **errp);

/**
 * ht_recover_begin: make the index, if there is to be one
 * @dev: with its limits, trace and clock
 *
 * Context: BQL
 */
bool ht_recover_begin(HypertraceDevice *dev, Error **errp);
void ht_recover_end(HypertraceDevice *dev);

/* Add the classes that are new.  Context: BQL */
void ht_recover_classes(HypertraceDevice *dev);
/* Say what a stream is that is about to be open.  Context: worker */
void ht_recover_stream(HtStream *s);

#endif /* HW_HYPERTRACE_RECOVER_H */
