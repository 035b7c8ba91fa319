/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HT_SHIM_UNITS_H
#define HT_SHIM_UNITS_H

#define KiB (INT64_C(1) << 10)
#define MiB (INT64_C(1) << 20)
#define GiB (INT64_C(1) << 30)

#endif
