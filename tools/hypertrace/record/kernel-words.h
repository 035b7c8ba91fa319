/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the words of a Linux kernel's command line
 *
 * The rules are those of the kernel's lib/cmdline.c: white space separates
 * words, but not between double quotes; what comes after the word "--" belongs
 * to init; '-' and '_' are the same in a name.
 */
#ifndef HYPERTRACE_KERNEL_WORDS_H
#define HYPERTRACE_KERNEL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ht_kernel_words_ring() - does a command line ask for a boot-mapped ring?
 * @text: the command line
 * @at: set to the ring's physical address; 0 if the kernel chooses it
 */
bool ht_kernel_words_ring(const char *text, uint64_t *at);

/**
 * ht_kernel_words_label() - is this label of reserve_mem= in use?
 * @text: the command line
 * @label: as "ht"
 */
bool ht_kernel_words_label(const char *text, const char *label);

/**
 * ht_kernel_words_values() - the values of a word that can come repeatedly
 * @text: the command line
 * @name: as "trace_event"
 *
 * Return: newly allocated: all values, each followed by a comma
 */
char *ht_kernel_words_values(const char *text, const char *name);

/**
 * ht_kernel_words_merge() - add words to a command line
 * @text: the command line
 * @words: more words for the kernel
 *
 * The words are the last ones of the kernel's part. If a quotation mark is
 * never closed, no word can come after it: then they are the first ones.
 *
 * Return: newly allocated
 */
char *ht_kernel_words_merge(const char *text, const char *words);

#endif
