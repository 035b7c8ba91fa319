/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make event formats for tests: their types, and lists of events in an array
 * that stands for a kernel's memory
 */
#ifndef FORMATS_MAKE_H
#define FORMATS_MAKE_H

#include "btf-make.h"
#include "hypertrace/kernel-formats.h"

#define FM_BASE     UINT64_C(0x10000)
/*
 * Addresses of ftrace_events, ftrace_common_fields and
 * syscall_get_enter_fields()
 */
#define FM_EVENTS   (FM_BASE + 64)
#define FM_COMMON   (FM_BASE + 96)
#define FM_ENTER    UINT64_C(0x77)

/* Offsets of members and sizes of an invented kernel's structures, in bytes */
enum {
    FM_CALL_CLASS = 16, FM_CALL_NAME = 24, FM_CALL_EVENT = 32,
    FM_CALL_ID = 40, FM_CALL_PRINT = 48, FM_CALL_FLAGS = 56,
    FM_CALL_DATA = 64, FM_CALL_SIZE = 72,
    FM_CLASS_FIELDS = 8, FM_CLASS_GET = 24, FM_CLASS_SIZE = 32,
    FM_FIELD_NAME = 16, FM_FIELD_TYPE = 24, FM_FIELD_OFFSET = 32,
    FM_FIELD_BYTES = 36, FM_FIELD_SIGNED = 40, FM_FIELD_SIZE = 48,
    FM_META_FIELDS = 8, FM_META_SIZE = 24,
};

typedef struct FormatsGuest {
    uint8_t *mem;
    uint64_t size;
    uint64_t used;
    HtFtMem ft;
    HtKernelSpace space;
    HtKernelFormatsAt at;
} FormatsGuest;

/*
 * Add the types of event formats to the types of a kernel. @u32, @u64: numbers
 * of the types of unsigned integers with 32 and 64 bits
 */
void fm_types(BtfMake *m, uint32_t u32, uint32_t u64);

/* Make BTF that has only the types of event formats. */
HtBtf *fm_btf(void);

/*
 * Make a guest with @size bytes of memory; ftrace_events and
 * ftrace_common_fields are empty.
 */
void fm_init(FormatsGuest *g, uint64_t size);
void fm_clear(FormatsGuest *g);

uint64_t fm_get(const FormatsGuest *g, uint64_t addr);
void fm_put(FormatsGuest *g, uint64_t addr, uint64_t v);

/* Copy a text into the memory; returns its address. */
uint64_t fm_text(FormatsGuest *g, const char *text);

/*
 * Add a field at the start of the list of fields at address @head, as the
 * kernel does. @offset, @bytes: its place and size in a record
 */
void fm_field(FormatsGuest *g, uint64_t head, const char *type,
              const char *name, uint32_t offset, uint32_t bytes);

/*
 * Add an event without fields at the start of ftrace_events, as the kernel
 * does. Returns the address of its list of fields.
 */
uint64_t fm_event(FormatsGuest *g, uint32_t id, const char *system,
                  const char *name, const char *print);

/* Remove the event that was added last. */
void fm_remove(FormatsGuest *g);

#endif
