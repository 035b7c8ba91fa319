#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One event a greeting, from Python: the library's symbols through ctypes."""

import ctypes
import struct

U32, TEXT = 3, 16           # enum ht_field_kind


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_uint8),
                ("elem", ctypes.c_uint8), ("flags", ctypes.c_uint8),
                ("count", ctypes.c_uint16)]


ht = ctypes.CDLL("libhypertrace.so.0")
ht.ht_event_new.restype = ctypes.c_void_p
ht.ht_event_new.argtypes = (ctypes.c_char_p, ctypes.POINTER(Field),
                            ctypes.c_uint, ctypes.c_uint)
ht.ht_event_is_on.restype = ctypes.c_bool
ht.ht_event_is_on.argtypes = (ctypes.c_void_p,)
ht.ht_event_emit.restype = ctypes.c_bool
ht.ht_event_emit.argtypes = (ctypes.c_void_p, ctypes.c_char_p,
                             ctypes.c_uint32)

hello = ht.ht_event_new(b"hello", (Field * 2)(Field(b"n", U32),
                                              Field(b"who", TEXT)), 2, 14)
for n in range(10):
    if ht.ht_event_is_on(hello):
        who = "world".encode()
        payload = struct.pack("<IH", n, len(who)) + who
        ht.ht_event_emit(hello, payload, len(payload))
