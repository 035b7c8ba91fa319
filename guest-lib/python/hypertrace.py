# SPDX-License-Identifier: MIT
"""Emit trace events from a virtual machine to its host.

    import hypertrace

    failed = hypertrace.Event("disk.error:err x64 sector; text what")
    failed(4711, "short read")

The host chooses the events that it records. Without a device, or if the host
does not want an event, a call discards the event and does not fail.
"""

import ctypes
from array import array

__all__ = ["Event", "status"]

_UNSIGNED, _SIGNED, _FLOAT, _MEMORY = 1, 2, 3, 4    # enum ht_value_type


class _Number(ctypes.Union):
    _fields_ = [("u", ctypes.c_uint64), ("s", ctypes.c_int64),
                ("f", ctypes.c_double), ("p", ctypes.c_char_p)]


class _Value(ctypes.Structure):
    """struct ht_value"""

    _fields_ = [("number", _Number), ("size", ctypes.c_uint32),
                ("type", ctypes.c_uint32)]

    def __init__(self, value):
        if isinstance(value, float):
            super().__init__(_Number(f=value), 0, _FLOAT)
        elif isinstance(value, int):
            # ctypes would cut off higher bits silently
            if not -2**63 <= value < 2**64:
                raise ValueError(f"{value} does not fit in 64 bits")
            if value < 0:
                super().__init__(_Number(s=value), 0, _SIGNED)
            else:
                super().__init__(_Number(u=value), 0, _UNSIGNED)
        else:
            if isinstance(value, str):
                value = value.encode("utf-8", "surrogateescape")
            elif isinstance(value, array):
                value = value.tobytes()
            super().__init__(_Number(p=value), len(value), _MEMORY)


_library = ctypes.CDLL("libhypertrace.so.0")
_library.ht_event_parse.argtypes = [ctypes.c_char_p]
_library.ht_event_parse.restype = ctypes.c_void_p
_library.ht_event_is_on.argtypes = [ctypes.c_void_p]
_library.ht_event_is_on.restype = ctypes.c_bool
_library.ht_event_values.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(_Value), ctypes.c_uint]
_library.ht_trace_status.argtypes = [ctypes.POINTER(ctypes.c_char_p)]


class Event:
    """An event class, made from a description for ht_event_parse() (trace.h).

    A process can make at most 1,023 classes, which are never freed: make each
    class once, not in a loop.
    """

    def __init__(self, description):
        self._class = _library.ht_event_parse(description.encode())
        if not self._class:
            raise ValueError(f"not a valid description, or more than 1,023 "
                             f"classes: {description!r}")

    def __bool__(self):
        """Return True if the host wants events of this class now."""
        return _library.ht_event_is_on(self._class)

    def __call__(self, *values):
        """Emit an event: one value for each field.

        A value is an int, a float, str or bytes for text, and bytes or
        array.array for arrays and sequences. If the event is off, the values
        are neither converted nor checked.

        Returns True if the event was committed, and False if it was discarded
        or the host does not want it.
        """
        if not _library.ht_event_is_on(self._class):
            return False
        packed = (_Value * len(values))(*map(_Value, values))
        committed = _library.ht_event_values(self._class, packed, len(values))
        if committed < 0:
            raise ValueError(f"the values do not fit the fields: {values!r}")
        return committed == 1


def status():
    """Return (state, text): 0 if events are recorded, and state in words."""
    why = ctypes.c_char_p()
    state = _library.ht_trace_status(ctypes.byref(why))
    return state, (why.value or b"").decode()
