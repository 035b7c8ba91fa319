/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: hide differences between the QEMU versions from 10.0 on
 */
#ifndef HYPERTRACE_COMPAT_H
#define HYPERTRACE_COMPAT_H

#define HT_QEMU_AT_LEAST(major, minor)          \
    (QEMU_VERSION_MAJOR > (major) ||            \
     (QEMU_VERSION_MAJOR == (major) && QEMU_VERSION_MINOR >= (minor)))

/* The second argument of class_init() is const since QEMU 10.1 */
#if HT_QEMU_AT_LEAST(10, 1)
typedef const void HtClassData;
#else
typedef void HtClassData;
#endif

#endif /* HYPERTRACE_COMPAT_H */
