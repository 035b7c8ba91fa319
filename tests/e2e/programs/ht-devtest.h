/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of ht-devtest share
 */
#ifndef HT_DEVTEST_H
#define HT_DEVTEST_H

/* The device's node */
extern const char *path;

/* Say what should not have happened, and exit */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
/* As errno numbers */
void expect(const char *what, int got, int wanted);

/**
 * emit_test: what is done with the library rather than with the node
 * @name: of the test
 * @arg: its argument, or NULL
 *
 * Returns: 0 if there is no such test
 */
int emit_test(const char *name, const char *arg);

/**
 * trust_test: become a user who is not root, and try what is not allowed
 *
 * Prints "holding", and ends when it is killed.
 */
void trust_test(void);

#endif
