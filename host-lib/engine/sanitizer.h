/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: annotations for the thread sanitizer
 *
 * In mode overwrite a slot may be written while it is copied.  The consumer
 * then checks `opening` again and discards the copy.  The thread sanitizer
 * cannot know that.
 */
#ifndef HYPERTRACE_SANITIZER_H
#define HYPERTRACE_SANITIZER_H

#ifdef __SANITIZE_THREAD__
/*
 * For a function whose loads race with stores, and may return old and new
 * values
 */
#define HT_NO_TSAN __attribute__((no_sanitize("thread")))
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#else
#define HT_NO_TSAN
#define AnnotateIgnoreReadsBegin(file, line)
#define AnnotateIgnoreReadsEnd(file, line)
#endif

#endif /* HYPERTRACE_SANITIZER_H */
