/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse and extend the command line of a Linux kernel
 *
 * The rules are those of the kernel: white space separates words, but not
 * between double quotes (lib/cmdline.c). Words after "--" belong to init, and
 * are not interpreted. In a name, '-' and '_' are equal (kernel/params.c).
 */
#ifndef HYPERTRACE_KERNEL_WORDS_H
#define HYPERTRACE_KERNEL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ht_kernel_words_ring() - whether a command line asks for a ring at a fixed
 *                          place in memory, by the word
 *                          trace_instance=NAME@PLACE
 * @text: the command line
 * @at: if true is returned, set to the ring's physical address; 0 if PLACE is
 *      no address, but a label of reserve_mem=
 */
bool ht_kernel_words_ring(const char *text, uint64_t *at);

/**
 * ht_kernel_words_label() - whether a command line has a word reserve_mem= with
 *                           a label
 * @text: the command line
 * @label: the label, for example "ht"
 */
bool ht_kernel_words_label(const char *text, const char *label);

/**
 * ht_kernel_words_values() - get all values of a word that may be repeated
 * @text: the command line
 * @name: the word's name, for example "trace_event"; with '_', not '-'
 *
 * Return: newly allocated: all values, each followed by a comma
 */
char *ht_kernel_words_values(const char *text, const char *name);

/**
 * ht_kernel_words_merge() - add words to a command line
 * @text: the command line
 * @words: more words for the kernel
 *
 * The words are appended to the kernel's part, which ends before a "--". If a
 * quotation mark in this part has no partner, no word can follow: then the
 * words are inserted at the start.
 *
 * Return: newly allocated
 */
char *ht_kernel_words_merge(const char *text, const char *words);

#endif
