/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the functions of a kernel that its function tracers can
 * trace
 *
 * The compiler puts a call to the tracer at the start of a function, and the
 * address of the call into a table (mcount_loc), which is in the kernel's
 * image.  Inlined functions and functions marked notrace have no such call.
 * The data is not trusted.
 */
#ifndef HYPERTRACE_KERNEL_FUNCTIONS_H
#define HYPERTRACE_KERNEL_FUNCTIONS_H

#include "hypertrace/kernel-image.h"

/* Maximum number of entries of the table that are read */
#define HT_KERNEL_FUNCTIONS_MAX (1u << 20)

typedef struct HtKernelFunctions HtKernelFunctions;

/**
 * ht_kernel_functions_new: find the traceable functions of a kernel
 * @image: the kernel's image; must stay valid
 *
 * If the image does not hold the addresses of the table, all functions count as
 * traceable: arm64 has the addresses in its relocations, and
 * ht_kernel_image_shrink() frees the table.
 *
 * Returns: the functions, for ht_kernel_functions_free()
 */
HtKernelFunctions *ht_kernel_functions_new(const HtKernelImage *image);

/**
 * ht_kernel_functions_free: free the functions
 * @f: the functions or NULL
 */
void ht_kernel_functions_free(HtKernelFunctions *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelFunctions, ht_kernel_functions_free)

/**
 * ht_kernel_functions_match: count the functions that a pattern names
 * @f: the functions
 * @glob: a name, in which "*" and "?" are wildcards
 * @named: set to the number of functions with such a name, traceable or not
 *
 * Returns: the number of traceable functions with such a name
 */
unsigned ht_kernel_functions_match(const HtKernelFunctions *f,
                                   const char *glob, unsigned *named);

/**
 * ht_kernel_functions_certain: test whether the table was read
 * @f: the functions
 *
 * Returns: false if all functions count as traceable
 */
bool ht_kernel_functions_certain(const HtKernelFunctions *f);

#endif
