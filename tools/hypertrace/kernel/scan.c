/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: copy the image of a guest's kernel out of the guest's memory
 */
#include <stdio.h>
#include <unistd.h>

#include "hypertrace/kernel-scan.h"
#include "hypertrace/thread.h"
#include "kernel/kernel.h"

/*
 * Time in ns after which a step of the scan ends. After each step, the progress
 * is shown if this was requested, and the scan ends if its job was stopped.
 */
#define STEP_NS 250000000

static int scan_all(HtKernelScan *scan, bool progress, HtJob *job)
{
    HtBudget budget = { .clock = ht_now_ns };
    int ret = 0;

    while (!job || !ht_job_is_stopped(job)) {
        budget.end = ht_now_ns() + STEP_NS;
        ret = ht_kernel_scan_step(scan, &budget);
        if (ret) {
            break;
        }
        if (progress) {
            fprintf(stderr, "\r\033[Ksearching the guest's memory for its "
                    "kernel: %.0f %%", 100 * ht_kernel_scan_progress(scan));
            fflush(stderr);
        }
    }
    if (progress) {
        fputs("\r\033[K", stderr);
    }
    return ret;
}

HtKernelImage *ht_kernel_image_in(const HtFtMem *mem, bool quiet, HtJob *job,
                                  GError **error)
{
    g_autofree HtGuestMem *guest = g_new(HtGuestMem, 1);
    g_autoptr(HtKernelScan) scan = NULL;
    HtKernelImage *image = NULL;
    HtGuestKernel *k;
    int ret;

    ht_guest_mem_init(guest, mem);
    scan = ht_kernel_scan_new(guest);
    ret = scan_all(scan, !quiet && isatty(STDERR_FILENO), job);
    if (ret < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(-ret),
                    "the guest's memory cannot be read: %s",
                    g_strerror(-ret));
        return NULL;
    }
    k = ht_kernel_scan_take(scan, error);
    if (k) {
        image = ht_kernel_image_ref(ht_guest_kernel_image(k));
        ht_guest_kernel_free(k);
    }
    return image;
}
