/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: make probes of the trace events in HT_HEADER, one of the
 * kernel's headers
 *
 * Like <trace/trace_events.h>, this file includes HT_HEADER several times, each
 * time with macros from <trace/stages/> that generate another part of the
 * events' code.  Unlike ftrace's entry, the entry that TP_fast_assign() fills
 * in has neither a header nor holes.  An entry of fixed size is the payload of
 * the event.  It is assembled on the stack and then copied into the stream,
 * because assignments may read the entry, and the host can write to the stream.
 *
 * The file has no include guard, since it is the body of a source file.
 */
#include "events-includes.h"

/*
 * Declare the tracepoints.  CREATE_TRACE_POINTS enables helper functions of the
 * header that the assignments need.  It also defines the tracepoints, which the
 * kernel already does, so suppress these definitions.
 */
#undef TRACEPOINTS_ENABLED
#undef DEFINE_TRACE
#undef DEFINE_TRACE_FN
#undef DEFINE_TRACE_SYSCALL
#define DEFINE_TRACE(...)
#define DEFINE_TRACE_FN(...)
#define DEFINE_TRACE_SYSCALL(...)
#define CREATE_TRACE_POINTS
#include HT_HEADER
#undef CREATE_TRACE_POINTS

#define TRACE_HEADER_MULTI_READ

/* Macros whose declarations make no event, so they expand to nothing */
#undef DECLARE_TRACE
#undef DECLARE_TRACE_CONDITION
#undef DECLARE_TRACE_EVENT
#undef DECLARE_TRACE_EVENT_CONDITION
#undef DECLARE_TRACE_SYSCALL
#undef TRACE_EVENT_NOP
#undef DEFINE_EVENT_NOP
#undef DECLARE_EVENT_NOP
#undef DECLARE_EVENT_CLASS_NOP
#undef TRACE_EVENT_FLAGS
#undef TRACE_EVENT_PERF_PERM
#define DECLARE_TRACE(...)
#define DECLARE_TRACE_CONDITION(...)
#define DECLARE_TRACE_EVENT(...)
#define DECLARE_TRACE_EVENT_CONDITION(...)
#define DECLARE_TRACE_SYSCALL(...)
#define TRACE_EVENT_NOP(...)
#define DEFINE_EVENT_NOP(...)
#define DECLARE_EVENT_NOP(...)
#define DECLARE_EVENT_CLASS_NOP(...)
#define TRACE_EVENT_FLAGS(...)
#define TRACE_EVENT_PERF_PERM(...)

/*
 * Expand TRACE_EVENT() and its variants to a class with one event, and the
 * variants of DEFINE_EVENT() to DEFINE_EVENT()
 */
#undef TRACE_EVENT
#undef TRACE_EVENT_CONDITION
#undef TRACE_EVENT_FN
#undef TRACE_EVENT_FN_COND
#undef TRACE_EVENT_SYSCALL
#undef DECLARE_EVENT_SYSCALL_CLASS
#undef DEFINE_EVENT_CONDITION
#undef DEFINE_EVENT_FN
#undef DEFINE_EVENT_PRINT
#undef DEFINE_EVENT_SYSCALL
#define TRACE_EVENT(name, proto, args, tstruct, assign, print)		\
	DECLARE_EVENT_CLASS(name, PARAMS(proto), PARAMS(args),		\
			    PARAMS(tstruct), PARAMS(assign), PARAMS(print)) \
	DEFINE_EVENT(name, name, PARAMS(proto), PARAMS(args))
#define TRACE_EVENT_CONDITION(name, proto, args, cond, tstruct, assign, print, \
			      ...)					\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),	\
		    PARAMS(assign), PARAMS(print))
#define TRACE_EVENT_FN(name, proto, args, tstruct, assign, print, ...)	\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),	\
		    PARAMS(assign), PARAMS(print))
#define TRACE_EVENT_FN_COND TRACE_EVENT_CONDITION
#define TRACE_EVENT_SYSCALL TRACE_EVENT_FN
#define DECLARE_EVENT_SYSCALL_CLASS DECLARE_EVENT_CLASS
#define DEFINE_EVENT_FN(template, name, proto, args, ...)		\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))
#define DEFINE_EVENT_CONDITION DEFINE_EVENT_FN
#define DEFINE_EVENT_PRINT DEFINE_EVENT_FN
#define DEFINE_EVENT_SYSCALL DEFINE_EVENT_FN

#undef DEFINE_EVENT
#define DEFINE_EVENT(template, name, proto, args)

/* Stage 1: expand each class of events to the structure of its entry */
#include <trace/stages/stage1_struct_define.h>
#undef TRACE_DEFINE_ENUM
#undef TRACE_DEFINE_SIZEOF
#define TRACE_DEFINE_ENUM(a)
#define TRACE_DEFINE_SIZEOF(a)
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
	struct trace_event_raw_##call {					\
		tstruct							\
		DECLARE_FLEX_ARRAY(char, __data);			\
	} __packed;
#include HT_HEADER

/*
 * Stage 2: expand each class of events to a structure for offset and size of
 * the data of each word __data_loc_x
 */
#include <trace/stages/stage2_data_offsets.h>
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
	struct trace_event_data_offsets_##call {			\
		tstruct							\
	};
#include HT_HEADER

/*
 * The number of an entry's words __data_loc_x, then a function that stores
 * these words in an array.  The macros for strings and bitmasks expand to
 * __dynamic_array().
 */
#undef __dynamic_array
#undef __rel_dynamic_array
#define __dynamic_array(type, item, len) + 1
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
	enum { hte_nr_dynamic_##call = 0 tstruct };
#include HT_HEADER

#undef __dynamic_array
#define __dynamic_array(type, item, len) *locs++ = offsets->item;
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
static __always_inline void						\
hte_locs_##call(const struct trace_event_data_offsets_##call *offsets,	\
		u32 *locs)						\
{									\
	tstruct								\
}
#include HT_HEADER

/* The description of the entry's fields */
#include <trace/stages/stage4_event_fields.h>
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
static const struct trace_event_fields __maybe_unused hte_raw_##call[] = { \
	tstruct								\
	{ }								\
};
#include HT_HEADER

/*
 * A function that computes the offset and the size of the data of each word
 * __data_loc_x, and returns the total of the sizes
 */
#include <trace/stages/stage5_get_offsets.h>
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
static __always_inline int						\
hte_get_offsets_##call(struct trace_event_data_offsets_##call *__data_offsets, \
		       proto)						\
{									\
	struct trace_event_raw_##call __maybe_unused *entry;		\
	int __maybe_unused __item_length;				\
	int __data_size = 0;						\
									\
	tstruct								\
	return __data_size;						\
}
#include HT_HEADER

/*
 * The probe.  Assignments of strings use macros of stage 3, which stage 6 of
 * Linux 6.1 does not include.
 */
#include <trace/stages/stage3_trace_output.h>
#include <trace/stages/stage6_event_callback.h>
#undef __perf_count
#undef __perf_task
#define __perf_count(c) (c)
#define __perf_task(t) (t)
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)	\
static notrace void __maybe_unused					\
hte_probe_##call(void *__data, proto)					\
{									\
	struct trace_event_data_offsets_##call				\
		__maybe_unused HTE_UNINITIALIZED __data_offsets;	\
	struct trace_event_raw_##call HTE_UNINITIALIZED hte_entry_;	\
	struct trace_event_raw_##call *entry = &hte_entry_;		\
	struct hte_emit_state HTE_UNINITIALIZED hte_m_;			\
	int __maybe_unused __data_size =				\
		hte_get_offsets_##call(&__data_offsets, args);		\
									\
	if (hte_nr_dynamic_##call) {					\
		entry = hte_begin_dynamic(__data, &hte_m_,		\
					  sizeof(*entry) + __data_size); \
		if (!entry)						\
			return;						\
	} else {							\
		memset(entry, 0, sizeof(*entry));			\
	}								\
	tstruct								\
	{ assign; }							\
	if (hte_nr_dynamic_##call) {					\
		u32 HTE_UNINITIALIZED hte_locs_[hte_nr_dynamic_##call + 1]; \
									\
		hte_locs_##call(&__data_offsets, hte_locs_);		\
		hte_end_dynamic(__data, &hte_m_, hte_locs_);		\
	} else {							\
		hte_emit(__data, entry, sizeof(*entry));		\
	}								\
}
#include HT_HEADER

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)
#undef DEFINE_EVENT
#define DEFINE_EVENT(template, call, proto, args)			\
static struct hte_event hte_event_##call = {				\
	.system = __stringify(TRACE_SYSTEM),				\
	.name = #call,							\
	.probe = hte_probe_##template,					\
	.raw = hte_raw_##template,					\
	.size = sizeof(struct trace_event_raw_##template),		\
	.nr_dynamic = hte_nr_dynamic_##template,			\
};									\
static struct hte_event *const hte_event_ptr_##call HTE_SECTION =	\
	&hte_event_##call;
#include HT_HEADER
