/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: print results as text or JSON
 */
#ifndef HT_VERIFY_REPORT_H
#define HT_VERIFY_REPORT_H

#include "account.h"

/**
 * report_text: print a table of an account, on standard output
 * @a: the account
 */
void report_text(const Account *a);

/**
 * report_json: print one JSON object; see ht-verify(1)
 * @accounts: Account, one for each directory
 * @differences: Difference; NULL without --compare
 * @ok: all checks passed
 */
void report_json(const GPtrArray *accounts, const GPtrArray *differences,
                 bool ok);

/**
 * report_differences: print a table of the differences of two traces
 * @differences: of Difference
 */
void report_differences(const GPtrArray *differences);

#endif /* HT_VERIFY_REPORT_H */
