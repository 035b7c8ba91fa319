/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: parse and check the functions that the kernel's tracers
 * record in a boot
 */
#ifndef HYPERTRACE_RECORD_FUNCTIONS_H
#define HYPERTRACE_RECORD_FUNCTIONS_H

#include "hypertrace/kernel-image.h"

/**
 * struct HtRecordFunctions - value of --functions or --graph
 * @names: names and patterns, separated by commas; NULL without the option
 * @depth: levels of calls that are recorded; 0: all
 * @graph: calls with their ends (function_graph), not only their starts
 */
typedef struct HtRecordFunctions {
    char *names;
    unsigned depth;
    bool graph;
} HtRecordFunctions;

/**
 * ht_record_functions_parse() - parse the value of an option
 * @f: set; for ht_record_functions_clear()
 * @text: "GLOB,..."; for --graph also "depth=N"
 * @graph: the option is --graph
 * @error: set if it is malformed
 */
bool ht_record_functions_parse(HtRecordFunctions *f, const char *text,
                               bool graph, GError **error);
void ht_record_functions_clear(HtRecordFunctions *f);

/** ht_record_functions_option() - get the name of the option */
const char *ht_record_functions_option(const HtRecordFunctions *f);

/**
 * ht_record_functions_check() - check that the kernel can trace each function
 * @f: value of the option
 * @image: the guest's kernel
 * @error: set if a name or pattern has no traceable function
 *
 * Without this check the kernel would trace all functions if its filter had no
 * traceable function.
 */
bool ht_record_functions_check(const HtRecordFunctions *f,
                               const HtKernelImage *image, GError **error);

/**
 * ht_record_functions_words() - get words for the kernel's command line
 * @f: value of the option
 *
 * Return: newly allocated
 */
char *ht_record_functions_words(const HtRecordFunctions *f);

#endif
