// SPDX-License-Identifier: MIT
//! One event for each greeting, from Rust: the library's functions as extern "C".
//!
//!     rustc hello.rs -l hypertrace
use std::ffi::{c_char, c_int, c_uint, c_void, CString};
use std::marker::PhantomData;

/// struct ht_value: eight bytes for a number or an address, a size, a type
#[repr(C)]
struct Value<'a> {
    number: u64,
    size: u32,
    kind: u32,
    borrowed: PhantomData<&'a str>,
}

impl From<u64> for Value<'_> {
    fn from(n: u64) -> Self {
        Value { number: n, size: 0, kind: 1, borrowed: PhantomData }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value {
            number: text.as_ptr() as u64,
            size: text.len() as u32,
            kind: 4,
            borrowed: PhantomData,
        }
    }
}

extern "C" {
    fn ht_event_parse(text: *const c_char) -> *const c_void;
    fn ht_event_is_on(class: *const c_void) -> bool;
    fn ht_event_values(class: *const c_void, values: *const Value, n: c_uint) -> c_int;
}

/// Safe, as the library checks the values and keeps a class for good
struct Event(*const c_void);

impl Event {
    fn new(description: &str) -> Option<Event> {
        let text = CString::new(description).ok()?;
        let class = unsafe { ht_event_parse(text.as_ptr()) };
        (!class.is_null()).then_some(Event(class))
    }

    fn is_on(&self) -> bool {
        unsafe { ht_event_is_on(self.0) }
    }

    fn emit(&self, values: &[Value]) {
        let r = unsafe { ht_event_values(self.0, values.as_ptr(), values.len() as c_uint) };
        assert!(r >= 0, "the values do not fit the event");
    }
}

fn main() {
    let hello = Event::new("hello u32 n; text who").expect("a description");

    for n in 0..10u64 {
        if hello.is_on() {
            hello.emit(&[n.into(), "world".into()]);
        }
    }
}
