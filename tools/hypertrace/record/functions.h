/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the functions that the kernel's tracers record in a boot
 */
#ifndef HYPERTRACE_RECORD_FUNCTIONS_H
#define HYPERTRACE_RECORD_FUNCTIONS_H

#include "hypertrace/kernel-image.h"

/**
 * struct HtRecordFunctions - what --functions or --graph asks for
 * @names: names and patterns, with commas between; NULL: nothing is asked for
 * @depth: levels of calls that are recorded; 0: all
 * @graph: calls with their ends (function_graph), not only their starts
 */
typedef struct HtRecordFunctions {
    char *names;
    unsigned depth;
    bool graph;
} HtRecordFunctions;

/**
 * ht_record_functions_parse() - read the value of an option
 * @f: set; for ht_record_functions_clear()
 * @text: "GLOB,..."; of --graph also "depth=N"
 * @graph: it is --graph's
 * @error: set if it is malformed
 */
bool ht_record_functions_parse(HtRecordFunctions *f, const char *text,
                               bool graph, GError **error);
void ht_record_functions_clear(HtRecordFunctions *f);

/** ht_record_functions_option() - the option, as "--graph" */
const char *ht_record_functions_option(const HtRecordFunctions *f);

/**
 * ht_record_functions_check() - check that the kernel can trace each of them
 * @f: what is asked for
 * @image: the guest's kernel
 * @error: set if a name or pattern has no traceable function
 *
 * A kernel whose filter has no traceable function traces all functions.
 */
bool ht_record_functions_check(const HtRecordFunctions *f,
                               const HtKernelImage *image, GError **error);

/**
 * ht_record_functions_words() - words for the kernel's command line
 * @f: what is asked for
 *
 * Return: newly allocated
 */
char *ht_record_functions_words(const HtRecordFunctions *f);

#endif
