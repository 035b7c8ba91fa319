/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: annotations for the thread sanitizer
 *
 * In mode overwrite the producer may overwrite a packet while the consumer
 * copies it.  The consumer checks ht_guest_line.opening after the copy, and
 * discards the copy if the packet was overwritten.  The thread sanitizer cannot
 * know that.
 */
#ifndef HYPERTRACE_SANITIZER_H
#define HYPERTRACE_SANITIZER_H

#ifdef __SANITIZE_THREAD__
/*
 * For a function that loads values while another thread may store them.  The
 * function accepts a mixture of old and new values, or loads them again.
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
