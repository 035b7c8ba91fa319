// SPDX-License-Identifier: MIT

// One event for each greeting, from Go, by cgo:
//
//	go build hello.go
package main

/*
#cgo pkg-config: hypertrace
#define HT_LIBRARY
#include <hypertrace.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Event is a class of events, which the library keeps for good.
type Event struct {
	class *C.struct_ht_class
}

// NewEvent makes an event from a description, such as
// "disk.error:err x64 sector; text what".
func NewEvent(description string) (Event, error) {
	text := C.CString(description)
	defer C.free(unsafe.Pointer(text))
	class := C.ht_event_parse(text)
	if class == nil {
		return Event{}, fmt.Errorf("not an event: %q", description)
	}
	return Event{class}, nil
}

// On says whether the host wants such events.
func (e Event) On() bool {
	return bool(C.ht_event_is_on(e.class))
}

// Emit emits an event of whole numbers, floating-point numbers and strings.
func (e Event) Emit(values ...any) error {
	array := make([]C.struct_ht_value, len(values)+1)
	for i, value := range values {
		v := &array[i]
		number := unsafe.Pointer(v)
		switch x := value.(type) {
		case int:
			*(*int64)(number) = int64(x)
			v._type = C.HT_VALUE_SIGNED
		case uint64:
			*(*uint64)(number) = x
			v._type = C.HT_VALUE_UNSIGNED
		case float64:
			*(*float64)(number) = x
			v._type = C.HT_VALUE_FLOAT
		case string:
			text := C.CString(x)
			defer C.free(unsafe.Pointer(text))
			*(*unsafe.Pointer)(number) = unsafe.Pointer(text)
			v.size = C.uint32_t(len(x))
			v._type = C.HT_VALUE_MEMORY
		}
	}
	if C.ht_event_values(e.class, &array[0], C.uint(len(values))) < 0 {
		return fmt.Errorf("values that do not fit the event: %v", values)
	}
	return nil
}

func main() {
	hello, err := NewEvent("hello u32 n; text who")
	for n := 0; err == nil && n < 10; n++ {
		if hello.On() {
			err = hello.Emit(n, "world")
		}
	}
	if err != nil {
		panic(err)
	}
}
