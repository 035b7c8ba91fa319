/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: results for people and for programs
 */
#ifndef HT_VERIFY_REPORT_H
#define HT_VERIFY_REPORT_H

#include "account.h"

/**
 * report_text: a table on standard output
 * @a: what was read
 */
void report_text(const Account *a);

/**
 * report_json: one JSON object on standard output; see ht-verify(1)
 * @accounts: Account, one or two
 * @differences: Difference, or NULL: nothing was compared
 * @ok: the verdict
 */
void report_json(const GPtrArray *accounts, const GPtrArray *differences,
                 bool ok);

/**
 * report_differences: a table on standard output
 */
void report_differences(const GPtrArray *differences);

#endif /* HT_VERIFY_REPORT_H */
