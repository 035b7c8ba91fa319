/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the parts of ht-devtest
 */
#ifndef HT_DEVTEST_H
#define HT_DEVTEST_H

extern const char *path;

/* Print a message that says which expectation failed, and exit with status 1 */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
/* Die unless @got is @wanted; both are errno values */
void expect(const char *what, int got, int wanted);

/**
 * emit_test: run a test that uses the library instead of the node
 * @name: name of the test
 * @arg: the test's argument, or NULL
 *
 * Returns: 0 if no such test exists, 1 after the end of the test
 */
int emit_test(const char *name, const char *arg);

/**
 * trust_test: become a user who is not root, and try forbidden actions
 *
 * Prints "holding", and ends when it is killed.
 */
void trust_test(void);

#endif
