/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: check the events of ht-bench that the host recorded; see
 * ht-verify(1)
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare.h"
#include "report.h"

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_UNREADABLE = 3 };

static void usage(FILE *f)
{
    fputs("usage: ht-verify [-jl] DIR...\n"
          "       ht-verify [-jl] -c DIR DIR\n"
          "\n"
          "Read the traces below each DIR and check every event of ht-bench.\n"
          "\n"
          "  -c, --compare      check that both have the same events\n"
          "  -j, --json         print one JSON object on a line\n"
          "  -l, --lossless     check that no event is missing or discarded\n"
          "  -h, --help         show this help\n"
          "\n"
          "Exit status: 0 all checks passed, 1 a check failed, 2 invalid\n"
          "options, 3 a trace cannot be read.\n", f);
}

static void sum_up(Account *a)
{
    uint64_t altered = 0, twice = 0, disordered = 0, backward = 0;
    uint64_t recorded = 0;
    unsigned i;

    for (i = 0; i < a->streams->len; i++) {
        const Stream *s = a->streams->pdata[i];

        recorded += s->recorded;
        altered += s->altered;
        twice += s->duplicates;
        disordered += s->disordered;
        backward += s->backward;
    }
    if (altered || twice || disordered || backward) {
        account_problem(a, "of %" PRIu64 " events, %" PRIu64 " were altered, %"
                        PRIu64 " are repeated, %" PRIu64 " out of order, %"
                        PRIu64 " dated before the previous event", recorded,
                        altered, twice, disordered, backward);
    }
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "compare", no_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { "json", no_argument, NULL, 'j' },
        { "lossless", no_argument, NULL, 'l' },
        { }
    };
    bool comparing = false, json = false, lossless = false, ok = true;
    g_autoptr(GPtrArray) accounts =
        g_ptr_array_new_with_free_func((GDestroyNotify)account_free);
    g_autoptr(GPtrArray) differences = NULL;
    g_autoptr(GError) err = NULL;
    unsigned i, j;
    int c;

    while ((c = getopt_long(argc, argv, "chjl", longs, NULL)) != -1) {
        switch (c) {
        case 'c':
            comparing = true;
            break;
        case 'h':
            usage(stdout);
            return EXIT_OK;
        case 'j':
            json = true;
            break;
        case 'l':
            lossless = true;
            break;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind == argc || (comparing && argc - optind != 2)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    for (; optind < argc; optind++) {
        Account *a = account_read(argv[optind], comparing, &err);

        if (!a) {
            fprintf(stderr, "ht-verify: %s\n", err->message);
            return EXIT_UNREADABLE;
        }
        if (lossless) {
            account_lossless(a);
        }
        sum_up(a);
        g_ptr_array_add(accounts, a);
    }
    if (comparing) {
        differences = compare(accounts->pdata[0], accounts->pdata[1]);
    }

    for (i = 0; i < accounts->len; i++) {
        const Account *a = accounts->pdata[i];

        ok &= a->problems->len == 0;
        if (!json) {
            report_text(a);
        }
        for (j = 0; j < a->problems->len; j++) {
            fprintf(stderr, "ht-verify: %s\n", (char *)a->problems->pdata[j]);
        }
    }
    if (json) {
        report_json(accounts, differences, ok);
    } else if (differences) {
        report_differences(differences);
    }
    return ok ? EXIT_OK : EXIT_WRONG;
}
