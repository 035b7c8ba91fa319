/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HT_SHIM_BSWAP_H
#define HT_SHIM_BSWAP_H

#include <endian.h>
#include <string.h>

#define HT_SHIM_LE(name, bits)                                  \
    static inline uint##bits##_t ld##name##_le_p(const void *p) \
    {                                                           \
        uint##bits##_t v;                                       \
                                                                \
        memcpy(&v, p, sizeof(v));                               \
        return le##bits##toh(v);                                \
    }                                                           \
    static inline void st##name##_shim(void *p, uint##bits##_t v) \
    {                                                           \
        v = htole##bits(v);                                     \
        memcpy(p, &v, sizeof(v));                               \
    }
HT_SHIM_LE(uw, 16)
HT_SHIM_LE(l, 32)
HT_SHIM_LE(q, 64)
#define stw_le_p(p, v) stuw_shim(p, v)
#define stl_le_p(p, v) stl_shim(p, v)
#define stq_le_p(p, v) stq_shim(p, v)
#define cpu_to_le16(v) htole16(v)
#define cpu_to_le32(v) htole32(v)
#define cpu_to_le64(v) htole64(v)
#define le16_to_cpu(v) le16toh(v)
#define le32_to_cpu(v) le32toh(v)
#define le64_to_cpu(v) le64toh(v)

#endif
