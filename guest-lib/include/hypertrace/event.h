/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: define and emit typed events
 *
 *     HT_EVENT(irq_done, (u32, irq), (x64, addr), (text, who));
 *
 *     ht_register(dev, &ht_class_irq_done);
 *     ht_emit_irq_done(stream, 14, addr, "disk");
 *
 * HT_EVENT() may be in a source file, or in a header that several files share.
 * Each file then has its own class, which must be registered: by ht_register(),
 * or by the code of trace.h when the program starts or the shared object is
 * loaded.  The host gives programs' classes with the same name and fields the
 * same id.  The names that HT_EVENT() defines are static, so a C++ inline
 * function in a header must use HT_EVENT_INLINE().
 *
 * A class has 0 to 32 fields:
 *
 *     (u8, f) ... (u64, f)    unsigned integers
 *     (s8, f) ... (s64, f)    signed integers
 *     (x8, f) ... (x64, f)    unsigned, shown in base 16
 *     (f32, f), (f64, f)      floating point (not in the kernel)
 *     (bool, f)               false or true
 *     (ptr, f)                const void *, shown in base 16
 *     (enum, u8, f, labels)   integer of any kind, whose values have names
 *     (flags, x32, f, labels) integer of any kind, whose bits have names;
 *                             @labels is an array of struct ht_label:
 *                             { 0, "idle" }, { 1, "run" }
 *     (text, f)               const char *, UTF-8, up to 65535 bytes; NULL is
 *                             an empty text
 *     (bytes, f)              two arguments: const void *, number of bytes
 *     (seq, u16, f)           two arguments: const uint16_t *, number of
 *                             elements; any integer kind
 *     (array, u16, f, 6)      const uint16_t *, always 6 elements
 *     (chars, f, 16)          const char *, 16 bytes are read: UTF-8 up to the
 *                             first 0; cheaper than text
 *
 * An event that does not fit a packet, or that has a text or sequence of more
 * than 65535 elements, is discarded and counted, never truncated.
 */
#ifndef HYPERTRACE_EVENT_H
#define HYPERTRACE_EVENT_H

/*
 * C++ before C++20 has no __VA_OPT__: suppress warnings about classes without
 * fields.
 */
#ifdef __cplusplus
#pragma GCC system_header
#endif

#include "hypertrace/hypertrace.h"

/* Levels of HT_EVENT_LEVEL(): those of LTTng, of which 0 to 6 are syslog's */
enum ht_level {
    HT_LEVEL_EMERG,
    HT_LEVEL_ALERT,
    HT_LEVEL_CRIT,
    HT_LEVEL_ERR,
    HT_LEVEL_WARNING,
    HT_LEVEL_NOTICE,
    HT_LEVEL_INFO,
    HT_LEVEL_DEBUG_SYSTEM,
    HT_LEVEL_DEBUG_PROGRAM,
    HT_LEVEL_DEBUG_PROCESS,
    HT_LEVEL_DEBUG_MODULE,
    HT_LEVEL_DEBUG_UNIT,
    HT_LEVEL_DEBUG_FUNCTION,
    HT_LEVEL_DEBUG_LINE,
    HT_LEVEL_DEBUG,             /* level of an event without a given level */
};

/**
 * HT_EVENT() - define an event class and its emit function
 * @ident: name of the class, and part of the names defined
 * @...: fields, see above
 *
 * Defines struct ht_class ht_class_<ident>, which must be registered, and
 *
 *     static inline bool ht_emit_<ident>(struct ht_stream *, fields...);
 *
 * which returns false if the event was discarded (and counted).
 */
#define HT_EVENT(ident, ...) \
    HT_EVENT_FULL(ident, #ident, HT_LEVEL_DEBUG, ##__VA_ARGS__)

/**
 * HT_EVENT_LEVEL() - HT_EVENT() with a level
 * @ident: name of the class, and part of the names defined
 * @level: enum ht_level; LTTng on the host can select events by their level
 * @...: fields, see above
 */
#define HT_EVENT_LEVEL(ident, level, ...) \
    HT_EVENT_FULL(ident, #ident, level, ##__VA_ARGS__)

/**
 * HT_EVENT_NAMED() - HT_EVENT() with a name such as "sched.switch"
 * @ident: part of the names defined
 * @name: name of the class
 * @...: fields, see above
 */
#define HT_EVENT_NAMED(ident, name, ...) \
    HT_EVENT_FULL(ident, name, HT_LEVEL_DEBUG, ##__VA_ARGS__)

/**
 * HT_EVENT_FULL() - HT_EVENT_NAMED() with a level
 * @ident: part of the names defined
 * @class_name: name of the class
 * @level: enum ht_level
 * @...: fields, see above
 */
#define HT_EVENT_FULL(ident, class_name, level, ...) \
    HT_EV_DEFINE(file, ident, class_name, level, ##__VA_ARGS__)

/**
 * HT_EVENT_INLINE() - HT_EVENT_FULL() for inline functions of C++ headers
 * @ident: part of the names defined
 * @class_name: name of the class
 * @level: enum ht_level
 * @...: fields, see above
 *
 * C++17 or later.  All files of a program share one class and one emit
 * function, as C++'s one-definition rule requires of the names that an inline
 * function uses.  So a program must not define two different events with this
 * macro and the same @ident.
 */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define HT_EVENT_INLINE(ident, class_name, level, ...) \
    HT_EV_DEFINE(program, ident, class_name, level, ##__VA_ARGS__)
#endif

#define HT_EV_DEFINE(scope, ident, class_name, level, ...)                  \
    HT_EV_DATA_##scope const struct ht_field ht_fields_##ident[] = {        \
        HT_EV_EACH(HT_EV_DESC, ##__VA_ARGS__)                               \
        { 0, 0, 0, 0, 0, 0 }                                                \
    };                                                                      \
    HT_EV_DATA_##scope struct ht_class ht_class_##ident = {                 \
        class_name, ht_fields_##ident, HT_EV_OFF,                           \
        sizeof(ht_fields_##ident) / sizeof(struct ht_field) - 1, level,     \
        0, 0, 0                                                             \
    };                                                                      \
    HT_EV_LINK(ident)                                                       \
    __attribute__((unused))                                                 \
    HT_EV_CODE_##scope bool                                                 \
    ht_emit_##ident(struct ht_stream *ht_s_                                 \
                                 HT_EV_EACH(HT_EV_PARAM, ##__VA_ARGS__))    \
    {                                                                       \
        HT_EV_EACH(HT_EV_LEN, ##__VA_ARGS__)                                \
        const uint32_t ht_n_ =                                              \
            (uint32_t)(0 HT_EV_EACH(HT_EV_SIZE, ##__VA_ARGS__));            \
        const uint32_t ht_id_ = ht_load_relaxed32(&ht_class_##ident.id);    \
        uint8_t *ht_e_ = ht_begin(ht_s_, ht_id_, ht_n_);                    \
        uint8_t *ht_p_;                                                     \
                                                                            \
        if (ht_unlikely(!ht_e_)) {                                          \
            return false;                                                   \
        }                                                                   \
        ht_p_ = ht_e_ - ht_n_;                                              \
        HT_EV_EACH(HT_EV_PUT, ##__VA_ARGS__)                                \
        (void)ht_p_;                                                        \
        ht_finish(ht_s_, ht_e_);                                            \
        return true;                                                        \
    }                                                                       \
    HT_EV_TRACE(scope, ident, ##__VA_ARGS__)                                \
    struct ht_class

/*
 * Storage class of the names that an event defines.  With _file, each source
 * file has its own names; with _program, the files of a program share them.
 */
#define HT_EV_DATA_file                                                     \
    static
#define HT_EV_CODE_file                                                     \
    static inline
#define HT_EV_DATA_program                                                  \
    inline
#define HT_EV_CODE_program                                                  \
    inline

/*
 * trace.h redefines this macro, so that each event also has a function
 * ht_trace_<ident>(), which emits it on a stream that the library chooses.
 */
#define HT_EV_TRACE(scope, ident, ...)

/*
 * In user space, the section "ht_classes" holds a pointer to each class.  The
 * code that trace.h adds to each program and shared object finds the classes
 * there.  No symbol refers to the pointers, so "retain" keeps the linker's
 * --gc-sections from removing them.
 */
#if defined(__KERNEL__) || !__STDC_HOSTED__
#define HT_EV_OFF       NULL
#define HT_EV_LINK(ident)
#else
#define HT_EV_OFF       (&ht_off)
#define HT_EV_LINK(ident)                                                   \
    static struct ht_class *const ht_link_##ident                           \
        __attribute__((section("ht_classes"), used HT_EV_RETAIN)) =         \
            &ht_class_##ident;

#define HT_EV_RETAIN
#ifdef __has_attribute
#if __has_attribute(retain)
#undef HT_EV_RETAIN
#define HT_EV_RETAIN    , retain
#endif
#endif

/*
 * Enable byte of all classes that were not passed to the library yet: always 0,
 * which means off
 */
__attribute__((weak, visibility("hidden"))) uint8_t ht_off = 0;
#endif

/*
 * Kinds of fields.  The first word, such as INT, selects the macros that expand
 * the field.  INT is followed by the C type, the number of bits, and the kind
 * and flags in the message that registers the class.  FLOAT is followed by the
 * C type, the number of bytes and the kind.  LABELS is followed by flags to add
 * to those of the integer.
 */
#define HT_EV_u8        INT, uint8_t,   8, HT_FIELD_U8,  0
#define HT_EV_u16       INT, uint16_t, 16, HT_FIELD_U16, 0
#define HT_EV_u32       INT, uint32_t, 32, HT_FIELD_U32, 0
#define HT_EV_u64       INT, uint64_t, 64, HT_FIELD_U64, 0
#define HT_EV_s8        INT, int8_t,    8, HT_FIELD_S8,  0
#define HT_EV_s16       INT, int16_t,  16, HT_FIELD_S16, 0
#define HT_EV_s32       INT, int32_t,  32, HT_FIELD_S32, 0
#define HT_EV_s64       INT, int64_t,  64, HT_FIELD_S64, 0
#define HT_EV_x8        INT, uint8_t,   8, HT_FIELD_U8,  HT_FIELD_HEX
#define HT_EV_x16       INT, uint16_t, 16, HT_FIELD_U16, HT_FIELD_HEX
#define HT_EV_x32       INT, uint32_t, 32, HT_FIELD_U32, HT_FIELD_HEX
#define HT_EV_x64       INT, uint64_t, 64, HT_FIELD_U64, HT_FIELD_HEX
#ifndef __KERNEL__
#define HT_EV_f32       FLOAT, float, 4, HT_FIELD_F32
#define HT_EV_f64       FLOAT, double, 8, HT_FIELD_F64
#endif
#define HT_EV_bool      BOOL
/* For (bool, f), if "bool" is a macro for _Bool */
#define HT_EV__Bool     BOOL
#define HT_EV_ptr       PTR
#define HT_EV_enum      LABELS, HT_FIELD_LABELS
#define HT_EV_flags     LABELS, HT_FIELD_LABELS | HT_FIELD_BITS
#define HT_EV_text      TEXT
#define HT_EV_bytes     BYTES
#define HT_EV_seq       SEQ
#define HT_EV_array     ARRAY
#define HT_EV_chars     CHARS

#define HT_EV_FROM(...)                 HT_EV_FROM_(__VA_ARGS__)
#define HT_EV_FROM_(form, type, bits, kind, flags) const type *
#define HT_EV_ELEM(...)                 HT_EV_ELEM_(__VA_ARGS__)
#define HT_EV_ELEM_(form, type, bits, kind, flags) kind, flags

/*
 * Expansions of a field.  DESC: its struct ht_field.  PARAM: its parameters of
 * the emit function.  ARG: these parameters as arguments of a call.  LEN: for a
 * text, a variable with its length.  SIZE: the field's term in the sum of the
 * payload's size.  PUT: the code that writes the field's bytes.
 */
#define HT_EV_DESC(kind, ...)   HT_EV_CALL(DESC, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_PARAM(kind, ...)  HT_EV_CALL(PARAM, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_ARG(kind, ...)    HT_EV_CALL(ARG, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_LEN(kind, ...)    HT_EV_CALL(LEN, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_SIZE(kind, ...)   HT_EV_CALL(SIZE, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_PUT(kind, ...)    HT_EV_CALL(PUT, HT_EV_##kind, __VA_ARGS__)
#define HT_EV_CALL(what, ...)           HT_EV_CALL_(what, __VA_ARGS__)
#define HT_EV_CALL_(what, form, ...)    HT_EV_##what##_##form(__VA_ARGS__)

#define HT_EV_DESC_INT(type, bits, kind, flags, n) { #n, kind, 0, flags, 0, 0 },
#define HT_EV_PARAM_INT(type, bits, kind, flags, n) , type ht_a_##n
#define HT_EV_ARG_INT(type, bits, kind, flags, n) , ht_a_##n
#define HT_EV_LEN_INT(type, bits, kind, flags, n)
#define HT_EV_SIZE_INT(type, bits, kind, flags, n) + bits / 8
#define HT_EV_PUT_INT(type, bits, kind, flags, n)                           \
    ht_put##bits(ht_p_, (uint##bits##_t)ht_a_##n);                          \
    ht_p_ += bits / 8;

__attribute__((unused))
static const struct ht_label ht_labels_bool[] = {
    { 0, "false" }, { 1, "true" },
};

#define HT_EV_DESC_BOOL(n)                                                  \
    { #n, HT_FIELD_U8, 0, HT_FIELD_LABELS, 2, ht_labels_bool },
#define HT_EV_PARAM_BOOL(n)     , bool ht_a_##n
#define HT_EV_ARG_BOOL(n)       , ht_a_##n
#define HT_EV_LEN_BOOL(n)
#define HT_EV_SIZE_BOOL(n)      + 1
#define HT_EV_PUT_BOOL(n)                                                   \
    ht_put8(ht_p_, ht_a_##n);                                               \
    ht_p_ += 1;

#define HT_EV_DESC_PTR(n)       { #n, HT_FIELD_U64, 0, HT_FIELD_HEX, 0, 0 },
#define HT_EV_PARAM_PTR(n)      , const void *ht_a_##n
#define HT_EV_ARG_PTR(n)        , ht_a_##n
#define HT_EV_LEN_PTR(n)
#define HT_EV_SIZE_PTR(n)       + 8
#define HT_EV_PUT_PTR(n)                                                    \
    ht_put64(ht_p_, (uint64_t)(uintptr_t)ht_a_##n);                         \
    ht_p_ += 8;

#define HT_EV_DESC_LABELS(more, k, n, l) HT_EV_LABELLED(n, l, more, HT_EV_##k)
#define HT_EV_PARAM_LABELS(more, k, n, l) HT_EV_AS(PARAM, HT_EV_##k, n)
#define HT_EV_ARG_LABELS(more, k, n, l) , ht_a_##n
#define HT_EV_LEN_LABELS(more, k, n, l)
#define HT_EV_SIZE_LABELS(more, k, n, l) HT_EV_AS(SIZE, HT_EV_##k, n)
#define HT_EV_PUT_LABELS(more, k, n, l) HT_EV_AS(PUT, HT_EV_##k, n)

#define HT_EV_LABELLED(n, l, more, ...) HT_EV_LABELLED_(n, l, more, __VA_ARGS__)
#define HT_EV_LABELLED_(n, l, more, form, type, bits, kind, flags)          \
    { #n, kind, 0, (flags) | (more), sizeof(l) / sizeof(*(l)), l },

/*
 * Copy of HT_EV_CALL() for use inside an expansion of HT_EV_CALL(): a macro
 * cannot expand itself.
 */
#define HT_EV_AS(what, ...)             HT_EV_AS_(what, __VA_ARGS__)
#define HT_EV_AS_(what, form, ...)      HT_EV_##what##_##form(__VA_ARGS__)

#define HT_EV_DESC_FLOAT(type, bytes, kind, n) { #n, kind, 0, 0, 0, 0 },
#define HT_EV_PARAM_FLOAT(type, bytes, kind, n) , type ht_a_##n
#define HT_EV_ARG_FLOAT(type, bytes, kind, n) , ht_a_##n
#define HT_EV_LEN_FLOAT(type, bytes, kind, n)
#define HT_EV_SIZE_FLOAT(type, bytes, kind, n) + bytes
#define HT_EV_PUT_FLOAT(type, bytes, kind, n)                               \
    ht_copy(ht_p_, &ht_a_##n, bytes);                                       \
    ht_p_ += bytes;

/* Compute a text's length once, since another thread may change the text. */
#define HT_EV_DESC_TEXT(n)      { #n, HT_FIELD_TEXT, 0, 0, 0, 0 },
#define HT_EV_PARAM_TEXT(n)     , const char *ht_a_##n
#define HT_EV_ARG_TEXT(n)       , ht_a_##n
#define HT_EV_LEN_TEXT(n)       const size_t ht_n_##n = ht_strlen(ht_a_##n);
#define HT_EV_SIZE_TEXT(n)      HT_EV_SIZE_BYTES(n)
#define HT_EV_PUT_TEXT(n)       HT_EV_PUT_BYTES(n)

#define HT_EV_DESC_BYTES(n)                                                 \
    { #n, HT_FIELD_SEQUENCE, HT_FIELD_U8, HT_FIELD_HEX, 0, 0 },
#define HT_EV_PARAM_BYTES(n)    , const void *ht_a_##n, size_t ht_n_##n
#define HT_EV_ARG_BYTES(n)      , ht_a_##n, ht_n_##n
#define HT_EV_LEN_BYTES(n)
#define HT_EV_SIZE_BYTES(n)     + ht_seq_size(ht_n_##n, 1)
#define HT_EV_PUT_BYTES(n)                                                  \
    ht_p_ = ht_put_seq(ht_p_, ht_a_##n, ht_n_##n, 1);

#define HT_EV_DESC_SEQ(k, n)                                                \
    { #n, HT_FIELD_SEQUENCE, HT_EV_ELEM(HT_EV_##k), 0, 0 },
#define HT_EV_PARAM_SEQ(k, n)                                               \
    , HT_EV_FROM(HT_EV_##k) ht_a_##n, size_t ht_n_##n
#define HT_EV_ARG_SEQ(k, n)     , ht_a_##n, ht_n_##n
#define HT_EV_LEN_SEQ(k, n)
#define HT_EV_SIZE_SEQ(k, n)    + ht_seq_size(ht_n_##n, sizeof(*ht_a_##n))
#define HT_EV_PUT_SEQ(k, n)                                                 \
    ht_p_ = ht_put_seq(ht_p_, ht_a_##n, ht_n_##n, sizeof(*ht_a_##n));

#define HT_EV_DESC_ARRAY(k, n, c)                                           \
    { #n, HT_FIELD_ARRAY, HT_EV_ELEM(HT_EV_##k), c, 0 },
#define HT_EV_PARAM_ARRAY(k, n, c) , HT_EV_FROM(HT_EV_##k) ht_a_##n
#define HT_EV_ARG_ARRAY(k, n, c) , ht_a_##n
#define HT_EV_LEN_ARRAY(k, n, c)
#define HT_EV_SIZE_ARRAY(k, n, c) + (c) * sizeof(*ht_a_##n)
#define HT_EV_PUT_ARRAY(k, n, c)                                            \
    ht_copy(ht_p_, ht_a_##n, (c) * sizeof(*ht_a_##n));                      \
    ht_p_ += (c) * sizeof(*ht_a_##n);

/*
 * (chars, f, 16) declares its parameter as [static 16], so that C compilers
 * warn about an array of fewer bytes.  C++ has no such syntax.
 */
#ifdef __cplusplus
#define HT_EV_AT_LEAST
#else
#define HT_EV_AT_LEAST                                                      \
    static
#endif
#define HT_EV_DESC_CHARS(n, c)                                              \
    { #n, HT_FIELD_ARRAY, HT_FIELD_U8, HT_FIELD_UTF8, c, 0 },
#define HT_EV_PARAM_CHARS(n, c) , const char ht_a_##n[HT_EV_AT_LEAST c]
#define HT_EV_ARG_CHARS(n, c)   , ht_a_##n
#define HT_EV_LEN_CHARS(n, c)
#define HT_EV_SIZE_CHARS(n, c)  + (c)
#define HT_EV_PUT_CHARS(n, c)                                               \
    ht_copy(ht_p_, ht_a_##n, c);                                            \
    ht_p_ += c;

/*
 * Size of a sequence whose count exceeds 16 bits.  No packet has room for it,
 * so the event is discarded; the sum of 32 such sizes fits 32 bits.
 */
#define HT_EV_TOO_LONG          (1u << 26)

static inline uint32_t ht_seq_size(size_t count, uint32_t elem)
{
    return ht_likely(count <= 0xffff) ? 2 + (uint32_t)count * elem :
                                        HT_EV_TOO_LONG;
}

static inline uint8_t *ht_put_seq(uint8_t *p, const void *from, size_t count,
                                  uint32_t elem)
{
    ht_put16(p, (uint16_t)count);
    p += 2;
    if (count) {
        ht_copy(p, from, count * elem);
    }
    return p + count * elem;
}

/* HT_EV_EACH(m, (a), (b)) is m(a) m(b) */
#define HT_EV_EACH(m, ...)                                                  \
    HT_EV_PICK(0, ##__VA_ARGS__, HT_EV_32, HT_EV_31, HT_EV_30, HT_EV_29,    \
               HT_EV_28, HT_EV_27, HT_EV_26, HT_EV_25, HT_EV_24, HT_EV_23,  \
               HT_EV_22, HT_EV_21, HT_EV_20, HT_EV_19, HT_EV_18, HT_EV_17,  \
               HT_EV_16, HT_EV_15, HT_EV_14, HT_EV_13, HT_EV_12, HT_EV_11,  \
               HT_EV_10, HT_EV_9, HT_EV_8, HT_EV_7, HT_EV_6, HT_EV_5,       \
               HT_EV_4, HT_EV_3, HT_EV_2, HT_EV_1, HT_EV_0)(m, ##__VA_ARGS__)
#define HT_EV_PICK(z, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12,    \
                   a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23,   \
                   a24, a25, a26, a27, a28, a29, a30, a31, a32, x, ...) x
#define HT_EV_0(m)
#define HT_EV_1(m, a)           m a
#define HT_EV_2(m, a, ...)      m a HT_EV_1(m, __VA_ARGS__)
#define HT_EV_3(m, a, ...)      m a HT_EV_2(m, __VA_ARGS__)
#define HT_EV_4(m, a, ...)      m a HT_EV_3(m, __VA_ARGS__)
#define HT_EV_5(m, a, ...)      m a HT_EV_4(m, __VA_ARGS__)
#define HT_EV_6(m, a, ...)      m a HT_EV_5(m, __VA_ARGS__)
#define HT_EV_7(m, a, ...)      m a HT_EV_6(m, __VA_ARGS__)
#define HT_EV_8(m, a, ...)      m a HT_EV_7(m, __VA_ARGS__)
#define HT_EV_9(m, a, ...)      m a HT_EV_8(m, __VA_ARGS__)
#define HT_EV_10(m, a, ...)     m a HT_EV_9(m, __VA_ARGS__)
#define HT_EV_11(m, a, ...)     m a HT_EV_10(m, __VA_ARGS__)
#define HT_EV_12(m, a, ...)     m a HT_EV_11(m, __VA_ARGS__)
#define HT_EV_13(m, a, ...)     m a HT_EV_12(m, __VA_ARGS__)
#define HT_EV_14(m, a, ...)     m a HT_EV_13(m, __VA_ARGS__)
#define HT_EV_15(m, a, ...)     m a HT_EV_14(m, __VA_ARGS__)
#define HT_EV_16(m, a, ...)     m a HT_EV_15(m, __VA_ARGS__)
#define HT_EV_17(m, a, ...)     m a HT_EV_16(m, __VA_ARGS__)
#define HT_EV_18(m, a, ...)     m a HT_EV_17(m, __VA_ARGS__)
#define HT_EV_19(m, a, ...)     m a HT_EV_18(m, __VA_ARGS__)
#define HT_EV_20(m, a, ...)     m a HT_EV_19(m, __VA_ARGS__)
#define HT_EV_21(m, a, ...)     m a HT_EV_20(m, __VA_ARGS__)
#define HT_EV_22(m, a, ...)     m a HT_EV_21(m, __VA_ARGS__)
#define HT_EV_23(m, a, ...)     m a HT_EV_22(m, __VA_ARGS__)
#define HT_EV_24(m, a, ...)     m a HT_EV_23(m, __VA_ARGS__)
#define HT_EV_25(m, a, ...)     m a HT_EV_24(m, __VA_ARGS__)
#define HT_EV_26(m, a, ...)     m a HT_EV_25(m, __VA_ARGS__)
#define HT_EV_27(m, a, ...)     m a HT_EV_26(m, __VA_ARGS__)
#define HT_EV_28(m, a, ...)     m a HT_EV_27(m, __VA_ARGS__)
#define HT_EV_29(m, a, ...)     m a HT_EV_28(m, __VA_ARGS__)
#define HT_EV_30(m, a, ...)     m a HT_EV_29(m, __VA_ARGS__)
#define HT_EV_31(m, a, ...)     m a HT_EV_30(m, __VA_ARGS__)
#define HT_EV_32(m, a, ...)     m a HT_EV_31(m, __VA_ARGS__)

#endif /* HYPERTRACE_EVENT_H */
