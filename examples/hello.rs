// SPDX-License-Identifier: MIT
//! One event a greeting, from Rust: the library's symbols as extern "C".
//!
//!     rustc hello.rs -l hypertrace
use std::ffi::{c_char, c_uint, c_void};

const U32: u8 = 3; // enum ht_field_kind
const TEXT: u8 = 16;

#[repr(C)]
struct Field {
    name: *const c_char,
    kind: u8,
    elem: u8,
    flags: u8,
    count: u16,
}

extern "C" {
    fn ht_event_new(
        name: *const c_char,
        fields: *const Field,
        nr_fields: c_uint,
        loglevel: c_uint,
    ) -> *mut c_void;
    fn ht_event_is_on(class: *const c_void) -> bool;
    fn ht_event_emit(class: *const c_void, payload: *const u8, size: u32) -> bool;
}

fn field(name: &'static [u8], kind: u8) -> Field {
    Field { name: name.as_ptr().cast(), kind, elem: 0, flags: 0, count: 0 }
}

fn main() {
    let fields = [field(b"n\0", U32), field(b"who\0", TEXT)];
    let hello = unsafe { ht_event_new(b"hello\0".as_ptr().cast(), fields.as_ptr(), 2, 14) };

    for n in 0u32..10 {
        if unsafe { ht_event_is_on(hello) } {
            let who = b"world";
            let mut payload = n.to_le_bytes().to_vec();
            payload.extend((who.len() as u16).to_le_bytes());
            payload.extend(who);
            unsafe { ht_event_emit(hello, payload.as_ptr(), payload.len() as u32) };
        }
    }
}
