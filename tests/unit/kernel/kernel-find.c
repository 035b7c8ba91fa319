/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel-find IMAGE RAM: find a kernel in a file of RAM or a core dump, and
 * print its place and the time of the search.  IMAGE "-": find it without its
 * image.
 */
#include "hypertrace/kernel-scan.h"
#include "memory/source.h"

static HtGuestKernel *find(const char *path, const HtGuestMem *mem,
                           int64_t *took, GError **error)
{
    g_autoptr(HtKernelImage) image = NULL;
    g_autoptr(HtKernelScan) scan = NULL;
    HtGuestKernel *k;
    int64_t begin;

    if (strcmp(path, "-")) {
        image = ht_kernel_image_open(path, error);
        begin = g_get_monotonic_time();
        k = image ? ht_guest_kernel_find(mem, image, error) : NULL;
    } else {
        begin = g_get_monotonic_time();
        scan = ht_kernel_scan_new(mem);
        ht_kernel_scan_step(scan, NULL);
        k = ht_kernel_scan_take(scan, error);
    }
    *took = g_get_monotonic_time() - begin;
    return k;
}

int main(int argc, char **argv)
{
    g_autoptr(HtSource) source = NULL;
    g_autoptr(HtGuestKernel) k = NULL;
    g_autoptr(GError) error = NULL;
    const HtGuestMem *in;
    HtKernelClock clock;
    HtGuestMem mem;
    int64_t took;
    unsigned i;

    if (argc != 3) {
        fprintf(stderr, "usage: kernel-find IMAGE|- RAM\n");
        return 2;
    }
    source = ht_source_open(argv[2], &error);
    if (source) {
        ht_guest_mem_init(&mem, &source->mem);
        k = find(argv[1], &mem, &took, &error);
    }
    if (!k) {
        fprintf(stderr, "kernel-find: %s\n", error->message);
        return 1;
    }
    printf("%s\n", ht_kernel_image_version(ht_guest_kernel_image(k)));
    printf("found in %.1f ms at 0x%" PRIx64 ", slide 0x%" PRIx64
           ", %u levels of tables, pages of %u KiB, %u CPUs\n", took / 1e3,
           ht_guest_kernel_phys(k), ht_guest_kernel_slide(k),
           ht_guest_kernel_levels(k), ht_guest_kernel_page_size(k) >> 10,
           ht_guest_kernel_cpus(k));
    in = ht_guest_kernel_memory(k);
    for (i = 0; i < in->n; i++) {
        printf("RAM at 0x%" PRIx64 ", %" PRIu64 " MiB\n", in->ranges[i].phys,
               in->ranges[i].size >> 20);
    }
    if (!ht_guest_kernel_clock(k, &clock)) {
        printf("clock %" PRIu64 " s, jiffies %" PRIu64 "\n", clock.seconds,
               clock.jiffies);
    }
    return 0;
}
