/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-bench: interfaces between its files
 */
#ifndef HOST_BENCH_H
#define HOST_BENCH_H

#include "hypertrace/run.h"

/*
 * Register a class with LTTng-UST.  Return false if LTTng-UST refuses the
 * class, or if the program was built without LTTng-UST.
 */
bool host_lttng_class(const HtClass *c);
void host_lttng_run(const HtRun *run, const HtClassTable *classes);
void host_lttng_bare(const HtClassTable *classes, uint32_t id,
                     const uint8_t *payload, size_t size, unsigned n);

#endif /* HOST_BENCH_H */
