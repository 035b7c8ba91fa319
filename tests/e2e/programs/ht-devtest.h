/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that the parts of ht-devtest share, and the device node's path
 */
#ifndef HT_DEVTEST_H
#define HT_DEVTEST_H

extern const char *path;

/* Print "ht-devtest: " and a message to standard output; exit with status 1 */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
/* Die unless @got is @wanted; the message shows both as values of errno */
void expect(const char *what, int got, int wanted);

/**
 * emit_test: run a test that emits by the library, instead of calls to the node
 * @name: name of the test
 * @arg: the test's argument, or NULL
 *
 * Some tests end the program or wait for SIGKILL, so they do not return.
 *
 * Returns: 0 if no test has this name, 1 after the end of the test
 */
int emit_test(const char *name, const char *arg);

/**
 * trust_test: become a user who is not root, and try forbidden actions
 *
 * If all are refused, the function uses up the user's classes and streams,
 * prints a line that begins with "holding", and waits for a signal.
 */
void trust_test(void);

#endif
