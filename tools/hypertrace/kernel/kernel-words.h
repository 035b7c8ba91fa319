/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the words of a Linux kernel's command line
 *
 * The rules are those of the kernel's lib/cmdline.c: white space separates
 * words, but not between double quotes. Words after "--" belong to init. In a
 * name, '-' and '_' are equal.
 */
#ifndef HYPERTRACE_KERNEL_WORDS_H
#define HYPERTRACE_KERNEL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ht_kernel_words_ring() - whether a command line asks for a boot-mapped ring
 * @text: the command line
 * @at: set to the ring's physical address; 0 if the kernel chooses it
 */
bool ht_kernel_words_ring(const char *text, uint64_t *at);

/**
 * ht_kernel_words_label() - whether a label of reserve_mem= is in use
 * @text: the command line
 * @label: the label, for example "ht"
 */
bool ht_kernel_words_label(const char *text, const char *label);

/**
 * ht_kernel_words_values() - get all values of a word that may be repeated
 * @text: the command line
 * @name: the word's name, for example "trace_event"
 *
 * Return: newly allocated: all values, each followed by a comma
 */
char *ht_kernel_words_values(const char *text, const char *name);

/**
 * ht_kernel_words_merge() - add words to a command line
 * @text: the command line
 * @words: more words for the kernel
 *
 * The words are appended to the kernel's part. If a quotation mark is not
 * closed, no word can follow it: then the words are inserted at the start.
 *
 * Return: newly allocated
 */
char *ht_kernel_words_merge(const char *text, const char *words);

#endif
