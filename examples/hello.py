#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One event a greeting, from Python: the library's functions through ctypes."""

import ctypes

UNSIGNED, SIGNED, FLOAT, MEMORY = 1, 2, 3, 4    # enum ht_value_type


class Number(ctypes.Union):
    _fields_ = [("u", ctypes.c_uint64), ("s", ctypes.c_int64),
                ("f", ctypes.c_double), ("p", ctypes.c_char_p)]


class Value(ctypes.Structure):
    """struct ht_value"""
    _fields_ = [("number", Number), ("count", ctypes.c_uint32),
                ("type", ctypes.c_uint32)]

    def __init__(self, value):
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            super().__init__(Number(p=value), len(value), MEMORY)
        elif isinstance(value, float):
            super().__init__(Number(f=value), 0, FLOAT)
        elif value < 0:
            super().__init__(Number(s=value), 0, SIGNED)
        else:
            super().__init__(Number(u=value), 0, UNSIGNED)


ht = ctypes.CDLL("libhypertrace.so.0")
ht.ht_event_parse.restype = ctypes.c_void_p
ht.ht_event_is_on.restype = ctypes.c_bool
ht.ht_event_is_on.argtypes = (ctypes.c_void_p,)
ht.ht_event_values.argtypes = (ctypes.c_void_p, ctypes.POINTER(Value),
                               ctypes.c_uint)


class Event:
    """Event("disk.error:err x64 sector; text what")(4711, "short read")"""

    def __init__(self, description):
        self.event = ht.ht_event_parse(description.encode())
        if not self.event:
            raise ValueError(description)

    def __call__(self, *values):
        if ht.ht_event_is_on(self.event):
            array = (Value * len(values))(*map(Value, values))
            if ht.ht_event_values(self.event, array, len(values)) < 0:
                raise ValueError(values)


hello = Event("hello u32 n; text who")
for n in range(10):
    hello(n, "world")
