/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the parts of ht-devtest
 */
#ifndef HT_DEVTEST_H
#define HT_DEVTEST_H

extern const char *path;

/* print a message about the failed test, and exit */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
/* Die unless @got is @wanted; both are errno values */
void expect(const char *what, int got, int wanted);

/**
 * emit_test: tests that use the library instead of the node
 * @name: name of the test
 * @arg: its argument, or NULL
 *
 * Returns: 0 if the test does not exist
 */
int emit_test(const char *name, const char *arg);

/**
 * trust_test: become a user who is not root, and try forbidden actions
 *
 * Prints "holding", and ends when it is killed.
 */
void trust_test(void);

#endif
